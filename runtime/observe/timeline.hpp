// runtime/observe/timeline.hpp -- a trace of what a node does at which time.
//
// A file of Chrome trace events: ui.perfetto.dev and chrome://tracing show it,
// one row for each queue of the node and one for each job's protocol. Every
// event is written when it happens, so the file of a node that was killed ends
// with what the node was doing.
//
//   [
//   {"ph":"B","pid":7,"tid":1,"ts":12.5,"name":"forward","args":{"step":3}},
//   {"ph":"E","pid":7,"tid":1,"ts":14.0},
//
// Units:   microseconds of the system clock: traces of machines whose clocks
//          agree can be shown side by side.
// Threads: any; the spans of one queue come only from its thread.
// Cost:    one system call for each event, none without a file.
// Errors:  std::system_error when the file cannot be opened. If it cannot be
//          written later, the trace ends, not the node; a stalled reader of a
//          pipe loses events, but does not delay the node.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <mutex>
#include <string>
#include <utility>

namespace shoal::runtime {

class timeline {
public:
  using details = std::initializer_list<std::pair<const char*, std::uint64_t>>;
  /// The queues of a node (context.hpp).
  enum class queue : std::uint8_t { device = 1, reductions, disk };

  timeline() = default; ///< writes nothing
  /// @param name of the node, for display
  timeline(const std::filesystem::path& file, const std::string& name);
  ~timeline();
  timeline(const timeline&) = delete;
  timeline& operator=(const timeline&) = delete;

  bool on() const noexcept { return file_.load() >= 0; }

  /// From now until end(), its thread does `what`. Spans nest. Details that are
  /// known at the end only are shown with those of the beginning.
  void begin(queue on, const char* what, details d = {});
  void end(queue on, details d = {});

  /// For an activity that does not belong to one thread: `what` is open for
  /// `id` until it is closed. `what` is one of a few names; activities of one
  /// id may overlap.
  void open(std::uint64_t id, const char* what, details d = {});
  void close(std::uint64_t id, const char* what);

  /// At this size the trace ends, with a note.
  static constexpr std::uint64_t bytes_max = std::uint64_t(1) << 30;

private:
  void write(char phase, const std::string& rest, details d);
  void put(const std::string& line);
  void stop();

  std::atomic<int> file_{-1};
  std::mutex mutex_;
  std::uint64_t bytes_ = 0; ///< written
  std::uint64_t lost_ = 0;  ///< events lost since the last one that was written
};

/// A span of a queue's thread, from its construction to the end of the scope.
class timeline_span {
public:
  timeline_span(timeline& to, timeline::queue on, const char* what,
                timeline::details d = {})
    : to_(to), on_(on) {
    to_.begin(on_, what, d);
  }
  ~timeline_span() { to_.end(on_); }
  timeline_span(const timeline_span&) = delete;
  timeline_span& operator=(const timeline_span&) = delete;

private:
  timeline& to_;
  timeline::queue on_;
};

/// A timeline that writes nothing.
timeline& no_timeline();

} // namespace shoal::runtime
