// tests/runtime/wire/wild_view.cpp -- numbers at the ends of their ranges.
#include "tests/runtime/wire/wild_view.hpp"

#include "runtime/wire/codec.hpp" // limits

#include <algorithm>

namespace shoal::tests {

namespace codec = runtime::codec;

namespace {

class maker {
public:
  maker(const choice& below, std::size_t members) : below_(below) {
    v_.number = 1 + up_to(core::epoch_max - 1);
    v_.cluster = "wild";
    const std::size_t count = below(members + 1);
    for (std::size_t i = 0; i < count; ++i)
      v_.members.push_back(member(i));
    for (std::size_t i = 1; i < v_.members.size(); ++i)
      if (below_(8) == 0)
        v_.cuts.push_back({v_.members[i - 1].id, v_.members[i].id});
    for (std::uint64_t i = 0, n = below_(4); i < n; ++i)
      v_.jobs.push_back(job(1 + 10 * i + below_(3)));
    for (const core::job_entry& j : v_.jobs)
      if (below_(4) != 0)
        v_.previous.push_back(assignment(j));
  }
  core::view view() && { return std::move(v_); }

private:
  bool coin() { return below_(2) == 1; }
  /// Of the range that the codec takes.
  std::uint64_t up_to(std::uint64_t max) {
    switch (below_(6)) {
    case 0:
      return 0;
    case 1:
      return std::min<std::uint64_t>(1, max);
    case 2:
      return max;
    case 3:
      return std::min<std::uint64_t>(below_(100), max);
    case 4: // of any size
      return std::min(max, (std::uint64_t{1} << below_(63)) + below_(1000));
    default:
      return std::min(max, below_(max) + below_(2));
    }
  }
  std::uint32_t up_to_32(std::uint32_t max) {
    return static_cast<std::uint32_t>(up_to(max));
  }

  core::member member(std::size_t i) {
    core::member m;
    m.id.peer[0] = static_cast<std::uint8_t>(i >> 8);
    m.id.peer[1] = static_cast<std::uint8_t>(i);
    m.id.incarnation = up_to(core::epoch_max);
    m.host = std::string(1, static_cast<char>('a' + below_(3)));
    m.device.threads = up_to_32(codec::threads_max);
    m.device.mflops = up_to(codec::mflops_max);
    m.device.memory_bytes = up_to(codec::bytes_max);
    m.device.host_threads = up_to_32(codec::threads_max);
    m.device.stream_mbps = up_to(codec::mflops_max);
    m.device.host_memory_bytes = coin() ? up_to(codec::bytes_max) : 0;
    m.device.memory_is_share = coin();
    for (std::uint64_t n = below_(core::networks_max + 1); n > 0; --n)
      m.networks.push_back({coin() ? "tls" : "host",
                            core::nanoseconds(up_to(codec::latency_max)),
                            up_to(codec::bytes_max)});
    m.voter = coin();
    m.witness = below_(4) == 0;
    m.state =
      static_cast<core::member_state>(below_(3) != 0 ? 1 : 1 + below_(3));
    return m;
  }

  core::job_entry job(std::uint64_t id) {
    core::job_entry j;
    j.id = id;
    j.state = static_cast<core::job_state>(below_(4) != 0 ? 1 : 1 + below_(4));
    j.data_bytes = up_to(codec::bytes_max);
    j.origin_bytes = up_to(codec::bytes_max);
    j.origin_step = up_to(core::epoch_max);
    j.blocks = up_to_32(codec::blocks_max);
    j.microbatches = up_to_32(codec::microbatches_max);
    for (std::uint64_t* flops : {&j.block_flops, &j.head_flops})
      *flops = up_to(codec::flops_max);
    for (std::uint64_t* bytes :
         {&j.block_state_bytes, &j.embed_state_bytes, &j.head_state_bytes,
          &j.activation_bytes, &j.boundary_bytes, &j.block_traffic_bytes,
          &j.head_traffic_bytes})
      *bytes = up_to(codec::bytes_max);
    const auto wanted = [this](std::int32_t max) {
      return coin() ? -1 : static_cast<std::int32_t>(up_to(std::uint64_t(max)));
    };
    j.want_replicas = wanted(codec::want_replicas_max);
    j.want_stages = wanted(codec::want_stages_max);
    j.want_virtual = wanted(codec::want_virtual_max);
    if (below_(3) == 0)
      for (std::uint64_t n = below_(6); n > 0; --n)
        j.want_blocks.push_back(up_to_32(codec::blocks_max));
    if (coin())
      j.want_schedule = static_cast<core::schedule_kind>(1 + below_(3));
    j.want_copies = up_to_32(core::copies_max);
    j.want_copy_every = up_to_32(core::copy_every_max);
    j.done_step = up_to(core::epoch_max);
    j.changed = up_to(core::epoch_max);
    j.want_islands = below_(4) == 0 ? 1 + up_to_32(codec::islands_max - 1) : 1;
    for (std::uint64_t k = below_(4); k > 0; --k)
      j.marks.push_back({core::mark_kind(1 + below_(5)),
                         up_to_32(codec::islands_max - 1),
                         up_to(core::epoch_max), up_to(core::epoch_max)});
    for (std::uint64_t k = below_(core::versions_max + 1); k > 0; --k) {
      j.versions.push_back({up_to(core::epoch_max), {}});
      j.versions.back().manifest.fill(std::uint8_t(below_(256)));
    }
    j.submitted_ms =
      static_cast<std::int64_t>(up_to(std::uint64_t(codec::unix_ms_max)));
    j.priority = core::priority_min + static_cast<std::int32_t>(below_(201));
    return j;
  }

  core::member_id place() {
    if (v_.members.empty() || below_(8) == 0)
      return {{9, 9, 9}, up_to(core::epoch_max)};
    return v_.members[below_(v_.members.size())].id;
  }

  /// One, mostly.
  std::vector<core::shard_place> shards() {
    std::vector<core::shard_place> out{{place()}};
    while (coin())
      out.push_back({{place(), up_to_32(core::limits::devices_max - 1)}});
    return out;
  }

  core::holder_place follower(std::uint32_t units) {
    const std::uint32_t last = up_to_32(std::min(units, codec::blocks_max + 2));
    return {place(), up_to_32(last), last};
  }

  core::assignment assignment(const core::job_entry& j) {
    core::assignment a{j.id, {}};
    // As many as the job wants, mostly.
    for (std::uint64_t n = coin() ? j.want_islands : below_(3); n > 0; --n)
      a.islands.push_back(island(j));
    return a;
  }

  core::island_place island(const core::job_entry& j) {
    core::island_place a;
    a.since = up_to(v_.number);
    for (std::uint64_t r = below_(4); r > 0; --r) {
      core::replica_place& replica = a.replicas.emplace_back();
      std::uint32_t next = 0;
      for (std::uint64_t s = below_(5); s > 0; --s) {
        // In order, mostly.
        const std::uint32_t last =
          coin() ? std::min(j.blocks, next + 1 + up_to_32(j.blocks))
                 : up_to_32(codec::blocks_max);
        const std::uint32_t first =
          next <= last && coin() ? next : up_to_32(last);
        replica.stages.push_back(
          {shards(), first, last, up_to_32(codec::microbatches_max)});
        next = last;
      }
      replica.last_microbatch = up_to_32(codec::microbatches_max);
      replica.first_microbatch = up_to_32(replica.last_microbatch);
    }
    for (std::uint64_t k = below_(4); k > 0; --k)
      a.keepers.push_back(place());
    for (std::uint64_t k = below_(4); k > 0; --k)
      a.sealers.push_back(place());
    a.data_source = place();
    a.evaluator = place();
    a.checkpointer = place();
    a.reporter = place();
    a.schedule = static_cast<core::schedule_kind>(1 + below_(3));
    for (std::uint64_t k = below_(5); k > 0; --k)
      a.followers.push_back(follower(j.blocks + 2));
    a.copy_every = up_to_32(core::copy_every_max);
    for (std::uint64_t k = below_(5); k > 0; --k)
      a.arriving.push_back(follower(j.blocks + 2));
    return a;
  }

  const choice& below_;
  core::view v_;
};

} // namespace

core::view wild_view(const choice& below, std::size_t members_max) {
  return maker(below, members_max).view();
}

} // namespace shoal::tests
