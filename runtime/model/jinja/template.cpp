// runtime/model/jinja/template.cpp -- parse once, render often.
#include "runtime/model/jinja/template.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/model/jinja/interpreter.hpp"
#include "runtime/model/jinja/parser.hpp"
#include "runtime/model/jinja/values/value_json.hpp"

#include <new>
#include <stdexcept>

namespace shoal::jinja {

/// Of a message: names and texts of the template may be in it.
static constexpr std::size_t message_bytes_max = 1200;

struct template_parts {
  block code;
};

text_template::text_template(std::shared_ptr<const template_parts> parts)
  : parts_(std::move(parts)) {
}

model::result<text_template> text_template::parse(std::string_view source) {
  if (source.size() > source_bytes_max)
    return model::failure{"longer than " + std::to_string(source_bytes_max)
                          + " bytes"};
  if (!core::is_utf8(source))
    return model::failure{"is not UTF-8"};
  try {
    auto parts = std::make_shared<template_parts>();
    parts->code = parse_template(source);
    return text_template(std::move(parts));
  } catch (const template_error& error) {
    return model::failure{core::shown(error.what(), message_bytes_max)};
  }
}

std::optional<marked_text>
text_template::render(const input& from, fault& why) const {
  interpreter by(from.bounds, from.now);
  try {
    if (from.foreign)
      for (const auto& [name, json] : from.foreign->items())
        by.set(name, from_json(json, true, from.chosen));
    if (from.own)
      for (const auto& [name, json] : from.own->items())
        by.set(name, from_json(json, false));
    return by.run(parts_->code);
  } catch (const std::bad_alloc&) {
    why = {"line " + std::to_string(by.line()) + ": no memory is left", false};
  } catch (const std::length_error&) {
    why = {"line " + std::to_string(by.line()) + ": a text is too long", false};
  } catch (const raised_exception& error) {
    why = {error.what(), true};
  } catch (const template_error& error) {
    why = {
      core::shown("line " + std::to_string(by.line()) + ": " + error.what(),
                  message_bytes_max),
      false};
  }
  return std::nullopt;
}

} // namespace shoal::jinja
