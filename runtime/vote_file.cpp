// runtime/vote_file.cpp -- records on disk.
#include "runtime/vote_file.hpp"

#include "runtime/node.hpp" // node_error
#include "runtime/node/file.hpp"
#include "runtime/store/store.hpp" // sha256
#include "runtime/wire/codec.hpp"

#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;
namespace cl = core::cluster;

static constexpr char magic[9] = "shoalrec";
static constexpr std::size_t head_bytes = 8 + 8 + 32;
static constexpr std::size_t file_bytes_max = std::size_t{16} << 20;
static constexpr const char* view_name = "view.record";
static constexpr const char* vote_name = "vote.record";
static constexpr const char* key_name = "key.record";

vote_file::vote_file(fs::path folder) : folder_(std::move(folder)) {
}

/// @returns false when there is no such file.
static bool load_record(const fs::path& file, cl::record& out) {
  if (!fs::exists(file))
    return false;
  auto damaged = [&](const std::string& why) {
    return node_error(
      file.string() + " is damaged (" + why
      + "): this peer may have voted, so it must not start from it. Move the "
        "data directory away: the node then joins as a new peer");
  };
  std::vector<std::byte> bytes;
  if (auto error = read_file(file, file_bytes_max, bytes))
    throw node_error("cannot read " + file.string() + ": " + error.message());
  if (bytes.size() < head_bytes || std::memcmp(bytes.data(), magic, 8) != 0)
    throw damaged("no record");
  std::uint64_t size = 0;
  for (int i = 7; i >= 0; --i)
    size = size << 8 | static_cast<std::uint8_t>(bytes[8 + i]);
  auto body = std::span(bytes).subspan(head_bytes);
  if (size != body.size())
    throw damaged("cut off");
  auto sum = sha256(body);
  if (std::memcmp(bytes.data() + 16, sum.data(), sum.size()) != 0)
    throw damaged("checksum differs");
  if (auto error = codec::decode_record(body, out))
    throw damaged(error.message());
  return true;
}

cl::history vote_file::load() const {
  cl::history out;
  if (folder_.empty())
    return out;
  cl::record r;
  if (load_record(folder_ / view_name, r)) {
    if (!std::holds_alternative<cl::view_record>(r))
      throw node_error((folder_ / view_name).string() + " holds another kind");
    out.view = std::get<cl::view_record>(std::move(r));
  }
  if (load_record(folder_ / vote_name, r)) {
    if (!std::holds_alternative<cl::vote_record>(r))
      throw node_error((folder_ / vote_name).string() + " holds another kind");
    out.vote = std::get<cl::vote_record>(std::move(r));
  }
  if (load_record(folder_ / key_name, r)) {
    if (!std::holds_alternative<cl::key_record>(r))
      throw node_error((folder_ / key_name).string() + " holds another kind");
    out.keys = std::get<cl::key_record>(std::move(r));
  }
  return out;
}

std::error_code vote_file::write(const cl::record& r) {
  if (folder_.empty())
    return {};
  std::vector<std::byte> body = codec::encode_record(r);
  std::vector<std::byte> bytes(head_bytes);
  std::memcpy(bytes.data(), magic, 8);
  for (std::size_t i = 0; i < 8; ++i)
    bytes[8 + i] = static_cast<std::byte>(body.size() >> (8 * i));
  auto sum = sha256(body);
  std::memcpy(bytes.data() + 16, sum.data(), sum.size());
  bytes.insert(bytes.end(), body.begin(), body.end());
  const char* name = std::holds_alternative<cl::view_record>(r)   ? view_name
                     : std::holds_alternative<cl::vote_record>(r) ? vote_name
                                                                  : key_name;
  return replace_file(folder_ / name, bytes);
}

std::error_code vote_file::erase() {
  if (folder_.empty())
    return {};
  std::error_code error;
  fs::remove(folder_ / vote_name, error);
  if (!error)
    fs::remove(folder_ / view_name, error);
  return error ? error : posix::sync_folder(folder_);
}

} // namespace shoal::runtime
