// runtime/model/jinja/template.hpp -- a text template in the language Jinja, as
// chat templates use it.
//
// The same results as jinja2 3.1 with the settings of Hugging Face's
// transformers: trim_blocks, lstrip_blocks, the immutable sandbox, break and
// continue, tojson as json.dumps without ASCII, raise_exception, strftime_now and
// {% generation %}. builtins.hpp lists filters, tests and functions, parser.hpp
// what is refused, values/value.hpp and values/python_text.hpp what differs.
//
// A template opens no file, knows no time but the one that it is given, and stops
// at each of the limits.
//
// Threads: a template is immutable, safe from several threads.
// Cost:    about 100 ns a step.
// Errors:  a failure names the line of the template.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/model/jinja/values/limits.hpp"
#include "runtime/model/jinja/values/marked_text.hpp"

#include <nlohmann/json_fwd.hpp>

#include <ctime>
#include <memory>
#include <string>
#include <string_view>

namespace shoal::jinja {

struct template_parts; // private

class text_template {
public:
  static model::result<text_template> parse(std::string_view source);

  struct input {
    /// Variables from clients: their texts are foreign.
    const nlohmann::ordered_json* foreign = nullptr;
    /// Variables of the model; these win.
    const nlohmann::ordered_json* own = nullptr;
    std::tm now{};
    limits bounds{};
    choice chosen{}; ///< of the clients' variables
  };
  /// A rendering that failed; `by_template` if the template raised it.
  struct fault {
    std::string message;
    bool by_template = false;
  };
  /// @pre variables are objects that parse_json() read
  /// @returns the text; with `why` set on a failure
  std::optional<marked_text> render(const input& from, fault& why) const;

private:
  explicit text_template(std::shared_ptr<const template_parts> parts);
  std::shared_ptr<const template_parts> parts_;
};

} // namespace shoal::jinja
