// runtime/model/files/safetensors_write.cpp -- weights into files.
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/files/safetensors_begin.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>

namespace shoal::model {

static_assert(std::endian::native == std::endian::little,
              "values are written as they lie in memory");

namespace {

/// Data starts at a multiple of this, so that mapped tensors are aligned.
constexpr std::size_t header_alignment = 64;

/// The beginning of a file whose tensors lie one after the other.
class beginning {
public:
  beginning() { header_["__metadata__"] = {{"format", "pt"}}; }
  void add(const std::string& name, const std::string& type,
           const std::vector<std::uint64_t>& shape, std::uint64_t bytes) {
    header_[name] = {
      {"dtype", type}, {"shape", shape}, {"data_offsets", {at_, at_ + bytes}}};
    at_ += bytes;
  }
  std::string text() const {
    std::string header = json_text(header_);
    header.resize((header.size() + 8 + header_alignment - 1) / header_alignment
                      * header_alignment
                    - 8,
                  ' ');
    const std::uint64_t length = header.size();
    std::string out(reinterpret_cast<const char*>(&length), sizeof length);
    return out += header;
  }

private:
  nlohmann::ordered_json header_;
  std::uint64_t at_ = 0;
};

} // namespace

std::string file_begin(std::span<const tensor_to_save> tensors) {
  beginning begin;
  for (const tensor_to_save& t : tensors)
    begin.add(t.name, "F32", t.shape, t.values.size_bytes());
  return begin.text();
}

std::string file_begin(std::span<const tensor_entry> tensors) {
  beginning begin;
  for (const tensor_entry& t : tensors)
    begin.add(t.name, t.type_name, t.shape, t.bytes);
  return begin.text();
}

std::uint64_t file_part::data_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& v : values)
    sum += v.last - v.first;
  return sum;
}

result<std::vector<file_part>>
cut_safetensors(std::span<const std::byte> begin_bytes,
                std::uint64_t file_bytes, std::string_view where,
                std::uint64_t part_bytes) {
  auto tensors = parse_safetensors(begin_bytes, file_bytes, where);
  if (!tensors)
    return tensors.why();
  std::ranges::sort(*tensors, {}, &stored_tensor::first);
  std::vector<file_part> out;
  beginning begin;
  std::uint64_t bytes = 0;
  auto end_part = [&] {
    if (!out.empty())
      out.back().begin = begin.text();
  };
  for (const stored_tensor& t : *tensors) {
    const std::uint64_t size = t.last - t.first;
    if (out.empty() || (bytes > 0 && bytes + size > part_bytes)) {
      end_part();
      out.emplace_back();
      begin = {};
      bytes = 0;
    }
    bytes += size;
    begin.add(t.name, t.type_name, t.shape, size);
    out.back().tensors.push_back(t.name);
    out.back().values.push_back({t.first, t.last});
  }
  end_part();
  return out;
}

status write_safetensors(const std::filesystem::path& path,
                         std::span<const tensor_to_save> tensors) {
  file_writer file(path);
  if (status s = file.open(); !s)
    return s;
  const std::string begin = file_begin(tensors);
  if (status s = file.write(std::as_bytes(std::span(begin))); !s)
    return s;
  for (const tensor_to_save& t : tensors) {
    if (status s = file.write(std::as_bytes(t.values)); !s)
      return s;
  }
  return file.commit();
}

status write_sharded(const std::filesystem::path& directory,
                     std::span<const tensor_to_save> tensors,
                     std::uint64_t shard_bytes_max) {
  std::vector<std::size_t> starts = {0}; // first tensor of each file
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t size = tensors[i].values.size_bytes();
    if (bytes > 0 && bytes + size > shard_bytes_max) {
      starts.push_back(i);
      bytes = 0;
    }
    bytes += size;
    total += size;
  }
  if (starts.size() == 1)
    return write_safetensors(directory / "model.safetensors", tensors);
  if (starts.size() > shards_max)
    return failure{directory.string() + ": would need more than "
                   + std::to_string(shards_max) + " files"};

  shard_index index;
  for (std::size_t s = 0; s < starts.size(); ++s) {
    const std::size_t last =
      s + 1 < starts.size() ? starts[s + 1] : tensors.size();
    const auto part = tensors.subspan(starts[s], last - starts[s]);
    const std::string name = shard_name("model", s, starts.size());
    if (status written = write_safetensors(directory / name, part); !written)
      return written;
    for (const tensor_to_save& t : part)
      index.weights[t.name] = name;
  }
  return write_file(directory / "model.safetensors.index.json",
                    to_json(index, total));
}

} // namespace shoal::model
