// runtime/wire/convert_view.cpp -- views and what they hold.
#include "runtime/core/cluster/membership.hpp" // limits
#include "runtime/core/shown.hpp"
#include "runtime/wire/convert.hpp"

#include <algorithm>

namespace shoal::runtime::codec {

using core::assignment;
using core::device_profile;
using core::job_entry;
using core::member;
using core::member_id;
using core::view;

void checks::text(const std::string& in, std::size_t max, std::string& out,
                  core::line_ends ends) {
  if (in.size() > max)
    return fail(errc::too_large);
  if (!core::is_shown(in, ends))
    return fail(errc::corrupt);
  out = in;
}

void checks::bytes(const std::string& in, std::size_t max,
                   std::vector<std::byte>& out) {
  if (in.size() > max)
    return fail(errc::too_large);
  auto data = reinterpret_cast<const std::byte*>(in.data());
  out.assign(data, data + in.size());
}

void put(wire::MemberId& to, const member_id& from) {
  to.set_peer(raw(from.peer));
  to.set_incarnation(from.incarnation);
}

void get(const wire::MemberId& from, member_id& to, checks& c) {
  c.id(from.peer(), to.peer);
  to.incarnation = c.at_most(from.incarnation(), epoch_max);
}

void put(wire::DeviceProfile& to, const device_profile& from) {
  to.set_kind(from.kind);
  to.set_name(from.name);
  to.set_threads(from.threads);
  to.set_mflops(from.mflops);
  to.set_memory_bytes(from.memory_bytes);
  to.set_host_threads(from.host_threads);
  to.set_stream_mbps(from.stream_mbps);
  to.set_host_memory_bytes(from.host_memory_bytes);
  to.set_memory_is_share(from.memory_is_share);
}

void get(const wire::DeviceProfile& from, device_profile& to, checks& c) {
  c.text(from.kind(), name_bytes_max, to.kind);
  c.text(from.name(), name_bytes_max, to.name);
  to.threads = c.at_most(from.threads(), threads_max);
  to.mflops = c.at_most(from.mflops(), mflops_max);
  to.memory_bytes = c.at_most(from.memory_bytes(), bytes_max);
  to.host_threads = c.at_most(from.host_threads(), threads_max);
  to.stream_mbps = c.at_most(from.stream_mbps(), mflops_max);
  to.host_memory_bytes = c.at_most(from.host_memory_bytes(), bytes_max);
  to.memory_is_share = from.memory_is_share();
}

void put(wire::NetworkProfile& to, const core::network_profile& from) {
  to.set_name(from.name);
  to.set_latency(std::uint64_t(from.latency));
  to.set_bytes_per_s(from.bytes_per_s);
}

void get(const wire::NetworkProfile& from, core::network_profile& to,
         checks& c) {
  c.text(from.name(), name_bytes_max, to.name);
  to.latency = core::nanoseconds(c.at_most(from.latency(), latency_max));
  to.bytes_per_s = c.at_most(from.bytes_per_s(), bytes_max);
}

void put(wire::Member& to, const member& from) {
  put(*to.mutable_id(), from.id);
  to.set_instance(from.instance);
  to.set_name(from.name);
  for (const std::string& a : from.addresses)
    to.add_addresses(a);
  to.set_host(from.host);
  put(*to.mutable_device(), from.device);
  to.set_voter(from.voter);
  to.set_witness(from.witness);
  to.set_state(static_cast<std::uint32_t>(from.state));
  for (const core::network_profile& n : from.networks)
    put(*to.add_networks(), n);
  for (const std::string& role : from.roles)
    to.add_roles(role);
}

void get(const wire::Member& from, member& to, checks& c) {
  get(from.id(), to.id, c);
  to.instance = from.instance();
  c.text(from.name(), name_bytes_max, to.name);
  get_addresses(from.addresses(), to.addresses, c);
  c.text(from.host(), name_bytes_max, to.host);
  get(from.device(), to.device, c);
  to.voter = from.voter();
  to.witness = from.witness();
  c.enumerator(from.state(), core::member_state::active,
               core::member_state::joining, to.state);
  if (c.list(from.networks_size(), core::networks_max))
    for (const wire::NetworkProfile& n : from.networks())
      get(n, to.networks.emplace_back(), c);
  if (c.list(from.roles_size(), core::member_roles_max))
    for (const std::string& role : from.roles())
      c.text(role, role_name_bytes_max, to.roles.emplace_back());
}

void put(wire::JobEntry& to, const job_entry& from) {
  to.set_id(from.id);
  to.set_name(from.name);
  to.set_state(static_cast<std::uint32_t>(from.state));
  to.set_run_json(from.run_json);
  to.set_data(raw(from.data));
  to.set_data_bytes(from.data_bytes);
  to.set_origin(raw(from.origin));
  to.set_origin_bytes(from.origin_bytes);
  to.set_blocks(from.blocks);
  to.set_microbatches(from.microbatches);
  to.set_block_flops(from.block_flops);
  to.set_head_flops(from.head_flops);
  to.set_block_state_bytes(from.block_state_bytes);
  to.set_embed_state_bytes(from.embed_state_bytes);
  to.set_head_state_bytes(from.head_state_bytes);
  to.set_activation_bytes(from.activation_bytes);
  to.set_want_replicas(from.want_replicas);
  to.set_want_stages(from.want_stages);
  for (std::uint32_t n : from.want_blocks)
    to.add_want_blocks(n);
  to.set_want_schedule(
    from.want_schedule ? static_cast<std::uint32_t>(*from.want_schedule) : 0);
  to.set_want_virtual(from.want_virtual);
  to.set_want_copies(from.want_copies);
  to.set_want_copy_every(from.want_copy_every);
  to.set_submitter(raw(from.submitter));
  to.set_done_step(from.done_step);
  to.set_origin_step(from.origin_step);
  to.set_changed(from.changed);
  to.set_priority(from.priority);
  to.set_retried(from.retried);
  to.set_boundary_bytes(from.boundary_bytes);
  to.set_block_traffic_bytes(from.block_traffic_bytes);
  to.set_head_traffic_bytes(from.head_traffic_bytes);
  to.set_arrived(from.arrived);
  to.set_cause(from.cause);
  to.set_submitted_ms(from.submitted_ms);
  to.set_user(from.user);
}

void get(const wire::JobEntry& from, job_entry& to, checks& c) {
  to.id = from.id();
  c.text(from.name(), name_bytes_max, to.name);
  c.enumerator(from.state(), core::job_state::running, core::job_state::failed,
               to.state);
  c.text(from.run_json(), core::cluster::run_json_bytes_max, to.run_json,
         core::line_ends::kept);
  c.id(from.data(), to.data);
  to.data_bytes = c.at_most(from.data_bytes(), bytes_max);
  c.id(from.origin(), to.origin);
  to.origin_bytes = c.at_most(from.origin_bytes(), bytes_max);
  to.blocks = c.at_most(from.blocks(), blocks_max);
  to.microbatches = c.at_most(from.microbatches(), microbatches_max);
  to.block_flops = c.at_most(from.block_flops(), flops_max);
  to.head_flops = c.at_most(from.head_flops(), flops_max);
  to.block_state_bytes = c.at_most(from.block_state_bytes(), bytes_max);
  to.embed_state_bytes = c.at_most(from.embed_state_bytes(), bytes_max);
  to.head_state_bytes = c.at_most(from.head_state_bytes(), bytes_max);
  to.activation_bytes = c.at_most(from.activation_bytes(), bytes_max);
  to.want_replicas = c.at_most(from.want_replicas(), want_replicas_max);
  to.want_stages = c.at_most(from.want_stages(), want_stages_max);
  c.require(to.want_replicas >= -1 && to.want_stages >= -1);
  if (c.list(from.want_blocks_size(), std::size_t(want_stages_max)))
    for (std::uint32_t n : from.want_blocks())
      to.want_blocks.push_back(c.at_most(n, blocks_max));
  if (from.want_schedule() != 0)
    c.enumerator(from.want_schedule(), core::schedule_kind::one_f_one_b,
                 core::schedule_kind::zero_bubble, to.want_schedule.emplace());
  to.want_virtual = c.at_most(from.want_virtual(), want_virtual_max);
  c.require(to.want_virtual >= -1);
  to.want_copies = c.at_most(from.want_copies(), core::copies_max);
  to.want_copy_every = c.at_most(from.want_copy_every(), core::copy_every_max);
  c.id(from.submitter(), to.submitter);
  to.done_step = c.at_most(from.done_step(), epoch_max);
  to.origin_step = c.at_most(from.origin_step(), epoch_max);
  to.changed = c.at_most(from.changed(), epoch_max);
  to.priority = c.at_most(from.priority(), core::priority_max);
  to.retried = c.at_most(from.retried(), epoch_max);
  c.require(to.priority >= core::priority_min);
  to.boundary_bytes = c.at_most(from.boundary_bytes(), bytes_max);
  to.block_traffic_bytes = c.at_most(from.block_traffic_bytes(), bytes_max);
  to.head_traffic_bytes = c.at_most(from.head_traffic_bytes(), bytes_max);
  to.arrived = c.at_most(from.arrived(), epoch_max);
  c.text(from.cause(), core::job_cause_bytes_max, to.cause);
  to.submitted_ms = c.at_most(from.submitted_ms(), unix_ms_max);
  c.require(to.submitted_ms >= 0);
  c.text(from.user(), core::job_user_bytes_max, to.user);
}

static void put(wire::FollowerPlace& to, const core::follower_place& from) {
  put(*to.mutable_where(), from.where);
  to.set_first_unit(from.first_unit);
  to.set_last_unit(from.last_unit);
}

static void
get(const wire::FollowerPlace& from, core::follower_place& to, checks& c) {
  get(from.where(), to.where, c);
  to.last_unit = c.at_most(from.last_unit(), blocks_max + 2);
  to.first_unit = c.at_most(from.first_unit(), from.last_unit());
}

void put(wire::Assignment& to, const assignment& from) {
  to.set_job(from.job);
  to.set_since(from.since);
  for (const core::replica_place& r : from.replicas) {
    wire::ReplicaPlace& replica = *to.add_replicas();
    for (const core::stage_place& s : r.stages) {
      wire::StagePlace& stage = *replica.add_stages();
      put(*stage.mutable_where(), s.where);
      stage.set_first_block(s.first_block);
      stage.set_last_block(s.last_block);
      stage.set_kept_max(s.kept_max);
    }
    replica.set_first_microbatch(r.first_microbatch);
    replica.set_last_microbatch(r.last_microbatch);
  }
  for (const member_id& keeper : from.keepers)
    put(*to.add_keepers(), keeper);
  for (const member_id& sealer : from.sealers)
    put(*to.add_sealers(), sealer);
  put(*to.mutable_data_source(), from.data_source);
  put(*to.mutable_evaluator(), from.evaluator);
  put(*to.mutable_checkpointer(), from.checkpointer);
  put(*to.mutable_reporter(), from.reporter);
  to.set_why_waiting(core::shown(from.why_waiting, text_bytes_max));
  to.set_schedule(static_cast<std::uint32_t>(from.schedule));
  for (const core::follower_place& f : from.followers)
    put(*to.add_followers(), f);
  to.set_copy_every(from.copy_every);
  for (const core::follower_place& f : from.arriving)
    put(*to.add_arriving(), f);
}

static void
get(const wire::ReplicaPlace& from, core::replica_place& to, checks& c) {
  if (c.list(from.stages_size(), stages_max))
    for (const wire::StagePlace& s : from.stages()) {
      core::stage_place& stage = to.stages.emplace_back();
      get(s.where(), stage.where, c);
      stage.last_block = c.at_most(s.last_block(), blocks_max);
      stage.first_block = c.at_most(s.first_block(), s.last_block());
      stage.kept_max = c.at_most(s.kept_max(), microbatches_max);
    }
  to.last_microbatch = c.at_most(from.last_microbatch(), microbatches_max);
  to.first_microbatch =
    c.at_most(from.first_microbatch(), from.last_microbatch());
}

void get(const wire::Assignment& from, assignment& to, checks& c) {
  to.job = from.job();
  to.since = c.at_most(from.since(), epoch_max);
  if (c.list(from.replicas_size(), replicas_max))
    for (const wire::ReplicaPlace& r : from.replicas())
      get(r, to.replicas.emplace_back(), c);
  if (c.list(from.keepers_size(), core::cluster::members_max))
    for (const wire::MemberId& keeper : from.keepers())
      get(keeper, to.keepers.emplace_back(), c);
  if (c.list(from.sealers_size(), core::cluster::members_max))
    for (const wire::MemberId& sealer : from.sealers())
      get(sealer, to.sealers.emplace_back(), c);
  get(from.data_source(), to.data_source, c);
  get(from.evaluator(), to.evaluator, c);
  get(from.checkpointer(), to.checkpointer, c);
  get(from.reporter(), to.reporter, c);
  c.text(from.why_waiting(), text_bytes_max, to.why_waiting);
  if (from.schedule() != 0) // views kept from before there were several
    c.enumerator(from.schedule(), core::schedule_kind::one_f_one_b,
                 core::schedule_kind::zero_bubble, to.schedule);
  if (c.list(from.followers_size(), core::followers_max))
    for (const wire::FollowerPlace& f : from.followers())
      get(f, to.followers.emplace_back(), c);
  to.copy_every = c.at_most(from.copy_every(), core::copy_every_max);
  if (c.list(from.arriving_size(), core::followers_max))
    for (const wire::FollowerPlace& f : from.arriving())
      get(f, to.arriving.emplace_back(), c);
}

void put(wire::Invitation& to, const core::invitation& from) {
  to.set_key(raw(from.key));
  to.set_expires_s(from.expires_s);
  to.set_used_by(raw(from.used_by));
}

void get(const wire::Invitation& from, core::invitation& to, checks& c) {
  c.id(from.key(), to.key);
  to.expires_s = from.expires_s();
  c.id(from.used_by(), to.used_by);
}

void put(wire::SupersededShoal& to, const core::superseded_shoal& from) {
  to.set_shoal(raw(from.shoal));
  to.set_number(from.number);
}

void get(const wire::SupersededShoal& from, core::superseded_shoal& to,
         checks& c) {
  c.id(from.shoal(), to.shoal);
  to.number = c.at_most(from.number(), epoch_max);
}

void put(wire::View& to, const view& from) {
  to.set_shoal(raw(from.shoal));
  to.set_number(from.number);
  to.set_cluster(from.cluster);
  for (const member& m : from.members)
    put(*to.add_members(), m);
  for (const job_entry& job : from.jobs)
    put(*to.add_jobs(), job);
  for (const assignment& a : from.previous)
    put(*to.add_previous(), a);
  to.set_planner_version(from.planner_version);
  if (from.dissolved_into)
    to.set_dissolved_into(raw(*from.dissolved_into));
  for (const std::string& a : from.dissolved_addresses)
    to.add_dissolved_addresses(a);
  for (const core::cut_pair& cut : from.cuts) {
    wire::CutPair& pair = *to.add_cuts();
    put(*pair.mutable_low(), cut.low);
    put(*pair.mutable_high(), cut.high);
  }
  to.set_key(raw(from.key));
  for (const core::peer_id& id : from.revoked)
    to.add_revoked(raw(id));
  for (const core::peer_id& id : from.lapsed)
    to.add_lapsed(raw(id));
  for (const core::invitation& i : from.invites)
    put(*to.add_invites(), i);
  for (const core::stalled_peer& s : from.stalled) {
    wire::StalledPeer& stalled = *to.add_stalled();
    stalled.set_peer(raw(s.peer));
    stalled.set_times(s.times);
    stalled.set_since(s.since);
  }
  for (const core::superseded_shoal& s : from.superseded)
    put(*to.add_superseded(), s);
  for (core::job_id job : from.removed)
    to.add_removed(job);
}

void get(const wire::View& from, view& to, checks& c) {
  using core::cluster::jobs_max;
  c.id(from.shoal(), to.shoal);
  to.number = c.at_most(from.number(), epoch_max);
  c.text(from.cluster(), name_bytes_max, to.cluster);
  if (c.list(from.members_size(), core::cluster::members_max))
    for (const wire::Member& m : from.members())
      get(m, to.members.emplace_back(), c);
  if (c.list(from.jobs_size(), jobs_max))
    for (const wire::JobEntry& job : from.jobs())
      get(job, to.jobs.emplace_back(), c);
  if (c.list(from.previous_size(), jobs_max))
    for (const wire::Assignment& a : from.previous())
      get(a, to.previous.emplace_back(), c);
  to.planner_version = from.planner_version();
  if (from.has_dissolved_into())
    c.id(from.dissolved_into(), to.dissolved_into.emplace());
  get_addresses(from.dissolved_addresses(), to.dissolved_addresses, c);
  if (c.list(from.cuts_size(), core::cluster::cuts_max))
    for (const wire::CutPair& pair : from.cuts()) {
      core::cut_pair& cut = to.cuts.emplace_back();
      get(pair.low(), cut.low, c);
      get(pair.high(), cut.high, c);
    }
  for (std::size_t i = 1; i < to.cuts.size(); ++i) // V-4
    c.require(to.cuts[i - 1] < to.cuts[i]);
  for (const core::cut_pair& cut : to.cuts)
    for (const core::member_id& end : {cut.low, cut.high}) {
      const core::member* m = find_member(to, end.peer);
      c.require(cut.low.peer < cut.high.peer && m != nullptr && m->id == end);
    }
  get_id_or_zero(from.key(), to.key, c);
  get_ids(from.revoked(), core::cluster::revoked_max, to.revoked, c);
  get_ids(from.lapsed(), core::cluster::lapsed_max, to.lapsed, c);
  if (c.list(from.invites_size(), core::cluster::invites_max))
    for (const wire::Invitation& i : from.invites())
      get(i, to.invites.emplace_back(), c);
  if (c.list(from.stalled_size(), core::cluster::stalled_max))
    for (const wire::StalledPeer& s : from.stalled()) {
      core::stalled_peer& stalled = to.stalled.emplace_back();
      c.id(s.peer(), stalled.peer);
      stalled.times = c.at_most(s.times(), core::cluster::stall_times_max);
      stalled.since = c.at_most(s.since(), epoch_max);
    }
  if (c.list(from.superseded_size(), core::cluster::superseded_max))
    for (const wire::SupersededShoal& s : from.superseded())
      get(s, to.superseded.emplace_back(), c);
  if (c.list(from.removed_size(), core::cluster::jobs_removed_max))
    to.removed.assign(from.removed().begin(), from.removed().end());
  for (std::size_t i = 1; i < to.members.size(); ++i) // V-1
    c.require(to.members[i - 1].id.peer < to.members[i].id.peer);
  for (std::size_t i = 1; i < to.jobs.size(); ++i) // V-2
    c.require(to.jobs[i - 1].id < to.jobs[i].id);
}

} // namespace shoal::runtime::codec
