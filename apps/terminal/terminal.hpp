// apps/terminal/terminal.hpp -- redraws a page on a terminal.
//
// Errors: none; a stream that is no terminal has no size.
#pragma once

#include <optional>
#include <string>

namespace shoal::apps {

struct terminal_size {
  int columns = 0;
  int rows = 0;
};

/// The present size of stdout; nothing if that is no terminal.
std::optional<terminal_size> stdout_size();

/// Whether the process that read stdout has gone, as after `| head`: nobody needs more
/// lines. Of a pipe or a socket; any other stdout stays.
bool stdout_is_gone();

/// The sequence that draws `text` over what was drawn before, without flicker:
/// each line is cut to the width, and those that do not fit are counted in the
/// last one.
/// @pre text is safe to show (runtime/core/text/shown.hpp), and has lines
std::string redraw(const std::string& text, terminal_size size);

} // namespace shoal::apps
