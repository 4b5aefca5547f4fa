// apps/transfer/model_upload.cpp -- cuts large files, and uploads small ones as
// they are.
#include "apps/transfer/model_upload.hpp"

#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "runtime/files/file_io.hpp"
#include "runtime/files/git_lfs.hpp"
#include "runtime/model/files/checksums.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "runtime/model/hf/hf_directory.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

namespace fs = std::filesystem;
using model::failure;

namespace {

/// Parts of one model: well below the number of files that a manifest may have.
constexpr std::uint64_t parts_max = actors::manifest_files_max / 4;

class upload {
public:
  upload(const fs::path& directory, const put_pieces& put,
         std::uint64_t part_bytes)
    : directory_(directory), put_(put), part_bytes_(part_bytes) {}

  model::result<uploaded_model> run(std::uint64_t step, bool optimizer) {
    all_.step = step;
    if (auto fine = check_files(); !fine)
      return fine.why();
    if (auto done = put_weights(actors::model_files); !done)
      return done.why();
    if (optimizer)
      if (auto done = put_weights(actors::optimizer_files); !done)
        return done.why();
    if (auto done = put_small(); !done)
      return done.why();
    return put_manifest();
  }

  model::status check(const model::watch& told) {
    if (auto fine = check_files(); !fine)
      return fine;
    if (auto whole = model::check_directory(directory_, told); !whole)
      return whole;
    if (auto whole =
          model::check_checksums(directory_, actors::optimizer_files, told);
        !whole)
      return whole;
    auto names = names_of(actors::optimizer_files);
    if (!names)
      return names.why();
    for (const std::string& name : *names)
      if (auto file = model::safetensors_source::open(directory_ / name); !file)
        return file.why();
    return model::done{};
  }

  model::result<std::uint64_t> bytes() {
    auto names = names_of(actors::model_files);
    if (!names)
      return names.why();
    std::uint64_t sum = 0;
    for (const std::string& name : *names) {
      std::error_code error;
      const std::uint64_t file = fs::file_size(directory_ / name, error);
      if (error)
        return failure{(directory_ / name).string() + ": " + error.message()};
      sum += file;
    }
    return sum;
  }

  model::result<uploaded_model> run_tokenizer(const tokenizer_files& files) {
    for (const auto& [name, text] : files.named())
      if (auto done = put_text(name, text); !done)
        return done.why();
    return put_manifest();
  }

private:
  using file_ptr = std::shared_ptr<const model::input_file>;

  model::result<uploaded_model> put_manifest() {
    std::ranges::sort(all_.files, {}, &actors::manifest_file::name);
    uploaded_model out;
    out.bytes = all_.total_bytes();
    const std::string text = actors::to_json(all_);
    const model::file_piece piece(std::as_bytes(std::span(text)));
    if (auto done = put_({&piece, 1}, out.manifest); !done)
      return done.why();
    return out;
  }

  /// A file that is found by name must be regular, or the job would lack it: no
  /// FIFO, and no link to nothing. And there is no model without weights.
  model::status check_files() const {
    std::vector<std::string> names{"config.json"};
    std::ranges::copy(actors::carried_names, std::back_inserter(names));
    for (const char* kind : {actors::model_files, actors::optimizer_files}) {
      names.push_back(actors::single_name(kind));
      names.push_back(actors::index_name(kind));
    }
    for (const std::string& name : names) {
      std::error_code error;
      const auto is = fs::symlink_status(directory_ / name, error);
      if (fs::exists(is) && !has(name))
        return failure{(directory_ / name).string()
                       + ": is not a regular file"};
    }
    const std::string single = actors::single_name(actors::model_files);
    const std::string index = actors::index_name(actors::model_files);
    if (has(single) || has(index))
      return model::done{};
    if (const auto none = model::no_weights(directory_); !none.empty())
      return failure{directory_.string() + ": holds no model: it " + none};
    return model::done{};
  }

  bool has(const std::string& name) const {
    std::error_code error;
    return fs::is_regular_file(directory_ / name, error);
  }

  model::status
  put_file(const std::string& name, std::span<const model::file_piece> pieces) {
    actors::manifest_file f{name, {}, model::bytes_of(pieces)};
    if (auto done = put_(pieces, f.digest); !done)
      return done;
    all_.files.push_back(f);
    return model::done{};
  }
  model::status put_text(const std::string& name, std::string_view text) {
    const model::file_piece piece(std::as_bytes(std::span(text)));
    return put_file(name, {&piece, 1});
  }

  /// Names of the files that hold a kind of tensors; none: there are none.
  model::result<std::vector<std::string>> names_of(const std::string& kind) {
    if (has(actors::single_name(kind)))
      return std::vector{actors::single_name(kind)};
    const std::string listed = actors::index_name(kind);
    if (!has(listed))
      return std::vector<std::string>{};
    auto text = model::read_file(directory_ / listed, model::header_bytes_max);
    if (!text)
      return text.why();
    auto index = model::parse_index(*text, (directory_ / listed).string());
    if (!index)
      return index.why();
    const auto names = index->files();
    for (const std::string& name : names)
      if (!actors::plain_name(name))
        return failure{(directory_ / listed).string() + ": file " + name
                       + ": has a name that is none"};
    return std::vector<std::string>(names.begin(), names.end());
  }

  model::status put_weights(const std::string& kind) {
    auto names = names_of(kind);
    if (!names)
      return names.why();
    std::vector<file_ptr> files;
    std::uint64_t largest = 0, total = 0;
    for (const std::string& name : *names) {
      auto file = model::input_file::open(directory_ / name);
      if (!file)
        return file.why();
      largest = std::max(largest, (*file)->bytes());
      total += (*file)->bytes();
      files.push_back(*file);
    }
    if (largest > part_bytes_)
      return put_parts(kind, files, std::max(part_bytes_, total / parts_max));
    for (std::size_t i = 0; i < files.size(); ++i) {
      const model::file_piece whole(files[i]);
      if (auto done = put_file((*names)[i], {&whole, 1}); !done)
        return done;
    }
    if (files.empty() || (*names)[0] == actors::single_name(kind))
      return model::done{};
    return put_whole(actors::index_name(kind));
  }

  static model::result<std::vector<model::file_part>>
  cut_file(const model::input_file& file, std::uint64_t part_bytes) {
    std::vector<std::byte> begin(
      std::min<std::uint64_t>(file.bytes(), model::lfs_pointer_bytes_max));
    if (auto ok = file.read(0, begin); !ok)
      return ok.why();
    begin.resize(model::header_end(begin, file.bytes()));
    if (auto ok = file.read(0, begin); !ok)
      return ok.why();
    return model::cut_safetensors(begin, file.bytes(), file.name(), part_bytes);
  }

  model::status
  put_parts(const std::string& kind, const std::vector<file_ptr>& files,
            std::uint64_t part_bytes) {
    std::vector<std::pair<model::file_part, file_ptr>> parts;
    for (std::size_t i = 0; i < files.size(); ++i) {
      auto cut = cut_file(*files[i], part_bytes);
      if (!cut)
        return cut.why();
      for (model::file_part& part : *cut)
        parts.emplace_back(std::move(part), files[i]);
    }
    model::shard_index index;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string name = model::shard_name(kind, i, parts.size());
      const auto& [part, file] = parts[i];
      std::vector<model::file_piece> pieces;
      pieces.emplace_back(std::as_bytes(std::span(part.begin)));
      for (const model::byte_range& v : part.values)
        pieces.emplace_back(file, v.first, v.last - v.first);
      if (auto done = put_file(name, pieces); !done)
        return done;
      for (const std::string& tensor : part.tensors)
        index.weights[tensor] = name;
      bytes += part.data_bytes();
    }
    return put_text(actors::index_name(kind), model::to_json(index, bytes));
  }

  model::status put_whole(const std::string& name) {
    auto file = model::input_file::open(directory_ / name);
    if (!file)
      return file.why();
    const model::file_piece whole(*file);
    return put_file(name, {&whole, 1});
  }

  model::status put_small() {
    std::vector<std::string> names{"config.json"};
    std::ranges::copy(actors::carried_names, std::back_inserter(names));
    for (const std::string& name : names)
      if (has(name))
        if (auto done = put_whole(name); !done)
          return done;
    return model::done{};
  }

  const fs::path& directory_;
  const put_pieces& put_;
  std::uint64_t part_bytes_;
  actors::manifest all_;
};

} // namespace

model::status check_model(const fs::path& directory, const model::watch& told) {
  return upload(directory, {}, upload_part_bytes).check(told);
}

model::result<uploaded_model>
upload_model(const fs::path& directory, std::uint64_t step,
             const put_pieces& put, std::uint64_t part_bytes) {
  return upload(directory, put, part_bytes).run(step, true);
}

model::result<uploaded_model>
upload_weights(const fs::path& directory, const put_pieces& put,
               std::uint64_t part_bytes) {
  return upload(directory, put, part_bytes).run(0, false);
}

model::result<std::uint64_t> weights_bytes(const fs::path& directory) {
  return upload(directory, {}, upload_part_bytes).bytes();
}

model::result<uploaded_model>
upload_tokenizer(const tokenizer_files& files, const put_pieces& put) {
  const fs::path none; // nothing is read
  return upload(none, put, upload_part_bytes).run_tokenizer(files);
}

} // namespace shoal::apps
