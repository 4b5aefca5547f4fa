// runtime/openai/embeddings.cpp -- fields in, vectors out.
#include "runtime/openai/embeddings.hpp"

#include "runtime/openai/request_fields.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace shoal::openai {
namespace {

static_assert(std::endian::native == std::endian::little);

std::string base64_of(std::span<const float> values) {
  constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto bytes = std::as_bytes(values);
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t three = 0;
    for (std::size_t k = 0; k != 3; ++k)
      three = three << 8 | (k < count ? std::uint32_t(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k != 4; ++k)
      out += k <= count ? digits[three >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

/// The shortest numbers that are these floats.
std::string list_of(std::span<const float> values) {
  std::string out = "[";
  std::array<char, 32> digits;
  for (const float x : values) {
    if (out.size() > 1)
      out += ',';
    const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), x).ptr;
    out.append(digits.data(), end);
  }
  return out += ']';
}

/// Never streams.
class embedding_writer final : public answer_writer {
public:
  explicit embedding_writer(bool base64) : base64_(base64) {}

  void set_head(completion_head head) override { head_ = std::move(head); }

  std::string
  whole(std::vector<completion_choice> choices, const usage& used) override {
    std::string out = R"({"object":"list","data":[)";
    for (const completion_choice& c : choices) {
      if (c.index > 0)
        out += ',';
      out += R"({"object":"embedding","index":)" + std::to_string(c.index)
             + R"(,"embedding":)";
      if (base64_)
        out.append("\"").append(base64_of(c.embedding)).append("\"");
      else
        out.append(list_of(c.embedding));
      out += '}';
    }
    json rest{{"model", head_.model},
              {"id", "embd-" + head_.id},
              {"created", head_.created},
              {"usage",
               {{"prompt_tokens", used.prompt_tokens},
                {"total_tokens", used.prompt_tokens}}}};
    return out + "]," + model::json_text(rest).substr(1);
  }

  std::string
  event(const completion_choice&, const usage&, const event_id&) override {
    return {};
  }
  std::string end(const usage&, const event_id&) override { return {}; }
  std::string error(const api_error&) override { return {}; }

private:
  bool base64_;
  completion_head head_;
};

} // namespace

bool normalize(std::span<float> values) {
  double squares = 0;
  for (const float x : values)
    squares += double(x) * double(x);
  const double length = std::sqrt(squares);
  if (!(length > 0) || !std::isfinite(length))
    return false;
  for (float& x : values)
    x = float(double(x) / length);
  return true;
}

std::variant<embedding_request, api_error>
parse_embeddings(std::string_view body, const embedding_limits& limits) {
  const auto object = parse_body(body, limits.values_max);
  if (const auto* wrong = std::get_if<api_error>(&object))
    return *wrong;
  fields in(std::get<json>(object), limits.told);
  embedding_request request;
  request.max_tokens_given = true; // none
  in.text("model", limits.name_bytes_max, request.model);
  if (in.find("messages") && !in.find("input"))
    in.wrong("messages", "is not supported: give input",
             "unsupported_parameter");
  request.prompts = read_prompts(in, "input", limits);
  std::string format = "float";
  in.text("encoding_format", limits.name_bytes_max, format);
  if (format != "float" && format != "base64")
    in.wrong("encoding_format",
             "is " + shown(json(format)) + ", must be float or base64");
  request.base64 = format == "base64";
  in.integer("dimensions", 1, limits.tokens_max, request.dimensions);
  in.text("user", limits.name_bytes_max, request.user);
  in.flag("add_special_tokens", request.add_special_tokens);
  in.integer("truncate_prompt_tokens", -1, limits.tokens_max,
             request.prompt_tokens_kept);
  if (!in.ok())
    return std::move(in.mistake());
  return request;
}

std::unique_ptr<answer_writer> make_writer(const embedding_request& asked) {
  return std::make_unique<embedding_writer>(asked.base64);
}

} // namespace shoal::openai
