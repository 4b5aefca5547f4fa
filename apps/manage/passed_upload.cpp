// apps/manage/passed_upload.cpp -- three passes over the files.
#include "apps/manage/passed_upload.hpp"

#include "actors/checkpoint/checkpoint_manifest.hpp"

#include <set>
#include <string>

namespace shoal::apps {

using model::failure;
using pieces = std::span<const model::file_piece>;

namespace {

bool weights_name(const std::string& name) {
  return name.ends_with(".safetensors");
}

} // namespace

model::result<uploaded_model> passed_upload::list() {
  files_.clear();
  std::string last; // the manifest
  const put_pieces look = [&](pieces p, core::blob_digest& digest) {
    const auto hashed = model::sha256_joined(p);
    if (!hashed)
      return model::status(hashed.why());
    digest = *hashed;
    const std::uint64_t bytes = model::bytes_of(p);
    files_.push_back({digest, bytes, false});
    last.clear();
    if (p.size() == 1 && bytes <= actors::manifest_bytes_max) {
      last.resize(bytes);
      return p[0].read(0, std::as_writable_bytes(std::span(last)));
    }
    return model::status(model::done{});
  };
  auto out = upload_weights(directory_, look, part_bytes_);
  if (!out)
    return out;
  const auto listed = actors::parse_manifest(last);
  if (!listed)
    return listed.why();
  std::set<core::blob_digest> weights;
  for (const actors::manifest_file& f : listed->files)
    if (weights_name(f.name))
      weights.insert(f.digest);
  for (file& f : files_)
    f.is_weights = weights.contains(f.digest);
  if (auto done = put_others(); !done)
    return done.why();
  return out;
}

model::status passed_upload::changed() const {
  return failure{directory_.string() + ": its files have changed"};
}

std::vector<core::model_file> passed_upload::weight_files() const {
  std::vector<core::model_file> out;
  for (const file& f : files_)
    if (f.is_weights)
      out.push_back({f.digest, f.bytes, {}});
  return out;
}

model::status passed_upload::put_others() {
  std::size_t at = 0;
  const put_pieces put = [&](pieces p, core::blob_digest& digest) {
    if (at >= files_.size())
      return changed();
    digest = files_[at].digest;
    core::blob_digest put{};
    if (!files_[at++].is_weights && client_.put_pieces(p, put))
      return model::status(failure{client_.text()});
    return model::status(model::done{});
  };
  if (auto done = upload_weights(directory_, put, part_bytes_); !done)
    return done.why();
  return model::done{};
}

model::status passed_upload::weights(const std::function<bool()>& goes_on,
                                     const model::watch& told) {
  std::size_t at = 0;
  std::uint64_t done = 0, all = 0;
  for (const file& f : files_)
    all += f.is_weights ? f.bytes : 0;
  const put_pieces put = [&](pieces p, core::blob_digest& digest) {
    if (at >= files_.size())
      return changed();
    const file& f = files_[at++];
    digest = f.digest;
    if (!f.is_weights)
      return model::status(model::done{});
    if (auto ok = model::tell(told, "uploading", done, all); !ok)
      return ok;
    done += f.bytes;
    if (client_.put_pieces(p, digest, goes_on))
      return model::status(failure{client_.text()});
    if (digest != f.digest)
      return changed();
    return model::status(model::done{});
  };
  if (auto done = upload_weights(directory_, put, part_bytes_); !done)
    return done.why();
  return model::done{};
}

} // namespace shoal::apps
