// actors/checkpoint/shard_list.cpp -- reads and writes the lines of a small
// file.
#include "actors/checkpoint/shard_list.hpp"

#include "runtime/context.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/files/file.hpp"
#include "runtime/store/store.hpp"

#include <fcntl.h>

#include <fstream>
#include <span>
#include <sstream>

namespace shoal::actors {

namespace fs = std::filesystem;

namespace {

/// Begins with the end of a previous line that may have been torn.
std::string line_of(const listed_shard& s) {
  std::string out("\n");
  out.append(std::to_string(s.step)).append(" ");
  return out.append(core::to_hex(s.digest)).append("\n");
}

} // namespace

fs::path shard_list_of(const fs::path& folder, std::uint32_t island) {
  return folder / (island == 0 ? "shards" : "shards." + std::to_string(island));
}

std::vector<fs::path> shard_lists_of(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename().string();
        name == "shards" || name.starts_with("shards."))
      out.push_back(entry.path());
  return out;
}

fs::path job_folder(runtime::context& node, core::job_id job) {
  return node.data_dir() / "jobs" / core::job_text(job);
}

std::error_code note_shard(runtime::context& node, const core::island_id& id,
                           const listed_shard& shard) {
  const fs::path file = shard_list_of(job_folder(node, id.job), id.index);
  std::error_code error =
    runtime::make_folder_below(node.data_dir(), file.parent_path());
  const runtime::posix::descriptor fd =
    runtime::posix::open_regular(file, O_WRONLY | O_CREAT | O_APPEND, error);
  if (error)
    return error;
  const std::string line = line_of(shard);
  return runtime::posix::write_all(fd.get(), std::as_bytes(std::span(line)));
}

std::vector<listed_shard> read_shards(const fs::path& list) {
  std::vector<listed_shard> out;
  std::ifstream in = runtime::posix::open_text(list);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    listed_shard s;
    std::string hex;
    if (words >> s.step >> hex && core::from_hex(hex, s.digest))
      out.push_back(s);
  }
  return out;
}

void drop_shards(runtime::context& node, const core::island_id& id,
                 const std::function<bool(std::uint64_t step)>& wanted,
                 const std::set<core::blob_digest>& needed) {
  const fs::path file = shard_list_of(job_folder(node, id.job), id.index);
  std::set<core::blob_digest> keep = needed;
  std::string text;
  std::vector<core::blob_digest> old;
  for (const listed_shard& s : read_shards(file))
    if (wanted(s.step)) {
      keep.insert(s.digest);
      text += line_of(s);
    } else {
      old.push_back(s.digest);
    }
  if (old.empty())
    return;
  for (const core::blob_digest& d : old)
    if (!keep.contains(d) && node.blobs().contains(d))
      static_cast<void>(node.blobs().remove(d));
  // If this fails the longer list stays, which does no harm.
  static_cast<void>(
    runtime::replace_file(file, std::as_bytes(std::span(text))));
}

} // namespace shoal::actors
