// tests/fuzz/store_parts_fuzz.cpp -- parts of unfinished blobs left by an
// earlier process.
//
// The input is a list of operations on a store: a blob is begun, written on,
// left, continued after a restart, committed; and of changes to the files
// meanwhile or from the start: bytes are added, changed and cut, a FIFO, a link
// or a folder is in the place of a part, and there are invalid names. No call
// blocks, a committed blob hashes to its name and reads as it was written, and
// no file outside the folder is touched.
#include "runtime/core/assert.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/store/store.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <map>

using namespace shoal::runtime;
using shoal::core::blob_digest;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t blobs = 3;

/// The folder of this process; exists while an input runs.
fs::path home() {
  return "/dev/shm/shoal-parts-fuzz-" + std::to_string(::getpid());
}

class world {
public:
  world(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {
    fs::remove_all(home());
    fs::create_directories(parts());
    std::ofstream(outside()) << outside_text;
    for (std::size_t i = 0; i != blobs; ++i) {
      text_[i].assign(1 + i * 40, char('a' + i));
      name_[i] = sha256(std::as_bytes(std::span(text_[i])));
    }
  }

  ~world() {
    store_ = nullptr;
    std::error_code none;
    fs::remove_all(home(), none);
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  void run() {
    for (int i = byte() % 4; i > 0; --i) // before the first process
      disturb();
    store_ = store::open(folder());
    while (left_ > 0)
      step();
    writers_.clear();
    for (std::size_t i = 0; i != blobs; ++i)
      check(i);
    SHOAL_ASSERT(fs::is_empty(folder() / "tmp"));
    std::string text;
    std::getline(std::ifstream(outside()), text);
    SHOAL_ASSERT(text == outside_text);
  }

private:
  static constexpr const char* outside_text = "of others";
  static constexpr const char* link_to[] = {"nowhere", "/dev/zero",
                                            "../../outside"};
  static fs::path folder() { return home() / "blobs"; }
  static fs::path parts() { return folder() / "parts"; }
  static fs::path outside() { return home() / "outside"; }
  fs::path part(std::size_t i) const {
    return parts() / shoal::core::to_hex(name_[i]);
  }

  std::uint8_t byte() {
    if (left_ == 0)
      return 0;
    --left_;
    return *data_++;
  }

  void step() {
    const std::size_t i = byte() % blobs;
    const auto all = std::as_bytes(std::span(text_[i]));
    switch (byte() % 8) {
    case 0:
      writers_[i] = nullptr;
      writers_[i] = store_->write_of(name_[i]);
      return;
    case 1:
      writers_[i] = nullptr;
      writers_[i] = store_->go_on(name_[i]);
      SHOAL_ASSERT(!writers_[i]
                   || writers_[i]->written() == store_->begun(name_[i]));
      return;
    case 2: // the next bytes, as far as there are some
      if (writers_[i] && writers_[i]->written() < all.size()) {
        const auto rest = all.subspan(writers_[i]->written());
        (void)writers_[i]->append(
          rest.first(std::min<std::size_t>(rest.size(), byte())));
      }
      return;
    case 3:
      return commit(i);
    case 4:
      writers_.clear();
      store_ = nullptr;
      store_ = store::open(folder());
      return;
    case 5:
      return check(i);
    case 6:
      (void)store_->remove(name_[i]);
      return;
    default:
      return disturb();
    }
  }

  void commit(std::size_t i) {
    if (!writers_[i])
      return;
    blob_digest made{};
    const auto error = writers_[i]->commit(made, name_[i]);
    writers_[i] = nullptr;
    SHOAL_ASSERT(error || made == name_[i]);
    if (!error)
      check(i);
  }

  /// A file under a blob's name is that blob, or is set aside.
  void check(std::size_t i) {
    std::error_code error;
    const auto found = store_->read(name_[i], error);
    SHOAL_ASSERT(bool(found) != bool(error));
    if (!found)
      return;
    const auto all = std::as_bytes(std::span(text_[i]));
    SHOAL_ASSERT(std::ranges::equal(found->bytes(), all));
  }

  /// Another process changes the folder of parts, but not while one is written.
  void disturb() {
    const std::size_t i = byte() % blobs;
    writers_[i] = nullptr;
    const fs::path file = part(i);
    std::error_code none;
    switch (byte() % 9) {
    case 0: { // more bytes, of the blob or not
      std::vector<std::byte> more(byte() % 64);
      for (std::byte& b : more)
        b = std::byte(byte());
      const auto fd = posix::open_regular(
        file, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, none);
      if (fd)
        (void)posix::write_all(fd.get(), more);
      return;
    }
    case 1:
      if (!fs::is_symlink(file, none))
        fs::resize_file(file, byte(), none);
      return;
    case 2:
      fs::remove(file, none);
      return;
    case 3:
      fs::remove(file, none);
      ::mkfifo(file.c_str(), 0600);
      return;
    case 4:
      fs::remove(file, none);
      fs::create_symlink(link_to[byte() % std::size(link_to)], file, none);
      return;
    case 5:
      fs::remove(file, none);
      fs::create_directory(file, none);
      return;
    case 6: { // old, or in the future
      const timespec when{byte() % 2 == 0 ? 0 : std::time(nullptr) + 100'000,
                          0};
      const timespec both[2] = {when, when};
      ::utimensat(AT_FDCWD, file.c_str(), both, AT_SYMLINK_NOFOLLOW);
      return;
    }
    case 7: { // an invalid name
      std::string name;
      for (int n = byte() % 70; n >= 0; --n)
        name += char(byte());
      std::erase(name, '\0');
      std::erase(name, '/');
      if (!name.empty() && name != "." && name != "..")
        std::ofstream(parts() / name) << 'x';
      return;
    }
    default: // more of them than the limit
      for (int n = 0; n != 70; ++n) {
        blob_digest d{};
        d[0] = std::uint8_t(n);
        std::ofstream(parts() / shoal::core::to_hex(d)) << 'x';
      }
    }
  }

  const std::uint8_t* data_;
  std::size_t left_;
  std::string text_[blobs];
  blob_digest name_[blobs];
  std::unique_ptr<store> store_;
  std::map<std::size_t, std::unique_ptr<blob_writer>> writers_;
};

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  world(data, size).run();
  return 0;
}
