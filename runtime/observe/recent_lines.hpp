// runtime/observe/recent_lines.hpp -- the last lines that a node has said.
//
// A node's lines go to its standard output, which nobody may keep; `shoal logs`
// shows the last ones of any peer. Lines are numbered from 1 in the life of a
// process, so that a reader that comes back knows what it has missed.
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
  /// Minutes of a busy node, hours of one at rest; a reply holds them all
  /// (reply_lines_max).
  static constexpr std::size_t lines_max = 1000;
  /// Bytes of all of them: as JSON at most twice as much, and 64 for each line,
  /// which fits a reply (status_bytes_max).
  static constexpr std::size_t bytes_max = std::size_t{256} << 10;
  /// Longer ones are cut.
  static constexpr std::size_t line_bytes_max = 4096;

  /// The node's name, once it is known.
  void name(std::string node);

  /// @pre the line may be shown; it was said now
  void add(std::string line);

  /// {"node": "a", "lines": [{"number": 7, "unix_ms": ..., "text": "..."}]}:
  /// the last `count` of those numbered `from` or more.
  /// @param next is set to the number that the next line will have
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
