// runtime/files/file_io.cpp -- whole files, with failures as text.
#include "runtime/files/file_io.hpp"

#include <cerrno>

namespace shoal::model {

namespace fs = std::filesystem;
namespace posix = runtime::posix;

namespace {

constexpr mode_t readable_by_all = 0644;

status
checked(const fs::path& path, std::string_view action, std::error_code error) {
  if (error)
    return file_failure(path, action, error);
  return done{};
}

} // namespace

std::string dead_link(const std::filesystem::path& path) {
  std::error_code error, none;
  const auto target = std::filesystem::read_symlink(path, error);
  if (error || std::filesystem::exists(path, none) || none)
    return {}; // no link, or it may lead somewhere
  return "has " + path.filename().string() + ", but as a link to "
         + target.string() + ", which does not exist";
}

failure file_failure(const fs::path& path, std::string_view action,
                     std::error_code error) {
  return {path.string() + ": " + std::string(action) + ": " + error.message()};
}

result<std::string> read_file(const fs::path& path, std::uint64_t bytes_max) {
  std::error_code error;
  const posix::descriptor fd = posix::open_regular(path, O_RDONLY, error);
  if (error == runtime::errc::not_regular)
    return failure{path.string() + ": is not a regular file"};
  if (error)
    return file_failure(path, "cannot open", error);
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return file_failure(path, "cannot read", posix::last_error());
    if (got == 0)
      return text;
    if (text.size() + static_cast<std::size_t>(got) > bytes_max)
      return failure{path.string() + ": is longer than "
                     + std::to_string(bytes_max) + " bytes"};
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

file_writer::file_writer(fs::path path)
  : path_(std::move(path)), draft_(path_, readable_by_all) {
}

status file_writer::open() {
  return checked(path_, "cannot create", draft_.open());
}

status file_writer::write(std::span<const std::byte> bytes) {
  return checked(path_, "cannot write", draft_.write(bytes));
}

status file_writer::commit() {
  return checked(path_, "cannot write", draft_.commit());
}

status write_file(const fs::path& path, std::string_view text) {
  file_writer file(path);
  if (status opened = file.open(); !opened)
    return opened;
  if (status written = file.write(std::as_bytes(std::span(text))); !written)
    return written;
  return file.commit();
}

status sync_directory(const fs::path& directory) {
  return checked(directory, "cannot sync", posix::sync_folder(directory));
}

} // namespace shoal::model
