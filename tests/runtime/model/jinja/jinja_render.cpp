// tests/runtime/model/jinja/jinja_render.cpp -- renders templates that come as
// lines of JSON, for jinja2_test.py.
//
//   {"template": TEXT}                     the template of the lines after it
//   {"vars": {...}, "own": {...}}          renders it
//
// Answers each of the latter by a line: {"text": TEXT, "foreign": [[1, 2], ...]}
// or {"error": MESSAGE, "raised": BOOL}.
#include "runtime/files/json.hpp"
#include "runtime/model/jinja/template.hpp"

#include <iostream>
#include <memory>
#include <string>

using namespace shoal;
using json = nlohmann::ordered_json;

int main() {
  std::unique_ptr<jinja::text_template> current;
  std::string refused, line;
  std::tm now{};
  now.tm_year = 126;
  now.tm_mon = 10;
  now.tm_mday = 26;
  now.tm_hour = 15;
  now.tm_min = 4;
  now.tm_wday = 4;
  now.tm_yday = 329;
  while (std::getline(std::cin, line)) {
    const json asked = model::parse_json<json>(line);
    if (asked.contains("template")) {
      auto parsed =
        jinja::text_template::parse(asked["template"].get<std::string>());
      current.reset();
      if (parsed)
        current = std::make_unique<jinja::text_template>(*std::move(parsed));
      else
        refused = parsed.message();
      continue;
    }
    json answer{{"error", refused}, {"raised", false}};
    if (current) {
      jinja::text_template::fault why;
      const json own = asked.value("own", json::object());
      const auto text =
        current->render({&asked["vars"], &own, now, jinja::limits()}, why);
      if (text) {
        answer = {{"text", text->bytes}, {"foreign", json::array()}};
        for (const jinja::text_range& r : text->foreign)
          answer["foreign"].push_back({r.first, r.last});
      } else
        answer = {{"error", why.message}, {"raised", why.by_template}};
    }
    std::cout << model::json_text(answer) << '\n';
  }
  return 0;
}
