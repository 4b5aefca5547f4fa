// runtime/core/training/plan_digest.cpp -- an assignment as 64 bits.
#include "runtime/core/training/plan.hpp"

namespace shoal::core {
namespace {

class hash {
public:
  void add(std::uint64_t x) {
    for (int i = 0; i < 8; ++i)
      byte(static_cast<std::uint8_t>(x >> (8 * i)));
  }
  void add(const member_id& m) {
    for (std::uint8_t b : m.peer)
      byte(b);
    add(m.incarnation);
  }
  void add(const std::string& s) {
    add(s.size());
    for (char c : s)
      byte(static_cast<std::uint8_t>(c));
  }
  std::uint64_t result() const { // splitmix64's finaliser
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return z == 0 ? 1 : z; // 0 means none
  }

private:
  void byte(std::uint8_t b) { state_ = (state_ ^ b) * 0x100000001b3u; }
  std::uint64_t state_ = 0xcbf29ce484222325u; // FNV-1a
};

} // namespace

std::uint64_t digest(const assignment& a) {
  hash h;
  h.add(a.job);
  h.add(a.since);
  h.add(a.replicas.size());
  for (const replica_place& r : a.replicas) {
    h.add(r.stages.size());
    for (const stage_place& s : r.stages) {
      h.add(s.where);
      h.add(s.first_block);
      h.add(s.last_block);
      h.add(s.kept_max);
    }
    h.add(r.first_microbatch);
    h.add(r.last_microbatch);
  }
  h.add(a.keepers.size());
  for (const member_id& m : a.keepers)
    h.add(m);
  h.add(a.sealers.size());
  for (const member_id& m : a.sealers)
    h.add(m);
  for (const member_id* m :
       {&a.data_source, &a.evaluator, &a.checkpointer, &a.reporter})
    h.add(*m);
  h.add(a.why_waiting);
  h.add(static_cast<std::uint64_t>(a.schedule));
  auto add_places = [&](const std::vector<follower_place>& places) {
    h.add(places.size());
    for (const follower_place& f : places) {
      h.add(f.where);
      h.add(f.first_unit);
      h.add(f.last_unit);
    }
  };
  add_places(a.followers);
  h.add(a.copy_every);
  add_places(a.arriving);
  return h.result();
}

} // namespace shoal::core
