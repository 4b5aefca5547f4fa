// tests/fuzz/record_fuzz.cpp -- files of records: any bytes as a file, and
// records of a core that received any views.
//
// The first byte selects the meaning of the rest. A file: loading ends in a
// record, in none, or in a sentence. A record in an intact file. A record, or
// choices that make one (wild_view), which is sent to a core as decided views
// and as votes: all that the core then stores must be readable (encode_record
// asserts it).
#include "runtime/core/assert.hpp"
#include "runtime/core/cluster/membership.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/identity/slot_file.hpp"
#include "runtime/wire/codec.hpp"
#include "tests/runtime/wire/wild_view.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

using namespace shoal;
using namespace shoal::runtime;
namespace cl = shoal::core::cluster;

namespace {

/// A folder that is removed with the process.
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
  } catch (const setup_error& e) {
    SHOAL_ASSERT(std::string(e.what()).find(file.string())
                 != std::string::npos);
  }
}

/// Two intact slots around any record, so that the head is correct.
void try_slots(const std::filesystem::path& file, std::string_view bytes) {
  std::filesystem::remove(file);
  slot_file slots(file);
  const auto record = std::as_bytes(std::span(bytes.data(), bytes.size()));
  if (record.empty())
    return; // no valid record
  SHOAL_ASSERT(!slots.write(1, record));
  const auto found = slot_file(file).load();
  SHOAL_ASSERT(found && std::ranges::equal(found->record, record));
}

core::shoal_id name(const core::view&, std::uint64_t) {
  return {1};
}

/// Choices for the content of a lie.
cl::record made_of(std::string_view bytes) {
  std::size_t at = 0;
  const auto below = [&](std::uint64_t n) -> std::uint64_t {
    std::uint64_t x = 0;
    for (std::uint64_t most = n; most > 1 && at < bytes.size(); most >>= 8)
      x = x << 8 | std::uint8_t(bytes[at++]);
    return n == 0 ? 0 : x % n;
  };
  const auto round = [&] {
    return below(2) == 0 ? below(9) : below(1ull << 63);
  };
  if (below(2) == 0) {
    cl::view_record r;
    r.current = tests::wild_view(below, 4);
    return r;
  }
  cl::vote_record r;
  r.promised = {std::min(round(), core::epoch_max), {2}};
  r.accepted = {std::min(round(), core::epoch_max), {2}};
  r.value = tests::wild_view(below, 4);
  return r;
}

/// Sends a record's content as a member to a peer of its shoal, which stores
/// the result.
void try_core(const cl::record& record) {
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
  const auto as_ours = [&](core::view v) { // with this peer, and with the liar
    v.shoal = core.current().shoal;
    v.cluster = c.cluster;
    v.cuts.clear();
    std::erase_if(v.members, [](const core::member& m) {
      return m.id.peer == core::peer_id{1} || m.id.peer == core::peer_id{2};
    });
    for (std::uint8_t n : {2, 1}) {
      core::member m = core.current().members[0];
      m.id.peer = {n};
      m.instance = n;
      v.members.push_back(m);
    }
    std::ranges::sort(v.members, {}, &core::member::id);
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
  case 2: {
    cl::record record;
    if (!codec::decode_record(
          std::as_bytes(std::span(rest.data(), rest.size())), record))
      try_core(record);
    break;
  }
  default:
    try_core(made_of(rest));
  }
  return 0;
}
