// apps/plan/plan_words.hpp -- lines that the tables of `shoal plan` share.
#pragma once

#include "runtime/core/ids.hpp"

#include <string>
#include <vector>

namespace shoal::core {
struct assignment; // runtime/core/assignment.hpp
struct view;       // runtime/core/view.hpp
} // namespace shoal::core

namespace shoal::apps {

/// Formats as printf does; at most 255 bytes.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

/// Breaks at spaces so that lines fit 79 columns; continuation lines are
/// indented. Ends with a newline.
std::string wrapped(const std::string& line);

/// The name of a member, or the beginning of its id.
std::string name_of(const core::view& v, const core::member_id& id);

/// "a, b", "a .. d", "7 peers": at most `wide` columns.
std::string names_text(const std::vector<std::string>& names, std::size_t wide);

/// "idle: ..." lines: members without work for the job, by reason.
std::string idle_lines(const core::view& v, const core::assignment& a);

} // namespace shoal::apps
