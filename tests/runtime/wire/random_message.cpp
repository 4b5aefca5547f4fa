// tests/runtime/wire/random_message.cpp -- any message, from a seed.
#include "wire/random_message.hpp"

#include <algorithm>

namespace shoal::tests {

namespace cl = core::cluster;
using namespace runtime;

std::string random_message::text(std::size_t max) {
  std::string out(below(max + 1), ' ');
  for (char& c : out)
    c = static_cast<char>(' ' + below(95));
  return out;
}

std::vector<std::byte> random_message::bytes(std::size_t max) {
  std::vector<std::byte> out(below(max + 1));
  for (std::byte& b : out)
    b = static_cast<std::byte>(below(256));
  return out;
}

std::vector<std::string> random_message::texts() {
  std::vector<std::string> out(below(4));
  for (std::string& s : out)
    s = text();
  return out;
}

core::member_id random_message::member_id() {
  return {id<core::peer_id>(), number()};
}

core::device_profile random_message::device() {
  return {text(),   text(),   static_cast<std::uint32_t>(below(64)),
          number(), number(), static_cast<std::uint32_t>(below(64)),
          number(), number(), coin()};
}

core::member random_message::member() {
  core::member m;
  m.id = member_id();
  m.instance = engine_();
  m.name = text();
  m.addresses = texts();
  m.host = text();
  m.device = device();
  m.voter = coin();
  m.witness = coin();
  m.state = static_cast<core::member_state>(1 + below(3));
  m.networks = networks();
  m.roles = texts();
  return m;
}

std::vector<core::network_profile> random_message::networks() {
  std::vector<core::network_profile> out;
  for (std::size_t i = below(core::networks_max + 1); i > 0; --i)
    out.push_back(
      {text(), static_cast<core::nanoseconds>(below(1000)), number()});
  return out;
}

core::job_entry random_message::job() {
  core::job_entry j;
  j.id = engine_();
  j.name = text();
  j.state = static_cast<core::job_state>(1 + below(4));
  j.run_json = text(300);
  fill(j.data);
  j.data_bytes = number();
  fill(j.origin);
  j.origin_bytes = number();
  j.blocks = static_cast<std::uint32_t>(below(100));
  j.microbatches = static_cast<std::uint32_t>(below(100));
  j.block_flops = number();
  j.head_flops = number();
  j.block_state_bytes = number();
  j.embed_state_bytes = number();
  j.head_state_bytes = number();
  j.activation_bytes = number();
  j.boundary_bytes = number();
  j.block_traffic_bytes = number();
  j.head_traffic_bytes = number();
  j.want_replicas = static_cast<std::int32_t>(below(5)) - 1;
  j.want_stages = static_cast<std::int32_t>(below(5)) - 1;
  for (std::size_t i = below(4); i > 0; --i)
    j.want_blocks.push_back(static_cast<std::uint32_t>(below(10)));
  if (coin())
    j.want_schedule = static_cast<core::schedule_kind>(1 + below(3));
  j.want_virtual = static_cast<std::int32_t>(below(5)) - 1;
  j.want_copies = static_cast<std::uint32_t>(below(core::copies_max + 1));
  j.want_copy_every = static_cast<std::uint32_t>(below(99));
  fill(j.submitter);
  j.done_step = number();
  j.origin_step = number();
  j.changed = number();
  j.arrived = number();
  j.priority = core::priority_min + static_cast<std::int32_t>(below(201));
  j.retried = number();
  j.cause = text();
  j.submitted_ms = std::int64_t(number());
  j.user = text();
  return j;
}

core::assignment random_message::assignment() {
  core::assignment a;
  a.job = engine_();
  a.since = number();
  for (std::size_t r = below(3); r > 0; --r) {
    core::replica_place& replica = a.replicas.emplace_back();
    for (std::size_t s = below(3); s > 0; --s)
      replica.stages.push_back(
        {member_id(), 1, 3, static_cast<std::uint32_t>(below(9))});
    replica.first_microbatch = 1;
    replica.last_microbatch = 2;
  }
  for (std::size_t k = below(3); k > 0; --k)
    a.keepers.push_back(member_id());
  for (std::size_t k = below(3); k > 0; --k)
    a.sealers.push_back(member_id());
  a.data_source = member_id();
  a.evaluator = member_id();
  a.checkpointer = member_id();
  a.reporter = member_id();
  a.why_waiting = text();
  a.schedule = static_cast<core::schedule_kind>(1 + below(3));
  for (std::size_t k = below(3); k > 0; --k)
    a.followers.push_back({member_id(), 1, 4});
  a.copy_every = static_cast<std::uint32_t>(below(99));
  for (std::size_t k = below(3); k > 0; --k)
    a.arriving.push_back({member_id(), 2, 3});
  return a;
}

core::invitation random_message::invitation() {
  return {id<core::cluster_key>(), std::int64_t(number()), id<core::peer_id>()};
}

core::view random_message::view() {
  core::view v;
  fill(v.shoal);
  v.number = number();
  v.cluster = text();
  for (std::size_t i = below(5); i > 0; --i)
    v.members.push_back(member());
  std::ranges::sort(v.members, {}, &core::member::id);
  for (std::size_t i = below(3); i > 0; --i)
    v.jobs.push_back(job());
  std::ranges::sort(v.jobs, {}, &core::job_entry::id);
  for (std::size_t i = below(3); i > 0; --i)
    v.previous.push_back(assignment());
  v.planner_version = static_cast<std::uint32_t>(below(9));
  if (coin())
    v.dissolved_into = id<core::shoal_id>();
  v.dissolved_addresses = texts();
  for (std::size_t i = 1; i < v.members.size(); ++i)
    if (coin())
      v.cuts.push_back({v.members[i - 1].id, v.members[i].id});
  fill(v.key);
  for (std::size_t i = below(3); i > 0; --i)
    v.revoked.push_back(id<core::peer_id>());
  for (std::size_t i = below(3); i > 0; --i)
    v.lapsed.push_back(id<core::peer_id>());
  for (std::size_t i = below(3); i > 0; --i)
    v.invites.push_back(invitation());
  for (std::size_t i = below(3); i > 0; --i)
    v.stalled.push_back(
      {id<core::peer_id>(), static_cast<std::uint32_t>(below(99)), number()});
  for (std::size_t i = below(3); i > 0; --i)
    v.superseded.push_back({id<core::shoal_id>(), number()});
  for (std::size_t i = below(3); i > 0; --i)
    v.removed.push_back(engine_());
  return v;
}

cl::ballot random_message::ballot() {
  return {number(), id<core::peer_id>()};
}

cl::record random_message::record() {
  if (below(4) == 0) {
    cl::key_record k{id<core::cluster_key>(), {}, {}};
    for (std::size_t i = below(3); i > 0; --i)
      k.pending.push_back(id<core::cluster_key>());
    for (std::size_t i = below(3); i > 0; --i)
      k.replaced.push_back(id<core::cluster_key>());
    return k;
  }
  if (coin()) {
    cl::view_record r{view(), coin(), {}};
    for (std::size_t i = below(3); i > 0; --i)
      r.former.push_back(view());
    return r;
  }
  cl::vote_record r{id<core::shoal_id>(), number(), ballot(), ballot(), {}};
  if (coin())
    r.value = view();
  return r;
}

cl::message random_message::cluster(std::size_t kind) {
  auto shoal = id<core::shoal_id>();
  switch (kind) {
  case 0: {
    cl::hello m;
    m.cluster = text();
    m.shoal = shoal;
    m.number = number();
    m.members = 3;
    m.jobs = {number(), number()};
    m.running = 1;
    m.admissions = coin();
    m.joinable = coin();
    m.name = text();
    m.addresses = texts();
    m.key = id<core::key_digest>();
    m.replaced = {id<core::key_digest>()};
    m.superseded = {{id<core::shoal_id>(), number()}};
    m.version = text();
    return m;
  }
  case 1:
    return cl::join_request{shoal, member(), coin(), number()};
  case 2: {
    cl::join_answer m{shoal, {}, texts(), text(), coin()};
    if (coin())
      m.into = id<core::shoal_id>();
    return m;
  }
  case 3:
    return cl::heartbeat{shoal, number(), number()};
  case 4:
    return cl::heartbeat_ack{shoal, number(), number()};
  case 5:
    return cl::gossip{
      shoal,
      number(),
      {{static_cast<std::uint32_t>(below(60)), 3, 7, coin()}, {1, 2, 3, true}}};
  case 6:
    return cl::prepare{shoal, number(), ballot()};
  case 7: {
    cl::promise m{shoal, number(), ballot(), number(), ballot(), {}};
    if (coin())
      m.value = view();
    return m;
  }
  case 8:
    return cl::accept{shoal, number(), ballot(), view()};
  case 9:
    return cl::accepted{shoal, number(), ballot(), number()};
  case 10:
    return cl::refused{shoal, number(), ballot(), ballot()};
  case 11:
    return cl::decided{view()};
  case 12:
    return cl::view_request{shoal, number()};
  case 13:
    return cl::key_offer{shoal, id<core::cluster_key>()};
  case 14:
    return cl::key_held{shoal, id<core::key_digest>()};
  case 15:
    return cl::key_request{shoal, id<core::key_digest>()};
  default: {
    cl::change c;
    c.kind = static_cast<cl::change_kind>(1 + below(15));
    fill(c.key);
    fill(c.old_key);
    c.invite = invitation();
    c.job = job();
    c.id = engine_();
    c.state = static_cast<core::job_state>(1 + below(4));
    c.done_step = number();
    c.subject = member_id();
    c.device = device();
    c.addresses = texts();
    c.networks = networks();
    c.other = member_id();
    c.voter = coin();
    c.since = number();
    c.cause = text();
    return cl::change_request{shoal, c};
  }
  }
}

core::job_header random_message::header() {
  return {engine_(), engine_(), number()};
}

core::state_version random_message::version() {
  return {number(), number()};
}

core::step_record random_message::step() {
  return {version(),
          real(),
          real(),
          2,
          3,
          engine_(),
          static_cast<std::uint32_t>(below(9))};
}

core::vote random_message::vote() {
  core::vote v;
  v.on = header();
  v.step = number();
  for (std::size_t i = below(4); i > 0; --i)
    v.units.push_back({static_cast<std::uint32_t>(i), {real(), real()}});
  for (std::size_t i = below(4); i > 0; --i)
    v.losses.push_back(real());
  v.drain = coin();
  v.again = coin();
  v.busy = static_cast<core::nanoseconds>(number());
  v.elapsed = static_cast<core::nanoseconds>(number());
  v.copied = number();
  for (std::size_t i = below(4); i > 0; --i)
    v.samples.push_back(engine_());
  v.writing = coin();
  v.unable = coin();
  v.checkpoint_lag = number();
  for (std::uint32_t i = 0; i < below(4); ++i)
    v.digests.push_back({i, engine_()});
  return v;
}

core::job_message random_message::job_message(std::size_t kind) {
  core::checkpoint_ref checkpoint{number(), id<core::blob_digest>(), number()};
  switch (kind) {
  case 0:
    return vote();
  case 1: {
    core::seal s;
    s.on = header();
    for (std::uint32_t i = 0; i < below(5); ++i)
      s.units.push_back({i, version(), coin(), version(), engine_()});
    for (std::uint32_t i = 0; i < below(5); ++i)
      s.copies.push_back({i, version()});
    s.prepared = version();
    s.prepared_vote = vote();
    s.last = step();
    s.stop_step = number();
    s.evaluated = number();
    s.checkpoint = checkpoint;
    for (auto* list : {&s.older, &s.given_up, &s.heard})
      for (std::size_t i = below(3); i > 0; --i)
        list->push_back({number(), id<core::blob_digest>(), number()});
    s.known = version();
    s.top = number();
    s.unable = coin();
    s.has_blobs = coin();
    s.checkpoint_lag = number();
    s.again = coin();
    return s;
  }
  case 2:
    return core::have_blobs{header()};
  case 3:
    return core::progress{header(), step(),         real(),
                          number(), {12345, 99, 7}, std::uint32_t(below(1001))};
  case 4:
    return core::eval_result{header(), version(), real(), number()};
  case 5:
    return core::checkpoint_published{
      header(),
      checkpoint,
      number(),
      text(),
      coin(),
      id<core::peer_id>(),
      {id<core::peer_id>(), id<core::peer_id>()}};
  case 6:
    return core::have_checkpoint{header(), checkpoint, coin()};
  case 7: {
    core::shards_written w{header(), number(), {}, text(), coin()};
    for (std::uint32_t i = 0; i < below(4); ++i)
      w.shards.push_back({i, id<core::blob_digest>(), number(),
                          id<core::blob_digest>(), number()});
    return w;
  }
  case 8: {
    core::stall_report r;
    r.on = header();
    r.step = number();
    r.asks = coin();
    r.active = coin();
    r.halting = coin();
    r.loading = coin();
    r.idle = core::nanoseconds(number());
    r.budget = core::nanoseconds(number());
    r.computing = core::nanoseconds(number());
    for (std::uint64_t i = below(4); i > 0; --i)
      r.sending_to.push_back(id<core::peer_id>());
    r.where = "voting";
    r.verdict = text();
    return r;
  }
  case 9:
    return core::arrival_wanted{header(), std::uint32_t(below(99)),
                                std::uint32_t(below(4)), number()};
  case 10:
    return core::arrival_begun{header(), std::uint32_t(below(99)),
                               std::uint32_t(below(4)), version()};
  case 11:
    return core::arrival_complete{header(), number()};
  case 12:
    return core::records_wanted{header(), version()};
  case 13:
    return core::restorable{header(), checkpoint, coin()};
  case 14:
    return core::stop_waiting{header()};
  case 15:
    return core::remark{header(), number(), text(), id<core::blob_digest>(),
                        coin()};
  default:
    return core::drain_request{header()};
  }
}

client_request random_message::request(std::size_t kind) {
  client_request r;
  r.number = engine_();
  switch (kind) {
  case 0:
    r.body = ask_status{};
    break;
  case 1:
    r.body = put_begin{number()};
    break;
  case 2:
    r.body = put_chunk{engine_(), number(), bytes(2000)};
    break;
  case 3:
    r.body = put_commit{engine_(), id<core::blob_digest>()};
    break;
  case 4:
    r.body = get_blob{id<core::blob_digest>(), number(), 17};
    break;
  case 5:
    r.body = submit_job{job()};
    break;
  case 6:
    r.body = ask_events{engine_(), engine_()};
    break;
  case 7:
    r.body = stop_job{engine_(), coin()};
    break;
  case 8:
    r.body = ask_job{engine_()};
    break;
  case 9:
    r.body = leave_shoal{coin()};
    break;
  case 10:
    r.body = make_invite{static_cast<std::uint32_t>(below(10000))};
    break;
  case 11:
    r.body = use_invite{id<core::cluster_key>(), {}};
    break;
  case 12:
    r.body = revoke{text()};
    break;
  case 13:
    r.body = wait_no_longer{engine_()};
    break;
  case 14:
    r.body = offer_checkpoint{engine_(), id<core::blob_digest>(), number()};
    break;
  case 15:
    r.body = remove_job{engine_()};
    break;
  case 16:
    r.body = ask_lines{text(), engine_(),
                       static_cast<std::uint32_t>(below(reply_lines_max + 1))};
    break;
  default:
    r.body = recover_force{};
  }
  return r;
}

job_event random_message::event() {
  job_event e;
  e.kind = static_cast<job_event_kind>(1 + below(6));
  e.step = number();
  e.epoch = number();
  e.loss = real();
  e.grad_norm = real();
  e.lr = real();
  e.tokens = number();
  e.tokens_per_s = real();
  e.bubble = real();
  e.computing_s = real();
  e.reducing_s = real();
  e.peers = 4;
  e.text = text();
  e.cause = text();
  e.waits = coin();
  fill(e.digest);
  e.unix_ms = static_cast<std::int64_t>(number());
  return e;
}

client_reply random_message::reply() {
  client_reply r;
  r.number = engine_();
  r.code = static_cast<reply_code>(1 + below(4));
  r.text = text(500);
  r.value = engine_();
  fill(r.digest);
  r.bytes = bytes(2000);
  for (std::size_t i = below(4); i > 0; --i)
    r.events.push_back(event());
  r.ended = coin();
  return r;
}

envelope random_message::any(std::size_t kind) {
  if (kind < 17)
    return cluster(kind);
  kind -= 17;
  if (kind < 17)
    return job_message(kind);
  kind -= 17;
  if (kind < 18)
    return request(kind);
  switch (kind - 18) {
  case 0:
    return link_credit{{engine_(), 3, 9}, fabric_kind(1 + below(4))};
  case 1:
    return blob_request{engine_(), id<core::blob_digest>(), number(), 99};
  case 2:
    if (coin())
      return blob_chunk{engine_(), id<core::blob_digest>(), false, 0, 5000, {}};
    return blob_chunk{engine_(),  id<core::blob_digest>(), true, 5000, 17,
                      bytes(2000)};
  case 3:
    return paired_address{text(), bytes(300)};
  case 4:
    return role_message{text(), bytes(300)};
  case 5:
    return link_probe{engine_(), std::uint32_t(below(17)),
                      std::uint32_t(below(5))};
  default:
    return reply();
  }
}

} // namespace shoal::tests
