// runtime/model/data/documents.cpp -- reads documents from files.
#include "runtime/model/data/documents.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/files/json.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

namespace shoal::model {

namespace {

/// Lines of one file that a failure names; the rest are counted. More would
/// fill a screen, and mostly have one cause.
constexpr std::size_t bad_lines_named_max = 5;

/// Lines by which a text is taken for JSON documents under another name.
constexpr int json_lines_looked_at = 8;

/// Bytes by which a text is taken for UTF-16: nearly all of a text of Latin
/// letters have a zero in every second byte.
constexpr std::size_t utf16_looked_at = 64;

/// Keys of a .jsonl line by which other trainers leave tokens out of the loss.
constexpr const char* mask_names[] = {"labels", "loss_mask", "completion_mask",
                                      "assistant_masks"};

/// Whether the first lines of a text that have anything in them are JSON
/// objects: one a line, as in a .jsonl file.
bool looks_like_jsonl(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  int seen = 0;
  for (; seen < json_lines_looked_at; ++seen) {
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    if (text.empty())
      break;
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.front() != '{' || line.size() > jsonl_line_bytes_max
        || !parse_json(line).is_object())
      return false;
    text.remove_prefix(line.size());
  }
  return seen > 0;
}

/// Whether a text is a JSON array of objects, as far as its beginning tells.
bool looks_like_json_list(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  for (const char mark : {'[', '{', '"'}) {
    text.remove_prefix(std::min(text.find_first_not_of(blank), text.size()));
    if (!text.starts_with(mark))
      return false;
    text.remove_prefix(1);
  }
  return true;
}

/// That a file which begins like this is UTF-16, as some editors write it; empty
/// if it does not look so.
std::string utf16_text(std::string_view begin) {
  begin = begin.substr(0, utf16_looked_at);
  const std::size_t pairs = begin.size() / 2;
  std::size_t zeros[2] = {0, 0}; // among the first and the second bytes of pairs
  for (std::size_t i = 0; i < 2 * pairs; ++i)
    zeros[i % 2] += begin[i] == '\0';
  const auto zero_in = [&](int half) {
    return pairs >= 4 && 8 * zeros[half] >= 7 * pairs && zeros[1 - half] == 0;
  };
  const bool marked =
    begin.starts_with("\xFF\xFE") || begin.starts_with("\xFE\xFF");
  const std::string kind = marked       ? "utf-16"
                           : zero_in(1) ? "utf-16le"
                           : zero_in(0) ? "utf-16be"
                                        : "";
  return kind.empty() ? std::string()
                      : "is text in UTF-16: convert it (`iconv -f " + kind
                          + " -t utf-8`)";
}

/// The reason why a file is not read.
enum class reason { not_text, unreadable, too_large };

/// A file that is left out, and the reason; or a failure.
struct left_out {
  reason why;
  std::string text;
};

left_out too_large() {
  return {reason::too_large, "is larger than "
                               + std::to_string(corpus_file_bytes_max)
                               + " bytes: split it, or make it a .jsonl file, "
                                 "which is read line by line"};
}

/// Counts the bytes of a source, and stops at the limit.
class counted {
public:
  counted(byte_source from, const std::string& path,
          const reading_options& options, std::uint64_t before)
    : from_(std::move(from)), path_(path), options_(options), sum_(before),
      buffer_(read_piece_bytes) {}

  std::uint64_t sum() const { return sum_; }

  /// @returns the next piece; empty: the end.
  result<std::string_view> next() {
    const auto got = from_(buffer_);
    if (!got)
      return got.why();
    sum_ += *got;
    if (sum_ > options_.bytes_max)
      return failure{path_ + ": with this file the data has more than "
                     + std::to_string(options_.bytes_max) + " bytes"
                     + (options_.bytes_max_key.empty()
                          ? ""
                          : " (" + options_.bytes_max_key
                              + "): raise that limit, or give fewer files")};
    return std::string_view(buffer_.data(), *got);
  }

private:
  byte_source from_;
  const std::string& path_;
  const reading_options& options_;
  std::uint64_t sum_;
  std::vector<char> buffer_;
};

/// One file, read once.
class reading {
public:
  reading(const corpus_file& file, byte_source from,
          const reading_options& options, reading_report& report,
          const take_document& take)
    : file_(file), options_(options), report_(report), take_(take),
      bytes_(unpacked(std::move(from), packing_of(file.path), file.path),
             file.path, options, report.bytes) {}

  /// @returns nothing if the file was read.
  result<std::optional<left_out>> run() {
    const bool lines = without_packing(file_.path).ends_with(".jsonl");
    auto out = lines ? read_lines() : read_whole();
    if (out && !*out) {
      report_.bytes = bytes_.sum();
      report_.files += documents_ > 0;
    }
    return out;
  }

private:
  status give(document d) {
    if (d.text.empty() && d.ids.empty())
      return done{};
    ++documents_;
    ++report_.documents;
    report_.ended += d.ends;
    return take_(file_, std::move(d));
  }

  result<std::optional<left_out>> read_whole() {
    std::string text;
    for (;;) {
      const auto piece = bytes_.next();
      if (!piece)
        return piece.why();
      if (piece->empty())
        break;
      if (auto other = text.empty() ? utf16_text(*piece) : std::string();
          !other.empty())
        return std::optional(left_out{reason::not_text, std::move(other)});
      if (const auto nul = piece->find('\0'); nul != std::string_view::npos)
        return std::optional(left_out{
          reason::not_text,
          "is not text: byte " + std::to_string(text.size() + nul) + " is 0"});
      if (text.size() + piece->size() > corpus_file_bytes_max)
        return std::optional(too_large());
      text += *piece;
    }
    if (!core::is_utf8(text))
      report_.not_utf8.add(file_.path);
    if (looks_like_jsonl(text) || looks_like_json_list(text))
      report_.like_json.add(file_.path);
    if (auto given = give({std::move(text), {}, file_.path}); !given)
      return given.why();
    return std::optional<left_out>();
  }

  result<std::optional<left_out>> read_lines() {
    std::string line;
    for (;;) {
      const auto piece = bytes_.next();
      if (!piece)
        return piece.why();
      std::string_view rest = *piece;
      const bool end = rest.empty();
      if (auto other =
            number_ == 0 && line.empty() ? utf16_text(rest) : std::string();
          !other.empty())
        return failure{file_.path + ": " + other};
      while (!rest.empty() || end) {
        const std::size_t at = rest.find('\n');
        const bool whole = end || at != std::string_view::npos;
        line += rest.substr(0, at);
        if (line.size() > jsonl_line_bytes_max)
          return failure{where(number_ + 1) + ": is longer than "
                         + std::to_string(jsonl_line_bytes_max)
                         + " bytes: one document is one line"};
        if (whole) {
          ++number_;
          if (auto took = take_line(line); !took)
            return took.why();
          line.clear();
        }
        if (end && bad_lines_ > 0)
          return bad_lines();
        if (end && masked_)
          report_.masked.add(file_.path);
        if (end)
          return std::optional<left_out>();
        rest.remove_prefix(whole ? at + 1 : rest.size());
      }
    }
  }

  std::string where(std::size_t line) const {
    return file_.path + ":" + std::to_string(line);
  }

  /// After an invalid line the rest is only checked, so that all invalid lines
  /// are reported at once.
  status take_line(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos)
      return done{};
    document d;
    if (auto read = read_line(line, d); !read) {
      if (++bad_lines_ <= bad_lines_named_max)
        named_ += (named_.empty() ? "" : "\n") + read.message();
      return done{};
    }
    return bad_lines_ > 0 ? status(done{}) : give(std::move(d));
  }

  failure bad_lines() const {
    std::string text = named_;
    if (bad_lines_ > bad_lines_named_max) {
      const std::size_t more = bad_lines_ - bad_lines_named_max;
      text += "\nand " + std::to_string(more) + " more "
              + (more == 1 ? "line" : "lines") + " of " + file_.path;
    }
    for (const std::string& each : advice_)
      text += (bad_lines_ == 1 ? ": " : "\n") + each;
    return failure{text};
  }

  /// A line that is refused. @param advice  said once, after all such lines
  failure bad(std::string what, const char* advice) {
    if (std::ranges::find(advice_, advice) == advice_.end())
      advice_.emplace_back(advice);
    return failure{std::move(what)};
  }

  static constexpr const char* line_form =
    "each line of a .jsonl file must be an object such as {\"text\": \"...\"} "
    "or "
    "{\"input_ids\": [...]}";

  status read_line(std::string_view line, document& d) {
    d.where = where(number_);
    if (!core::is_utf8(line))
      return bad(d.where + ": is not valid UTF-8, as JSON must be",
                 "convert the file (`iconv -f latin1 -t utf8`)");
    auto object = parse_json_object(line, d.where);
    if (!object)
      return bad(object.message(), line_form);
    masked_ = masked_ || std::ranges::any_of(mask_names, [&](const char* name) {
                return object->contains(name);
              });
    if (auto ids = object->find("input_ids"); ids != object->end()) {
      return read_ids(*ids, d);
    }
    const auto text = object->find("text");
    if (text == object->end() && object->contains("messages"))
      return bad(d.where + ": has \"messages\"",
                 "chat templates are not supported yet: write each "
                 "conversation as one {\"text\": \"...\"}, with the marks that "
                 "the model expects around each turn, or as {\"input_ids\": "
                 "[...]}");
    if (text == object->end() || !text->is_string())
      return bad(d.where
                   + (text == object->end() ? ": has no \"text\""
                                            : ": \"text\" is " + shown(*text)
                                                + ", must be a string"),
                 line_form);
    d.text = std::move(text->get_ref<std::string&>());
    d.ends = true;
    return done{};
  }

  status read_ids(const nlohmann::json& given, document& into) const {
    if (!given.is_array())
      return failure{into.where + ": input_ids is not a list"};
    for (const auto& id : given) {
      if (!id.is_number_unsigned()
          || id.get<std::uint64_t>() >= options_.vocab_size)
        return failure{into.where + ": input_ids: " + shown(id)
                       + " is not an id below vocab_size ("
                       + std::to_string(options_.vocab_size) + ")"};
      into.ids.push_back(id.get<token_id>());
    }
    return done{};
  }

  const corpus_file& file_;
  const reading_options& options_;
  reading_report& report_;
  const take_document& take_;
  counted bytes_;
  std::size_t number_ = 0; ///< of the line that was read last
  std::uint64_t documents_ = 0;
  std::size_t bad_lines_ = 0;
  bool masked_ = false; ///< a line has one of mask_names
  std::string named_;   ///< why the first invalid lines are no documents
  /// How such lines should be; each once.
  std::vector<std::string> advice_;
};

/// A file that was named itself is required; any other is counted.
status leave_out(const corpus_file& file, const left_out& what,
                 reading_report& report) {
  if (file.named)
    return failure{what.why == reason::unreadable
                     ? what.text
                     : file.path + ": " + what.text};
  file_tally& tally = what.why == reason::not_text     ? report.not_text
                      : what.why == reason::unreadable ? report.unreadable
                                                       : report.too_large;
  tally.add(file.path);
  return done{};
}

/// A pointer is text: left in, it would be learnt in place of the data.
bool begins_as_lfs(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string begin(64, '\0');
  in.read(begin.data(), std::streamsize(begin.size()));
  return is_lfs_pointer(begin);
}

status
read_file_documents(const corpus_file& file, const reading_options& options,
                    reading_report& report, const take_document& take) {
  std::error_code error;
  const auto size = std::filesystem::file_size(file.path, error);
  const bool whole =
    packing_of(file.path) == packing::none && !file.path.ends_with(".jsonl");
  if (!error && whole && size > corpus_file_bytes_max)
    return leave_out(file, too_large(), report);
  if (!error && size < lfs_pointer_bytes_max && begins_as_lfs(file.path))
    return failure{file.path + ": " + lfs_pointer_text};
  auto opened = open_file(file.path);
  if (!opened)
    return leave_out(file, {reason::unreadable, opened.message()}, report);
  if (file.relative.size() > corpus_path_bytes_max)
    return leave_out(
      file, {reason::unreadable, file.path + ": has too long a path"}, report);
  return read_documents(file, std::move(*opened), options, report, take);
}

/// The words for one file, and for several.
struct wording {
  const char* one;
  const char* several;
};

/// "2 cannot be read (first: a, b)"
std::string line_of(const file_tally& tally, const wording& what) {
  std::string out = std::to_string(tally.count) + " "
                    + (tally.count == 1 ? what.one : what.several)
                    + (tally.count == 1 ? " (" : " (first: ");
  for (std::size_t i = 0; i < tally.first.size(); ++i)
    out += (i > 0 ? ", " : "") + tally.first[i];
  return out + ")";
}

} // namespace

void file_tally::add(const std::string& path) {
  if (++count <= named_max)
    first.push_back(path);
}

std::vector<std::string> notices_of(const reading_report& report) {
  std::vector<std::string> out;
  static_assert(corpus_file_bytes_max == 1ull << 30);
  const std::pair<const file_tally&, wording> kinds[] = {
    {report.not_text, {"is not text", "are not text"}},
    {report.unreadable, {"cannot be read", "cannot be read"}},
    {report.too_large, {"is larger than 1 GiB", "are larger than 1 GiB"}}};
  std::uint64_t sum = 0;
  std::string parts;
  for (const auto& [tally, what] : kinds) {
    if (tally.count > 0)
      parts += (sum > 0 ? ", " : "") + line_of(tally, what);
    sum += tally.count;
  }
  if (sum > 0)
    out.push_back("skipped " + std::to_string(sum)
                  + (sum == 1 ? " file: " : " files: ") + parts);
  if (report.left.hidden.count > 0)
    out.push_back("skipped "
                  + line_of(report.left.hidden, {"hidden file or folder",
                                                 "hidden files and folders"})
                  + ": name one by itself to read it");
  if (report.not_utf8.count > 0)
    out.push_back(
      line_of(report.not_utf8, {"file is not valid UTF-8, but is read",
                                "files are not valid UTF-8, but are read"}));
  if (report.like_json.count > 0)
    out.push_back(
      line_of(report.like_json,
              {"file has objects of JSON, but is read as plain text",
               "files have objects of JSON, but are read as plain text"})
      + ", braces and keys and all: if each is a document, such as "
        "{\"text\": \"...\"}, write one in each line of NAME.jsonl");
  if (report.masked.count > 0)
    out.push_back(
      line_of(report.masked, {"file says which tokens to learn",
                              "files say which tokens to learn"})
      + ", by \"labels\" or a mask: that is not supported, all tokens are "
        "learnt");
  return out;
}

status read_documents(const corpus_file& file, byte_source bytes,
                      const reading_options& options, reading_report& report,
                      const take_document& take) {
  const auto left =
    reading(file, std::move(bytes), options, report, take).run();
  if (!left)
    return left.why();
  return *left ? leave_out(file, **left, report) : status(done{});
}

status read_documents(std::span<const corpus_file> files,
                      const reading_options& options, reading_report& report,
                      const take_document& take) {
  for (const corpus_file& file : files)
    if (auto read = read_file_documents(file, options, report, take); !read)
      return read;
  return done{};
}

} // namespace shoal::model
