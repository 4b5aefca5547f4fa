// runtime/model/files/safetensors_read.cpp -- files of weights, mapped.
#include "runtime/core/text/shown.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp" // json_shown_max
#include "runtime/files/mapped_file.hpp"
#include "runtime/model/files/safetensors.hpp"

#include <algorithm>

namespace shoal::model {

std::string no_weights(const std::filesystem::path& directory) {
  std::error_code error;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(directory / name, error);
  };
  if (has("model.safetensors") || has("model.safetensors.index.json"))
    return {};
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
    if (std::string dead = dead_link(directory / name); !dead.empty())
      return dead;
  std::string out =
    "has neither model.safetensors nor model.safetensors.index.json";
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (has(name))
      return out + "; " + name
             + " is not read: load that model with transformers and save it "
               "again, which writes safetensors";
  return out;
}

safetensors_source::safetensors_source() = default;
safetensors_source::safetensors_source(safetensors_source&&) noexcept = default;
safetensors_source&
safetensors_source::operator=(safetensors_source&&) noexcept = default;
safetensors_source::~safetensors_source() = default;

status safetensors_source::add_file(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file)
    return file.why();
  return add({path.string(), (*file)->bytes(), *file});
}

status safetensors_source::add(file_in_memory added) {
  auto parsed = parse_safetensors(added.bytes, added.name);
  if (!parsed)
    return parsed.why();
  for (stored_tensor& t : *parsed) {
    if (tensors_.size() == tensors_max)
      return failure{added.name + ": the model has more than "
                     + std::to_string(tensors_max) + " tensors"};
    std::string name = t.name;
    auto [at, fresh] = tensors_.try_emplace(std::move(name));
    if (!fresh)
      return failure{added.name + ": tensor " + at->first
                     + ": is in another file of this model too"};
    at->second = {files_.size(), std::move(t)};
  }
  files_.push_back(std::move(added));
  return done{};
}

result<safetensors_source>
safetensors_source::open(std::vector<file_in_memory> files) {
  safetensors_source source;
  for (file_in_memory& f : files)
    if (status added = source.add(std::move(f)); !added)
      return added.why();
  return source;
}

result<safetensors_source>
safetensors_source::open(const std::filesystem::path& path) {
  std::error_code ignored;
  safetensors_source source;
  if (!std::filesystem::is_directory(path, ignored)) {
    if (status added = source.add_file(path); !added)
      return added.why();
    return source;
  }
  const auto single = path / "model.safetensors";
  const auto index_path = path / "model.safetensors.index.json";
  if (std::filesystem::exists(single, ignored)) {
    if (status added = source.add_file(single); !added)
      return added.why();
    return source;
  }
  if (const std::string none = no_weights(path); !none.empty())
    return failure{path.string() + ": " + none};
  auto text = read_file(index_path, header_bytes_max);
  if (!text)
    return text.why();
  auto index = parse_index(*text, index_path.string());
  if (!index)
    return index.why();
  for (const std::string& name : index->files()) {
    if (status added = source.add_file(path / name); !added)
      return added.why();
  }
  for (const auto& [name, file_name] : index->weights) {
    auto at = source.tensors_.find(name);
    if (at == source.tensors_.end()
        || source.files_[at->second.file].name != (path / file_name).string())
      return failure{index_path.string() + ": tensor "
                     + core::shown(name, json_shown_max) + ": is not in "
                     + file_name};
  }
  return source;
}

std::vector<std::string> safetensors_source::names() const {
  std::vector<std::string> all;
  for (const auto& [name, place] : tensors_)
    all.push_back(name);
  return all;
}

const stored_tensor* safetensors_source::find(std::string_view name) const {
  auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second.tensor;
}

status safetensors_source::check(std::string_view name,
                                 std::span<const std::uint64_t> shape) const {
  auto at = tensors_.find(name);
  auto text = [](std::span<const std::uint64_t> numbers) {
    std::string out = "[";
    for (std::uint64_t n : numbers)
      out += (out.size() > 1 ? "," : "") + std::to_string(n);
    return out + "]";
  };
  if (at == tensors_.end())
    return failure{(files_.empty() ? std::string("model") : files_.front().name)
                   + ": tensor " + std::string(name) + ": is missing"};
  const stored_tensor& t = at->second.tensor;
  const std::string where =
    files_[at->second.file].name + ": tensor " + t.name + ": ";
  if (!std::ranges::equal(t.shape, shape))
    return failure{where + "has shape " + text(t.shape) + ", the config needs "
                   + text(shape)};
  if (t.type == stored_type::other)
    return failure{where + "type " + t.type_name
                   + " cannot be read; F32, F16 and BF16 can"};
  return done{};
}

status safetensors_source::read(std::string_view name,
                                std::span<const std::uint64_t> shape,
                                std::span<float> into) const {
  if (status checked = check(name, shape); !checked)
    return checked;
  const place& p = tensors_.find(name)->second;
  SHOAL_ASSERT(p.tensor.count == into.size());
  widen(p.tensor.type, files_[p.file].bytes.data() + p.tensor.first, into);
  return done{};
}

stored_values safetensors_source::stored(std::string_view name) const {
  auto at = tensors_.find(name);
  SHOAL_ASSERT(at != tensors_.end());
  const stored_tensor& t = at->second.tensor;
  const file_in_memory& file = files_[at->second.file];
  return {t.type, file.bytes.subspan(t.first, t.last - t.first), file.keep};
}

std::span<const float> safetensors_source::floats(std::string_view name) const {
  auto at = tensors_.find(name);
  if (at == tensors_.end() || at->second.tensor.type != stored_type::f32)
    return {};
  const std::byte* data =
    files_[at->second.file].bytes.data() + at->second.tensor.first;
  if (reinterpret_cast<std::uintptr_t>(data) % alignof(float) != 0)
    return {};
  return {reinterpret_cast<const float*>(data), at->second.tensor.count};
}

} // namespace shoal::model
