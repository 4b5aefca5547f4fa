// runtime/observe/recent_lines.hpp -- the last lines that a node has logged.
//
// A node's lines go to its standard output, which may be lost; `shoal logs`
// shows the last ones of any peer. Lines are numbered from 1 in each process,
// so that a reader that returns knows what it has missed.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

namespace shoal::runtime {

class recent_lines {
public:
  /// Minutes of a busy node, hours of an idle one; a reply has room for all of
  /// them (reply_lines_max).
  static constexpr std::size_t lines_max = 1000;
  /// Total size: as JSON at most twice as much, and 64 bytes for each line,
  /// which fits in a reply (status_bytes_max).
  static constexpr std::size_t bytes_max = std::size_t{256} << 10;
  /// Longer ones are cut.
  static constexpr std::size_t line_bytes_max = 4096;

  /// The node's name, once it is known.
  void name(std::string node);

  /// Adds a line of this moment. @pre the line is safe to show
  void add(std::string line);

  /// {"node": "a", "lines": [{"number": 7, "unix_ms": ..., "text": "..."}]}:
  /// the last `count` of the lines numbered `from` or more.
  /// @param next is set to the number of the next line
  std::string
  json(std::uint64_t from, std::size_t count, std::uint64_t& next) const;

private:
  struct line {
    std::int64_t unix_ms = 0;
    std::string text;
  };

  mutable std::mutex mutex_; ///< guards what follows
  std::string node_;
  std::deque<line> lines_; ///< the last one is number next_ - 1
  std::size_t bytes_ = 0;
  std::uint64_t next_ = 1;
};

} // namespace shoal::runtime
