// runtime/model/tokenizer.cpp -- text to token ids and back.
#include "runtime/model/tokenizer.hpp"

#include "runtime/model/file_io.hpp"

#include <nlohmann/json.hpp>

namespace shoal::model {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD"; // U+FFFD
/// A tokenizer_config.json of more bytes is refused unread.
constexpr std::uint64_t tokenizer_config_bytes_max = 64u << 20;

/// How the bytes at the start of a text begin.
struct character {
  std::size_t bytes = 0; ///< of the character, or of its valid beginning
  enum class kind { whole, broken, cut_off } is = kind::whole;
};

/// Table 3-7 of the Unicode standard: well-formed byte sequences.
character first_character(std::string_view text) {
  auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned lead = byte(0);
  std::size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF; // range of the second byte
  if (lead < 0x80)
    return {1, character::kind::whole};
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    low = lead == 0xE0 ? 0xA0 : 0x80;
    high = lead == 0xED ? 0x9F : 0xBF;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    low = lead == 0xF0 ? 0x90 : 0x80;
    high = lead == 0xF4 ? 0x8F : 0xBF;
  } else {
    return {1, character::kind::broken};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size())
      return {i, character::kind::cut_off};
    if (byte(i) < low || byte(i) > high)
      return {i, character::kind::broken};
    low = 0x80;
    high = 0xBF;
  }
  return {length, character::kind::whole};
}

} // namespace

std::vector<token_id> byte_tokenizer::encode(std::string_view text) const {
  std::vector<token_id> ids;
  ids.reserve(text.size());
  for (const char c : text)
    ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string byte_tokenizer::bytes(std::span<const token_id> ids) const {
  std::string text;
  for (const token_id id : ids) {
    if (id >= 0 && id < byte_count)
      text.push_back(static_cast<char>(id));
  }
  return text;
}

std::string byte_tokenizer::decode(std::span<const token_id> ids) const {
  utf8_stream stream;
  std::string text = stream.push(bytes(ids));
  return text + stream.finish();
}

std::string byte_tokenizer::to_json(const model_config& config) const {
  nlohmann::ordered_json o;
  o["tokenizer_class"] = "ByteTokenizer";
  o["vocab_size"] = config.vocab_size;
  o["add_bos_token"] = false;
  o["add_eos_token"] = false;
  o["model_max_length"] = config.max_position_embeddings;
  return o.dump(2) + "\n";
}

result<std::optional<byte_tokenizer>>
load_tokenizer(const std::filesystem::path& directory) {
  const auto path = directory / "tokenizer_config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    if (std::filesystem::exists(directory / "tokenizer.json", ignored))
      return failure{(directory / "tokenizer.json").string()
                     + ": this kind of tokenizer is not supported; only the "
                       "byte tokenizer is"};
    return std::optional<byte_tokenizer>();
  }
  auto text = read_file(path, tokenizer_config_bytes_max);
  if (!text)
    return text.why();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object())
    return failure{path.string() + ": is not a JSON object"};
  auto name = json.find("tokenizer_class");
  if (name == json.end() || *name != "ByteTokenizer")
    return failure{path.string() + ": tokenizer_class: "
                   + (name == json.end() ? "is missing" : name->dump())
                   + "; only \"ByteTokenizer\" is supported"};
  return std::optional<byte_tokenizer>(byte_tokenizer());
}

std::string utf8_stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const character c = first_character(rest);
    if (c.is == character::kind::cut_off)
      break;
    out +=
      c.is == character::kind::whole ? rest.substr(0, c.bytes) : replacement;
    rest.remove_prefix(c.bytes);
  }
  pending_ = std::string(rest);
  return out;
}

std::string utf8_stream::finish() {
  const bool cut_off = !pending_.empty();
  pending_.clear();
  return cut_off ? std::string(replacement) : std::string();
}

} // namespace shoal::model
