// tests/fuzz/documents_fuzz.cpp -- any bytes as a file of --data: text, .jsonl,
// and either of them as an archive.
//
// The first byte chooses the name and the form of the file: the rest unchanged,
// or packed by the archive's own library and then changed in one place, which
// chance alone would rarely produce. The second and third choose the place. For
// all bytes, reading ends in documents, or in a failure that names the file and
// is safe to show; no more bytes are taken than allowed; and an unchanged
// archive gives the same as the bytes alone.
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/model/data/documents.hpp"
#include "tests/support/packed.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

using namespace shoal::model;

namespace {

constexpr std::uint64_t bytes_max = 1u << 20;
constexpr std::uint64_t vocab_size = 300;

/// The bytes in pieces of this size.
byte_source source_of(std::string bytes, std::size_t piece) {
  return [bytes = std::move(bytes), piece, at = std::size_t{0}](
           std::span<char> into) mutable -> result<std::size_t> {
    const std::size_t n = std::min({piece, into.size(), bytes.size() - at});
    std::memcpy(into.data(), bytes.data() + at, n);
    at += n;
    return n;
  };
}

struct outcome {
  std::string failure;
  std::vector<document> documents;
  reading_report report;
};

outcome read(const std::string& name, std::string bytes, std::size_t piece) {
  outcome out;
  const corpus_file file{name, name, false};
  const auto done = read_documents(
    file, source_of(std::move(bytes), piece), {vocab_size, bytes_max, "a.key"},
    out.report, [&](const corpus_file&, document d) -> status {
      SHOAL_ASSERT(d.where.starts_with(name));
      SHOAL_ASSERT(d.text.empty() != d.ids.empty());
      for (const token_id id : d.ids)
        SHOAL_ASSERT(id >= 0 && std::uint64_t(id) < vocab_size);
      out.documents.push_back(std::move(d));
      return shoal::model::done{};
    });
  if (!done)
    out.failure = done.message();
  SHOAL_ASSERT(done || out.failure.starts_with(name));
  SHOAL_ASSERT(shoal::core::is_shown(out.failure));
  SHOAL_ASSERT(out.report.bytes <= bytes_max);
  for (const std::string& notice : notices_of(out.report))
    SHOAL_ASSERT(shoal::core::is_shown(notice));
  return out;
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3)
    return 0;
  const unsigned how = data[0];
  const std::size_t place = data[1] | std::size_t{data[2]} << 8;
  const std::size_t piece = 1 + place % 4096;
  const std::string bytes(reinterpret_cast<const char*>(data + 3), size - 3);
  const std::string plain = (how & 1) != 0 ? "f.jsonl" : "f.txt";
  const bool gzip = (how & 2) != 0;
  const std::string packed = plain + (gzip ? ".gz" : ".zst");
  if ((how & 4) != 0) {
    read((how & 8) != 0 ? packed : plain, bytes, piece);
    return 0;
  }
  std::string archive =
    gzip ? shoal::tests::gzip(bytes) : shoal::tests::zstd(bytes);
  if ((how & 16) != 0) { // two archives, or one twice
    archive += archive;
    read(packed, archive, piece);
    return 0;
  }
  if ((how & 32) != 0) {
    archive[place % archive.size()] ^= char(1 << (how >> 6));
    read(packed, archive, piece);
    return 0;
  }
  if ((how & 8) != 0) {
    archive.resize(place % archive.size());
    // A file that is no text is not read to its end.
    const outcome cut = read(packed, archive, piece);
    SHOAL_ASSERT(!cut.failure.empty() || cut.report.not_text.count == 1);
    return 0;
  }
  const outcome one = read(plain, bytes, piece);
  const outcome two = read(packed, archive, piece);
  SHOAL_ASSERT(one.failure.empty() == two.failure.empty());
  SHOAL_ASSERT(one.report.not_text.count == two.report.not_text.count);
  SHOAL_ASSERT(one.documents.size() == two.documents.size());
  for (std::size_t i = 0; i < one.documents.size(); ++i) {
    SHOAL_ASSERT(one.documents[i].text == two.documents[i].text);
    SHOAL_ASSERT(one.documents[i].ids == two.documents[i].ids);
  }
  SHOAL_ASSERT(one.report.bytes == two.report.bytes);
  return 0;
}
