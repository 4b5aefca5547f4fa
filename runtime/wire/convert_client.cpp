// runtime/wire/convert_client.cpp -- what a command line asks and is told.
#include "runtime/wire/convert.hpp"

namespace shoal::runtime::codec {

static void put(wire::ClientRequest& to, const ask_status&) {
  to.mutable_ask_status();
}
static void put(wire::ClientRequest& to, const put_begin& from) {
  to.mutable_put_begin()->set_total_bytes(from.total_bytes);
}
static void put(wire::ClientRequest& to, const put_chunk& from) {
  to.mutable_put_chunk()->set_upload(from.upload);
  to.mutable_put_chunk()->set_offset(from.offset);
  to.mutable_put_chunk()->set_bytes(from.bytes.data(), from.bytes.size());
}
static void put(wire::ClientRequest& to, const put_commit& from) {
  to.mutable_put_commit()->set_upload(from.upload);
  to.mutable_put_commit()->set_digest(raw(from.digest));
}
static void put(wire::ClientRequest& to, const get_blob& from) {
  to.mutable_get_blob()->set_digest(raw(from.digest));
  to.mutable_get_blob()->set_offset(from.offset);
  to.mutable_get_blob()->set_bytes(from.bytes);
}
static void put(wire::ClientRequest& to, const submit_job& from) {
  put(*to.mutable_submit_job()->mutable_job(), from.job);
}
static void put(wire::ClientRequest& to, const ask_events& from) {
  to.mutable_ask_events()->set_job(from.job);
  to.mutable_ask_events()->set_from(from.from);
}
static void put(wire::ClientRequest& to, const stop_job& from) {
  to.mutable_stop_job()->set_job(from.job);
  to.mutable_stop_job()->set_drain(from.drain);
}
static void put(wire::ClientRequest& to, const recover_force&) {
  to.mutable_recover_force();
}
static void put(wire::ClientRequest& to, const wait_no_longer& from) {
  to.mutable_wait_no_longer()->set_job(from.job);
}
static void put(wire::ClientRequest& to, const offer_checkpoint& from) {
  to.mutable_offer_checkpoint()->set_job(from.job);
  to.mutable_offer_checkpoint()->set_manifest(raw(from.manifest));
  to.mutable_offer_checkpoint()->set_step(from.step);
}
static void put(wire::ClientRequest& to, const ask_job& from) {
  to.mutable_ask_job()->set_job(from.job);
}
static void put(wire::ClientRequest& to, const leave_shoal& from) {
  to.mutable_leave_shoal()->set_drain(from.drain);
}
static void put(wire::ClientRequest& to, const remove_job& from) {
  to.mutable_remove_job()->set_job(from.job);
}
static void put(wire::ClientRequest& to, const ask_lines& from) {
  to.mutable_ask_lines()->set_from(from.from);
  to.mutable_ask_lines()->set_lines(from.lines);
}
static void put(wire::ClientRequest& to, const make_invite& from) {
  to.mutable_make_invite()->set_seconds(from.seconds);
}
static void put(wire::ClientRequest& to, const use_invite& from) {
  to.mutable_use_invite()->set_token(raw(from.token));
}
static void put(wire::ClientRequest& to, const revoke& from) {
  to.mutable_revoke()->set_peer(core::shown(from.peer, name_bytes_max));
}

void put(wire::ClientRequest& to, const client_request& from) {
  to.set_number(from.number);
  to.set_peer(core::shown(from.peer, name_bytes_max));
  std::visit([&](const auto& what) { put(to, what); }, from.body);
}

static void get(const wire::PutChunk& from, put_chunk& to, checks& c) {
  to.upload = from.upload();
  to.offset = c.at_most(from.offset(), bytes_max);
  c.bytes(from.bytes(), blob_chunk_bytes_max, to.bytes);
}

static void get(const wire::GetBlob& from, get_blob& to, checks& c) {
  c.id(from.digest(), to.digest);
  to.offset = c.at_most(from.offset(), bytes_max);
  to.bytes = c.at_most(from.bytes(), std::uint32_t{blob_chunk_bytes_max});
}

static void get(const wire::AskLines& from, ask_lines& to, checks& c) {
  to.from = from.from();
  to.lines = c.at_most(from.lines(), std::uint32_t{reply_lines_max});
}

void get(const wire::ClientRequest& from, client_request& to, checks& c) {
  to.number = from.number();
  c.text(from.peer(), name_bytes_max, to.peer);
  switch (from.body_case()) {
  case wire::ClientRequest::kAskStatus:
    to.body.emplace<ask_status>();
    return;
  case wire::ClientRequest::kPutBegin:
    to.body.emplace<put_begin>().total_bytes =
      c.at_most(from.put_begin().total_bytes(), bytes_max);
    return;
  case wire::ClientRequest::kPutChunk:
    return get(from.put_chunk(), to.body.emplace<put_chunk>(), c);
  case wire::ClientRequest::kPutCommit: {
    auto& body = to.body.emplace<put_commit>();
    body.upload = from.put_commit().upload();
    return c.id(from.put_commit().digest(), body.digest);
  }
  case wire::ClientRequest::kGetBlob:
    return get(from.get_blob(), to.body.emplace<get_blob>(), c);
  case wire::ClientRequest::kSubmitJob:
    return get(from.submit_job().job(), to.body.emplace<submit_job>().job, c);
  case wire::ClientRequest::kAskEvents: {
    auto& body = to.body.emplace<ask_events>();
    body.job = from.ask_events().job();
    body.from = from.ask_events().from();
    return;
  }
  case wire::ClientRequest::kStopJob: {
    auto& body = to.body.emplace<stop_job>();
    body.job = from.stop_job().job();
    body.drain = from.stop_job().drain();
    return;
  }
  case wire::ClientRequest::kRecoverForce:
    to.body.emplace<recover_force>();
    return;
  case wire::ClientRequest::kWaitNoLonger:
    to.body.emplace<wait_no_longer>().job = from.wait_no_longer().job();
    return;
  case wire::ClientRequest::kOfferCheckpoint: {
    auto& body = to.body.emplace<offer_checkpoint>();
    body.job = from.offer_checkpoint().job();
    body.step = c.at_most(from.offer_checkpoint().step(), epoch_max);
    return c.id(from.offer_checkpoint().manifest(), body.manifest);
  }
  case wire::ClientRequest::kAskJob:
    to.body.emplace<ask_job>().job = from.ask_job().job();
    return;
  case wire::ClientRequest::kLeaveShoal:
    to.body.emplace<leave_shoal>().drain = from.leave_shoal().drain();
    return;
  case wire::ClientRequest::kRemoveJob:
    to.body.emplace<remove_job>().job = from.remove_job().job();
    return;
  case wire::ClientRequest::kAskLines:
    return get(from.ask_lines(), to.body.emplace<ask_lines>(), c);
  case wire::ClientRequest::kMakeInvite:
    to.body.emplace<make_invite>().seconds =
      c.at_most(from.make_invite().seconds(), invite_seconds_max);
    return;
  case wire::ClientRequest::kUseInvite:
    return c.id(from.use_invite().token(), to.body.emplace<use_invite>().token);
  case wire::ClientRequest::kRevoke:
    return c.text(from.revoke().peer(), name_bytes_max,
                  to.body.emplace<revoke>().peer);
  case wire::ClientRequest::BODY_NOT_SET:
    break;
  }
  c.fail(errc::unknown);
}

static void put(wire::JobEvent& to, const job_event& from) {
  to.set_kind(static_cast<std::uint32_t>(from.kind));
  to.set_step(from.step);
  to.set_epoch(from.epoch);
  to.set_loss(from.loss);
  to.set_grad_norm(from.grad_norm);
  to.set_data(from.data);
  to.set_lr(from.lr);
  to.set_tokens(from.tokens);
  to.set_tokens_per_s(from.tokens_per_s);
  to.set_peers(from.peers);
  to.set_text(
    core::shown(from.text, event_text_bytes_max, core::line_ends::kept));
  to.set_digest(raw(from.digest));
  to.set_unix_ms(from.unix_ms);
  to.set_bubble(from.bubble);
  to.set_computing_s(from.computing_s);
  to.set_reducing_s(from.reducing_s);
  to.set_cause(core::shown(from.cause, core::job_cause_bytes_max));
  to.set_waits(from.waits);
}

static void get(const wire::JobEvent& from, job_event& to, checks& c) {
  c.enumerator(from.kind(), job_event_kind::step, job_event_kind::done,
               to.kind);
  to.step = from.step();
  to.epoch = from.epoch();
  to.loss = from.loss();
  to.grad_norm = from.grad_norm();
  to.data = from.data();
  to.lr = from.lr();
  to.tokens = from.tokens();
  to.tokens_per_s = from.tokens_per_s();
  to.peers = from.peers();
  c.text(from.text(), event_text_bytes_max, to.text, core::line_ends::kept);
  c.id(from.digest(), to.digest);
  to.unix_ms = from.unix_ms();
  to.bubble = from.bubble();
  to.computing_s = from.computing_s();
  to.reducing_s = from.reducing_s();
  c.text(from.cause(), core::job_cause_bytes_max, to.cause);
  to.waits = from.waits();
}

void put(wire::ClientReply& to, const client_reply& from) {
  to.set_number(from.number);
  to.set_code(static_cast<std::uint32_t>(from.code));
  to.set_text(core::shown(from.text, status_bytes_max, core::line_ends::kept));
  to.set_value(from.value);
  to.set_digest(raw(from.digest));
  to.set_bytes(from.bytes.data(), from.bytes.size());
  for (const job_event& event : from.events)
    put(*to.add_events(), event);
  to.set_ended(from.ended);
}

void get(const wire::ClientReply& from, client_reply& to, checks& c) {
  to.number = from.number();
  c.enumerator(from.code(), reply_code::ok, reply_code::again_later, to.code);
  c.text(from.text(), status_bytes_max, to.text, core::line_ends::kept);
  to.value = from.value();
  c.id(from.digest(), to.digest);
  c.bytes(from.bytes(), blob_chunk_bytes_max, to.bytes);
  if (c.list(from.events_size(), reply_events_max))
    for (const wire::JobEvent& event : from.events())
      get(event, to.events.emplace_back(), c);
  to.ended = from.ended();
}

} // namespace shoal::runtime::codec
