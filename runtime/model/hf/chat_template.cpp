// runtime/model/hf/chat_template.cpp -- finds the template, prepares messages.
#include "runtime/model/hf/chat_template.hpp"

#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_scan.hpp"
#include "runtime/model/text/hf_tokenizer.hpp" // tokenizer_config_bytes_max

#include <array>

namespace shoal::model {

namespace {

using jinja::text_template;
using nlohmann::ordered_json;

constexpr const char* token_names[] = {"bos_token", "eos_token", "unk_token",
                                       "sep_token", "pad_token", "cls_token",
                                       "mask_token"};

/// A token is a text, or an object with "content".
std::string token_text(const ordered_json& from) {
  if (from.is_string())
    return from.get<std::string>();
  if (from.is_object() && from.contains("content")
      && from["content"].is_string())
    return from["content"].get<std::string>();
  return {};
}

ordered_json tokens_of(const ordered_json& config) {
  ordered_json out = ordered_json::object();
  for (const char* name : token_names)
    if (const auto at = config.find(name); at != config.end())
      if (const std::string text = token_text(*at); !text.empty())
        out[name] = text;
  return out;
}

struct sources {
  std::string usual, with_tools, where;
};

result<sources> sources_of(const ordered_json& config, std::string_view file) {
  sources out;
  out.where = "tokenizer_config.json: chat_template";
  if (!file.empty()) {
    out.usual = file;
    out.where = "chat_template.jinja";
    return out;
  }
  const auto at = config.find("chat_template");
  if (at == config.end() || at->is_null())
    return out;
  if (at->is_string()) {
    out.usual = at->get<std::string>();
    return out;
  }
  if (!at->is_array())
    return failure{out.where + ": is neither a text nor a list"};
  for (const ordered_json& one : *at) {
    if (!one.is_object() || !one.contains("name") || !one["name"].is_string()
        || !one.contains("template") || !one["template"].is_string())
      return failure{out.where + ": an entry has no name or no template"};
    const auto text = one["template"].get<std::string>();
    if (one["name"] == "default")
      out.usual = text;
    else if (one["name"] == "tool_use")
      out.with_tools = text;
  }
  if (out.usual.empty())
    return failure{out.where + ": has no template \"default\""};
  return out;
}

/// Texts of the parts, one a line; nothing if there are others.
std::optional<std::string> text_of(const ordered_json& parts) {
  std::string out;
  for (const ordered_json& part : parts) {
    if (!part.is_object() || part.value("type", "") != "text"
        || !part.contains("text") || !part["text"].is_string())
      return std::nullopt;
    out +=
      (&part == &parts.front() ? "" : "\n") + part["text"].get<std::string>();
  }
  return out;
}

/// Some templates make a role's control token of its name: "<|" + role + "|>". So
/// another name is text.
constexpr std::array<std::string_view, 6> roles{
  "system", "developer", "user", "assistant", "tool", "function"};

void read_arguments(ordered_json& message) {
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array())
    return;
  for (ordered_json& call : *calls) {
    if (!call.is_object() || !call.contains("function")
        || !call["function"].is_object())
      continue;
    ordered_json& function = call["function"];
    const auto at = function.find("arguments");
    if (at == function.end() || !at->is_string())
      continue;
    const auto& text = at->get_ref<const std::string&>();
    if (nests_too_deep(text) || has_too_many_keys(text))
      continue;
    if (auto read = parse_json_object<ordered_json>(
          at->get_ref<const std::string&>(), "arguments"))
      *at = *std::move(read);
  }
}

} // namespace

result<std::optional<chat_template>>
chat_template::parse(std::string_view config, std::string_view file) {
  ordered_json object = ordered_json::object();
  if (!config.empty()) {
    auto read =
      parse_json_object<ordered_json>(config, "tokenizer_config.json");
    if (!read)
      return read.why();
    object = *std::move(read);
  }
  const auto from = sources_of(object, file);
  if (!from)
    return from.why();
  if (from->usual.empty())
    return std::optional<chat_template>();
  auto usual = text_template::parse(from->usual);
  if (!usual)
    return failure{from->where + ": " + usual.message()};
  chat_template out(*std::move(usual));
  if (!from->with_tools.empty()) {
    auto with_tools = text_template::parse(from->with_tools);
    if (!with_tools)
      return failure{from->where + ": tool_use: " + with_tools.message()};
    out.with_tools_ = *std::move(with_tools);
  }
  out.source_ = from->usual + from->with_tools;
  out.tokens_ = tokens_of(object);
  const ordered_json part = {{"type", "text"}, {"text", "sprat"}};
  out.takes_parts_ = out.takes(ordered_json::array({part}));
  out.takes_texts_ = !out.takes_parts_ || out.takes("sprat");
  return std::optional(std::move(out));
}

/// Whether a message's content of this form is shown as its text.
bool chat_template::takes(const ordered_json& content) const {
  const ordered_json message = {{"role", "user"}, {"content", content}};
  const ordered_json variables = {{"messages", ordered_json::array({message})},
                                  {"tools", nullptr},
                                  {"documents", nullptr},
                                  {"add_generation_prompt", true}};
  text_template::fault why;
  const auto text = usual_.render({&variables, &tokens_, {}, {}}, why);
  return text
         && text->bytes.find("sprat") != std::string::npos
         // Not as a list or as JSON.
         && text->bytes.find("'sprat'") == std::string::npos
         && text->bytes.find("\"sprat\"") == std::string::npos;
}

const text_template& chat_template::template_for(const input& from) const {
  return with_tools_ && !from.tools.is_null() ? *with_tools_ : usual_;
}

std::optional<jinja::marked_text>
chat_template::render(input from, text_template::fault& why) const {
  for (ordered_json& message : from.messages) {
    read_arguments(message);
    const auto at = message.find("content");
    if (at == message.end())
      message["content"] = nullptr;
    else if (at->is_array() && !takes_parts_) {
      if (auto text = text_of(*at))
        *at = *std::move(text);
    } else if (at->is_string() && !takes_texts_)
      *at = ordered_json::array({{{"type", "text"}, {"text", *at}}});
  }
  const ordered_json last =
    from.messages.empty() ? ordered_json() : from.messages.back();
  ordered_json variables = from.variables.is_object()
                             ? std::move(from.variables)
                             : ordered_json::object();
  variables["messages"] = std::move(from.messages);
  variables["tools"] = from.tools;
  variables["documents"] = std::move(from.documents);
  variables["add_generation_prompt"] =
    from.add_generation_prompt && !from.continue_final_message;
  auto out = template_for(from).render(
    {&variables, &tokens_, from.now, {}, {"role", roles}}, why);
  if (!out || !from.continue_final_message)
    return out;
  // As transformers: the text ends with that of the last message.
  std::string end = last.value("content", ordered_json()).is_string()
                      ? last["content"].get<std::string>()
                      : std::string();
  while (!end.empty() && (end.back() == ' ' || end.back() == '\n'))
    end.pop_back();
  const std::size_t at =
    end.empty() ? std::string::npos : out->bytes.rfind(end);
  if (at == std::string::npos) {
    why = {"the template does not show the last message as it is, so it "
           "cannot be continued",
           true};
    return std::nullopt;
  }
  return out->part(0, at + end.size());
}

result<std::optional<chat_template>>
load_chat_template(const std::filesystem::path& directory) {
  const auto text_of_file =
    [&](const char* name, std::uint64_t bytes_max) -> result<std::string> {
    std::error_code ignored;
    if (!std::filesystem::exists(directory / name, ignored))
      return std::string();
    return read_file(directory / name, bytes_max);
  };
  const auto config =
    text_of_file("tokenizer_config.json", text::tokenizer_config_bytes_max);
  if (!config)
    return config.why();
  const auto file =
    text_of_file("chat_template.jinja", jinja::source_bytes_max);
  if (!file)
    return file.why();
  return chat_template::parse(*config, *file);
}

} // namespace shoal::model
