// actors/checkpoint_files.cpp -- files to blobs and back.
#include "actors/checkpoint_files.hpp"

#include "runtime/model/safetensors.hpp"
#include "runtime/store/store.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace shoal::actors {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;
using model::failure;

namespace {

constexpr char first_prefix[] = "exp_avg.";
constexpr char second_prefix[] = "exp_avg_sq.";
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

model::result<manifest_file>
put_file(const fs::path& file, runtime::store& to) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return failure{file.string() + ": cannot be read"};
  auto writer = to.write();
  std::vector<char> piece(piece_bytes);
  manifest_file out{file.filename().string(), {}, 0};
  while (in.read(piece.data(), std::streamsize(piece.size())),
         in.gcount() > 0) {
    const auto bytes = std::size_t(in.gcount());
    if (auto e = writer->append(std::as_bytes(std::span{piece.data(), bytes})))
      return failure{"store: " + e.message()};
    out.bytes += bytes;
  }
  if (in.bad())
    return failure{file.string() + ": read error"};
  if (auto e = writer->commit(out.digest, std::nullopt))
    return failure{"store: " + e.message()};
  return out;
}

model::result<published> put_manifest(const manifest& m, runtime::store& to) {
  const std::string text = to_json(m);
  auto writer = to.write();
  published out;
  if (auto e = writer->append(std::as_bytes(std::span{text})))
    return failure{"store: " + e.message()};
  if (auto e = writer->commit(out.manifest, std::nullopt))
    return failure{"store: " + e.message()};
  out.bytes = m.total_bytes();
  return out;
}

/// Moments of all units under their tensors' names.
std::vector<model::tensor_to_save>
moments(const model::unit_layout& layout,
        std::span<const unit_snapshot> units) {
  std::vector<model::tensor_to_save> out;
  for (const unit_snapshot& u : units) {
    const std::size_t n = u.state.size() / 3;
    for (const model::tensor_info& t : layout.tensors_of(u.unit))
      for (std::size_t k : {1u, 2u})
        out.push_back({(k == 1 ? first_prefix : second_prefix) + t.name,
                       t.shape, u.state.subspan(k * n + t.offset, t.size)});
  }
  return out;
}

/// Leaves files in `scratch`.
model::result<published>
write_and_import(std::uint64_t step, const model::unit_layout& layout,
                 std::span<const unit_snapshot> units, const fs::path& scratch,
                 runtime::store& to) {
  std::vector<model::unit_parameters> parameters;
  for (const unit_snapshot& u : units)
    parameters.push_back({u.unit, u.state.subspan(0, u.state.size() / 3)});
  if (auto saved = model::save_directory(scratch, layout, parameters); !saved)
    return saved.why();
  const auto saved =
    model::write_safetensors(scratch / optimizer_file, moments(layout, units));
  if (!saved)
    return saved.why();
  return import_directory(scratch, step, to);
}

} // namespace

model::result<published>
publish_checkpoint(std::uint64_t step, const model::unit_layout& layout,
                   std::span<const unit_snapshot> units,
                   const fs::path& scratch, runtime::store& to) {
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  auto out = write_and_import(step, layout, units, scratch, to);
  fs::remove_all(scratch, ignored); // of a failure too: others need the room
  return out;
}

model::result<published>
import_directory(const fs::path& directory, std::uint64_t step,
                 runtime::store& to) {
  std::error_code error;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory, error))
    if (entry.is_regular_file(error)
        && plain_name(entry.path().filename().string()))
      files.push_back(entry.path());
  if (error)
    return failure{directory.string() + ": " + error.message()};
  std::ranges::sort(files);
  manifest m;
  m.step = step;
  for (const fs::path& file : files) {
    auto put = put_file(file, to);
    if (!put)
      return put.why();
    m.files.push_back(*put);
  }
  return put_manifest(m, to);
}

model::result<manifest>
read_manifest(const core::blob_digest& digest, runtime::store& from) {
  std::error_code error;
  auto blob = from.read(digest, error);
  if (!blob)
    return failure{"manifest " + core::to_hex(digest).substr(0, 12) + ": "
                   + error.message()};
  const auto bytes = blob->bytes();
  return parse_manifest(
    {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool complete(const core::blob_digest& digest, runtime::store& from,
              std::vector<core::blob_digest>* missing) {
  if (missing)
    missing->clear();
  if (!from.contains(digest)) {
    if (missing)
      missing->push_back(digest);
    return false;
  }
  auto m = read_manifest(digest, from);
  if (!m)
    return false;
  bool all = true;
  for (const manifest_file& f : m->files)
    if (!from.contains(f.digest)) {
      all = false;
      if (missing)
        missing->push_back(f.digest);
    }
  return all;
}

model::status export_files(const manifest& m, runtime::store& from,
                           const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error)
    return failure{directory.string() + ": " + error.message()};
  for (const manifest_file& f : m.files) {
    auto blob = from.read(f.digest, error);
    if (!blob)
      return failure{f.name + ": " + error.message()};
    std::ofstream out(directory / f.name, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(blob->bytes().data()),
              std::streamsize(blob->bytes().size()));
    out.close();
    if (!out)
      return failure{(directory / f.name).string() + ": cannot be written"};
  }
  return model::done{};
}

model::status load_unit(const fs::path& directory, model::unit_state& into) {
  auto weights = model::safetensors_source::open(directory);
  if (!weights)
    return weights.why();
  if (auto loaded = model::load(into, *weights); !loaded)
    return loaded;
  std::error_code error;
  if (!fs::exists(directory / optimizer_file, error) || !into.trains())
    return model::done{};
  auto state = model::safetensors_source::open(directory / optimizer_file);
  if (!state)
    return state.why();
  const model::unit_layout& layout = into.layout();
  auto index = layout.first_tensor(into.unit());
  for (const model::tensor_info& t : layout.tensors_of(into.unit())) {
    auto m = state->read(first_prefix + t.name, t.shape,
                         into.tensor(into.first_moment(), index));
    if (!m)
      return m;
    auto v = state->read(second_prefix + t.name, t.shape,
                         into.tensor(into.second_moment(), index));
    if (!v)
      return v;
    ++index;
  }
  return model::done{};
}

} // namespace shoal::actors
