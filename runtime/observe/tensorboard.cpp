// runtime/observe/tensorboard.cpp -- records, and the few message fields in
// them.
//
// Source: the framing and the field numbers are those of TensorFlow's
// core/lib/io/record_writer, core/util/event.proto and
// core/framework/summary.proto; Castagnoli's polynomial is from RFC 3720.
#include "runtime/observe/tensorboard.hpp"

#include "runtime/files/posix.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace shoal::runtime {

namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t sum = i;
    for (int bit = 0; bit < 8; ++bit)
      sum = (sum >> 1) ^ ((sum & 1) ? 0x82f63b78u : 0u);
    table[i] = sum;
  }
  return table;
}
constexpr auto crc_table = make_table();

template <class Integer>
void put_fixed(std::string& out, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out += static_cast<char>((value >> (8 * i)) & 0xff);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

enum wire_type { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_key(std::string& out, unsigned field, wire_type type) {
  put_varint(out, field << 3 | static_cast<unsigned>(type));
}

void put_double(std::string& out, unsigned field, double value) {
  put_key(out, field, fixed64);
  put_fixed(out, std::bit_cast<std::uint64_t>(value));
}

void put_float(std::string& out, unsigned field, float value) {
  put_key(out, field, fixed32);
  put_fixed(out, std::bit_cast<std::uint32_t>(value));
}

void put_bytes(std::string& out, unsigned field, std::string_view value) {
  put_key(out, field, bytes);
  put_varint(out, value.size());
  out += value;
}

// Field numbers of Event, Summary and Summary.Value.
constexpr unsigned event_wall_time = 1;
constexpr unsigned event_step = 2;
constexpr unsigned event_file_version = 3;
constexpr unsigned event_summary = 5;
constexpr unsigned summary_value = 1;
constexpr unsigned value_tag = 1;
constexpr unsigned value_simple = 2;

std::string host_name() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == 0)
    return "localhost";
  return name;
}

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

} // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept {
  std::uint32_t sum = ~0u;
  for (const auto b : bytes)
    sum =
      crc_table[(sum ^ std::to_integer<std::uint32_t>(b)) & 0xff] ^ (sum >> 8);
  return ~sum;
}

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) noexcept {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

tensorboard_writer::tensorboard_writer(const std::filesystem::path& folder,
                                       std::int64_t unix_seconds) {
  auto seconds = std::to_string(unix_seconds);
  if (seconds.size() < 10)
    seconds.insert(0, 10 - seconds.size(), '0'); // readers sort by name
  path_ = folder
          / ("events.out.tfevents." + seconds + "." + host_name() + "."
             + std::to_string(::getpid()));
  file_ =
    ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file_ < 0)
    throw std::system_error(posix::last_error(), path_.string());
  std::string first;
  put_double(first, event_wall_time, static_cast<double>(unix_seconds));
  put_bytes(first, event_file_version, "brain.Event:2");
  if (const auto error = write_record(first)) {
    ::close(file_);
    throw std::system_error(error, path_.string());
  }
}

tensorboard_writer::~tensorboard_writer() {
  ::close(file_);
}

std::error_code tensorboard_writer::write_record(const std::string& data) {
  std::string record;
  put_fixed(record, static_cast<std::uint64_t>(data.size()));
  put_fixed(record, masked_crc32c(as_bytes(record)));
  record += data;
  put_fixed(record, masked_crc32c(as_bytes(data)));
  return posix::write_all(file_, as_bytes(record));
}

std::error_code
tensorboard_writer::add_scalar(std::string_view tag, std::uint64_t step,
                               double value, double unix_seconds) {
  std::string inner;
  put_bytes(inner, value_tag, tag);
  put_float(inner, value_simple, static_cast<float>(value));
  std::string summary;
  put_bytes(summary, summary_value, inner);
  std::string event;
  put_double(event, event_wall_time, unix_seconds);
  put_key(event, event_step, varint);
  put_varint(event, step);
  put_bytes(event, event_summary, summary);
  return write_record(event);
}

std::span<const tensorboard_tag> tensorboard_tags() {
  using kind = job_event_kind;
  using e = const job_event&;
  static constexpr tensorboard_tag tags[] = {
    {"loss_metrics/global_avg_loss", kind::step, "nats", "loss of the step",
     [](e s) { return s.loss; }},
    {"grad_norm", kind::step, "", "of all gradients, before they are clipped",
     [](e s) { return s.grad_norm; }},
    {"lr", kind::step, "", "learning rate", [](e s) { return s.lr; }},
    {"throughput(tps)", kind::step, "tokens/s", "of the step",
     [](e s) { return s.tokens_per_s; }},
    {"n_tokens_seen", kind::step, "tokens", "trained on since step 0",
     [](e s) { return static_cast<double>(s.tokens); }},
    {"bubble(%)", kind::step, "%",
     "part of the computing phase in which peers had nothing to compute; left "
     "out where it is not known",
     [](e s) { return s.bubble; }, true},
    {"validation_metrics/loss", kind::eval, "nats", "held-out loss",
     [](e v) { return v.loss; }},
    {"validation_metrics/perplexity", kind::eval, "",
     "e to the power of the held-out loss",
     [](e v) { return std::exp(v.loss); }},
  };
  return tags;
}

std::error_code tensorboard_writer::add(const job_event& event) {
  const auto seconds = static_cast<double>(event.unix_ms) / 1000;
  for (const tensorboard_tag& t : tensorboard_tags()) {
    if (t.kind != event.kind)
      continue;
    const double value = t.value(event);
    if (t.none_is_zero && value == 0)
      continue;
    if (const auto error = add_scalar(t.tag, event.step, value, seconds))
      return error;
  }
  return {};
}

} // namespace shoal::runtime
