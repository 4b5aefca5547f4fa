// runtime/wire/canonical.cpp -- views as bytes that never vary.
//
// Every field in the order of its declaration; numbers as 8 bytes, little end
// first; text and lists after their length.
#include "runtime/wire/codec.hpp"

#include <openssl/evp.h>

#include <algorithm>

namespace shoal::runtime::codec {

namespace {

class writer {
public:
  std::vector<std::byte> out;

  void number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8)
      out.push_back(static_cast<std::byte>(value >> shift));
  }
  void text(const std::string& value) {
    number(value.size());
    auto data = reinterpret_cast<const std::byte*>(value.data());
    out.insert(out.end(), data, data + value.size());
  }
  template <std::size_t N>
  void id(const std::array<std::uint8_t, N>& value) {
    for (std::uint8_t b : value)
      out.push_back(static_cast<std::byte>(b));
  }
  template <class List, class Item>
  void list(const List& values, Item item) {
    number(values.size());
    for (const auto& value : values)
      item(value);
  }
  void texts(const std::vector<std::string>& values) {
    list(values, [this](const std::string& s) { text(s); });
  }

  void value(const core::member_id& m) {
    id(m.peer);
    number(m.incarnation);
  }
  void value(const core::member& m);
  void value(const core::job_entry& job);
  void value(const core::assignment& a);
  void value(const core::view& v);
};

void writer::value(const core::member& m) {
  value(m.id);
  number(m.instance);
  text(m.name);
  texts(m.addresses);
  text(m.host);
  text(m.device.kind);
  text(m.device.name);
  number(m.device.threads);
  number(m.device.mflops);
  number(m.device.memory_bytes);
  number(m.voter);
  number(m.witness);
  number(static_cast<std::uint64_t>(m.state));
  // What was not measured adds nothing, so that shoals keep their names.
  if (m.device.host_threads != 0 || m.device.stream_mbps != 0
      || !m.networks.empty()) {
    number(m.device.host_threads);
    number(m.device.stream_mbps);
    list(m.networks, [this](const core::network_profile& n) {
      text(n.name);
      number(static_cast<std::uint64_t>(n.latency));
      number(n.bytes_per_s);
    });
  }
  if (m.device.host_memory_bytes != 0 || m.device.memory_is_share) {
    number(m.device.host_memory_bytes);
    number(m.device.memory_is_share);
  }
  if (!m.roles.empty())
    texts(m.roles);
}

void writer::value(const core::job_entry& job) {
  number(job.id);
  text(job.name);
  number(static_cast<std::uint64_t>(job.state));
  text(job.run_json);
  id(job.data);
  number(job.data_bytes);
  id(job.origin);
  number(job.origin_bytes);
  number(job.blocks);
  number(job.microbatches);
  number(job.block_flops);
  number(job.head_flops);
  number(job.block_state_bytes);
  number(job.embed_state_bytes);
  number(job.head_state_bytes);
  number(job.activation_bytes);
  number(job.boundary_bytes);
  number(job.block_traffic_bytes);
  number(job.head_traffic_bytes);
  number(static_cast<std::uint64_t>(std::int64_t{job.want_replicas}));
  number(static_cast<std::uint64_t>(std::int64_t{job.want_stages}));
  list(job.want_blocks, [this](std::uint32_t n) { number(n); });
  number(job.want_schedule ? static_cast<std::uint64_t>(*job.want_schedule)
                           : 0);
  number(static_cast<std::uint64_t>(std::int64_t{job.want_virtual}));
  number(job.want_copies);
  number(job.want_copy_every);
  id(job.submitter);
  number(job.done_step);
  number(job.origin_step);
  number(job.changed);
  number(static_cast<std::uint64_t>(std::int64_t{job.priority}));
  number(job.retried);
  const bool origin = job.submitted_ms != 0 || !job.user.empty();
  if (job.arrived != 0 || !job.cause.empty() || origin)
    number(job.arrived);
  if (!job.cause.empty() || origin)
    text(job.cause);
  if (origin) {
    number(static_cast<std::uint64_t>(job.submitted_ms));
    text(job.user);
  }
}

void writer::value(const core::assignment& a) {
  number(a.job);
  number(a.since);
  list(a.replicas, [this](const core::replica_place& r) {
    list(r.stages, [this](const core::stage_place& s) {
      value(s.where);
      number(s.first_block);
      number(s.last_block);
      number(s.kept_max);
    });
    number(r.first_microbatch);
    number(r.last_microbatch);
  });
  list(a.keepers, [this](const core::member_id& m) { value(m); });
  list(a.sealers, [this](const core::member_id& m) { value(m); });
  value(a.data_source);
  value(a.evaluator);
  value(a.checkpointer);
  value(a.reporter);
  text(a.why_waiting);
  number(static_cast<std::uint64_t>(a.schedule));
  list(a.followers, [this](const core::follower_place& f) {
    value(f.where);
    number(f.first_unit);
    number(f.last_unit);
  });
  number(a.copy_every);
  if (!a.arriving.empty())
    list(a.arriving, [this](const core::follower_place& f) {
      value(f.where);
      number(f.first_unit);
      number(f.last_unit);
    });
}

void writer::value(const core::view& v) {
  id(v.shoal);
  number(v.number);
  text(v.cluster);
  list(v.members, [this](const core::member& m) { value(m); });
  list(v.jobs, [this](const core::job_entry& job) { value(job); });
  list(v.previous, [this](const core::assignment& a) { value(a); });
  number(v.planner_version);
  number(v.dissolved_into.has_value());
  id(v.dissolved_into.value_or(core::shoal_id{}));
  texts(v.dissolved_addresses);
  if (!v.cuts.empty()) // a first view has none: shoals keep their names
    list(v.cuts, [this](const core::cut_pair& cut) {
      value(cut.low);
      value(cut.high);
    });
  if (v.key == core::key_digest{} && v.revoked.empty() && v.lapsed.empty()
      && v.invites.empty() && v.stalled.empty() && v.superseded.empty()
      && v.removed.empty())
    return; // as before views had these fields
  id(v.key);
  list(v.revoked, [this](const core::peer_id& p) { id(p); });
  list(v.lapsed, [this](const core::peer_id& p) { id(p); });
  list(v.invites, [this](const core::invitation& i) {
    id(i.key);
    number(static_cast<std::uint64_t>(i.expires_s));
    id(i.used_by);
  });
  if (!v.stalled.empty() || !v.superseded.empty() || !v.removed.empty())
    list(v.stalled, [this](const core::stalled_peer& s) {
      id(s.peer);
      number(s.times);
      number(s.since);
    });
  if (!v.superseded.empty() || !v.removed.empty())
    list(v.superseded, [this](const core::superseded_shoal& s) {
      id(s.shoal);
      number(s.number);
    });
  if (!v.removed.empty())
    list(v.removed, [this](core::job_id job) { number(job); });
}

} // namespace

std::vector<std::byte> canonical(const core::view& v) {
  writer w;
  w.value(v);
  return std::move(w.out);
}

static std::array<std::uint8_t, 32> sha256(const std::vector<std::byte>& of) {
  std::array<std::uint8_t, 32> hash{};
  unsigned length = 0;
  if (EVP_Digest(of.data(), of.size(), hash.data(), &length, EVP_sha256(),
                 nullptr)
      != 1)
    std::abort(); // SHA-256 of memory cannot fail
  return hash;
}

std::array<std::uint8_t, 32> view_digest(const core::view& v) {
  return sha256(canonical(v));
}

core::key_digest key_digest(const core::cluster_key& key) {
  writer w;
  w.text("shoal cluster key");
  w.id(key);
  return sha256(w.out);
}

core::shoal_id name_shoal(const core::view& first, std::uint64_t salt) {
  writer w;
  w.text("shoal first view");
  w.number(salt);
  w.value(first);
  const auto hash = sha256(w.out);
  core::shoal_id id{};
  std::copy_n(hash.begin(), id.size(), id.begin());
  return id;
}

} // namespace shoal::runtime::codec
