// apps/cli/reference_page.hpp -- a reference, as Markdown and as a man page.
//
// Chapters with sections; below each heading paragraphs, and one table whose
// first column has names and whose last one has their meanings. Markdown shows
// a table as such; a man page shows a name, its meaning, and then the other
// columns.
//
// Texts have `code` in backticks and no other markup. A paragraph that begins
// with four spaces is an example, line by line.
#pragma once

#include <string>
#include <vector>

namespace shoal::apps {

struct page_table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows; ///< as long as `columns`
};

struct page_part {
  bool chapter = false; ///< false: a section of the last chapter
  std::string title;
  std::vector<std::string> paragraphs;
  page_table table;
};

struct page {
  std::string name;    ///< "shoal"
  std::string version; ///< "0.1.0"
  std::string summary; ///< one line, without a full stop
  std::string usage;   ///< one line
  std::vector<page_part> parts;
};

/// `first` is a line for readers of the file, such as how to regenerate it.
std::string to_markdown(const page& p, const std::string& first);

/// In the format of man(7), for section 1.
std::string to_man(const page& p);

} // namespace shoal::apps
