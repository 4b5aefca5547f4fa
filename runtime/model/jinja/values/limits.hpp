// runtime/model/jinja/values/limits.hpp -- what one template may cost, and how it
// fails.
//
// Templates come with models from anywhere, and their input from any client. So
// a rendering counts its steps and the bytes that it makes, and gives up at a
// limit: no template runs for ever or takes all memory.
//
// Errors: inside this room a fault is an exception, template_error; no public
//         function of the room lets one out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace shoal::jinja {

/// Bytes of a template; the largest known have 20 KB.
inline constexpr std::size_t source_bytes_max = 1u << 20;
/// Levels of expressions and statements inside each other.
inline constexpr std::size_t syntax_depth_max = 200;
/// The same while it runs: macros that call themselves, too. A level takes
/// some hundred bytes of the stack.
inline constexpr std::size_t run_depth_max = 1200;
/// Levels of lists and maps inside each other.
inline constexpr std::size_t value_depth_max = 200;
/// Items of a range(), as in Jinja's sandbox.
inline constexpr std::int64_t range_items_max = 100'000;

struct limits {
  /// Expressions computed and items passed over: a conversation takes some
  /// hundred for each message.
  std::uint64_t steps_max = 5'000'000;
  /// Of the text that comes out.
  std::size_t output_bytes_max = 16u << 20;
  /// Of all texts and lists on the way, also those that are gone again.
  std::size_t made_bytes_max = 256u << 20;
};

class template_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Bytes of a message that a template raises.
inline constexpr std::size_t raised_bytes_max = 1024;

/// The template itself refused its input: raise_exception(message).
class raised_exception : public template_error {
public:
  using template_error::template_error;
};

/// What is left of the limits.
class budget {
public:
  explicit budget(const limits& from)
    : steps_(from.steps_max), bytes_(from.made_bytes_max) {}

  void steps(std::uint64_t count) {
    if (count > steps_)
      throw template_error("takes too many steps");
    steps_ -= count;
  }
  void step() { steps(1); }
  void bytes(std::uint64_t count) {
    if (count > bytes_)
      throw template_error("makes too much text");
    bytes_ -= count;
  }

private:
  std::uint64_t steps_;
  std::uint64_t bytes_;
};

} // namespace shoal::jinja
