// runtime/metrics/event_json.cpp -- fields by kind, names as torchtitan's.
#include "runtime/metrics/event_json.hpp"

#include "runtime/core/hex.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/model/json.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace shoal::runtime {

namespace {

using json = nlohmann::ordered_json;

struct kind_name {
  job_event_kind kind;
  const char* name;
};
constexpr kind_name kind_names[] = {
  {job_event_kind::step, "step"},
  {job_event_kind::view, "view"},
  {job_event_kind::eval, "eval"},
  {job_event_kind::checkpoint, "checkpoint"},
  {job_event_kind::notice, "notice"},
  {job_event_kind::done, "done"},
};

/// What `text` is called in events of this kind.
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

/// Numbers of JSON are not safe beyond 53 bits.
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

/// @returns false for a value that no event has there. What is left out stays
/// as it is.
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
    // As 64 bits: the library would cut a number to fewer in silence.
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

/// All numbers of an event.
bool read_numbers(const json& line, job_event& event) {
  return read(line, "step", event.step) && read(line, "epoch", event.epoch)
         && read(line, "loss", event.loss)
         && read(line, "grad_norm", event.grad_norm)
         && read(line, "lr", event.lr) && read(line, "tokens", event.tokens)
         && read(line, "tokens_per_s", event.tokens_per_s)
         && read(line, "bubble_percent", event.bubble)
         && read(line, "computing_seconds", event.computing_s)
         && read(line, "reducing_seconds", event.reducing_s)
         && read(line, "peers", event.peers)
         && read(line, "unix_ms", event.unix_ms);
}

} // namespace

std::string to_json_line(const job_event& event) {
  json line;
  for (const auto& [kind, name] : kind_names)
    if (kind == event.kind)
      line["event"] = name;
  const bool measured = event.kind == job_event_kind::step
                        || event.kind == job_event_kind::eval
                        || event.kind == job_event_kind::done;
  if (event.kind == job_event_kind::view) {
    line["epoch"] = event.epoch;
    line["peers"] = event.peers;
  }
  line["step"] = event.step;
  if (measured)
    line["loss"] = event.loss;
  if (event.kind == job_event_kind::eval)
    line["perplexity"] = std::exp(event.loss);
  if (event.kind == job_event_kind::step) {
    line["grad_norm"] = event.grad_norm;
    line["lr"] = event.lr;
    if (event.data != 0)
      line["data"] = data_text(event.data);
  }
  if (measured && event.kind != job_event_kind::done) {
    line["tokens"] = event.tokens;
    line["tokens_per_s"] = event.tokens_per_s;
    if (event.bubble != 0)
      line["bubble_percent"] = event.bubble;
    if (event.computing_s > 0) {
      line["computing_seconds"] = event.computing_s;
      line["reducing_seconds"] = event.reducing_s;
    }
  }
  if (event.kind != job_event_kind::view && event.epoch != 0)
    line["epoch"] = event.epoch;
  if (event.kind != job_event_kind::view && event.peers != 0)
    line["peers"] = event.peers;
  if (!event.text.empty())
    line[text_name(event.kind)] = event.text;
  if (!event.cause.empty())
    line["cause"] = event.cause;
  if (event.waits)
    line["waits"] = true;
  if (event.digest != core::blob_digest{})
    line["digest"] = core::to_hex(event.digest);
  line["unix_ms"] = event.unix_ms;
  return model::json_text(line);
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
  for (const auto& k : kind_names)
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
