// apps/cli/reference_page.cpp -- writes a page as Markdown or as a man page.
#include "apps/cli/reference_page.hpp"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

namespace shoal::apps {
namespace {

constexpr std::size_t page_width = 80;
constexpr std::string_view example = "    "; ///< prefix of its lines

/// Calls `each(text, is_code)` for the parts between backticks.
template <class Each>
void for_spans(std::string_view text, Each each) {
  bool code = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('`'), text.size());
    if (end > 0)
      each(text.substr(0, end), code);
    text.remove_prefix(std::min(end + 1, text.size()));
    code = !code;
  }
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    if (end > 0)
      out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// Columns with content in at least one row.
std::vector<std::size_t> used_columns(const page_table& t) {
  std::vector<std::size_t> out;
  for (std::size_t c = 0; c < t.columns.size(); ++c)
    if (std::ranges::any_of(t.rows,
                            [c](const auto& row) { return !row[c].empty(); }))
      out.push_back(c);
  return out;
}

// Markdown.

/// Lines of at most `page_width`.
std::string filled(const std::string& text) {
  std::string out, line;
  for (const std::string& word : words_of(text)) {
    if (!line.empty() && line.size() + 1 + word.size() > page_width) {
      out += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + line + "\n";
}

/// A cell may not contain an unescaped '|'.
std::string cell(const std::string& text, bool name) {
  std::string out;
  for (const char c : text)
    out += c == '|' ? std::string("\\|") : std::string(1, c);
  return name ? "`" + out + "`" : out;
}

std::string markdown(const page_table& t) {
  const auto used = used_columns(t);
  if (used.empty())
    return {};
  std::string out = "\n|", rule = "|";
  for (const std::size_t c : used) {
    out += " " + t.columns[c] + " |";
    rule += "---|";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : t.rows) {
    out += "|";
    for (const std::size_t c : used)
      out += (row[c].empty() ? "" : " " + cell(row[c], c == 0)) + " |";
    out += "\n";
  }
  return out;
}

// A man page.

/// Text without requests and escapes.
std::string plain(std::string_view text, bool code) {
  std::string out;
  for (const char c : text) {
    if (c == '\\')
      out += "\\e";
    else if (c == '-' && code)
      out += "\\-";
    else
      out += c;
  }
  return out;
}

/// Bold code, wrapped words; each sentence begins a line, as usual in man
/// pages.
std::string roff(const std::string& text) {
  std::string marked;
  for_spans(text, [&](std::string_view span, bool code) {
    marked += code ? "\\fB" + plain(span, true) + "\\fR" : plain(span, false);
  });
  std::string out, line;
  bool ended = false; // a sentence
  for (const std::string& word : words_of(marked)) {
    const bool begins = ended
                        && std::isupper(static_cast<unsigned char>(
                          word.front() == '\\' ? 'A' : word.front()));
    if (!line.empty()
        && (begins || line.size() + 1 + word.size() >= page_width)) {
      out += line + "\n";
      line.clear();
    }
    if (line.empty() && (word.front() == '.' || word.front() == '\''))
      line = "\\&";
    line += (line.empty() || line == "\\&" ? "" : " ") + word;
    ended = word.ends_with('.');
  }
  return out + line + "\n";
}

std::string roff_example(std::string_view text) {
  std::string out = ".RS 4\n.nf\n";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(example.size(), line.size()));
    out += (line.starts_with('.') || line.starts_with('\'') ? "\\&" : "")
           + plain(line, true) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + ".fi\n.RE\n";
}

std::string roff(const page_table& t) {
  std::string out;
  const std::size_t last = t.columns.size() - 1;
  for (const auto& row : t.rows) {
    std::string text = row[last], more;
    for (std::size_t c = 1; c < last; ++c)
      if (!row[c].empty())
        more += (more.empty() ? "" : "; ") + t.columns[c] + ": " + row[c];
    if (!more.empty())
      text += (text.empty() ? "" : " ") + ("(" + more + ")");
    // A name that begins with a dot would be a request; \& has no width.
    out += ".TP\n\\fB" + plain(row[0], true) + "\\fR\n" + roff(text);
  }
  return out;
}

std::string upper(std::string text) {
  for (char& c : text)
    c = char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string without_ticks(std::string text) {
  std::erase(text, '`');
  return text;
}

} // namespace

std::string to_markdown(const page& p, const std::string& first) {
  std::string out = "# " + p.name + ": reference\n\n" + filled(first);
  for (const page_part& part : p.parts) {
    out +=
      "\n" + std::string(part.chapter ? "## " : "### ") + part.title + "\n";
    for (const std::string& text : part.paragraphs)
      out += "\n" + (text.starts_with(example) ? text + "\n" : filled(text));
    out += markdown(part.table);
  }
  return out;
}

std::string to_man(const page& p) {
  std::string out = ".TH " + upper(p.name) + " 1 \"\" \"" + p.name + " "
                    + p.version + "\"\n.SH NAME\n" + p.name + " \\- "
                    + plain(p.summary, false) + "\n.SH SYNOPSIS\n"
                    + roff(p.usage);
  for (const page_part& part : p.parts) {
    const std::string title = without_ticks(part.title);
    out += part.chapter ? ".SH " + upper(title) + "\n"
                        : ".SS \"" + plain(title, true) + "\"\n";
    bool begun = false;
    for (const std::string& text : part.paragraphs) {
      if (std::exchange(begun, true)) // a heading begins a paragraph
        out += ".PP\n";
      out += text.starts_with(example) ? roff_example(text) : roff(text);
    }
    if (!part.table.rows.empty())
      out += roff(part.table);
  }
  return out;
}

} // namespace shoal::apps
