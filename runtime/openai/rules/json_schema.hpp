// runtime/openai/rules/json_schema.hpp -- JSON that a schema allows, as a grammar.
//
// The usable part of JSON Schema (draft 2020-12): `type` (one or several), `enum`,
// `const`, `properties`, `required`, `additionalProperties`, `items`,
// `prefixItems`, `minItems`, `maxItems`, `minLength`, `maxLength`, `pattern`,
// `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `anyOf`, `oneOf`
// whose branches exclude each other, `allOf` that can be merged, `$ref` within
// the schema, also to itself, `format` (string_formats.hpp; names that are none
// of the draft's say nothing). Annotations are passed over. Every other keyword is
// an error that names it, so that no text is produced that the schema forbids.
//
// Of what a schema allows this is produced:
// - properties in the order in which the schema has them; others only where
//   `additionalProperties` is true or a schema, or the schema names none;
// - all elements of `prefixItems`, and more only where `items` says so;
// - white space: none, one space, or a line end and up to 20 spaces or tabs,
//   after { [ , : and before } ];
// - numbers of at most 15 digits before and behind the point; a number between
//   bounds has no exponent;
// - strings with the escapes of JSON but for surrogates; none in names of
//   additional properties and in strings with a `pattern`, where not needed.
//
// Errors: the path in the schema and what is wrong there.
#pragma once

#include "runtime/core/grammar/expression.hpp"
#include "runtime/core/result.hpp"

#include <string_view>

namespace shoal::openai {

class schema_work;

/// @param text the schema, as JSON
model::result<core::grammar::rule_set> json_schema_rules(std::string_view text);
/// @param work what it may cost, with other schemas
model::result<core::grammar::rule_set>
json_schema_rules(std::string_view text, schema_work& work);

/// Any JSON object.
core::grammar::rule_set json_object_rules();

} // namespace shoal::openai
