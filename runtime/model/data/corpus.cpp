// runtime/model/data/corpus.cpp -- makes one corpus of documents, split by
// file.
#include "runtime/model/data/corpus.hpp"

#include "runtime/model/text/tokenizer.hpp"

#include <algorithm>

namespace shoal::model {

namespace {

/// The hash of a path for the split by file: 64 bits, evenly spread.
std::uint64_t path_hash(std::string_view relative) {
  std::uint64_t h = 0xcbf29ce484222325ull; // FNV-1a
  for (const char c : relative)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull; // finaliser: spreads low bits
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}

} // namespace

std::uint64_t corpus::train_size() const noexcept {
  return narrow() ? train_u8.size() : train_u32.size();
}

std::uint64_t corpus::validation_size() const noexcept {
  return narrow() ? validation_u8.size() : validation_u32.size();
}

namespace {

void copy_tokens(bool narrow, const std::vector<std::uint8_t>& u8,
                 const std::vector<std::uint32_t>& u32, std::uint64_t first,
                 std::span<token_id> into) {
  const std::uint64_t size = narrow ? u8.size() : u32.size();
  SHOAL_ASSERT(first <= size && into.size() <= size - first);
  for (std::size_t i = 0; i < into.size(); ++i)
    into[i] = narrow ? static_cast<token_id>(u8[first + i])
                     : static_cast<token_id>(u32[first + i]);
}

} // namespace

void corpus::copy_train(std::uint64_t first, std::span<token_id> into) const {
  copy_tokens(narrow(), train_u8, train_u32, first, into);
}

void corpus::copy_validation(std::uint64_t first,
                             std::span<token_id> into) const {
  copy_tokens(narrow(), validation_u8, validation_u32, first, into);
}

bool held_out(std::string_view relative, std::uint32_t permille) {
  return path_hash(relative) % 1000 < permille;
}

namespace {

/// The measure for choosing a side of the split by size.
std::size_t size_of(const document& d) {
  return d.ids.empty() ? d.text.size() : d.ids.size();
}

/// Ensures that no side is empty if there are at least two files.
void balance(std::vector<text_file>& texts) {
  const auto held =
    std::ranges::count_if(texts, [](auto& t) { return t.validation; });
  const auto all = static_cast<std::ptrdiff_t>(texts.size());
  if (all < 2 || (held > 0 && held < all))
    return;
  auto hash = [](const text_file& t) { return path_hash(t.relative); };
  if (held == 0)
    std::ranges::min_element(texts, {}, hash)->validation = true;
  else
    std::ranges::max_element(texts, {}, hash)->validation = false;
}

/// Cuts the last `held` bytes (or ids) off a document.
document cut(document& whole, std::size_t held, bool bytes) {
  document end{{}, {}, whole.where, whole.ends};
  whole.ends = false;
  if (!whole.ids.empty()) {
    const auto at = whole.ids.end() - static_cast<std::ptrdiff_t>(held);
    end.ids.assign(at, whole.ids.end());
    whole.ids.erase(at, whole.ids.end());
    return end;
  }
  std::string& text = whole.text;
  std::size_t at = text.size() - held;
  // Only the byte tokenizer can encode half a character.
  for (int i = 0; i < 3 && !bytes && at > 1
                  && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
       ++i)
    --at;
  end.text = text.substr(at);
  text.resize(at);
  return end;
}

std::size_t size_of(const text_file& file) {
  std::size_t size = 0;
  for (const document& d : file.documents)
    size += size_of(d);
  return size;
}

/// How many times more, or less, than asked for whole files may hold out, or more
/// whole documents. With 5 % asked for, one file of 6 is more than this, and so is one
/// in 12 of the splits of 10 files alike, and one in 60 of those of 20. Higher: less to
/// train on, or too little to measure a loss.
constexpr std::size_t held_out_factor_max = 3;

/// Whether a split is close enough to the requested one: at most
/// held_out_factor_max times as much is held out, and at most half of the
/// intended training text.
bool is_near(std::size_t held, std::size_t wanted, std::size_t all) {
  return held <= held_out_factor_max * std::max<std::size_t>(1, wanted)
         && 2 * (all - held) >= all - std::min(all, wanted);
}

/// Takes whole documents off the end, at least `wanted` in all; none if that is
/// too much, or all that there is.
std::vector<document> last_documents(text_file& from, std::size_t wanted) {
  std::size_t first = from.documents.size();
  std::size_t held = 0;
  for (; first > 1 && held < wanted; --first)
    held += size_of(from.documents[first - 1]);
  if (!is_near(held, wanted, size_of(from)))
    return {};
  const auto begin =
    from.documents.begin() + static_cast<std::ptrdiff_t>(first);
  std::vector<document> out;
  std::move(begin, from.documents.end(), std::back_inserter(out));
  from.documents.erase(begin, from.documents.end());
  return out;
}

/// Takes `wanted` off the end: the last documents, and the end of the one
/// before. @pre that is less than all
std::vector<document>
last_piece(text_file& from, std::size_t wanted, bool bytes) {
  std::vector<document> out;
  while (wanted > 0 && size_of(from.documents.back()) <= wanted) {
    wanted -= size_of(from.documents.back());
    out.push_back(std::move(from.documents.back()));
    from.documents.pop_back();
  }
  if (wanted > 0)
    out.push_back(cut(from.documents.back(), wanted, bytes));
  std::ranges::reverse(out);
  return out;
}

/// Holds out the end of a file, or nothing if `wanted` is all of it.
void hold_out_end(text_file& file, std::size_t wanted, bool bytes,
                  std::vector<text_file>& ends) {
  auto held = last_documents(file, wanted);
  if (held.empty() && wanted < size_of(file))
    held = last_piece(file, wanted, bytes);
  if (!held.empty())
    ends.push_back({file.relative, std::move(held), true});
}

/// Holds out the end of each file: its last documents, or the end of its last
/// one. Of the largest file at least something.
void hold_out_ends(std::vector<text_file>& texts, std::uint32_t permille,
                   bool bytes) {
  std::vector<text_file> ends;
  for (text_file& file : texts) {
    file.validation = false;
    if (const auto wanted = size_of(file) * permille / 1000; wanted > 0)
      hold_out_end(file, wanted, bytes, ends);
  }
  const auto size = [](const text_file& file) { return size_of(file); };
  if (ends.empty())
    hold_out_end(*std::ranges::max_element(texts, {}, size), 1, bytes, ends);
  std::ranges::move(ends, std::back_inserter(texts));
}

/// Whether whole files hold out about as much as was asked for.
bool is_near(const std::vector<text_file>& texts, std::uint32_t permille) {
  std::size_t all = 0, held = 0;
  for (const text_file& file : texts) {
    all += size_of(file);
    held += file.validation ? size_of(file) : 0;
  }
  const std::size_t wanted = all * permille / 1000;
  return is_near(held, wanted, all) && held * held_out_factor_max >= wanted;
}

void append(corpus& into, bool validation, std::span<const token_id> ids) {
  auto& u8 = validation ? into.validation_u8 : into.train_u8;
  auto& u32 = validation ? into.validation_u32 : into.train_u32;
  for (const token_id id : ids) {
    SHOAL_ASSERT(static_cast<std::uint32_t>(id) < into.vocab_size);
    if (into.narrow())
      u8.push_back(static_cast<std::uint8_t>(id));
    else
      u32.push_back(static_cast<std::uint32_t>(id));
  }
}

failure nothing_to_read(std::span<const std::string> paths, std::size_t found,
                        const reading_report& report) {
  std::string text = (paths.empty() ? std::string("no path") : paths.front())
                     + ": has no text (" + std::to_string(found)
                     + (found == 1 ? " file" : " files") + " found";
  for (const std::string& notice : notices_of(report))
    text += "; " + notice;
  if (const file_tally& made = report.left.results; made.count > 0)
    text += "; skipped " + made.first.front()
            + (made.count == 1 ? "" : " and others")
            + ", which a run has written or which is of a model: such files "
              "are not read "
              "as text";
  return {text + ")"};
}

} // namespace

result<std::vector<text_file>>
read_text_files(std::span<const std::string> paths,
                const corpus_options& options, reading_report& report) {
  auto files = find_files(paths, &report.left, options.hidden);
  if (!files)
    return files.why();
  std::vector<text_file> texts;
  const corpus_file* last = nullptr;
  auto read = read_documents(
    *files, {options.vocab_size, options.bytes_max, options.bytes_max_key},
    report, [&](const corpus_file& file, document d) -> status {
      if (&file != last)
        texts.push_back({file.relative,
                         {},
                         held_out(file.relative, options.validation_permille)});
      last = &file;
      texts.back().documents.push_back(std::move(d));
      return tell(options.told, "reading text", report.bytes, 0);
    });
  if (!read)
    return read.why();
  if (texts.empty())
    return nothing_to_read(paths, files->size(), report);
  const bool bytes =
    !options.whole_characters
    && (options.by == nullptr || options.by->file() == nullptr);
  if (options.validation_permille > 0) {
    if (texts.size() > 1)
      balance(texts);
    if (texts.size() == 1 || !is_near(texts, options.validation_permille))
      hold_out_ends(texts, options.validation_permille, bytes);
  }
  return texts;
}

result<corpus>
encode_texts(std::vector<text_file> texts, const corpus_options& options) {
  const tokenizer by = options.by != nullptr ? *options.by : tokenizer();
  if (options.vocab_size < by.id_count())
    return failure{"the tokenizer has " + std::to_string(by.id_count())
                   + " ids, the model's vocab_size is "
                   + std::to_string(options.vocab_size)
                   + ": its weights have no row for the tokens that were added "
                     "(in transformers: resize_token_embeddings)"};
  std::uint64_t all_bytes = 0;
  for (const text_file& file : texts)
    for (const document& d : file.documents)
      all_bytes += d.text.size();
  corpus all;
  all.vocab_size = options.vocab_size;
  text_encoder encoder(by);
  std::uint64_t bytes = 0;
  for (text_file& file : texts) {
    const bool v = file.validation;
    const std::uint64_t first = v ? all.validation_size() : all.train_size();
    for (document& d : file.documents) {
      if (status on = tell(options.told, "encoding text", bytes, all_bytes);
          !on)
        return on.why();
      bytes += d.text.size();
      auto ids = d.ids.empty() ? encoder.encode(d.text)
                               : result<std::vector<token_id>>(d.ids);
      if (!ids)
        return failure{d.where + ": " + ids.message()};
      if (d.ends)
        end_text(*ids, options.ends);
      append(all, v, *ids);
      d = {};
    }
    all.files.push_back(
      {file.relative, v, first, v ? all.validation_size() : all.train_size()});
    file.documents = {};
  }
  return all;
}

result<corpus>
read_corpus(std::span<const std::string> paths, const corpus_options& options,
            corpus_report* report) {
  corpus_report own_report;
  corpus_report& told = report != nullptr ? *report : own_report;
  told = {};
  if (options.by != nullptr)
    told.notices = options.by->notices();
  auto texts = read_text_files(paths, options, told.read);
  if (!texts)
    return texts.why();
  std::ranges::move(notices_of(told.read), std::back_inserter(told.notices));
  return encode_texts(std::move(*texts), options);
}

} // namespace shoal::model
