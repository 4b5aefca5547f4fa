// runtime/model/text/tokenizer.cpp -- converts text to token ids and back.
#include "runtime/model/text/tokenizer.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/text/byte_level.hpp"
#include "runtime/model/text/tokenizer_json.hpp"

#include <algorithm>

namespace shoal::model {

namespace {

/// A tokenizer_config.json of more bytes is refused unread.
constexpr std::uint64_t tokenizer_config_bytes_max = 64u << 20;

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

std::string byte_tokenizer::to_json() {
  text::bpe_description bytes;
  for (unsigned b = 0; b < byte_count; ++b)
    bytes.tokens.push_back(text::to_byte_level(std::string(1, char(b))));
  return text::to_json(bytes);
}

std::string byte_tokenizer::config_json(const model_config& config) {
  return text::tokenizer_config_json({}, config.max_position_embeddings);
}

std::size_t tokenizer::id_count() const {
  return file_ ? file_->id_count()
               : static_cast<std::size_t>(byte_tokenizer::byte_count);
}

result<std::vector<std::string>> tokenizer::token_bytes(bool first) const {
  if (file_)
    return file_->token_bytes(first);
  std::vector<std::string> out;
  for (int byte = 0; byte != byte_tokenizer::byte_count; ++byte)
    out.emplace_back(1, static_cast<char>(byte));
  return out;
}

std::string tokenizer::piece(token_id id, bool first) const {
  return file_ ? file_->piece(id, first) : byte_tokenizer().bytes({&id, 1});
}

std::vector<std::string> tokenizer::notices() const {
  return file_ ? file_->notices() : std::vector<std::string>();
}

/// Whether a token is a mark, as "</s>" is, and no text.
static bool is_mark(const text::hf_tokenizer& by, token_id id) {
  const std::string text = by.decode({&id, 1}, false);
  return by.is_special(id)
         || (text.size() > 2 && text.starts_with('<') && text.ends_with('>'));
}

std::vector<token_id>
ends_of_text(const tokenizer& by, std::span<const std::int32_t> of_model) {
  std::vector<token_id> out;
  if (by.file() == nullptr)
    return out;
  if (const auto eos = by.file()->eos())
    out.push_back(*eos);
  for (const std::int32_t id : of_model)
    if (is_mark(*by.file(), id) && std::ranges::count(out, id) == 0)
      out.push_back(id);
  return out;
}

void end_text(std::vector<token_id>& ids, std::span<const token_id> ends) {
  const bool has_one = ends.empty()
                       || (!ids.empty()
                           && (ids.front() == ends.front()
                               || std::ranges::count(ends, ids.back()) > 0));
  if (!has_one)
    ids.push_back(ends.front());
}

result<tokenizer_kind>
kind_of_tokenizer(const std::filesystem::path& directory) {
  const auto file = directory / "tokenizer.json";
  const auto path = directory / "tokenizer_config.json";
  std::error_code error;
  if (std::filesystem::exists(file, error)) {
    const std::string bytes = byte_tokenizer::to_json();
    // Other programs may write other spaces into it.
    if (std::filesystem::file_size(file, error) > 4 * bytes.size() || error)
      return tokenizer_kind::file;
    const auto text = read_file(file, 4 * bytes.size());
    return text && parse_json(*text) == parse_json(bytes)
             ? tokenizer_kind::bytes
             : tokenizer_kind::file;
  }
  if (!std::filesystem::exists(path, error))
    return tokenizer_kind::none;
  auto text = read_file(path, tokenizer_config_bytes_max);
  if (!text)
    return text.why();
  const auto json = parse_json_object(*text, path.string());
  if (!json)
    return json.why();
  auto name = json->find("tokenizer_class");
  if (name == json->end() || *name != "ByteTokenizer")
    return failure{path.string() + ": tokenizer_class: "
                   + (name == json->end() ? "is missing" : shown(*name))
                   + "; without a tokenizer.json only \"ByteTokenizer\" is "
                     "supported"};
  return tokenizer_kind::bytes;
}

result<std::optional<tokenizer>>
load_tokenizer(const std::filesystem::path& directory) {
  const auto kind = kind_of_tokenizer(directory);
  if (!kind)
    return kind.why();
  if (*kind == tokenizer_kind::none)
    return std::optional<tokenizer>();
  if (*kind == tokenizer_kind::bytes)
    return std::optional(tokenizer());
  auto file = text::read_tokenizer(directory);
  if (!file)
    return file.why();
  return std::optional(tokenizer(std::move(*file)));
}

text_encoder::text_encoder(const tokenizer& by) {
  if (by.file() != nullptr)
    file_.emplace(*by.file());
}

result<std::vector<token_id>>
text_encoder::encode(std::string_view text, bool add_special,
                     std::span<const core::text_range> foreign) {
  if (file_)
    return file_->encode(text, add_special, foreign);
  return byte_tokenizer().encode(text);
}

text_decoder::text_decoder(const tokenizer* by)
  : bytes_(by != nullptr && by->file() == nullptr) {
  if (by != nullptr && by->file() != nullptr)
    file_.emplace(*by->file());
}

std::string text_decoder::push(token_id id) {
  if (file_)
    return file_->push(id);
  return bytes_ ? utf8_.push(byte_tokenizer().bytes({&id, 1})) : std::string();
}

std::string text_decoder::finish() {
  return file_ ? file_->finish() : utf8_.finish();
}

std::string utf8_stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const core::character c = core::first_character(rest);
    if (c.is == core::character::kind::cut_off)
      break;
    out += c.is == core::character::kind::whole ? rest.substr(0, c.bytes)
                                                : core::replacement_character;
    rest.remove_prefix(c.bytes);
  }
  pending_ = std::string(rest);
  return out;
}

std::string utf8_stream::finish() {
  const bool cut_off = !pending_.empty();
  pending_.clear();
  return cut_off ? std::string(core::replacement_character) : std::string();
}

} // namespace shoal::model
