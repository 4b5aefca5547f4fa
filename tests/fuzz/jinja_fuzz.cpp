// tests/fuzz/jinja_fuzz.cpp -- any bytes as a template, and as its variables.
//
// The input is a template, a byte 0, and the variables as JSON. What is rendered
// is UTF-8 with marks in order; what is refused has a reason to show.
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/jinja/template.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

using namespace shoal;
using json = nlohmann::ordered_json;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t end = all.find('\0');
  const auto parsed = jinja::text_template::parse(all.substr(0, end));
  if (!parsed) {
    SHOAL_ASSERT(!parsed.message().empty() && core::is_shown(parsed.message()));
    return 0;
  }
  json variables = json::object();
  if (end != all.npos)
    if (auto read =
          model::parse_json_object<json>(all.substr(end + 1), "variables"))
      variables = *std::move(read);
  const json own = {{"bos_token", "<s>"}, {"d", {{"a", {1, 2.5, "x"}}}}};
  jinja::limits bounds;
  bounds.steps_max = 20'000;
  bounds.output_bytes_max = 1u << 16;
  bounds.made_bytes_max = 1u << 20;
  jinja::text_template::fault why;
  const auto out = parsed->render({&variables, &own, {}, bounds}, why);
  if (!out) {
    SHOAL_ASSERT(core::is_shown(why.message));
    return 0;
  }
  SHOAL_ASSERT(out->bytes.size() <= bounds.output_bytes_max);
  SHOAL_ASSERT(core::is_utf8(out->bytes));
  std::size_t last = 0;
  for (const jinja::text_range& r : out->foreign) {
    SHOAL_ASSERT(r.first >= last && r.first < r.last
                 && r.last <= out->bytes.size());
    last = r.last;
  }
  return 0;
}
