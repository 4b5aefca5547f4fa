// tests/sim/shoal/disk.cpp -- disks that are full, bits that flip, torn files.
#include "tests/sim/shoal/disk.hpp"

#include "runtime/core/errc.hpp"
#include "runtime/jobs/event_json.hpp"
#include "tests/sim/shoal/world.hpp"

#include <fstream>

namespace shoal::sim {

namespace fs = std::filesystem;

namespace {

class sim_writer final : public runtime::blob_writer {
public:
  sim_writer(sim_store& home, std::unique_ptr<runtime::blob_writer> inner)
    : home_(home), inner_(std::move(inner)) {}

  std::error_code append(std::span<const std::byte> bytes) override {
    home_.step();
    return home_.full() ? no_space() : inner_->append(bytes);
  }
  std::error_code
  commit(core::blob_digest& digest,
         const std::optional<core::blob_digest>& expected) override {
    home_.step();
    if (home_.full())
      return no_space();
    const std::error_code error = inner_->commit(digest, expected);
    if (!error)
      home_.seen(digest);
    return error;
  }

  std::uint64_t written() const override { return inner_->written(); }

private:
  static std::error_code no_space() {
    return std::make_error_code(std::errc::no_space_on_device);
  }
  sim_store& home_;
  std::unique_ptr<runtime::blob_writer> inner_;
};

/// A blob as it is on the disk.
class raw_blob final : public runtime::blob {
public:
  explicit raw_blob(std::vector<char> data) : data_(std::move(data)) {}
  std::span<const std::byte> bytes() const noexcept override {
    return std::as_bytes(std::span(data_));
  }

private:
  std::vector<char> data_;
};

std::shared_ptr<const runtime::blob>
read_anyhow(const fs::path& file, std::error_code& error) {
  std::ifstream in(file, std::ios::binary);
  error = in ? std::error_code{} : std::make_error_code(std::errc::io_error);
  if (error)
    return nullptr;
  return std::make_shared<raw_blob>(
    std::vector<char>{std::istreambuf_iterator<char>(in), {}});
}

} // namespace

void sim_store::step() {
  if (calls_left_ >= 0 && calls_left_-- == 0) {
    std::ofstream(folder_ / "tmp" / "torn") << "half a blob";
    throw killed_at_work{};
  }
}

bool sim_store::full() const {
  return world_.faulty() && world_.chance(world_.disk_full);
}

std::unique_ptr<runtime::blob_writer> sim_store::write() {
  return std::make_unique<sim_writer>(*this, inner_->write());
}

std::unique_ptr<runtime::blob_writer>
sim_store::write_of(const core::blob_digest& d) {
  return std::make_unique<sim_writer>(*this, inner_->write_of(d));
}

std::unique_ptr<runtime::blob_writer>
sim_store::go_on(const core::blob_digest& d) {
  step();
  if (world_.faulty() && world_.chance(world_.bit_flips)) {
    world_.say(node_, "a bit flips in what there is of a blob");
    flip_a_bit(folder_ / "parts" / core::to_hex(d), inner_->begun(d));
  }
  auto inner = inner_->go_on(d);
  return inner ? std::make_unique<sim_writer>(*this, std::move(inner))
               : nullptr;
}

fs::path sim_store::file_of(const core::blob_digest& d) const {
  const std::string name = core::to_hex(d);
  return folder_ / name.substr(0, 2) / name.substr(2);
}

void sim_store::rot_perhaps(const core::blob_digest& d) {
  if (!world_.faulty() || !seen_.insert(d).second || inner_->size(d) == 0
      || !world_.chance(world_.bit_flips) || !world_.may_rot(node_, d))
    return;
  world_.say(node_, "a bit flips in blob " + core::to_hex(d).substr(0, 12));
  flip_a_bit(file_of(d), inner_->size(d));
}

void sim_store::flip_a_bit(const fs::path& name, std::uint64_t bytes) {
  const auto at = std::streamoff(world_.below(bytes));
  std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const char byte = char(file.get() ^ (1 << world_.below(8)));
  file.seekp(at);
  file.put(byte);
}

std::shared_ptr<const runtime::blob>
sim_store::read(const core::blob_digest& d, std::error_code& error) {
  step();
  rot_perhaps(d);
  if (world_.has(mutant::checksum_ignored))
    return read_anyhow(file_of(d), error);
  return inner_->read(d, error);
}

std::error_code sim_store::verify(const core::blob_digest& d) {
  step();
  rot_perhaps(d);
  if (world_.has(mutant::checksum_ignored))
    return inner_->contains(d) ? std::error_code{}
                               : make_error_code(runtime::errc::not_found);
  return inner_->verify(d);
}

std::set<core::blob_digest>
logged_checkpoints(const fs::path& jobs, const core::island_id& id) {
  std::set<core::blob_digest> out;
  std::ifstream in(jobs / core::job_text(id.job) / "events.jsonl",
                   std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    runtime::job_event e;
    if (runtime::from_json_line(line, e)
        && e.kind == runtime::job_event_kind::checkpoint
        && e.island == id.index)
      out.insert(e.digest);
  }
  return out;
}

void tear_journals(const fs::path& jobs, std::uint64_t random) {
  std::error_code none;
  for (fs::directory_iterator job(jobs, none), end; !none && job != end;
       job.increment(none)) {
    const fs::path file = job->path() / "events.jsonl";
    std::ifstream in(file, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.size() < 2)
      continue;
    const std::size_t last = text.rfind('\n', text.size() - 2);
    const std::size_t begin = last == std::string::npos ? 0 : last + 1;
    fs::resize_file(file, begin + random % (text.size() - begin + 1), none);
  }
}

} // namespace shoal::sim
