// runtime/model/corpus.cpp -- documents into one corpus, split by file.
#include "runtime/model/corpus.hpp"

#include "runtime/model/tokenizer.hpp"

#include <algorithm>

namespace shoal::model {

namespace {

/// Where the split by file puts a path: 64 bits, evenly spread.
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

/// What counts where a side of the split is chosen by size.
std::size_t size_of(const document& d) {
  return d.ids.empty() ? d.text.size() : d.ids.size();
}

/// Sees to it that no side is empty, if there are two files at least.
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
  document end{{}, {}, whole.where};
  if (!whole.ids.empty()) {
    const auto at = whole.ids.end() - static_cast<std::ptrdiff_t>(held);
    end.ids.assign(at, whole.ids.end());
    whole.ids.erase(at, whole.ids.end());
    return end;
  }
  std::string& text = whole.text;
  std::size_t at = text.size() - held;
  // No tokenizer but that of bytes makes sense of half a character.
  for (int i = 0; i < 3 && !bytes && at > 1
                  && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
       ++i)
    --at;
  end.text = text.substr(at);
  text.resize(at);
  return end;
}

/// Holds out the end of the only file: its last documents, or the end of its
/// only one.
void hold_out_end(std::vector<text_file>& texts, std::uint32_t permille,
                  bool bytes) {
  text_file& whole = texts.front();
  whole.validation = false;
  std::size_t size = 0;
  for (const document& d : whole.documents)
    size += size_of(d);
  const std::size_t wanted = std::max<std::size_t>(1, size * permille / 1000);
  text_file end{whole.relative, {}, true};
  if (whole.documents.size() == 1) {
    if (wanted < size)
      end.documents.push_back(cut(whole.documents.front(), wanted, bytes));
  } else {
    std::size_t first = whole.documents.size();
    for (std::size_t held = 0; first > 1 && held < wanted; --first)
      held += size_of(whole.documents[first - 1]);
    const auto at =
      whole.documents.begin() + static_cast<std::ptrdiff_t>(first);
    std::move(at, whole.documents.end(), std::back_inserter(end.documents));
    whole.documents.erase(at, whole.documents.end());
  }
  if (!end.documents.empty())
    texts.push_back(std::move(end));
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
  return {text + ")"};
}

} // namespace

result<std::vector<text_file>>
read_text_files(std::span<const std::string> paths,
                const corpus_options& options, reading_report& report) {
  auto files = find_files(paths);
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
    if (texts.size() == 1)
      hold_out_end(texts, options.validation_permille, bytes);
    else
      balance(texts);
  }
  return texts;
}

result<corpus>
encode_texts(std::vector<text_file> texts, const corpus_options& options) {
  const tokenizer by = options.by != nullptr ? *options.by : tokenizer();
  if (options.vocab_size < by.id_count())
    return failure{"the tokenizer has " + std::to_string(by.id_count())
                   + " ids, the model's vocab_size is "
                   + std::to_string(options.vocab_size)};
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
