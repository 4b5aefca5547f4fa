// runtime/http/client/event_stream.hpp -- the events in a body of type
// text/event-stream.
//
// Lines of fields, and an empty line after each event. Only `data` matters here;
// the lines of one event are joined by '\n'. An event without data is none. The
// result does not depend on how the bytes are cut.
//
// Threads: one. Errors: put() is false once an event is too large.
// Source:  the HTML standard, section 9.2.6.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace shoal::runtime {

class event_stream {
public:
  /// Takes the data of an event. @returns whether to go on
  using taker = std::function<bool(std::string_view data)>;

  /// @param event_bytes_max of a line, and of the data of an event
  explicit event_stream(std::size_t event_bytes_max)
    : event_bytes_max_(event_bytes_max) {}

  enum class step { more, stopped, too_large };
  /// Takes the next bytes of the body, and hands on what they complete. After
  /// another result than `more` it takes nothing.
  step put(std::string_view bytes, const taker& take);

private:
  step end_line(const taker& take);

  std::size_t event_bytes_max_;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool first_ = true; ///< a byte order mark may come
  bool after_cr_ = false;
  step ended_ = step::more;
};

} // namespace shoal::runtime
