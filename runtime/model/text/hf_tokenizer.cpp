// runtime/model/text/hf_tokenizer.cpp -- tokenizer.json: text to ids and back.
#include "runtime/model/text/hf_tokenizer.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/text/added_tokens.hpp"
#include "runtime/model/text/models/token_model.hpp"
#include "runtime/model/text/post_processor.hpp"
#include "runtime/model/text/token_decoder.hpp"

#include <algorithm>
#include <unordered_set>

namespace shoal::model::text {

struct tokenizer_parts {
  normalizer normal;
  added_tokens added;
  pre_tokenizer split;
  token_model model;
  post_processor around;
  token_decoder decoder;
  std::vector<std::string> texts; ///< of each id, as the decoder takes it
  std::vector<char> kinds;        ///< of each id, as below
  std::vector<bool> specials;     ///< by id: kinds has `special`
  std::unordered_map<std::string, token_id> added_ids;
  std::optional<token_id> bos;
  std::optional<token_id> eos;
  std::vector<std::string> notices;

  static constexpr char no_token = 0;
  static constexpr char plain = 1;
  static constexpr char special = 2;

  std::optional<token_id> id_of(const std::string& token) const {
    if (auto it = added_ids.find(token); it != added_ids.end())
      return it->second;
    if (auto it = model.tokens().find(token); it != model.tokens().end())
      return it->second;
    return std::nullopt;
  }
};

namespace {

/// Fills the tables from ids to texts.
void index_ids(tokenizer_parts& parts) {
  std::size_t count = 0;
  auto reach = [&](token_id id) {
    count = std::max(count, static_cast<std::size_t>(id) + 1);
  };
  for (const auto& [token, id] : parts.model.tokens())
    reach(id);
  for (const added_token& token : parts.added.all())
    reach(token.id);
  parts.texts.resize(count);
  parts.kinds.assign(count, tokenizer_parts::no_token);
  auto set = [&](token_id id, const std::string& text) {
    parts.texts[static_cast<std::size_t>(id)] = text;
    parts.kinds[static_cast<std::size_t>(id)] = tokenizer_parts::plain;
  };
  for (const auto& [token, id] : parts.model.tokens())
    set(id, token);
  std::unordered_set<std::string_view> special;
  for (const added_token& token : parts.added.all()) {
    set(token.id, token.form);
    parts.added_ids.emplace(token.content, token.id);
    if (token.special)
      special.insert(token.content);
  }
  // By text, as `tokenizers` has it: a special token that the normalizer
  // changes is shown.
  for (std::size_t id = 0; id < count; ++id) {
    if (parts.kinds[id] == tokenizer_parts::plain
        && special.contains(parts.texts[id]))
      parts.kinds[id] = tokenizer_parts::special;
    parts.specials.push_back(parts.kinds[id] == tokenizer_parts::special);
  }
}

/// bos_token and its like: a text, or an object with "content".
std::optional<token_id>
named_token(const json_view& from, const tokenizer_parts& parts) {
  if (from.is_null())
    return std::nullopt;
  const json_view text = from.raw().is_object() ? from["content"] : from;
  const std::string content(text.string());
  const auto id = parts.id_of(content);
  if (from.ok() && !id)
    from.fail(shown(nlohmann::json(content)) + " is not a token");
  return id;
}

void read_config(const json_view& from, tokenizer_parts& parts) {
  parts.bos = named_token(from["bos_token"], parts);
  parts.eos = named_token(from["eos_token"], parts);
  auto wanted = [&](const char* add, const char* token,
                    const std::optional<token_id>& id) {
    std::vector<token_id> out;
    if (from[add].boolean(false)) {
      if (id)
        out.push_back(*id);
      else
        from[add].fail(std::string("is true, but there is no ") + token);
    }
    return out;
  };
  auto before = wanted("add_bos_token", "bos_token", parts.bos);
  auto behind = wanted("add_eos_token", "eos_token", parts.eos);
  if (!parts.around.decides())
    parts.around = post_processor::around(std::move(before), std::move(behind));
}

void read_parts(const json_view& file, tokenizer_parts& parts) {
  if (const json_view version = file["version"]; !version.is_null()) {
    if (version.string() != "1.0")
      version.fail("is not \"1.0\"");
  }
  for (const char* key : {"truncation", "padding"}) {
    if (const json_view ignored = file[key]; !ignored.is_null())
      parts.notices.push_back(ignored.path()
                              + " is ignored: texts keep their length");
  }
  parts.normal = normalizer::parse(file["normalizer"]);
  parts.split = pre_tokenizer::parse(file["pre_tokenizer"]);
  parts.decoder = token_decoder::parse(file["decoder"]);
  parts.model = token_model::parse(file["model"], parts.notices);
  if (!file.ok())
    return;
  parts.added = added_tokens::parse(file["added_tokens"], parts.model.tokens(),
                                    parts.normal);
  if (!file.ok())
    return;
  index_ids(parts);
  parts.around =
    post_processor::parse(file["post_processor"], parts.texts.size());
}

/// Parses an object. @returns a failure that begins with `where`.
result<nlohmann::json>
read_object(std::string_view text, std::string_view where,
            std::uint64_t bytes_max) {
  if (text.size() > bytes_max)
    return failure{std::string(where) + ": longer than "
                   + std::to_string(bytes_max) + " bytes"};
  return parse_json_object(text, where);
}

} // namespace

hf_tokenizer::hf_tokenizer(std::shared_ptr<const tokenizer_parts> parts)
  : parts_(std::move(parts)) {
}

result<hf_tokenizer>
hf_tokenizer::parse(std::string_view json, std::string_view config,
                    std::string_view where, std::string_view config_where) {
  auto file = read_object(json, where, tokenizer_bytes_max);
  if (!file)
    return file.why();
  auto parts = std::make_shared<tokenizer_parts>();
  std::string fault;
  read_parts(json_view(*file, std::string(where), fault), *parts);
  if (!fault.empty())
    return failure{fault};
  if (!config.empty()) {
    auto more = read_object(config, config_where, tokenizer_config_bytes_max);
    if (!more)
      return more.why();
    read_config(json_view(*more, std::string(config_where), fault), *parts);
    if (!fault.empty())
      return failure{fault};
  }
  return hf_tokenizer(std::move(parts));
}

result<hf_tokenizer> read_tokenizer(const std::filesystem::path& directory) {
  const auto path = directory / "tokenizer.json";
  const auto config_path = directory / "tokenizer_config.json";
  auto json = read_file(path, tokenizer_bytes_max);
  if (!json)
    return json.why();
  std::string config;
  std::error_code error;
  if (std::filesystem::exists(config_path, error)) {
    auto text = read_file(config_path, tokenizer_config_bytes_max);
    if (!text)
      return text.why();
    config = std::move(*text);
    if (config.empty())
      return failure{config_path.string() + ": is empty"};
  }
  return hf_tokenizer::parse(*json, config, path.string(),
                             config_path.string());
}

std::size_t hf_tokenizer::id_count() const {
  return parts_->texts.size();
}

std::optional<token_id> hf_tokenizer::id_of(std::string_view token) const {
  return parts_->id_of(std::string(token));
}

bool hf_tokenizer::is_special(token_id id) const {
  return id >= 0 && static_cast<std::size_t>(id) < parts_->kinds.size()
         && parts_->kinds[static_cast<std::size_t>(id)]
              == tokenizer_parts::special;
}

std::optional<token_id> hf_tokenizer::bos() const {
  return parts_->bos;
}
std::optional<token_id> hf_tokenizer::eos() const {
  return parts_->eos;
}

const std::vector<std::string>& hf_tokenizer::notices() const {
  return parts_->notices;
}

namespace {

/// @returns null if the id has no token, or a special one that is skipped.
const std::string*
text_of(const tokenizer_parts& parts, token_id id, bool skip_special) {
  if (id < 0 || static_cast<std::size_t>(id) >= parts.texts.size())
    return nullptr;
  const char kind = parts.kinds[static_cast<std::size_t>(id)];
  if (kind == tokenizer_parts::no_token
      || (skip_special && kind == tokenizer_parts::special))
    return nullptr;
  return &parts.texts[static_cast<std::size_t>(id)];
}

} // namespace

std::string
hf_tokenizer::decode(std::span<const token_id> ids, bool skip_special) const {
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const token_id id : ids) {
    if (const std::string* text = text_of(*parts_, id, skip_special))
      texts.push_back(*text);
  }
  return parts_->decoder.decode(std::move(texts));
}

result<std::vector<std::string>> hf_tokenizer::token_bytes(bool first) const {
  if (!parts_->decoder.is_by_token())
    return failure{"the decoder of its tokenizer.json looks at several tokens "
                   "at once"};
  std::vector<std::string> out(parts_->texts.size());
  for (std::size_t id = 0; id != out.size(); ++id)
    if (const std::string* text =
          text_of(*parts_, static_cast<token_id>(id), true))
      out[id] = parts_->decoder.token_bytes(*text, first);
  return out;
}

std::string hf_tokenizer::piece(token_id id, bool first) const {
  const std::string* const text = text_of(*parts_, id, true);
  if (!text || !parts_->decoder.is_by_token())
    return decode({&id, 1}, false);
  return parts_->decoder.token_bytes(*text, first);
}

struct encoder::memory {
  word_cache words;
  /// Of texts that must not become special tokens.
  std::optional<word_cache> foreign_words;
  piece_list list;
};

encoder::encoder(hf_tokenizer tokenizer)
  : tokenizer_(std::move(tokenizer)), memory_(std::make_unique<memory>()) {
}
encoder::~encoder() = default;
encoder::encoder(encoder&&) noexcept = default;

namespace {

/// The ranges within a section, counted from its begin.
std::vector<core::text_range>
within(std::span<const core::text_range> ranges, const section& of) {
  std::vector<core::text_range> out;
  for (auto r = std::ranges::upper_bound(ranges, of.first, {},
                                         &core::text_range::last);
       r != ranges.end() && r->first < of.last; ++r)
    out.push_back({std::max(r->first, of.first) - of.first,
                   std::min(r->last, of.last) - of.first});
  return out;
}

} // namespace

result<std::vector<token_id>>
encoder::encode(std::string_view raw, bool add_special,
                std::span<const core::text_range> foreign) {
  const tokenizer_parts& parts = *tokenizer_.parts_;
  if (raw.size() > text_bytes_max)
    return failure{"a text of " + std::to_string(raw.size())
                   + " bytes; more than " + std::to_string(text_bytes_max)
                   + " are not possible"};
  std::string mended;
  if (!core::is_utf8(raw))
    mended = core::replace_broken(raw);
  const std::string_view whole = mended.empty() ? raw : mended;
  std::vector<token_id> ids;
  piece_list& list = memory_->list;
  for (const section& outer : parts.added.cut(whole, false, foreign)) {
    if (outer.token >= 0) {
      ids.push_back(outer.token);
      continue;
    }
    std::string text(whole.substr(outer.first, outer.last - outer.first));
    bool cut_left = false;
    if (status normal = parts.normal.apply(text, cut_left); !normal)
      return normal.why();
    std::vector<core::text_range> inside = within(foreign, outer);
    // The normalizer has moved the bytes: then all of them count as foreign.
    if (!inside.empty()
        && text != whole.substr(outer.first, outer.last - outer.first))
      inside.assign(1, {0, text.size()});
    for (const section& inner : parts.added.cut(text, true, inside)) {
      if (inner.token >= 0) {
        ids.push_back(inner.token);
        continue;
      }
      list.text = text.substr(inner.first, inner.last - inner.first);
      const bool at_start = outer.first == 0 && inner.first == 0 && !cut_left;
      list.pieces.assign(1, {0, list.text.size(), at_start});
      if (status split = parts.split.apply(list); !split)
        return split.why();
      // A vocabulary may have the texts of special tokens, and Unigram and
      // WordPiece would find them in any text.
      const bool bans = std::ranges::any_of(inside, [&](const auto& r) {
        return r.first < inner.last && inner.first < r.last;
      });
      if (bans && !memory_->foreign_words)
        memory_->foreign_words.emplace();
      word_cache& words = bans ? *memory_->foreign_words : memory_->words;
      for (const piece& p : list.pieces) {
        if (status encoded = parts.model.encode(
              list.of(p), words, ids, bans ? &parts.specials : nullptr);
            !encoded)
          return encoded.why();
      }
    }
  }
  if (add_special)
    parts.around.apply(ids);
  return ids;
}

struct decode_stream::state {
  text_stream text;
};

decode_stream::decode_stream(hf_tokenizer tokenizer, bool skip_special)
  : tokenizer_(std::move(tokenizer)), skip_special_(skip_special),
    state_(
      std::make_unique<state>(state{text_stream(tokenizer_.parts_->decoder)})) {
}
decode_stream::~decode_stream() = default;
decode_stream::decode_stream(decode_stream&&) noexcept = default;
decode_stream::decode_stream(const decode_stream& of)
  : tokenizer_(of.tokenizer_), skip_special_(of.skip_special_),
    state_(std::make_unique<state>(*of.state_)) {
}

std::string decode_stream::push(token_id id) {
  const std::string* text = text_of(*tokenizer_.parts_, id, skip_special_);
  return text == nullptr ? std::string() : state_->text.push(*text);
}

std::string decode_stream::finish() {
  return state_->text.finish();
}

} // namespace shoal::model::text
