// apps/plan/plan_words.cpp -- lines that fit a terminal.
#include "apps/plan/plan_words.hpp"

#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view.hpp"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace shoal::apps {

/// Of names in lines that are no rows.
constexpr std::size_t names_in_line = 18;

std::string text(const char* format, ...) {
  std::array<char, 256> out{};
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(out.data(), out.size(), format, arguments);
  va_end(arguments);
  return out.data();
}

std::string wrapped(const std::string& line) {
  constexpr std::size_t wide = 79;
  std::string out, rest = line;
  while (rest.size() > wide) {
    std::size_t at = rest.rfind(' ', wide);
    if (at == std::string::npos || at < 8)
      break;
    out += rest.substr(0, at) + "\n";
    rest = "    " + rest.substr(at + 1);
  }
  return out + rest + "\n";
}

std::string name_of(const core::view& v, const core::member_id& id) {
  const core::member* m = core::find_member(v, id.peer);
  return m && !m->name.empty() ? m->name : core::short_name(id.peer);
}

std::string
names_text(const std::vector<std::string>& names, std::size_t wide) {
  std::string all = names.front();
  for (std::size_t i = 1; i < names.size(); ++i)
    all += ", " + names[i];
  if (all.size() > wide && names.size() > 1) {
    all = names.front() + " .. " + names.back();
    if (all.size() > wide || names.size() == 2)
      all = std::to_string(names.size()) + " peers";
  }
  return core::shown(all, wide);
}

std::string idle_lines(const core::view& v, const core::assignment& a) {
  std::vector<std::pair<std::string, std::vector<std::string>>> idle;
  for (const core::idle_member& m : core::idle_members(v, a)) {
    if (idle.empty() || idle.back().first != m.why)
      idle.push_back({m.why, {}});
    idle.back().second.push_back(name_of(v, m.who));
  }
  std::string out;
  for (const auto& [why, names] : idle)
    out += wrapped("idle: " + names_text(names, names_in_line) + ": " + why);
  return out;
}

} // namespace shoal::apps
