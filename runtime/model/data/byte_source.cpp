// runtime/model/data/byte_source.cpp -- reads files in pieces, gzip and Zstandard.
#include "runtime/model/data/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace shoal::model {

namespace {

failure system_fault(const std::string& path, const char* what) {
  return {path + ": " + what + ": " + std::strerror(errno)};
}

/// An open file.
struct descriptor {
  int fd = -1;
  ~descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
};

/// Compressed bytes that were read and are not used yet.
class input {
public:
  input(byte_source from, std::string name)
    : from_(std::move(from)), name_(std::move(name)),
      buffer_(read_piece_bytes) {}

  const std::string& name() const { return name_; }
  std::span<const char> rest() const {
    return std::span(buffer_).subspan(first_, last_ - first_);
  }
  void use(std::size_t bytes) { first_ += bytes; }

  /// Reads more if nothing is left. @returns whether there is anything
  result<bool> fill() {
    if (first_ < last_)
      return true;
    first_ = last_ = 0;
    const auto got = from_(buffer_);
    if (!got)
      return got.why();
    last_ = *got;
    return last_ > 0;
  }

  failure damaged(const std::string& what) const {
    return {name_ + ": is damaged (" + what
            + "): make it again, or take it out of the data"};
  }
  failure cut_off() const {
    return damaged("it ends before its compressed data does");
  }

private:
  byte_source from_;
  std::string name_;
  std::vector<char> buffer_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

class gzip_reader {
public:
  explicit gzip_reader(input from) : from_(std::move(from)) {
    // 15: the largest window of the format; 16: with gzip's header and sum.
    ready_ = ::inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~gzip_reader() {
    if (ready_)
      ::inflateEnd(&stream_);
  }
  gzip_reader(const gzip_reader&) = delete;
  gzip_reader& operator=(const gzip_reader&) = delete;

  result<std::size_t> read(std::span<char> into) {
    if (!ready_)
      return failure{from_.name() + ": zlib cannot start (no memory?)"};
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out =
      static_cast<uInt>(std::min(into.size(), std::size_t{read_piece_bytes}));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      const auto more = from_.fill();
      if (!more)
        return more.why();
      if (!*more)
        return inside_ ? result<std::size_t>(from_.cut_off())
                       : result<std::size_t>(std::size_t{0});
      const auto rest = from_.rest();
      stream_.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
      stream_.avail_in = static_cast<uInt>(rest.size());
      inside_ = true;
      const int rc = ::inflate(&stream_, Z_NO_FLUSH);
      from_.use(rest.size() - stream_.avail_in);
      if (rc == Z_STREAM_END) {
        inside_ = false;
        ::inflateReset(&stream_);
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        return from_.damaged(stream_.msg != nullptr
                               ? std::string(stream_.msg)
                               : "zlib " + std::to_string(rc));
      }
    }
    return std::size_t{room - stream_.avail_out};
  }

private:
  input from_;
  z_stream stream_{};
  bool ready_ = false;
  bool inside_ = true; ///< of an archive; one is there at least
};

class zstd_reader {
public:
  explicit zstd_reader(input from)
    : from_(std::move(from)), stream_(::ZSTD_createDCtx()) {
    if (stream_ != nullptr)
      ::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax,
                               zstd_window_log_max);
  }

  result<std::size_t> read(std::span<char> into) {
    if (stream_ == nullptr)
      return failure{from_.name() + ": zstd cannot start (no memory?)"};
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos == 0) {
      // Output held back in the window comes before more input.
      const auto more = holds_ ? result<bool>(true) : from_.fill();
      if (!more)
        return more.why();
      if (!*more)
        return inside_ ? result<std::size_t>(from_.cut_off())
                       : result<std::size_t>(std::size_t{0});
      const auto rest = from_.rest();
      ZSTD_inBuffer in{rest.data(), rest.size(), 0};
      const std::size_t rc = ::ZSTD_decompressStream(stream_.get(), &out, &in);
      from_.use(in.pos);
      if (::ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return failure{from_.name()
                       + ": needs more memory to decompress than is allowed "
                         "(zstd_window_log_max): compress it without --long"};
      if (::ZSTD_isError(rc) != 0)
        return from_.damaged(::ZSTD_getErrorName(rc));
      inside_ = rc != 0;
      holds_ = inside_ && out.pos == out.size;
    }
    return out.pos;
  }

private:
  struct free_it {
    void operator()(ZSTD_DCtx* c) const { ::ZSTD_freeDCtx(c); }
  };

  input from_;
  std::unique_ptr<ZSTD_DCtx, free_it> stream_;
  bool inside_ = true; ///< of an archive; one is there at least
  bool holds_ = false; ///< output that had no room
};

template <class Reader>
byte_source source_of(std::shared_ptr<Reader> reader) {
  return [reader](std::span<char> into) { return reader->read(into); };
}

} // namespace

packing packing_of(std::string_view name) {
  if (name.ends_with(".gz"))
    return packing::gzip;
  return name.ends_with(".zst") ? packing::zstd : packing::none;
}

std::string_view without_packing(std::string_view name) {
  const packing how = packing_of(name);
  if (how != packing::none)
    name.remove_suffix(how == packing::gzip ? 3 : 4);
  return name;
}

result<byte_source> open_file(const std::filesystem::path& path) {
  auto file = std::make_shared<descriptor>();
  file->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->fd < 0)
    return system_fault(path.string(), "cannot open");
  struct stat info {};
  if (::fstat(file->fd, &info) != 0)
    return system_fault(path.string(), "cannot read");
  if (!S_ISREG(info.st_mode))
    return failure{path.string() + ": is not a regular file"};
  return byte_source(
    [file, name = path.string()](std::span<char> into) -> result<std::size_t> {
      for (;;) {
        const ssize_t got = ::read(file->fd, into.data(), into.size());
        if (got >= 0)
          return static_cast<std::size_t>(got);
        if (errno != EINTR)
          return system_fault(name, "cannot read");
      }
    });
}

byte_source unpacked(byte_source from, packing how, std::string name) {
  if (how == packing::none)
    return from;
  input bytes(std::move(from), std::move(name));
  if (how == packing::gzip)
    return source_of(std::make_shared<gzip_reader>(std::move(bytes)));
  return source_of(std::make_shared<zstd_reader>(std::move(bytes)));
}

} // namespace shoal::model
