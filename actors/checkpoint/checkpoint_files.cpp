// actors/checkpoint/checkpoint_files.cpp -- converts units to blobs and back.
#include "actors/checkpoint/checkpoint_files.hpp"

#include "runtime/core/assert.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/store/store.hpp"

#include <algorithm>
#include <iterator>
#include <map>

namespace shoal::actors {

using model::failure;

namespace {

constexpr char first_prefix[] = "exp_avg.";
constexpr char second_prefix[] = "exp_avg_sq.";

/// A file as consecutive pieces of memory.
using pieces = std::vector<std::span<const std::byte>>;

failure store_failure(const std::string& file, std::error_code error) {
  return failure{file + ": store: " + error.message()};
}

/// Writes a blob, unless it is there and intact.
model::status put(const std::string& file, const pieces& parts,
                  runtime::store& to, const core::blob_digest& digest) {
  if (to.contains(digest) && !to.verify(digest))
    return model::done{};
  auto writer = to.write();
  core::blob_digest made{};
  for (const auto& part : parts)
    if (auto e = writer->append(part))
      return store_failure(file, e);
  if (auto e = writer->commit(made, digest))
    return store_failure(file, e);
  return model::done{};
}

model::result<manifest_file>
put_text(const std::string& name, const std::string& text, runtime::store& to) {
  const auto bytes = std::as_bytes(std::span(text));
  const core::blob_digest digest = runtime::sha256(bytes);
  if (auto done = put(name, {bytes}, to, digest); !done)
    return done.why();
  return manifest_file{name, digest, bytes.size()};
}

std::vector<model::tensor_to_save>
model_tensors(const model::unit_layout& layout, const unit_snapshot& u) {
  std::vector<model::tensor_to_save> out;
  for (const model::tensor_info& t : layout.tensors_of(u.unit))
    if (!t.copy_of)
      out.push_back({t.name, t.shape, u.state.subspan(t.offset, t.size)});
  return out;
}

/// Both moments of all tensors of a unit, also of tied copies: resuming needs
/// them.
std::vector<model::tensor_to_save>
moments(const model::unit_layout& layout, const unit_snapshot& u) {
  std::vector<model::tensor_to_save> out;
  const std::size_t n = u.state.size() / 3;
  for (const model::tensor_info& t : layout.tensors_of(u.unit))
    for (std::size_t k : {1u, 2u})
      out.push_back({(k == 1 ? first_prefix : second_prefix) + t.name, t.shape,
                     u.state.subspan(k * n + t.offset, t.size)});
  return out;
}

struct written_file {
  core::blob_digest digest{};
  std::uint64_t bytes = 0;
};

model::result<written_file> put_tensors(
  const std::string& name, const std::vector<model::tensor_to_save>& tensors,
  runtime::store& to,
  const std::function<std::error_code(const core::blob_digest&)>& before) {
  const std::string begin = model::file_begin(tensors);
  pieces parts{std::as_bytes(std::span(begin))};
  for (const model::tensor_to_save& t : tensors)
    parts.push_back(std::as_bytes(t.values));
  written_file out{runtime::sha256_joined(parts), 0};
  for (const auto& part : parts)
    out.bytes += part.size();
  if (auto error = before(out.digest))
    return store_failure(name, error);
  if (auto done = put(name, parts, to, out.digest); !done)
    return done.why();
  return out;
}

std::string short_hex(const core::blob_digest& digest) {
  return core::to_hex(digest).substr(0, 12);
}

} // namespace

model::result<core::written_shard> write_shard(
  const model::unit_layout& layout, const unit_snapshot& unit,
  runtime::store& to,
  const std::function<std::error_code(const core::blob_digest&)>& before) {
  const std::size_t n = layout.unit_count();
  auto weights = put_tensors(model::shard_name(model_files, unit.unit, n),
                             model_tensors(layout, unit), to, before);
  if (!weights)
    return weights.why();
  auto state = put_tensors(model::shard_name(optimizer_files, unit.unit, n),
                           moments(layout, unit), to, before);
  if (!state)
    return state.why();
  return core::written_shard{unit.unit, weights->digest, weights->bytes,
                             state->digest, state->bytes};
}

namespace {

/// The files of a checkpoint that belong to no part, by name: the same for all
/// checkpoints of a job.
std::vector<std::pair<std::string, std::string>>
texts_of(const model::unit_layout& layout, bool byte_tokenizer) {
  model::shard_index weights, state;
  std::uint64_t parameters = 0, values = 0;
  const std::size_t n = layout.unit_count();
  for (std::size_t u = 0; u < n; ++u)
    for (const model::tensor_info& t :
         layout.tensors_of(model::unit_index(u))) {
      if (!t.copy_of) {
        weights.weights[t.name] = model::shard_name(model_files, u, n);
        parameters += t.size;
      }
      const std::string file = model::shard_name(optimizer_files, u, n);
      state.weights[first_prefix + t.name] = file;
      state.weights[second_prefix + t.name] = file;
      values += 2 * t.size;
    }
  std::vector<std::pair<std::string, std::string>> out;
  for (auto& [name, text] : model::small_files(layout, byte_tokenizer))
    out.emplace_back(name, std::move(text));
  out.emplace_back(index_name(model_files),
                   model::to_json(weights, parameters * sizeof(float)));
  out.emplace_back(index_name(optimizer_files),
                   model::to_json(state, values * sizeof(float)));
  return out;
}

} // namespace

model::result<published>
publish_shards(std::uint64_t step, const model::unit_layout& layout,
               std::span<const core::written_shard> shards, runtime::store& to,
               bool byte_tokenizer, std::span<const manifest_file> carried) {
  SHOAL_ASSERT(shards.size() == layout.unit_count());
  manifest m;
  m.step = step;
  for (const core::written_shard& s : shards) {
    m.files.push_back({model::shard_name(model_files, s.unit, shards.size()),
                       s.model, s.model_bytes});
    m.files.push_back(
      {model::shard_name(optimizer_files, s.unit, shards.size()), s.optimizer,
       s.optimizer_bytes});
  }
  m.files.insert(m.files.end(), carried.begin(), carried.end());
  auto texts = texts_of(layout, byte_tokenizer);
  std::erase_if(texts, [&](const auto& text) { return m.has(text.first); });
  for (const auto& [name, text] : texts) {
    auto file = put_text(name, text, to);
    if (!file)
      return file.why();
    m.files.push_back(*file);
  }
  std::ranges::sort(m.files, {}, &manifest_file::name);
  auto named = put_text("manifest", to_json(m), to); // last: now the checkpoint
                                                     // exists
  if (!named)
    return named.why();
  return published{named->digest, m.total_bytes()};
}

model::result<manifest>
read_manifest(const core::blob_digest& digest, runtime::store& from) {
  std::error_code error;
  auto blob = from.read(digest, error);
  if (!blob)
    return failure{"manifest " + short_hex(digest) + ": " + error.message()};
  const auto bytes = blob->bytes();
  return parse_manifest(
    {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::vector<manifest_file> files_of_parts(const manifest& m, std::size_t units,
                                          const core::part_set& parts) {
  std::set<std::string> others;
  for (std::size_t u = 0; u < units; ++u)
    if (!parts.contains(core::part_index(u)))
      for (const char* kind : {model_files, optimizer_files})
        others.insert(model::shard_name(kind, u, units));
  std::vector<manifest_file> out;
  std::ranges::copy_if(
    m.files, std::back_inserter(out),
    [&](const manifest_file& f) { return !others.contains(f.name); });
  return out;
}

std::optional<core::part_set>
parts_lacking(const core::blob_digest& digest, std::size_t units,
              runtime::store& from) {
  if (!from.contains(digest))
    return std::nullopt;
  const auto m = read_manifest(digest, from);
  if (!m)
    return std::nullopt;
  std::map<std::string, core::part_index> part_of;
  for (std::size_t u = 0; u < units; ++u)
    for (const char* kind : {model_files, optimizer_files})
      part_of[model::shard_name(kind, u, units)] = core::part_index(u);
  core::part_set out;
  for (const manifest_file& f : m->files) {
    if (from.contains(f.digest))
      continue;
    const auto at = part_of.find(f.name);
    if (at == part_of.end())
      return std::nullopt;
    out.add(at->second);
  }
  return out;
}

void mend_small_files(const core::blob_digest& digest,
                      const model::unit_layout& layout, bool byte_tokenizer,
                      runtime::store& in) {
  const auto m = read_manifest(digest, in);
  if (!m || std::ranges::all_of(m->files, [&](const manifest_file& f) {
        return f.name.ends_with(".safetensors") || in.contains(f.digest);
      }))
    return;
  for (const auto& [name, text] : texts_of(layout, byte_tokenizer)) {
    const manifest_file* wanted = m->find(name);
    const auto bytes = std::as_bytes(std::span(text));
    if (wanted && !in.contains(wanted->digest)
        && runtime::sha256(bytes) == wanted->digest)
      static_cast<void>(put_text(name, text, in)); // else it stays missing
  }
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

std::vector<std::string>
verify_checkpoint(const core::blob_digest& digest, runtime::store& in) {
  auto lies = [&](const core::blob_digest& d) {
    return in.verify(d) == runtime::errc::corrupt || in.set_aside(d);
  };
  if (lies(digest))
    return {"manifest " + short_hex(digest)};
  std::vector<std::string> damaged;
  if (in.contains(digest))
    if (auto m = read_manifest(digest, in))
      for (const manifest_file& f : m->files)
        if (lies(f.digest))
          damaged.push_back(f.name);
  return damaged;
}

std::vector<std::string>
tensors_of(const model::unit_layout& layout, model::unit_index unit) {
  std::vector<std::string> out;
  for (const model::tensor_info& t : layout.tensors_of(unit)) {
    const model::tensor_info& source =
      t.copy_of ? layout.tensors()[*t.copy_of] : t;
    out.push_back(source.name);
    if (const auto brief = model::short_name(source); brief != source.name)
      out.emplace_back(brief);
    out.push_back(first_prefix + t.name);
    out.push_back(second_prefix + t.name);
  }
  return out;
}

model::result<chosen_files>
files_with(const manifest& m, std::span<const std::string> tensors,
           model::purpose purpose, runtime::store& in) {
  chosen_files out;
  if (m.step == 0 && !holds_weights(m) && m.has("tokenizer.json"))
    return out; // the tokenizer of a run from random weights
  auto add = [&](const manifest_file& f) {
    if (std::ranges::find(out.files, f.digest, &manifest_file::digest)
        == out.files.end())
      out.files.push_back(f);
  };
  for (const char* kind : {model_files, optimizer_files}) {
    if (kind == optimizer_files && purpose == model::purpose::serving)
      break;
    if (const manifest_file* all = m.find(single_name(kind))) {
      add(*all);
      continue;
    }
    const manifest_file* listed = m.find(index_name(kind));
    if (!listed && kind == model_files)
      return failure{"the checkpoint of step " + std::to_string(m.step)
                     + " has neither " + single_name(kind) + " nor "
                     + index_name(kind)};
    if (!listed)
      continue;
    std::error_code error;
    auto blob = in.read(listed->digest, error);
    if (!blob) {
      out.unread.push_back(listed->digest);
      continue;
    }
    auto index =
      model::parse_index({reinterpret_cast<const char*>(blob->bytes().data()),
                          blob->bytes().size()},
                         listed->name);
    if (!index)
      return index.why();
    for (const std::string& tensor : tensors) {
      const auto at = index->weights.find(tensor);
      if (at == index->weights.end())
        continue; // of the other kind; loading detects missing tensors
      const manifest_file* file = m.find(at->second);
      if (!file)
        return failure{listed->name + ": tensor " + tensor + ": is in "
                       + at->second + ", which the manifest lacks"};
      add(*file);
    }
  }
  return out;
}

model::result<unit_files>
read_unit_files(const core::blob_digest& digest,
                const model::unit_layout& layout, model::unit_index unit,
                model::purpose purpose, runtime::store& in,
                std::set<core::blob_digest>& verified) {
  unit_files out;
  auto m = read_manifest(digest, in);
  if (!m && !in.contains(digest)) {
    out.damaged.push_back("manifest " + short_hex(digest));
    return out;
  }
  if (!m)
    return m.why();
  out.weights = holds_weights(*m);
  out.moments = purpose == model::purpose::training
                && (m->has(single_name(optimizer_files))
                    || m->has(index_name(optimizer_files)));
  auto chosen = files_with(*m, tensors_of(layout, unit), purpose, in);
  if (!chosen)
    return chosen.why();
  for (const core::blob_digest& index : chosen->unread)
    for (const manifest_file& f : m->files)
      if (f.digest == index)
        out.damaged.push_back(f.name);
  for (const manifest_file& f : chosen->files) {
    std::error_code error;
    if (!verified.contains(f.digest))
      error = in.verify(f.digest);
    auto blob = error ? nullptr : in.read(f.digest, error);
    if (!blob && in.contains(f.digest)) // the disk cannot read it
      return store_failure(f.name, error);
    if (!blob) {
      out.damaged.push_back(f.name);
      continue;
    }
    verified.insert(f.digest);
    out.files.push_back({f.name, blob->bytes(), blob});
  }
  return out;
}

model::status load_unit(const unit_files& from, model::unit_state& into) {
  auto source = model::safetensors_source::open(from.files);
  if (!source)
    return source.why();
  if (auto loaded = model::load(into, *source); !loaded)
    return loaded;
  if (!from.moments || !into.trains())
    return model::done{};
  const model::unit_layout& layout = into.layout();
  auto index = layout.first_tensor(into.unit());
  for (const model::tensor_info& t : layout.tensors_of(into.unit())) {
    auto m = source->read(first_prefix + t.name, t.shape,
                          into.tensor(into.first_moment(), index));
    if (!m)
      return m;
    auto v = source->read(second_prefix + t.name, t.shape,
                          into.tensor(into.second_moment(), index));
    if (!v)
      return v;
    ++index;
  }
  return model::done{};
}

} // namespace shoal::actors
