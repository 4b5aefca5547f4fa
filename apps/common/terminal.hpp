// apps/common/terminal.hpp -- a terminal that is drawn again and again.
//
// Errors: none; what is no terminal has no size.
#pragma once

#include <optional>
#include <string>

namespace shoal::apps {

struct terminal_size {
  int columns = 0;
  int rows = 0;
};

/// Of stdout as it is now; nothing if that is no terminal.
std::optional<terminal_size> stdout_size();

/// What draws `text` over what was drawn before, without a flicker: each line is
/// cut to the width, and those that do not fit are counted in the last one.
/// @pre text is shown (runtime/core/text/shown.hpp), and has lines
std::string redraw(const std::string& text, terminal_size size);

} // namespace shoal::apps
