// tests/support/packed.hpp -- bytes as archives.
#pragma once

#include <zlib.h>
#include <zstd.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace shoal::tests {

/// One member of a gzip file.
inline std::string gzip(std::string_view bytes) {
  z_stream s{};
  if (::deflateInit2(&s, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("deflateInit2");
  std::string out(::deflateBound(&s, bytes.size()), '\0');
  s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  s.avail_in = static_cast<uInt>(bytes.size());
  s.next_out = reinterpret_cast<Bytef*>(out.data());
  s.avail_out = static_cast<uInt>(out.size());
  const int rc = ::deflate(&s, Z_FINISH);
  out.resize(s.total_out);
  ::deflateEnd(&s);
  if (rc != Z_STREAM_END)
    throw std::runtime_error("deflate");
  return out;
}

/// One frame of a Zstandard file, with a checksum.
inline std::string zstd(std::string_view bytes, int window_log = 0) {
  ZSTD_CCtx* const c = ::ZSTD_createCCtx();
  ::ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
  if (window_log > 0) // the frame's header only has it if the size is unknown
    ::ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log);
  std::string out(::ZSTD_compressBound(bytes.size()) + 64, '\0');
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  ZSTD_outBuffer to{out.data(), out.size(), 0};
  ::ZSTD_compressStream2(c, &to, &in, ZSTD_e_continue);
  const std::size_t rest = ::ZSTD_compressStream2(c, &to, &in, ZSTD_e_end);
  ::ZSTD_freeCCtx(c);
  if (rest != 0)
    throw std::runtime_error("zstd");
  out.resize(to.pos);
  return out;
}

} // namespace shoal::tests
