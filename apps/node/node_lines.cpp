// apps/node/node_lines.cpp -- copies the members that have the right type.
#include "apps/node/node_lines.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>

namespace shoal::apps {
namespace {

/// Unix time in milliseconds: up to the year 36,800 or so.
constexpr std::uint64_t unix_ms_max = std::uint64_t{1} << 50;
/// Larger than the limit of a line in a node.
constexpr std::size_t text_bytes_max = 8192;

std::string text_of(const nlohmann::json& from, const char* key) {
  const auto at = from.find(key);
  return at != from.end() && at->is_string()
           ? core::shown(at->get_ref<const std::string&>(), text_bytes_max)
           : std::string();
}

std::uint64_t number_of(const nlohmann::json& from, const char* key) {
  const auto at = from.find(key);
  return at != from.end() && at->is_number_unsigned() ? at->get<std::uint64_t>()
                                                      : 0;
}

} // namespace

model::result<node_lines> parse_lines(std::string_view text) {
  const nlohmann::json from = model::parse_json<nlohmann::json>(text);
  const auto list = from.is_object() ? from.find("lines") : from.end();
  if (!from.is_object() || list == from.end() || !list->is_array())
    return model::failure{"its answer has no lines: it may be of another "
                          "version (see `shoal --version` there)"};
  node_lines out;
  out.node = text_of(from, "node");
  for (const nlohmann::json& line : *list)
    if (line.is_object())
      out.lines.push_back(
        {number_of(line, "number"),
         std::int64_t(std::min(number_of(line, "unix_ms"), unix_ms_max)),
         text_of(line, "text")});
  return out;
}

} // namespace shoal::apps
