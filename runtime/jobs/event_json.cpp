// runtime/jobs/event_json.cpp -- fields by kind, with torchtitan's names.
#include "runtime/jobs/event_json.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

namespace shoal::runtime {

namespace {

using json = nlohmann::ordered_json;

struct kind_name {
  job_event_kind kind;
  const char* name;
  const char* meaning;
};
constexpr kind_name kind_names[] = {
  {job_event_kind::step, "step", "an optimizer step is committed"},
  {job_event_kind::view, "view",
   "another view of the shoal, and so another plan, is in effect"},
  {job_event_kind::eval, "eval", "the held-out loss was measured"},
  {job_event_kind::checkpoint, "checkpoint", "a checkpoint is complete"},
  {job_event_kind::notice, "notice", "something that people should know"},
  {job_event_kind::done, "done", "the job has ended: no event follows"},
};

const kind_name& find_kind(job_event_kind kind) {
  const auto* const found =
    std::ranges::find(kind_names, kind, &kind_name::kind);
  SHOAL_ASSERT(found != std::end(kind_names));
  return *found;
}

/// The name of `text` in events of this kind.
const char* text_name(job_event_kind kind) {
  switch (kind) {
  case job_event_kind::view:
    return "plan";
  case job_event_kind::checkpoint:
    return "path";
  case job_event_kind::done:
    return "state";
  default:
    return "text";
  }
}

/// JSON numbers are not safe above 53 bits.
std::string data_text(std::uint64_t digest) {
  std::array<std::uint8_t, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = std::uint8_t(digest >> (56 - 8 * i));
  return core::to_hex(bytes);
}

std::uint64_t data_of(const std::string& text) {
  std::array<std::uint8_t, 8> bytes{};
  if (!core::from_hex(text, bytes))
    return 0;
  std::uint64_t digest = 0;
  for (const std::uint8_t b : bytes)
    digest = digest << 8 | b;
  return digest;
}

/// Leaves `into` unchanged if the value is absent.
/// @returns false for a value that is invalid there
template <class Number>
bool read(const json& from, const char* name, Number& into) {
  const auto found = from.find(name);
  if (found == from.end())
    return true;
  if constexpr (std::is_floating_point_v<Number>) {
    into = found->is_number() ? found->get<Number>()
                              : std::numeric_limits<Number>::quiet_NaN();
    return found->is_number() || found->is_null();
  } else {
    // As 64 bits: the library would silently truncate a number to a smaller
    // type.
    if (found->is_number_unsigned()) {
      const auto value = found->get<std::uint64_t>();
      into = static_cast<Number>(value);
      return std::in_range<Number>(value);
    }
    if (!found->is_number_integer())
      return false;
    const auto value = found->get<std::int64_t>();
    into = static_cast<Number>(value);
    return std::in_range<Number>(value);
  }
}

/// Reads all numbers of an event.
bool read_numbers(const json& line, job_event& event) {
  return read(line, "step", event.step) && read(line, "epoch", event.epoch)
         && read(line, "loss", event.loss)
         && read(line, "grad_norm", event.grad_norm)
         && read(line, "lr", event.lr) && read(line, "tokens", event.tokens)
         && read(line, "tokens_per_s", event.tokens_per_s)
         && read(line, "bubble_percent", event.bubble)
         && read(line, "computing_seconds", event.computing_s)
         && read(line, "reducing_seconds", event.reducing_s)
         && read(line, "bad_steps", event.bad_steps)
         && read(line, "peers", event.peers)
         && read(line, "island", event.island)
         && read(line, "unix_ms", event.unix_ms);
}

/// A field, and the kinds of events that have it.
struct event_row {
  unsigned kinds;
  json_field<job_event> field;
};

constexpr unsigned bit(job_event_kind kind) {
  return 1u << unsigned(kind);
}
constexpr unsigned step = bit(job_event_kind::step);
constexpr unsigned view = bit(job_event_kind::view);
constexpr unsigned eval = bit(job_event_kind::eval);
constexpr unsigned checkpoint = bit(job_event_kind::checkpoint);
constexpr unsigned notice = bit(job_event_kind::notice);
constexpr unsigned done = bit(job_event_kind::done);
constexpr unsigned all = step | view | eval | checkpoint | notice | done;

template <class Value>
json_value unless(const Value& nothing, Value value) {
  return value == nothing ? left_out() : json_value(value);
}

json_value text_if_any(const job_event& e) {
  return unless(std::string(), e.text);
}

json_value digest_if_any(const job_event& e) {
  return e.digest == core::blob_digest{} ? left_out()
                                         : json_value(core::to_hex(e.digest));
}

const std::vector<event_row>& rows() {
  using e = const job_event&;
  static const std::vector<event_row> table{
    {all,
     {"event", "text", "", "which kind of event this is",
      [](e event) { return json_value(find_kind(event.kind).name); }}},
    {view,
     {"epoch", "whole number", "", "of the view, counted up",
      [](e v) { return json_value(v.epoch); }}},
    {view,
     {"peers", "whole number", "", "members of the view",
      [](e v) { return json_value(v.peers); }}},
    {all,
     {"step", "whole number", "", "optimizer steps that were done",
      [](e event) { return json_value(event.step); }}},
    {step | eval,
     {"loss", "number or null", "nats", "mean over tokens; null: not finite",
      [](e event) { return json_value(event.loss); }}},
    {done,
     {"loss", "number or null", "nats",
      "of the last step; null: not finite, or not known to this node",
      [](e d) { return json_value(d.loss); }}},
    {eval,
     {"perplexity", "number or null", "", "e to the power of the loss",
      [](e event) { return json_value(std::exp(event.loss)); }}},
    {step,
     {"grad_norm", "number or null", "",
      "of all gradients, before they are clipped",
      [](e s) { return json_value(s.grad_norm); }}},
    {step,
     {"bad_steps", "whole number, optional", "",
      "steps in a row, up to this one, that were not applied, as their loss or "
      "norm was not finite; left out for 0",
      [](e s) { return unless(0u, s.bad_steps); }}},
    {step,
     {"lr", "number", "", "learning rate of the step",
      [](e s) { return json_value(s.lr); }}},
    {step,
     {"data", "text, optional", "",
      "digest of the samples that the step used: 16 hexadecimal digits; `shoal "
      "audit` checks it",
      [](e s) {
        return s.data == 0 ? left_out() : json_value(data_text(s.data));
      }}},
    {step,
     {"tokens", "whole number", "tokens", "trained on since step 0",
      [](e s) { return json_value(s.tokens); }}},
    {eval,
     {"tokens", "whole number", "tokens", "that the loss is a mean of",
      [](e v) { return json_value(v.tokens); }}},
    {step,
     {"tokens_per_s", "number", "tokens/s", "of this step",
      [](e s) { return json_value(s.tokens_per_s); }}},
    {step,
     {"bubble_percent", "number, optional", "%",
      "part of the computing phase in which peers had nothing to compute",
      [](e s) { return unless(0.0, s.bubble); }}},
    {step,
     {"computing_seconds", "number, optional", "s",
      "from the step's begin to its last backward pass, on the peer that "
      "reports",
      [](e s) {
        return s.computing_s > 0 ? json_value(s.computing_s) : left_out();
      }}},
    {step,
     {"reducing_seconds", "number, optional", "s",
      "from there until all gradients were reduced",
      [](e s) {
        return s.computing_s > 0 ? json_value(s.reducing_s) : left_out();
      }}},
    {all & ~view,
     {"epoch", "whole number, optional", "",
      "of the plan under which this was made",
      [](e event) { return unless(std::uint64_t{0}, event.epoch); }}},
    {step,
     {"peers", "whole number, optional", "", "that computed the step",
      [](e s) { return unless(0u, s.peers); }}},
    {all & ~done,
     {"island", "whole number, optional", "",
      "of the job that this is about, from 0; left out for 0",
      [](e event) { return unless(0u, event.island); }}},
    {view,
     {"plan", "text, optional", "", "what runs where, in words", text_if_any}},
    {checkpoint,
     {"path", "text, optional", "",
      "folder that holds it; left out where it is not fetched", text_if_any}},
    {done,
     {"state", "text", "", "`done`, `cancelled` or `failed`",
      [](e d) { return json_value(d.text); }}},
    {notice, {"text", "text, optional", "", "the notice", text_if_any}},
    {view,
     {"cause", "text, optional", "", "what has changed since the view before",
      [](e v) { return unless(std::string(), v.cause); }}},
    {done,
     {"cause", "text, optional", "", "why it failed",
      [](e d) { return unless(std::string(), d.cause); }}},
    {notice,
     {"waits", "true, optional", "",
      "no step ends until what the text says has happened",
      [](e n) { return n.waits ? json_value(true) : left_out(); }}},
    {checkpoint,
     {"digest", "text, optional", "", "SHA-256 of its manifest",
      digest_if_any}},
    {notice,
     {"digest", "text, optional", "", "SHA-256 of bytes that the job lacks",
      digest_if_any}},
    {all,
     {"unix_ms", "whole number", "ms", "when, since 1970 (UTC)",
      [](e event) { return json_value(event.unix_ms); }}},
  };
  return table;
}

} // namespace

std::string to_json_line(const job_event& event) {
  json_value line;
  for (const event_row& row : rows())
    if (row.kinds & bit(event.kind))
      if (json_value value = row.field.value(event); !value.is_discarded())
        line[std::string(row.field.name)] = std::move(value);
  return model::json_text(line);
}

std::vector<event_text> event_texts() {
  std::vector<event_text> out;
  for (const auto& [kind, name, meaning] : kind_names) {
    event_text& event = out.emplace_back(event_text{name, meaning, {}});
    for (const event_row& row : rows())
      if (row.kinds & bit(kind))
        event.fields.push_back(text_of(row.field));
  }
  return out;
}

bool from_json_line(std::string_view text, job_event& event) {
  const auto line = model::parse_json<json>(text);
  if (!line.is_object())
    return false;
  const auto name = line.find("event");
  if (name == line.end() || !name->is_string())
    return false;
  bool known = false;
  event = {};
  for (const kind_name& k : kind_names)
    if (*name == k.name) {
      event.kind = k.kind;
      known = true;
    }
  if (!known || !read_numbers(line, event))
    return false;
  if (const auto found = line.find("cause");
      found != line.end() && found->is_string())
    event.cause = found->get<std::string>();
  if (const auto found = line.find("waits");
      found != line.end() && found->is_boolean())
    event.waits = found->get<bool>();
  if (event.kind == job_event_kind::step && !line.contains("step"))
    return false;
  if (const auto found = line.find("data");
      found != line.end() && found->is_string())
    event.data = data_of(found->get_ref<const std::string&>());
  const auto said = line.find(text_name(event.kind));
  if (said != line.end() && said->is_string())
    event.text = said->get<std::string>();
  const auto digest = line.find("digest");
  if (digest != line.end()
      && (!digest->is_string()
          || !core::from_hex(digest->get<std::string>(), event.digest)))
    return false;
  return true;
}

} // namespace shoal::runtime
