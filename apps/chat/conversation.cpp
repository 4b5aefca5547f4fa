// apps/chat/conversation.cpp -- messages to JSON and back.
#include "apps/chat/conversation.hpp"

#include "runtime/core/text/nearest.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/file.hpp"
#include "runtime/files/json.hpp"

#include <charconv>
#include <cstdio>
#include <optional>
#include <span>
#include <utility>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using model::failure;

namespace {

template <class Number>
std::optional<Number>
number_in(const std::string& text, Number low, Number high) {
  Number out{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, out);
  if (error != std::errc() || end != last || !(out >= low && out <= high))
    return {};
  return out;
}

/// A setting by its name: how it is read, and how it is shown.
struct setting {
  std::string_view name;
  const char* bounds;
  bool (*read)(chat_settings&, const std::string&);
  void (*forget)(chat_settings&);
  std::string (*shown)(const chat_settings&);
};

std::string text_of_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

template <auto Member, auto Low, auto High>
constexpr setting make_setting(std::string_view name, const char* bounds) {
  return {name, bounds,
          [](chat_settings& s, const std::string& text) {
            using number =
              typename std::remove_reference_t<decltype(s.*Member)>::value_type;
            const auto value =
              number_in<number>(text, number(Low), number(High));
            if (value)
              s.*Member = value;
            return value.has_value();
          },
          [](chat_settings& s) { (s.*Member).reset(); },
          [](const chat_settings& s) -> std::string {
            if (!(s.*Member))
              return "unset";
            using number =
              typename std::remove_cvref_t<decltype(s.*Member)>::value_type;
            if constexpr (std::is_floating_point_v<number>)
              return text_of_number(*(s.*Member));
            else
              return std::to_string(*(s.*Member));
          }};
}

constexpr setting all_settings[] = {
  make_setting<&chat_settings::temperature, 0, 2>("temperature", "0 to 2"),
  make_setting<&chat_settings::top_p, 0, 1>("top_p", "0 to 1"),
  make_setting<&chat_settings::max_tokens, 1, (1 << 24)>("max_tokens",
                                                         "1 to 16777216"),
  make_setting<&chat_settings::seed, 0, INT64_MAX>("seed", "0 or more"),
};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// @returns nothing with `why` set: the file is no saved chat
struct saved_chat {
  std::string system;
  std::vector<chat_message> messages;
};

model::result<saved_chat> read_chat(const std::filesystem::path& file) {
  const std::string name = core::shown(file.string());
  std::vector<std::byte> bytes;
  if (const auto error =
        runtime::read_file(file, chat_limits::file_bytes_max, bytes))
    return failure{"cannot read " + name + ": " + error.message()};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                              bytes.size());
  const auto object = model::parse_json_object<json>(text, name);
  if (!object)
    return object.why();
  const auto list = object->find("messages");
  if (list == object->end() || !list->is_array()
      || list->size() > chat_limits::messages_max)
    return failure{name + " is no saved chat: it has no list of messages"};
  saved_chat out;
  for (const json& each : *list) {
    const auto text_in = [&](const char* key) -> std::optional<std::string> {
      const auto found = each.is_object() ? each.find(key) : each.end();
      if (!each.is_object() || found == each.end() || !found->is_string())
        return {};
      return found->get<std::string>();
    };
    const auto role = text_in("role"), content = text_in("content");
    if (!role || !content
        || (*role != "system" && *role != "user" && *role != "assistant"))
      return failure{name
                     + " is no saved chat: each message needs a role (system, "
                       "user, assistant) and a content, which is text"};
    if (*role == "system")
      out.system = *content;
    else
      out.messages.push_back({*role, *content});
  }
  return out;
}

} // namespace

model::status
conversation::set(const std::string& name, const std::string& value) {
  std::vector<std::string_view> names;
  for (const setting& s : all_settings) {
    names.push_back(s.name);
    if (s.name != name)
      continue;
    if (value.empty()) {
      s.forget(settings_);
      return model::done{};
    }
    if (s.read(settings_, value))
      return model::done{};
    return failure{name + " is '" + core::shown(value) + "', must be "
                   + s.bounds};
  }
  const std::string meant = core::did_you_mean(name, names);
  return failure{"there is no setting '" + core::shown(name) + "'"
                 + (meant.empty()
                      ? "; there are temperature, top_p, max_tokens and seed"
                      : meant)};
}

std::string conversation::settings_text() const {
  std::string out;
  for (const setting& s : all_settings)
    out += (out.empty() ? "" : ", ") + std::string(s.name) + " "
           + s.shown(settings_);
  return out;
}

void conversation::ask(std::string question) {
  said_.push_back({"user", std::move(question)});
}

void conversation::answer(std::string text) {
  said_.push_back({"assistant", std::move(text)});
}

std::string conversation::take_back() {
  while (!said_.empty()) {
    chat_message last = std::move(said_.back());
    said_.pop_back();
    if (last.role == "user")
      return std::move(last.content);
  }
  return {};
}

/// With the system text in front.
static json messages_json(const std::string& system,
                          const std::vector<chat_message>& said) {
  json out = json::array();
  if (!system.empty())
    out.push_back({{"role", "system"}, {"content", system}});
  for (const chat_message& m : said)
    out.push_back({{"role", m.role}, {"content", m.content}});
  return out;
}

std::string conversation::request(const std::string& model) const {
  json out{{"model", model},
           {"messages", messages_json(settings_.system, said_)},
           {"stream", true},
           {"stream_options", {{"include_usage", true}}}};
  if (settings_.temperature)
    out["temperature"] = *settings_.temperature;
  if (settings_.top_p)
    out["top_p"] = *settings_.top_p;
  if (settings_.max_tokens)
    out["max_tokens"] = *settings_.max_tokens;
  if (settings_.seed)
    out["seed"] = *settings_.seed;
  return model::json_text(out);
}

model::status conversation::save(const std::filesystem::path& file,
                                 const std::string& model) const {
  const std::string name = core::shown(file.string());
  std::error_code error;
  if (std::filesystem::exists(file, error) && !read_chat(file))
    return failure{name + " is there and is no saved chat: name another file"};
  const std::string text =
    model::json_text(json{{"model", model},
                          {"messages", messages_json(settings_.system, said_)}},
                     2)
    + "\n";
  if (const auto why = runtime::replace_file(file, bytes_of(text)))
    return failure{"cannot write " + name + ": " + why.message()};
  return model::done{};
}

model::status conversation::load(const std::filesystem::path& file) {
  auto read = read_chat(file);
  if (!read)
    return read.why();
  settings_.system = std::move(read->system);
  said_ = std::move(read->messages);
  return model::done{};
}

} // namespace shoal::apps
