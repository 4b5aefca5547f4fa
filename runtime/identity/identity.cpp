// runtime/identity/identity.cpp -- key files and the data directory's lock.
#include "runtime/identity/identity.hpp"

#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/file.hpp"
#include "runtime/files/home_folder.hpp"
#include "runtime/wire/codec.hpp" // key_digest

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>

namespace shoal::runtime {

namespace fs = std::filesystem;
using transport::tls::private_key;
using transport::tls::shared_key;

namespace {

/// @param otherwise  what to do where it is damaged
std::array<std::uint8_t, 32>
read_key(const fs::path& file, const std::string& otherwise = {}) {
  std::error_code error;
  const unique_fd fd = posix::open_regular(file, O_RDONLY, error);
  if (error)
    throw setup_error("cannot read key file " + file.string() + ": "
                      + error.message());
  check_secret(fd.get(), "key file " + file.string());
  char text[80];
  ssize_t size = ::read(fd.get(), text, sizeof text);
  std::array<std::uint8_t, 32> key{};
  bool ok = (size == 64 || (size == 65 && text[64] == '\n'))
            && core::from_hex({text, 64}, key);
  explicit_bzero(text, sizeof text);
  if (!ok)
    throw setup_error("key file " + file.string()
                      + " does not hold 64 hexadecimal digits" + otherwise);
  return key;
}

/// Makes a key file unless there is one. It is written under another name and
/// then linked, so that nobody sees it half written and the first one wins.
/// @returns whether this call made it.
bool make_key(const fs::path& file, const std::array<std::uint8_t, 32>& key) {
  make_private_dir(file.parent_path());
  fs::path draft = file;
  draft += "." + std::to_string(::getpid()) + "."
           + std::to_string(transport::tls::make_instance());
  std::string text = core::to_hex(key) + "\n";
  auto bytes = std::as_bytes(std::span(text));
  if (auto error = write_new_file(draft, bytes))
    throw setup_error("cannot write key file " + draft.string() + ": "
                      + error.message());
  bool made = ::link(draft.c_str(), file.c_str()) == 0;
  int why = errno;
  ::unlink(draft.c_str());
  if (!made && why != EEXIST)
    throw setup_error("cannot make key file " + file.string() + ": "
                      + std::strerror(why));
  posix::sync_folder(file.has_parent_path() ? file.parent_path() : ".");
  return made;
}

} // namespace

void check_secret(int fd, const std::string& what) {
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    throw setup_error("cannot read " + what + ": "
                      + posix::last_error().message());
  if ((info.st_mode & 077) != 0)
    throw setup_error(what + " can be read by others: run chmod 600 on it");
  if (info.st_uid != ::geteuid())
    throw setup_error(what + " belongs to another user");
}

private_key load_private_key(const fs::path& file) {
  if (!fs::exists(file))
    make_key(file, transport::tls::make_private_key());
  return read_key(file, ": it says which peer this node is. Put it back from a "
                        "copy, or remove it: the node is a new peer then");
}

shared_key new_cluster_key(const fs::path& file) {
  shared_key key = transport::tls::make_shared_key();
  if (fs::exists(fs::symlink_status(file)) || !make_key(file, key))
    throw setup_error(file.string()
                      + " exists and is left as it is: name another file");
  return key;
}

std::string key_fingerprint(const shared_key& key) {
  return core::to_hex(codec::key_digest(key)).substr(0, 32);
}

shared_key load_cluster_key(const fs::path& file) {
  return read_key(file);
}

fs::path identity_file(const fs::path& data_dir) {
  return data_dir / "identity.key";
}

fs::path own_key_file(const fs::path& data_dir) {
  return data_dir / "cluster.key";
}

void keep_own_key(const fs::path& data_dir, const shared_key& key) {
  std::string text = core::to_hex(key) + "\n";
  if (auto error =
        replace_file(own_key_file(data_dir), std::as_bytes(std::span(text))))
    throw setup_error("cannot write " + own_key_file(data_dir).string() + ": "
                      + error.message());
}

static fs::path own_cluster_file(const fs::path& data_dir) {
  return data_dir / "cluster.name";
}

std::optional<std::string> own_cluster(const fs::path& data_dir) {
  const fs::path file = own_cluster_file(data_dir);
  if (!fs::exists(file))
    return std::nullopt;
  std::vector<std::byte> bytes;
  if (auto error = read_file(file, codec::name_bytes_max, bytes))
    throw setup_error("cannot read " + file.string() + ": " + error.message());
  std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (name.empty() || !core::is_shown(name))
    throw setup_error(file.string()
                      + " is damaged: remove it, and name the shoal's cluster "
                        "by --cluster");
  return name;
}

void keep_own_cluster(const fs::path& data_dir, const std::string& name) {
  const fs::path file = own_cluster_file(data_dir);
  if (auto error = replace_file(file, std::as_bytes(std::span(name))))
    throw setup_error("cannot write " + file.string() + ": " + error.message());
}

fs::path user_key_file() {
  const fs::path config = xdg_folder("XDG_CONFIG_HOME", ".config");
  if (config.empty())
    throw setup_error("neither XDG_CONFIG_HOME nor HOME is set: set one, or "
                      "name a cluster key by --cluster-key");
  return config / "shoal" / "cluster.key";
}

shared_key load_user_key() {
  fs::path file = user_key_file();
  if (!fs::exists(file))
    make_key(file, transport::tls::make_shared_key());
  return read_key(file);
}

shared_key existing_user_key() {
  const fs::path file = user_key_file();
  if (!fs::exists(file))
    throw setup_error("there is no cluster key here: " + file.string()
                      + " does not exist");
  return read_key(file);
}

fs::path default_data_dir(const std::string& name) {
  const fs::path base = xdg_folder("XDG_DATA_HOME", ".local/share");
  if (base.empty())
    throw setup_error("neither XDG_DATA_HOME nor HOME is set: set one, or name "
                      "the folder of a node by --data-dir");
  return base / "shoal" / (name.empty() ? "default" : name);
}

std::vector<std::string> nodes_beside(const fs::path& data_dir) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(data_dir.parent_path(), error), end;
       !error && at != end; at.increment(error))
    if (std::error_code none;
        at->path() != data_dir && fs::exists(identity_file(*at), none))
      out.push_back(at->path().filename().string());
  std::ranges::sort(out);
  return out;
}

fs::path control_socket(const fs::path& data_dir) {
  return data_dir / "control.sock";
}

bool mend_data_dir(const fs::path& folder) {
  struct stat is {};
  if (::stat(folder.c_str(), &is) != 0 || (is.st_mode & 077) == 0)
    return false; // it will be made private, or cannot be used anyway
  const std::string open = folder.string() + " is accessible to other users";
  if (!S_ISDIR(is.st_mode) || is.st_uid != ::geteuid())
    throw setup_error(folder.string()
                      + " belongs to another user, or is no directory: choose "
                        "another --data-dir");
  if (!fs::is_empty(folder) && !fs::exists(identity_file(folder)))
    throw setup_error(open
                      + " and is not a shoal data directory: use an empty "
                        "--data-dir, or run chmod 700 on it");
  if (::chmod(folder.c_str(), 0700) != 0)
    throw setup_error(open + ", and cannot be made private: "
                      + std::strerror(errno) + ": choose another --data-dir");
  return true;
}

/// What the lock file holds: the process, and what tells it from others that have this
/// number, in another container say.
static std::string new_lock_text() {
  std::random_device random;
  std::ostringstream out;
  out << ::getpid() << "\n" << std::hex << random() << random() << "\n";
  return out.str();
}

/// Names the process that has it otherwise.
static void take_lock(int fd, int kind, const fs::path& folder) {
  if (::flock(fd, kind | LOCK_NB) == 0)
    return;
  char pid[32] = {};
  ssize_t size = ::read(fd, pid, sizeof pid - 1);
  std::string owner = size > 0 ? std::string(pid, pid + size) : "unknown";
  owner.resize(std::min(owner.find('\n'), owner.size()));
  throw setup_error("data directory " + folder.string()
                    + " is in use by process " + owner
                    + ": stop it, or choose another --name or --data-dir");
}

void check_data_dir_is_free(const fs::path& folder) {
  std::error_code error;
  const unique_fd fd = posix::open_regular(folder / "lock", O_RDONLY, error);
  if (!error)
    take_lock(fd.get(), LOCK_SH, folder);
}

data_dir_lock::data_dir_lock(const fs::path& folder) {
  make_private_dir(folder);
  const fs::path file = folder / "lock";
  std::error_code error;
  unique_fd fd = posix::open_regular(file, O_RDWR | O_CREAT, error);
  if (error)
    throw setup_error("cannot use data directory " + folder.string() + ": "
                      + file.string() + ": " + error.message());
  take_lock(fd.get(), LOCK_EX, folder);
  text_ = new_lock_text();
  if (::ftruncate(fd.get(), 0) != 0
      || ::pwrite(fd.get(), text_.data(), text_.size(), 0)
           != ssize_t(text_.size()))
    throw setup_error("cannot write " + file.string() + ": "
                      + std::strerror(errno));
  file_ = file;
  fd_ = fd.release();
}

data_dir_lock::~data_dir_lock() {
  ::close(fd_); // ends the lock; the file stays, and so does its inode
}

// Inode numbers are not compared: some file systems do not keep them. A process that
// has taken the directory's place has written a text of its own.
bool data_dir_lock::lost() const {
  struct stat is {};
  if (::fstat(fd_, &is) == 0 && is.st_nlink == 0)
    return true;
  std::error_code error;
  const unique_fd there = posix::open_regular(file_, O_RDONLY, error);
  if (error) // others may pass
    return error == std::errc::no_such_file_or_directory
           || error == std::errc::not_a_directory;
  char text[64] = {};
  const ssize_t size = ::read(there.get(), text, sizeof text);
  return size > 0 && std::string(text, std::size_t(size)) != text_;
}

} // namespace shoal::runtime
