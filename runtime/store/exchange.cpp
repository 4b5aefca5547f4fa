// runtime/store/exchange.cpp -- fetches, their holders, and serving blobs.
#include "runtime/store/exchange.hpp"

#include "runtime/core/errc.hpp"
#include "runtime/store/blob_server.hpp"
#include "runtime/store/fetching.hpp"
#include "runtime/store/wrong_blobs.hpp"
#include "runtime/work/device_queue.hpp"
#include "runtime/work/serial.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <random>
#include <utility>

namespace shoal::runtime {

namespace {

using core::blob_digest;
using core::peer_id;

struct state : std::enable_shared_from_this<state> {
  state(store& b, device_queue& d, blob_sender& s)
    : blobs(b), disk(d), sender(s), server(b, d, s) {}

  void fetch(fetch_ptr f);
  void begin_waiting();
  void go_on(const fetch_ptr& f);
  bool ask(fetching& f);
  void expect(const fetching& f, const blob_request& request);
  void came(const blob_digest& digest, const blob_request& request,
            blob_links::piece bytes, std::error_code error);
  void forget_requests(fetching& f);
  void take_begun(const fetch_ptr& f);
  void restart(fetching& f);
  std::size_t window_of(const peer_id& holder) const;
  void answered_after(const peer_id& holder, core::nanoseconds took);
  void next_holder(const fetch_ptr& f, std::error_code why);
  void chunk(const peer_id& from, blob_chunk c);
  std::error_code check(const fetching& f, const blob_request& asked_for,
                        const blob_chunk& c) const;
  void write_arrived(const fetch_ptr& f);
  void written(const fetch_ptr& f, std::uint64_t attempt, std::error_code why);
  void commit(const fetch_ptr& f);
  void finish(const fetch_ptr& f, std::error_code result);
  void ask_whether(question q);
  void answered(std::uint64_t number, bool yes);
  void peer_down(const peer_id& peer);
  void tick(core::nanoseconds time);
  void close();
  blob_exchange::queues queues() const;

  /// For work that may end after the exchange.
  blob_server::poster to_server() {
    return [here = weak_from_this()](blob_server::event e) {
      if (const auto s = here.lock())
        s->post([e = std::move(e)](state& me) { e(me.server); });
    };
  }

  template <class Event>
  void post(Event e) {
    const auto keep = shared_from_this();
    events.post([s = keep.get(), e = std::move(e)]() mutable { e(*s); });
  }

  store& blobs;
  device_queue& disk;
  blob_sender& sender;
  serial events;
  bool closed = false;
  core::nanoseconds now = 0;
  std::uint64_t numbers = 0;
  /// Chunks in flight of one fetch from this holder; none: the first one.
  std::map<peer_id, std::size_t> windows;
  std::map<blob_digest, fetch_ptr> running;
  std::deque<fetch_ptr> waiting;
  blob_server server;
  wrong_blobs wrong;
  blob_links* links = nullptr;
  /// The plans of its transfers: no two exchanges use the same.
  std::mt19937_64 plans{std::random_device{}()};
  std::map<std::uint64_t, question> questions;
  std::atomic<std::uint64_t> moved_bytes{0};
};

void state::fetch(fetch_ptr f) {
  if (closed)
    return f->done.front()(std::make_error_code(std::errc::operation_canceled));
  if (blobs.contains(f->digest))
    return f->done.front()({});
  std::erase_if(f->holders,
                [&](const peer_id& p) { return wrong.given_up(p); });
  const auto same = [&](const fetch_ptr& w) { return w->digest == f->digest; };
  const auto found = running.find(f->digest);
  const auto queued = std::find_if(waiting.begin(), waiting.end(), same);
  const auto& other = found != running.end()    ? found->second
                      : queued != waiting.end() ? *queued
                                                : f;
  if (other != f) {
    if (other->done.size() >= blob_exchange::joined_max)
      return f->done.front()(errc::too_large);
    other->done.push_back(std::move(f->done.front()));
    for (const auto& holder : f->holders)
      if (std::find(other->holders.begin(), other->holders.end(), holder)
            == other->holders.end()
          && other->holders.size() < blob_exchange::holders_max)
        other->holders.push_back(holder);
    return;
  }
  if (waiting.size() >= blob_exchange::waiting_max
      || f->given.value_or(0) > store::blob_bytes_max)
    return f->done.front()(errc::too_large);
  waiting.push_back(std::move(f));
  begin_waiting();
}

void state::begin_waiting() {
  while (!waiting.empty() && running.size() < blob_exchange::fetches_max) {
    const auto f = waiting.front();
    waiting.pop_front();
    running.emplace(f->digest, f);
    if (f->holders.empty()) {
      finish(f, errc::not_found);
      continue;
    }
    restart(*f);
    if (blobs.begun(f->digest) > 0)
      take_begun(f);
    else
      go_on(f);
  }
}

/// Continues where an earlier fetch stopped.
void state::take_begun(const fetch_ptr& f) {
  f->at_disk = true;
  disk.submit([blobs = &blobs, digest = f->digest, writer = f->writer](
                kernels::backend&) { *writer = blobs->go_on(digest); },
              [s = shared_from_this(), f] {
                s->post([f](state& me) {
                  const auto found = me.running.find(f->digest);
                  if (found == me.running.end() || found->second != f)
                    return;
                  f->at_disk = false;
                  if (*f->writer) {
                    f->goes_on = true;
                    f->next = f->written = (*f->writer)->written();
                    if (f->total && f->written > *f->total)
                      me.restart(*f);
                  }
                  me.go_on(f);
                });
              });
}

/// What is on its way for them is void.
void state::forget_requests(fetching& f) {
  const bool by_link = std::ranges::any_of(
    f.in_flight, [](const auto& a) { return a.second.request.plan != 0; });
  f.in_flight.clear();
  if (by_link)
    links->cancel(f.plan);
  f.plan = 0;
}

/// Starts again at the first byte.
void state::restart(fetching& f) {
  ++f.attempt;
  f.total = f.given;
  f.next = 0;
  f.written = 0;
  f.on_disk = 0;
  f.goes_on = false;
  forget_requests(f);
  f.arrived.clear();
  f.writer = std::make_shared<std::unique_ptr<blob_writer>>();
}

void state::go_on(const fetch_ptr& f) {
  if (f->at_disk)
    return;
  if (f->total && f->written == *f->total) {
    if (f->on_disk == 0)
      commit(f);
  } else if (!ask(*f)) {
    next_holder(f, errc::lost);
  }
}

std::size_t state::window_of(const peer_id& holder) const {
  const auto at = windows.find(holder);
  return at == windows.end() ? 1 : at->second;
}

/// What waits for a slow link keeps the signs of life waiting behind it, too.
void state::answered_after(const peer_id& holder, core::nanoseconds took) {
  std::size_t& window = windows.try_emplace(holder, 1).first->second;
  if (took > blob_exchange::answer_slow)
    window = std::max<std::size_t>(1, window / 2);
  else if (took < blob_exchange::answer_slow / 2)
    window = std::min(blob_exchange::window, window + 1);
}

/// Fills the window with requests. @returns false if the holder is unreachable.
bool state::ask(fetching& f) {
  const auto more = [&] {
    if (!f.total) // one chunk, to learn the size
      return f.in_flight.empty();
    return f.next < *f.total
           && f.in_flight.size() + f.arrived.size() + f.on_disk
                < window_of(f.holders[f.holder]);
  };
  while (more()) {
    // To continue a blob, first only its size: it may be smaller than that.
    const bool by_link = f.total && links != nullptr;
    auto bytes = f.goes_on && !f.total ? 0
                 : by_link             ? blob_exchange::piece_bytes
                                       : blob_exchange::chunk_bytes;
    const auto offset = f.total || !f.goes_on ? f.next : 0;
    if (f.total)
      bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(bytes, *f.total - f.next));
    while (by_link && f.plan == 0)
      f.plan = blob_plan(plans());
    const blob_request request{
      ++numbers, f.digest, offset, bytes, by_link ? f.plan : 0, 0};
    f.in_flight.emplace(
      request.number,
      asked{request, now + blob_exchange::request_timeout, 1, now});
    f.next += bytes;
    if (by_link) // before it is asked for
      expect(f, request);
    const auto error = sender.send_request(f.holders[f.holder], request);
    if (error == transport::errc::peer_lost)
      return false;
  }
  return true;
}

void state::expect(const fetching& f, const blob_request& request) {
  auto bytes = std::make_shared<std::vector<std::byte>>(request.bytes);
  links->expect(f.holders[f.holder], request.plan,
                std::uint32_t(request.number), bytes,
                [here = weak_from_this(), digest = f.digest, request,
                 bytes](std::error_code error) {
                  if (const auto s = here.lock())
                    s->post([digest, request, bytes, error](state& me) {
                      me.came(digest, request, bytes, error);
                    });
                });
}

/// A piece has come over a link, or cannot.
void state::came(const blob_digest& digest, const blob_request& request,
                 blob_links::piece bytes, std::error_code error) {
  const auto found = running.find(digest);
  if (closed || found == running.end())
    return;
  const auto f = found->second;
  const auto at = f->in_flight.find(request.number);
  if (at == f->in_flight.end() || at->second.request.plan != request.plan)
    return; // of an earlier holder
  if (error)
    return next_holder(f, errc::lost);
  answered_after(f->holders[f->holder], now - at->second.asked_at);
  f->in_flight.erase(at);
  moved_bytes += bytes->size();
  f->arrived.emplace(request.offset, std::move(bytes));
  write_arrived(f);
  go_on(f);
}

void state::next_holder(const fetch_ptr& f, std::error_code why) {
  if (!f->error || f->error == errc::not_found || why == errc::corrupt)
    f->error = why;
  for (;;) {
    forget_requests(*f);
    f->arrived.clear();
    f->next = f->written;
    ++f->holder;
    if (f->holder == f->holders.size()) {
      if (f->alone || !f->doubted)
        return finish(f, f->error);
      f->alone = true;
      f->holder = 0;
    }
    if (f->alone)
      restart(*f);
    if (ask(*f))
      return;
    if (f->error == errc::not_found)
      f->error = errc::lost;
  }
}

std::error_code state::check(const fetching& f, const blob_request& asked_for,
                             const blob_chunk& c) const {
  if (!c.found)
    return errc::not_found;
  if (asked_for.plan != 0) // the bytes were to come over a link
    return errc::corrupt;
  if (c.total_bytes > store::blob_bytes_max)
    return errc::too_large;
  if (f.total && *f.total != c.total_bytes)
    return errc::corrupt;
  if (c.offset != asked_for.offset || c.total_bytes < c.offset)
    return errc::corrupt;
  const auto bytes =
    std::min<std::uint64_t>(asked_for.bytes, c.total_bytes - c.offset);
  if (c.bytes.size() != bytes)
    return errc::corrupt;
  return {};
}

/// For no bytes of it: the holder answers with its size.
void state::ask_whether(question q) {
  if (closed || questions.size() >= blob_exchange::waiting_max)
    return q.done(false);
  const blob_request request{++numbers, q.is.request.digest,    0, 0,
                             0,         q.is.request.pledged_to};
  q.is = {request, now + blob_exchange::request_timeout, 1, now};
  const peer_id peer = q.peer;
  questions.emplace(request.number, std::move(q));
  if (sender.send_request(peer, request) == transport::errc::peer_lost)
    answered(request.number, false);
}

void state::answered(std::uint64_t number, bool yes) {
  if (auto q = questions.extract(number))
    q.mapped().done(yes);
}

void state::chunk(const peer_id& from, blob_chunk c) {
  if (const auto q = questions.find(c.number);
      q != questions.end() && q->second.peer == from
      && q->second.is.request.digest == c.digest)
    return answered(c.number, c.found);
  const auto found = running.find(c.digest);
  if (closed || found == running.end())
    return;
  const auto f = found->second;
  const auto request = f->in_flight.find(c.number);
  if (request == f->in_flight.end() || f->holders[f->holder] != from)
    return; // late, or from a peer that was not asked
  if (const auto error = check(*f, request->second.request, c)) {
    f->doubted |= error == errc::corrupt;
    return next_holder(f, error);
  }
  answered_after(from, now - request->second.asked_at);
  f->in_flight.erase(request);
  moved_bytes += c.bytes.size();
  if (!f->total) {
    f->total = c.total_bytes;
    f->next = f->written + c.bytes.size();
    if (f->next > c.total_bytes) // the earlier bytes are not of this blob
      restart(*f);
  }
  if (!c.bytes.empty())
    f->arrived.emplace(
      c.offset, std::make_shared<std::vector<std::byte>>(std::move(c.bytes)));
  write_arrived(f);
  go_on(f);
}

void state::write_arrived(const fetch_ptr& f) {
  for (auto at = f->arrived.begin();
       at != f->arrived.end() && at->first == f->written;
       at = f->arrived.erase(at)) {
    f->written += at->second->size();
    ++f->on_disk;
    auto bytes = std::move(at->second);
    auto result = std::make_shared<std::error_code>();
    disk.submit(
      [blobs = &blobs, digest = f->digest, writer = f->writer, bytes,
       result](kernels::backend&) {
        if (!*writer)
          *writer = blobs->write_of(digest);
        *result = (*writer)->append(*bytes);
      },
      [s = shared_from_this(), f, attempt = f->attempt, result] {
        s->post(
          [f, attempt, result](state& me) { me.written(f, attempt, *result); });
      });
  }
}

void state::written(const fetch_ptr& f, std::uint64_t attempt,
                    std::error_code why) {
  const auto found = running.find(f->digest);
  if (found == running.end() || found->second != f || attempt != f->attempt)
    return;
  --f->on_disk;
  if (why)
    return finish(f, why); // another holder does not give us a larger disk
  go_on(f);
}

void state::commit(const fetch_ptr& f) {
  f->at_disk = true;
  auto result = std::make_shared<std::error_code>();
  disk.submit(
    [blobs = &blobs, writer = f->writer, result,
     digest = f->digest](kernels::backend&) {
      if (!*writer) // the blob is empty
        *writer = blobs->write_of(digest);
      core::blob_digest real;
      *result = (*writer)->commit(real, digest);
    },
    [s = shared_from_this(), f, result] {
      s->post([f, result](state& me) {
        const auto found = me.running.find(f->digest);
        if (found == me.running.end() || found->second != f)
          return;
        f->at_disk = false;
        if (*result != errc::corrupt)
          return me.finish(f, *result);
        if (!f->goes_on && (f->alone || f->holders.size() == 1))
          me.wrong.add(f->holders[f->holder], f->digest, me.sender);
        if (f->goes_on) { // the earlier bytes may be at fault
          me.restart(*f);
          return me.go_on(f);
        }
        if (!f->alone && f->holders.size() > 1) {
          f->doubted = true;
          f->holder = f->holders.size() - 1; // the second round begins
        }
        me.next_holder(f, errc::corrupt);
      });
    });
}

void state::finish(const fetch_ptr& f, std::error_code result) {
  running.erase(f->digest);
  forget_requests(*f);
  f->arrived.clear();
  f->writer = nullptr;
  const auto list = std::exchange(f->done, {});
  for (const auto& done : list)
    done(result);
  begin_waiting();
}

void state::peer_down(const peer_id& peer) {
  windows.erase(peer);
  server.peer_down(peer);
  std::vector<std::uint64_t> unanswered;
  for (const auto& [number, q] : questions)
    if (q.peer == peer)
      unanswered.push_back(number);
  for (const std::uint64_t number : unanswered)
    answered(number, false);
  std::vector<fetch_ptr> hit;
  for (const auto& [digest, f] : running)
    if (!f->at_disk && f->holders[f->holder] == peer
        && !(f->total && f->written == *f->total))
      hit.push_back(f);
  for (const auto& f : hit)
    next_holder(f, errc::lost);
}

void state::tick(core::nanoseconds time) {
  now = time;
  server.tick(now);
  std::vector<std::uint64_t> unanswered;
  for (auto& [number, q] : questions) {
    if (now < q.is.deadline)
      continue;
    q.is.deadline = now + blob_exchange::request_timeout;
    if (++q.is.tries > blob_exchange::tries_max)
      unanswered.push_back(number);
    else
      (void)sender.send_request(q.peer, q.is.request);
  }
  for (const std::uint64_t number : unanswered)
    answered(number, false);
  std::vector<fetch_ptr> silent;
  for (const auto& [digest, f] : running) {
    bool given_up = false;
    for (auto& [number, a] : f->in_flight) {
      if (now < a.deadline)
        continue;
      given_up |= ++a.tries > blob_exchange::tries_max;
      a.deadline = now + blob_exchange::request_timeout;
      if (!given_up)
        (void)sender.send_request(f->holders[f->holder], a.request);
    }
    if (given_up)
      silent.push_back(f);
  }
  for (const auto& f : silent)
    next_holder(f, errc::timed_out);
}

void state::close() {
  closed = true;
  server.close();
  const auto now_waiting = std::exchange(waiting, {});
  const auto now_running = std::exchange(running, {});
  while (!questions.empty())
    answered(questions.begin()->first, false);
  const auto why = std::make_error_code(std::errc::operation_canceled);
  for (const auto& [digest, f] : now_running)
    finish(f, why);
  for (const auto& f : now_waiting)
    finish(f, why);
}

blob_exchange::queues state::queues() const {
  blob_exchange::queues now_is;
  now_is.fetches = running.size();
  now_is.waiting = waiting.size();
  for (const auto& [digest, f] : running) {
    now_is.joined = std::max(now_is.joined, f->done.size());
    now_is.fetched_chunks =
      std::max(now_is.fetched_chunks,
               f->in_flight.size() + f->arrived.size() + f->on_disk);
  }
  for (const auto& f : waiting)
    now_is.joined = std::max(now_is.joined, f->done.size());
  now_is.served = server.most_served();
  return now_is;
}

class exchange final : public blob_exchange {
public:
  exchange(store& blobs, device_queue& disk, blob_sender& sender)
    : state_(std::make_shared<state>(blobs, disk, sender)) {}
  ~exchange() override { close(); }

  void use_links(blob_links& links) override {
    state_->post([links = &links](state& s) {
      s.links = links;
      s.server.use_links(*links);
    });
  }
  void fetch(const blob_digest& digest, std::optional<std::uint64_t> bytes,
             std::vector<peer_id> holders, callback done) override {
    if (holders.size() > holders_max)
      holders.resize(holders_max);
    auto f = std::make_shared<fetching>();
    f->digest = digest;
    f->given = bytes;
    f->holders = std::move(holders);
    f->done.push_back(std::move(done));
    state_->post([f](state& s) { s.fetch(f); });
  }
  void has(const blob_digest& digest, core::job_id job, const peer_id& peer,
           std::function<void(bool)> done) override {
    question q{peer, {}, std::move(done)};
    q.is.request.digest = digest;
    q.is.request.pledged_to = job;
    state_->post([q](state& s) { s.ask_whether(q); });
  }
  void
  request_received(const peer_id& from, const blob_request& request) override {
    state_->post([from, request](state& s) {
      s.server.serve(from, request, s.to_server());
    });
  }
  void chunk_received(const peer_id& from, blob_chunk chunk) override {
    auto c = std::make_shared<blob_chunk>(std::move(chunk));
    state_->post([from, c](state& s) { s.chunk(from, std::move(*c)); });
  }
  void peer_down(const peer_id& peer) override {
    state_->post([peer](state& s) { s.peer_down(peer); });
  }
  std::uint64_t moved_bytes() const override {
    return state_->moved_bytes + state_->server.moved_bytes();
  }
  void tick(core::nanoseconds now) override {
    state_->post([now](state& s) { s.tick(now); });
  }
  void list_queues(std::function<void(blob_exchange::queues)> then) override {
    state_->post([then = std::move(then)](state& s) { then(s.queues()); });
  }
  void close() override {
    const auto keep = state_;
    keep->events.run([s = keep.get()] { s->close(); });
  }

private:
  std::shared_ptr<state> state_;
};

} // namespace

std::unique_ptr<blob_exchange>
make_blob_exchange(store& blobs, device_queue& disk, blob_sender& sender) {
  return std::make_unique<exchange>(blobs, disk, sender);
}

} // namespace shoal::runtime
