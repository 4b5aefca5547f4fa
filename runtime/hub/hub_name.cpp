// runtime/hub/hub_name.cpp -- what a name may consist of.
#include "runtime/hub/hub_name.hpp"

#include "runtime/core/text/shown.hpp"

#include <algorithm>

namespace shoal::hub {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
         || (c >= '0' && c <= '9');
}

/// ORG or NAME.
bool is_name_part(std::string_view part) {
  const auto at_end = [](char c) { return is_letter_or_digit(c) || c == '_'; };
  return !part.empty() && part.size() <= name_part_bytes_max
         && at_end(part.front()) && at_end(part.back())
         && std::ranges::all_of(
           part, [&](char c) { return at_end(c) || c == '-' || c == '.'; })
         && part.find("--") == std::string_view::npos
         && part.find("..") == std::string_view::npos
         && !part.ends_with(".git");
}

bool is_repository(std::string_view text) {
  const auto slash = text.find('/');
  return slash != std::string_view::npos && is_name_part(text.substr(0, slash))
         && is_name_part(text.substr(slash + 1));
}

/// Calls `f` with each part between slashes, until it returns false.
template <class Function>
bool all_parts(std::string_view path, Function f) {
  for (;;) {
    const auto slash = path.find('/');
    if (!f(path.substr(0, slash)))
      return false;
    if (slash == std::string_view::npos)
      return true;
    path.remove_prefix(slash + 1);
  }
}

bool is_revision(std::string_view text) {
  return text.size() <= path_part_bytes_max
         && std::ranges::all_of(text,
                                [](char c) {
                                  return is_letter_or_digit(c)
                                         || std::string_view("-_.+/").find(c)
                                              != std::string_view::npos;
                                })
         && text.find("..") == std::string_view::npos
         && all_parts(text, [](std::string_view part) {
              return !part.empty() && part.front() != '.' && part.front() != '-'
                     && part.back() != '.' && !part.ends_with(".lock");
            });
}

} // namespace

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool is_commit(std::string_view revision) {
  return revision.size() == 40 && is_hex(revision);
}

bool is_file_path(std::string_view path) {
  return path.size() <= path_bytes_max && core::is_shown(path)
         && path.find('\\') == std::string_view::npos
         && all_parts(path, [](std::string_view part) {
              return !part.empty() && part.size() <= path_part_bytes_max
                     && part != "." && part != "..";
            });
}

model::result<hub_name> parse_name(std::string_view text) {
  const auto wrong = [text](const std::string& why) {
    return model::failure{"'" + core::shown(text, path_part_bytes_max)
                          + "' is no name of a model on the hub: " + why};
  };
  hub_name out;
  const auto colon = text.find(':');
  const auto at = text.substr(0, colon).find('@');
  out.repository = text.substr(0, std::min(at, colon));
  if (!is_repository(out.repository))
    return wrong("expected ORG/NAME, ORG/NAME@REVISION or ORG/NAME:FILE.gguf");
  if (at != std::string_view::npos) {
    out.revision = text.substr(0, colon).substr(at + 1);
    if (!is_revision(out.revision))
      return wrong("a revision is a branch, a tag or a commit, such as main");
  }
  if (colon != std::string_view::npos) {
    out.file = text.substr(colon + 1);
    if (!is_file_path(out.file) || !out.file.ends_with(".gguf"))
      return wrong(
        "after ':' comes the path of a .gguf file of the repository");
  }
  return out;
}

} // namespace shoal::hub
