// runtime/core/view_size.cpp -- sums of fields and their tags.
#include "runtime/core/view_size.hpp"

#include <algorithm>

namespace shoal::core {

namespace {

// A field is a tag of at most two bytes and a value: a number of at most ten,
// or a length of at most four and so many bytes.
constexpr std::size_t number = 12;
constexpr std::size_t framed = 6;
constexpr std::size_t peer = framed + sizeof(peer_id);
constexpr std::size_t place = framed + peer + number; // a member_id

std::size_t text(const std::string& s) {
  return framed + s.size();
}

std::size_t texts(const std::vector<std::string>& all) {
  std::size_t sum = 0;
  for (const std::string& s : all)
    sum += text(s);
  return sum;
}

std::size_t without_previous(const view& v) {
  std::size_t sum = 2 * (framed + sizeof(shoal_id)) + 2 * number
                    + text(v.cluster) + texts(v.dissolved_addresses);
  for (const member& m : v.members)
    sum += bytes_bound(m);
  for (const job_entry& j : v.jobs)
    sum += bytes_bound(j);
  sum += framed + sizeof v.key + (v.revoked.size() + v.lapsed.size()) * peer
         + v.invites.size() * (2 * framed + sizeof(cluster_key) + number + peer)
         + v.stalled.size() * (framed + peer + 2 * number)
         + v.superseded.size() * (2 * framed + sizeof(shoal_id) + number)
         + v.removed.size() * number;
  return sum + v.cuts.size() * (framed + 2 * place);
}

} // namespace

std::size_t bytes_bound(const member& m) {
  std::size_t sum = framed + place + text(m.name) + texts(m.addresses)
                    + text(m.host) + 4 * number // voter to instance
                    + texts(m.roles);
  sum += framed + text(m.device.kind) + text(m.device.name) + 7 * number;
  // Room for those that it will have measured.
  constexpr std::size_t name_usual = 16;
  std::size_t networks = networks_max * (framed + name_usual + 2 * number);
  std::size_t now = 0;
  for (const network_profile& n : m.networks)
    now += framed + text(n.name) + 2 * number;
  return sum + std::max(networks, now);
}

std::size_t bytes_bound(const job_entry& j) {
  constexpr std::size_t numbers = 29;
  return framed + text(j.name) + text(j.run_json) + numbers * number
         + 2 * (framed + sizeof(blob_digest)) + peer + framed
         + j.want_blocks.size() * number + framed
         + std::max(job_cause_bytes_max, j.cause.size()) + text(j.user);
}

std::size_t bytes_bound(const assignment& a) {
  std::size_t sum = framed + 3 * number + 4 * place + text(a.why_waiting)
                    + (a.keepers.size() + a.sealers.size()) * place;
  for (const replica_place& r : a.replicas)
    sum +=
      framed + 2 * number + r.stages.size() * (framed + place + 3 * number);
  return sum
         + (a.followers.size() + a.arriving.size())
             * (framed + place + 2 * number);
}

std::size_t bytes_bound(const view& v) {
  std::size_t sum = without_previous(v);
  for (const assignment& a : v.previous)
    sum += bytes_bound(a);
  return sum;
}

bool has_room(const view& v, std::size_t bytes) {
  return without_previous(v) + bytes + view_bytes_spare <= view_bytes_max;
}

} // namespace shoal::core
