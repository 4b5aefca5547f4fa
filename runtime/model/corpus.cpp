// runtime/model/corpus.cpp -- files into one corpus, split by file.
#include "runtime/model/corpus.hpp"

#include "runtime/model/file_io.hpp"
#include "runtime/model/tokenizer.hpp"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <tuple>

namespace shoal::model {

namespace fs = std::filesystem;

namespace {

/// Folders within folders.
constexpr int folder_depth_max = 64;

/// Where the split by file puts a path: 64 bits, evenly spread.
std::uint64_t path_hash(std::string_view relative) {
  std::uint64_t h = 0xcbf29ce484222325ull; // FNV-1a
  for (const char c : relative)
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull; // finaliser: spreads low bits
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
  return h ^ (h >> 31);
}

status too_many(const std::string& path) {
  return failure{path + ": names more than " + std::to_string(corpus_files_max)
                 + " files"};
}

/// Adds all regular files below a folder; what cannot be opened is left out.
status add_folder(const fs::path& folder, std::vector<corpus_file>& into) {
  std::error_code error;
  const auto skip = fs::directory_options::skip_permission_denied;
  fs::recursive_directory_iterator it(folder, skip, error);
  if (error)
    return failure{folder.string() + ": " + error.message()};
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it.depth() >= folder_depth_max
        || (it->is_directory(ignored)
            && fs::exists(it->path() / results_lock, ignored)))
      it.disable_recursion_pending();
    if (!it->is_regular_file(ignored))
      continue;
    if (into.size() == corpus_files_max)
      return too_many(folder.string());
    into.push_back({it->path().string(),
                    it->path().lexically_relative(folder).generic_string()});
  }
  if (error)
    return failure{folder.string() + ": " + error.message()};
  return done{};
}

status add_path(const fs::path& path, std::vector<corpus_file>& into) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return add_folder(path, into);
  if (!fs::is_regular_file(path, error))
    return failure{path.string() + ": is neither a file nor a folder"};
  if (into.size() == corpus_files_max)
    return too_many(path.string());
  into.push_back({path.string(), path.filename().string()});
  return done{};
}

status add_glob(const std::string& pattern, std::vector<corpus_file>& into) {
  glob_t matches{};
  const int rc = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
  status added = done{};
  if (rc != 0)
    added = failure{pattern + ": no such file, folder or match"};
  for (std::size_t i = 0; rc == 0 && added && i < matches.gl_pathc; ++i) {
    std::error_code error;
    if (fs::exists(matches.gl_pathv[i], error))
      added = add_path(matches.gl_pathv[i], into);
  }
  ::globfree(&matches);
  return added;
}

} // namespace

result<std::vector<corpus_file>>
find_files(std::span<const std::string> paths) {
  std::vector<corpus_file> files;
  for (const std::string& path : paths) {
    std::error_code error;
    status added =
      fs::exists(path, error) ? add_path(path, files) : add_glob(path, files);
    if (!added)
      return added.why();
  }
  std::ranges::sort(files, [](const corpus_file& a, const corpus_file& b) {
    return std::tie(a.relative, a.path) < std::tie(b.relative, b.path);
  });
  const auto twice =
    std::unique(files.begin(), files.end(),
                [](const auto& a, const auto& b) { return a.path == b.path; });
  files.erase(twice, files.end());
  return files;
}

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

/// A text that was read, and the side that it is on.
struct text_file {
  std::string relative;
  std::string content;
  bool validation = false;
};

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

/// Cuts the end off the only file.
void cut(std::vector<text_file>& texts, std::uint32_t permille, bool bytes) {
  text_file& whole = texts.front();
  const std::size_t held =
    std::max<std::size_t>(1, whole.content.size() * permille / 1000);
  whole.validation = false;
  if (held >= whole.content.size())
    return;
  std::size_t at = whole.content.size() - held;
  // No tokenizer but that of bytes makes sense of half a character.
  for (int i = 0;
       i < 3 && !bytes && at > 1
       && (static_cast<unsigned char>(whole.content[at]) & 0xC0) == 0x80;
       ++i)
    --at;
  text_file end{whole.relative, whole.content.substr(at), true};
  whole.content.resize(at);
  texts.push_back(std::move(end));
}

status append(corpus& into, text_file& text, text_encoder& encoder) {
  const bool v = text.validation;
  const std::uint64_t first = v ? into.validation_size() : into.train_size();
  auto ids = encoder.encode(text.content);
  if (!ids)
    return failure{text.relative + ": " + ids.message()};
  auto& u8 = v ? into.validation_u8 : into.train_u8;
  auto& u32 = v ? into.validation_u32 : into.train_u32;
  for (const token_id id : *ids) {
    SHOAL_ASSERT(static_cast<std::uint32_t>(id) < into.vocab_size);
    if (into.narrow())
      u8.push_back(static_cast<std::uint8_t>(id));
    else
      u32.push_back(static_cast<std::uint32_t>(id));
  }
  into.files.push_back({text.relative, v, first, first + ids->size()});
  std::string().swap(text.content);
  return done{};
}

/// Reads all files that are text.
result<std::vector<text_file>>
read_texts(const std::vector<corpus_file>& files, const corpus_options& options,
           corpus_report& report) {
  std::vector<text_file> texts;
  for (const corpus_file& file : files) {
    std::error_code error;
    const auto size = fs::file_size(file.path, error);
    if (!error && size > corpus_file_bytes_max) {
      ++report.skipped_too_large;
      continue;
    }
    auto content = read_file(file.path, corpus_file_bytes_max);
    if (!content || file.relative.size() > corpus_path_bytes_max) {
      ++report.skipped_unreadable;
      continue;
    }
    if (content->find('\0') != std::string::npos) {
      ++report.skipped_not_text;
      continue;
    }
    if (content->empty())
      continue;
    report.bytes += content->size();
    if (report.bytes > options.bytes_max)
      return failure{file.path + ": with this file the corpus has more than "
                     + std::to_string(options.bytes_max) + " bytes"};
    ++report.files;
    const bool validation =
      held_out(file.relative, options.validation_permille);
    texts.push_back({file.relative, std::move(*content), validation});
  }
  return texts;
}

} // namespace

result<corpus>
read_corpus(std::span<const std::string> paths, const corpus_options& options,
            corpus_report* report) {
  const tokenizer by = options.by != nullptr ? *options.by : tokenizer();
  if (options.vocab_size < by.id_count())
    return failure{"the tokenizer has " + std::to_string(by.id_count())
                   + " ids, the model's vocab_size is "
                   + std::to_string(options.vocab_size)};
  corpus_report own_report;
  corpus_report& counts = report != nullptr ? *report : own_report;
  counts = {};
  if (options.by != nullptr)
    counts.notices = options.by->notices();
  auto files = find_files(paths);
  if (!files)
    return files.why();
  auto texts = read_texts(*files, options, counts);
  if (!texts)
    return texts.why();
  if (texts->empty())
    return failure{(paths.empty() ? std::string("no path") : paths.front())
                   + ": has no text file (" + std::to_string(files->size())
                   + " files found, " + std::to_string(counts.skipped_not_text)
                   + " not text, " + std::to_string(counts.skipped_unreadable)
                   + " unreadable, " + std::to_string(counts.skipped_too_large)
                   + " too large)"};
  if (options.validation_permille > 0) {
    if (texts->size() == 1)
      cut(*texts, options.validation_permille, by.file() == nullptr);
    else
      balance(*texts);
  }
  corpus all;
  all.vocab_size = options.vocab_size;
  text_encoder encoder(by);
  for (text_file& text : *texts) {
    if (status added = append(all, text, encoder); !added)
      return added.why();
  }
  return all;
}

} // namespace shoal::model
