// tests/fuzz/record_fuzz.cpp -- files of records: any bytes as one, and records
// of a core that was told any views.
//
// First byte even: the rest is a file. Loading ends in a record, in none, or in
// a sentence. Odd: the rest is a record, which is told to a core as a view that
// was decided; all that the core then stores must be readable (encode_record
// asserts it), from the file too.
#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/membership.hpp"
#include "runtime/node.hpp" // node_error
#include "runtime/node/slot_file.hpp"
#include "runtime/wire/codec.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

using namespace shoal;
using namespace shoal::runtime;
namespace cl = shoal::core::cluster;

namespace {

/// A folder that goes with the process.
struct folder {
  std::filesystem::path path;
  folder() {
    std::string name = "/dev/shm/shoal-fuzz-XXXXXX";
    SHOAL_ASSERT(::mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

void try_file(const std::filesystem::path& file, std::string_view bytes) {
  {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), std::streamsize(bytes.size()));
  }
  slot_file slots(file);
  try {
    const auto found = slots.load();
    SHOAL_ASSERT(bytes.empty() || found.has_value());
    if (found) {
      cl::record record;
      (void)codec::decode_record(found->record, record);
      SHOAL_ASSERT(!slots.write(found->sequence + 1, found->record));
      SHOAL_ASSERT(slot_file(file).load()->record == found->record);
    }
  } catch (const node_error& e) {
    SHOAL_ASSERT(std::string(e.what()).find(file.string())
                 != std::string::npos);
  }
}

/// Two whole slots around any record, so that the head is right.
void try_slots(const std::filesystem::path& file, std::string_view bytes) {
  std::filesystem::remove(file);
  slot_file slots(file);
  const auto record = std::as_bytes(std::span(bytes.data(), bytes.size()));
  SHOAL_ASSERT(!slots.write(1, record));
  const auto found = slot_file(file).load();
  SHOAL_ASSERT(found && std::ranges::equal(found->record, record));
}

core::shoal_id name(const core::view&, std::uint64_t) {
  return {1};
}

/// What a member says to a peer of its shoal, which stores what follows.
void try_core(std::string_view bytes) {
  cl::record record;
  const auto raw = std::as_bytes(std::span(bytes.data(), bytes.size()));
  if (codec::decode_record(raw, record))
    return;
  cl::config c;
  c.self.id.peer = {1};
  c.self.instance = 1;
  c.self.addresses = {"a:1"};
  c.name_shoal = name;
  cl::membership core(c);
  core::nanoseconds now = 0;
  const auto give = [&](const cl::event& e) {
    cl::actions out;
    core.step(e, now += 1'000'000, out);
    for (const cl::action& a : out)
      if (const auto* p = std::get_if<cl::persist>(&a))
        (void)codec::encode_record(p->what);
  };
  give(cl::start{});
  give(cl::peer_up{{2}, 2});
  const auto tell = [&](cl::message m) {
    give(cl::received{{2}, std::move(m)});
  };
  const auto as_ours = [&](core::view v) {
    v.shoal = core.current().shoal;
    v.cluster = c.cluster;
    return v;
  };
  if (const auto* v = std::get_if<cl::view_record>(&record)) {
    tell(cl::decided{v->current});
    tell(cl::decided{as_ours(v->current)});
    for (const core::view& f : v->former)
      tell(cl::decided{f});
  } else if (const auto* w = std::get_if<cl::vote_record>(&record)) {
    const core::shoal_id shoal = core.current().shoal;
    const core::epoch base = core.current().number;
    tell(cl::prepare{shoal, base, w->promised});
    tell(cl::refused{shoal, base, w->promised, w->accepted});
    if (w->value) {
      tell(cl::accept{shoal, base, w->accepted, as_ours(*w->value)});
      tell(cl::decided{as_ours(*w->value)});
    }
  }
  core::job_entry j;
  j.id = 7;
  give(cl::submit_job{j});
  for (int i = 0; i < 20; ++i) {
    now += 300'000'000;
    give(cl::tick{});
  }
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const folder temporary;
  if (size == 0)
    return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  switch (data[0] % 4) {
  case 0:
    try_file(temporary.path / "a.record", rest);
    break;
  case 1:
    try_slots(temporary.path / "b.record", rest);
    break;
  default:
    try_core(rest);
  }
  return 0;
}
