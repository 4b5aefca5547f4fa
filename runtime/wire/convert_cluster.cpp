// runtime/wire/convert_cluster.cpp -- what cluster cores say, and records.
#include "runtime/core/cluster/membership.hpp" // limits
#include "runtime/wire/convert.hpp"

namespace shoal::runtime::codec {

namespace cl = core::cluster;

static void put(wire::Ballot& to, const cl::ballot& from) {
  to.set_round(from.round);
  to.set_proposer(raw(from.proposer));
}

static void get(const wire::Ballot& from, cl::ballot& to, checks& c) {
  to.round = c.at_most(from.round(), epoch_max);
  c.id(from.proposer(), to.proposer);
}

static void put(wire::ClusterMessage& out, const cl::hello& from) {
  wire::Hello& to = *out.mutable_hello();
  to.set_cluster(from.cluster);
  to.set_shoal(raw(from.shoal));
  to.set_number(from.number);
  to.set_members(from.members);
  for (core::job_id id : from.jobs)
    to.add_jobs(id);
  to.set_running(from.running);
  to.set_admissions(from.admissions);
  to.set_joinable(from.joinable);
  to.set_name(from.name);
  for (const std::string& a : from.addresses)
    to.add_addresses(a);
  to.set_key(raw(from.key));
  for (const core::key_digest& key : from.replaced)
    to.add_replaced(raw(key));
  for (const core::superseded_shoal& s : from.superseded)
    put(*to.add_superseded(), s);
  to.set_version(from.version);
}

static void get(const wire::Hello& from, cl::hello& to, checks& c) {
  c.text(from.cluster(), name_bytes_max, to.cluster);
  c.id(from.shoal(), to.shoal);
  to.number = c.at_most(from.number(), epoch_max);
  to.members = from.members();
  if (c.list(from.jobs_size(), cl::jobs_max))
    to.jobs.assign(from.jobs().begin(), from.jobs().end());
  to.running = from.running();
  to.admissions = from.admissions();
  to.joinable = from.joinable();
  c.text(from.name(), name_bytes_max, to.name);
  get_addresses(from.addresses(), to.addresses, c);
  get_id_or_zero(from.key(), to.key, c);
  get_ids(from.replaced(), cl::keys_replaced_max, to.replaced, c);
  if (c.list(from.superseded_size(), cl::superseded_max))
    for (const wire::SupersededShoal& s : from.superseded())
      get(s, to.superseded.emplace_back(), c);
  c.text(from.version(), version_bytes_max, to.version);
}

static void put(wire::ClusterMessage& out, const cl::join_request& from) {
  wire::JoinRequest& to = *out.mutable_join_request();
  to.set_shoal(raw(from.shoal));
  put(*to.mutable_draft(), from.draft);
  to.set_seated(from.seated);
  to.set_floor(from.floor);
}

static void
get(const wire::JoinRequest& from, cl::join_request& to, checks& c) {
  c.id(from.shoal(), to.shoal);
  get(from.draft(), to.draft, c);
  to.seated = from.seated();
  to.floor = c.at_most(from.floor(), epoch_max);
}

static void put(wire::ClusterMessage& out, const cl::join_answer& from) {
  wire::JoinAnswer& to = *out.mutable_join_answer();
  to.set_shoal(raw(from.shoal));
  if (from.into)
    to.set_into(raw(*from.into));
  for (const std::string& a : from.addresses)
    to.add_addresses(a);
  to.set_reason(core::shown(from.reason, text_bytes_max));
  to.set_later(from.later);
}

static void get(const wire::JoinAnswer& from, cl::join_answer& to, checks& c) {
  c.id(from.shoal(), to.shoal);
  if (from.has_into())
    c.id(from.into(), to.into.emplace());
  get_addresses(from.addresses(), to.addresses, c);
  c.text(from.reason(), text_bytes_max, to.reason);
  to.later = from.later();
}

template <class Wire, class Beat>
static void put_beat(Wire& to, const Beat& from) {
  to.set_shoal(raw(from.shoal));
  to.set_number(from.number);
  to.set_sequence(from.sequence);
}

template <class Wire, class Beat>
static void get_beat(const Wire& from, Beat& to, checks& c) {
  c.id(from.shoal(), to.shoal);
  to.number = c.at_most(from.number(), epoch_max);
  to.sequence = from.sequence();
}

static void put(wire::ClusterMessage& out, const cl::heartbeat& from) {
  put_beat(*out.mutable_heartbeat(), from);
}
static void get(const wire::Heartbeat& from, cl::heartbeat& to, checks& c) {
  get_beat(from, to, c);
}
static void put(wire::ClusterMessage& out, const cl::heartbeat_ack& from) {
  put_beat(*out.mutable_heartbeat_ack(), from);
}
static void
get(const wire::HeartbeatAck& from, cl::heartbeat_ack& to, checks& c) {
  get_beat(from, to, c);
}

static void put(wire::ClusterMessage& out, const cl::gossip& from) {
  wire::Gossip& to = *out.mutable_gossip();
  to.set_shoal(raw(from.shoal));
  to.set_number(from.number);
  for (const cl::alert_note& note : from.alerts) {
    wire::AlertNote& n = *to.add_alerts();
    n.set_watcher(note.watcher);
    n.set_subject(note.subject);
    n.set_stamp(note.stamp);
    n.set_suspected(note.suspected);
  }
}

static void get(const wire::Gossip& from, cl::gossip& to, checks& c) {
  constexpr std::uint32_t last = cl::members_max - 1;
  c.id(from.shoal(), to.shoal);
  to.number = c.at_most(from.number(), epoch_max);
  if (c.list(from.alerts_size(), cl::notes_max))
    for (const wire::AlertNote& n : from.alerts())
      to.alerts.push_back({c.at_most(n.watcher(), last),
                           c.at_most(n.subject(), last), n.stamp(),
                           n.suspected()});
}

/// The fields that all messages of one ballot share.
template <class Wire, class Message>
static void put_ballot(Wire& to, const Message& from) {
  to.set_shoal(raw(from.shoal));
  to.set_base(from.base);
  put(*to.mutable_ballot(), from.ballot);
}

template <class Wire, class Message>
static void get_ballot(const Wire& from, Message& to, checks& c) {
  c.id(from.shoal(), to.shoal);
  to.base = c.at_most(from.base(), epoch_max);
  get(from.ballot(), to.ballot, c);
}

static void put(wire::ClusterMessage& out, const cl::prepare& from) {
  put_ballot(*out.mutable_prepare(), from);
}
static void get(const wire::Prepare& from, cl::prepare& to, checks& c) {
  get_ballot(from, to, c);
}

static void put(wire::ClusterMessage& out, const cl::promise& from) {
  wire::Promise& to = *out.mutable_promise();
  put_ballot(to, from);
  to.set_incarnation(from.incarnation);
  put(*to.mutable_accepted(), from.accepted);
  if (from.value)
    put(*to.mutable_value(), *from.value);
}

static void get(const wire::Promise& from, cl::promise& to, checks& c) {
  get_ballot(from, to, c);
  to.incarnation = c.at_most(from.incarnation(), epoch_max);
  get(from.accepted(), to.accepted, c);
  if (from.has_value())
    get(from.value(), to.value.emplace(), c);
}

static void put(wire::ClusterMessage& out, const cl::accept& from) {
  wire::Accept& to = *out.mutable_accept();
  put_ballot(to, from);
  put(*to.mutable_value(), from.value);
}

static void get(const wire::Accept& from, cl::accept& to, checks& c) {
  get_ballot(from, to, c);
  get(from.value(), to.value, c);
}

static void put(wire::ClusterMessage& out, const cl::accepted& from) {
  wire::Accepted& to = *out.mutable_accepted();
  put_ballot(to, from);
  to.set_incarnation(from.incarnation);
}

static void get(const wire::Accepted& from, cl::accepted& to, checks& c) {
  get_ballot(from, to, c);
  to.incarnation = c.at_most(from.incarnation(), epoch_max);
}

static void put(wire::ClusterMessage& out, const cl::refused& from) {
  wire::Refused& to = *out.mutable_refused();
  put_ballot(to, from);
  put(*to.mutable_promised(), from.promised);
}

static void get(const wire::Refused& from, cl::refused& to, checks& c) {
  get_ballot(from, to, c);
  get(from.promised(), to.promised, c);
}

static void put(wire::ClusterMessage& out, const cl::decided& from) {
  put(*out.mutable_decided()->mutable_value(), from.value);
}
static void get(const wire::Decided& from, cl::decided& to, checks& c) {
  get(from.value(), to.value, c);
}

static void put(wire::ClusterMessage& out, const cl::view_request& from) {
  out.mutable_view_request()->set_shoal(raw(from.shoal));
  out.mutable_view_request()->set_number(from.number);
}

static void
get(const wire::ViewRequest& from, cl::view_request& to, checks& c) {
  c.id(from.shoal(), to.shoal);
  to.number = c.at_most(from.number(), epoch_max);
}

static void put(wire::ClusterMessage& out, const cl::change_request& from) {
  wire::ChangeRequest& request = *out.mutable_change_request();
  request.set_shoal(raw(from.shoal));
  wire::Change& to = *request.mutable_what();
  to.set_kind(static_cast<std::uint32_t>(from.what.kind));
  put(*to.mutable_job(), from.what.job);
  to.set_id(from.what.id);
  to.set_state(static_cast<std::uint32_t>(from.what.state));
  to.set_done_step(from.what.done_step);
  put(*to.mutable_subject(), from.what.subject);
  put(*to.mutable_device(), from.what.device);
  for (const std::string& a : from.what.addresses)
    to.add_addresses(a);
  for (const core::network_profile& n : from.what.networks)
    put(*to.add_networks(), n);
  put(*to.mutable_other(), from.what.other);
  to.set_voter(from.what.voter);
  to.set_key(raw(from.what.key));
  to.set_old_key(raw(from.what.old_key));
  if (from.what.invite != core::invitation{})
    put(*to.mutable_invite(), from.what.invite);
  to.set_since(from.what.since);
  to.set_afresh(from.what.afresh);
  to.set_cause(from.what.cause);
}

static void
get(const wire::ChangeRequest& request, cl::change_request& out, checks& c) {
  c.id(request.shoal(), out.shoal);
  const wire::Change& from = request.what();
  cl::change& to = out.what;
  c.enumerator(from.kind(), cl::change_kind::submit_job,
               cl::change_kind::remove_job, to.kind);
  get(from.job(), to.job, c);
  to.id = from.id();
  c.enumerator(from.state(), core::job_state::running, core::job_state::failed,
               to.state);
  to.done_step = c.at_most(from.done_step(), epoch_max);
  get(from.subject(), to.subject, c);
  get(from.device(), to.device, c);
  get_addresses(from.addresses(), to.addresses, c);
  if (c.list(from.networks_size(), core::networks_max))
    for (const wire::NetworkProfile& n : from.networks())
      get(n, to.networks.emplace_back(), c);
  get(from.other(), to.other, c);
  to.voter = from.voter();
  get_id_or_zero(from.key(), to.key, c);
  get_id_or_zero(from.old_key(), to.old_key, c);
  if (from.has_invite())
    get(from.invite(), to.invite, c);
  to.since = c.at_most(from.since(), epoch_max);
  to.afresh = from.afresh();
  c.text(from.cause(), core::job_cause_bytes_max, to.cause);
}

static void put(wire::ClusterMessage& out, const cl::key_offer& from) {
  out.mutable_key_offer()->set_shoal(raw(from.shoal));
  out.mutable_key_offer()->set_key(raw(from.key));
}
static void put(wire::ClusterMessage& out, const cl::key_held& from) {
  out.mutable_key_held()->set_shoal(raw(from.shoal));
  out.mutable_key_held()->set_key(raw(from.key));
}
static void put(wire::ClusterMessage& out, const cl::key_request& from) {
  out.mutable_key_request()->set_shoal(raw(from.shoal));
  out.mutable_key_request()->set_key(raw(from.key));
}

/// The three messages about keys have the same fields.
template <class Wire, class Message>
static void get_key(const Wire& from, Message& to, checks& c) {
  c.id(from.shoal(), to.shoal);
  c.id(from.key(), to.key);
}

void put(wire::ClusterMessage& to, const cl::message& from) {
  std::visit([&](const auto& what) { put(to, what); }, from);
}

void get(const wire::ClusterMessage& from, cl::message& to, checks& c) {
  using wire_message = wire::ClusterMessage;
  switch (from.body_case()) {
  case wire_message::kHello:
    return get(from.hello(), to.emplace<cl::hello>(), c);
  case wire_message::kJoinRequest:
    return get(from.join_request(), to.emplace<cl::join_request>(), c);
  case wire_message::kJoinAnswer:
    return get(from.join_answer(), to.emplace<cl::join_answer>(), c);
  case wire_message::kHeartbeat:
    return get(from.heartbeat(), to.emplace<cl::heartbeat>(), c);
  case wire_message::kHeartbeatAck:
    return get(from.heartbeat_ack(), to.emplace<cl::heartbeat_ack>(), c);
  case wire_message::kGossip:
    return get(from.gossip(), to.emplace<cl::gossip>(), c);
  case wire_message::kPrepare:
    return get(from.prepare(), to.emplace<cl::prepare>(), c);
  case wire_message::kPromise:
    return get(from.promise(), to.emplace<cl::promise>(), c);
  case wire_message::kAccept:
    return get(from.accept(), to.emplace<cl::accept>(), c);
  case wire_message::kAccepted:
    return get(from.accepted(), to.emplace<cl::accepted>(), c);
  case wire_message::kRefused:
    return get(from.refused(), to.emplace<cl::refused>(), c);
  case wire_message::kDecided:
    return get(from.decided(), to.emplace<cl::decided>(), c);
  case wire_message::kViewRequest:
    return get(from.view_request(), to.emplace<cl::view_request>(), c);
  case wire_message::kChangeRequest:
    return get(from.change_request(), to.emplace<cl::change_request>(), c);
  case wire_message::kKeyOffer:
    return get_key(from.key_offer(), to.emplace<cl::key_offer>(), c);
  case wire_message::kKeyHeld:
    return get_key(from.key_held(), to.emplace<cl::key_held>(), c);
  case wire_message::kKeyRequest:
    return get_key(from.key_request(), to.emplace<cl::key_request>(), c);
  case wire_message::BODY_NOT_SET:
    break;
  }
  c.fail(errc::unknown);
}

static void put(wire::Record& out, const cl::view_record& from) {
  wire::ViewRecord& to = *out.mutable_view();
  put(*to.mutable_current(), from.current);
  to.set_seated(from.seated);
  for (const core::view& v : from.former)
    put(*to.add_former(), v);
}

static void put(wire::Record& out, const cl::vote_record& from) {
  wire::VoteRecord& to = *out.mutable_vote();
  to.set_shoal(raw(from.shoal));
  to.set_base(from.base);
  put(*to.mutable_promised(), from.promised);
  put(*to.mutable_accepted(), from.accepted);
  if (from.value)
    put(*to.mutable_value(), *from.value);
}

static void put(wire::Record& out, const cl::key_record& from) {
  wire::KeyRecord& to = *out.mutable_keys();
  to.set_current(raw(from.current));
  for (const core::cluster_key& key : from.pending)
    to.add_pending(raw(key));
  for (const core::cluster_key& key : from.replaced)
    to.add_replaced(raw(key));
}

void put(wire::Record& to, const cl::record& from) {
  std::visit([&](const auto& what) { put(to, what); }, from);
}

void get(const wire::Record& from, cl::record& out, checks& c) {
  if (from.has_view()) {
    auto& to = out.emplace<cl::view_record>();
    get(from.view().current(), to.current, c);
    to.seated = from.view().seated();
    if (c.list(from.view().former_size(), cl::former_max))
      for (const wire::View& v : from.view().former())
        get(v, to.former.emplace_back(), c);
  } else if (from.has_vote()) {
    auto& to = out.emplace<cl::vote_record>();
    c.id(from.vote().shoal(), to.shoal);
    to.base = c.at_most(from.vote().base(), epoch_max);
    get(from.vote().promised(), to.promised, c);
    get(from.vote().accepted(), to.accepted, c);
    if (from.vote().has_value())
      get(from.vote().value(), to.value.emplace(), c);
  } else if (from.has_keys()) {
    auto& to = out.emplace<cl::key_record>();
    c.id(from.keys().current(), to.current);
    get_ids(from.keys().pending(), cl::keys_pending_max, to.pending, c);
    get_ids(from.keys().replaced(), cl::keys_replaced_max, to.replaced, c);
  } else {
    c.fail(errc::unknown);
  }
}

} // namespace shoal::runtime::codec
