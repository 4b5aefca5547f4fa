// runtime/openai/token_requests.cpp -- bodies and answers around tokens.
#include "runtime/openai/token_requests.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/openai/completion_response.hpp"
#include "runtime/openai/request_fields.hpp"

namespace shoal::openai {
namespace {

constexpr std::size_t text_bytes_max = 1 << 22;
constexpr std::size_t tokens_max = 1 << 20;

/// Runs `read` on the fields of a body.
template <class Request, class Read>
std::variant<Request, api_error>
parse(std::string_view body, const chat_limits& limits, Read read) {
  const auto object = parse_body(body, limits.values_max);
  if (const auto* wrong = std::get_if<api_error>(&object))
    return *wrong;
  fields in(std::get<json>(object), limits.told);
  Request out;
  in.text("model", limits.name_bytes_max, out.model);
  read(in, limits, out);
  if (!in.ok())
    return std::move(in.mistake());
  return out;
}

} // namespace

std::variant<tokenize_request, api_error>
parse_tokenize(std::string_view body, const chat_limits& limits) {
  return parse<tokenize_request>(
    body, limits,
    [](fields& in, const chat_limits& most, tokenize_request& out) {
      const char* first = nullptr;
      for (const char* one : {"messages", "prompt", "content"})
        if (in.find(one) && first)
          in.wrong(one, std::string("cannot be given together with ") + first);
        else if (in.find(one))
          first = one;
      if (in.find("messages")) {
        out.from = read_conversation(in, most);
        out.add_special_tokens = false;
      } else {
        const bool content = !in.find("prompt") && in.find("content");
        const char* const name = content ? "content" : "prompt";
        std::string text;
        if (!in.find(name))
          in.wrong("prompt", "is missing: give prompt or messages",
                   "missing_required_parameter");
        in.text(name, text_bytes_max, text);
        out.from = std::move(text);
        out.add_special_tokens = !content;
      }
      in.flag("add_special", out.add_special_tokens); // llama.cpp's
      in.flag("add_special_tokens", out.add_special_tokens);
      in.flag("return_token_strs", out.return_token_strs);
      in.flag("with_pieces", out.with_pieces);
      in.flag("parse_special", out.parse_special);
      if (!out.parse_special && in.find("messages"))
        in.wrong("parse_special", "is for a text, not for messages");
    });
}

std::variant<detokenize_request, api_error>
parse_detokenize(std::string_view body, const chat_limits& limits) {
  return parse<detokenize_request>(
    body, limits, [](fields& in, const chat_limits&, detokenize_request& out) {
      const json* const value = in.find("tokens");
      if (!value)
        return in.wrong("tokens", "is missing: give a list of token ids",
                        "missing_required_parameter");
      if (!value->is_array())
        return in.not_a("tokens", *value, "a list of token ids");
      if (value->size() > tokens_max)
        return in.wrong("tokens",
                        "has more than " + std::to_string(tokens_max) + " ids");
      for (const json& item : *value) {
        const auto id = whole(item);
        if (!id || *id < 0 || !std::in_range<token_id>(*id))
          return in.not_a("tokens", item, "a list of token ids");
        out.tokens.push_back(static_cast<token_id>(*id));
      }
    });
}

std::variant<template_request, api_error>
parse_apply_template(std::string_view body, const chat_limits& limits) {
  return parse<template_request>(
    body, limits,
    [](fields& in, const chat_limits& most, template_request& out) {
      out.asked = read_conversation(in, most);
    });
}

namespace {

/// One that is no text is a list of bytes.
json piece_json(const std::string& bytes) {
  if (core::is_utf8(bytes))
    return bytes;
  return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
}

} // namespace

std::string tokenize_json(const tokenize_request& asked,
                          const std::vector<token_id>& tokens,
                          const piece_of& piece, std::uint64_t max_model_len) {
  const auto list = [&tokens](const auto& one) {
    std::string out = "[";
    for (const token_id id : tokens)
      out += (out.size() > 1 ? "," : "") + one(id);
    return out + "]";
  };
  const auto number = [](token_id id) { return std::to_string(id); };
  const auto with_piece = [&piece](token_id id) {
    return model::json_text(json{{"id", id}, {"piece", piece_json(piece(id))}});
  };
  const auto text = [&piece](token_id id) {
    return model::json_text(json(token_text(piece(id))));
  };
  return "{\"count\":" + std::to_string(tokens.size()) + ",\"max_model_len\":"
         + std::to_string(max_model_len) + ",\"tokens\":"
         + (asked.with_pieces ? list(with_piece) : list(number))
         + ",\"token_strs\":" + (asked.return_token_strs ? list(text) : "null")
         + "}";
}

std::string detokenize_json(const std::string& text) {
  return model::json_text(json{{"prompt", text}, {"content", text}});
}

std::string apply_template_json(const std::string& text) {
  return model::json_text(json{{"prompt", text}});
}

} // namespace shoal::openai
