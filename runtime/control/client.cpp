// runtime/control/client.cpp -- the command line's side of a node.
#include "runtime/control/client.hpp"

#include "runtime/control/client_keys.hpp"
#include "runtime/control/client_session.hpp"
#include "runtime/control/client_text.hpp"
#include "runtime/control/missed_events.hpp"
#include "runtime/files/sha256.hpp"

#include <algorithm>
#include <set>
#include <thread>

namespace shoal::runtime {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Between two questions about something that is not ready.
static constexpr milliseconds pause{100};
/// How often a follower asks where else the shoal can be reached.
static constexpr milliseconds refresh_period{5000};
/// A blob is given up when its next piece has not come within this time.
static constexpr milliseconds blob_patience{60000};

class client::impl : public client_session {
public:
  using client_session::client_session;

  std::error_code
  begin_upload(std::uint64_t total, const std::function<bool()>& goes_on,
               client_reply& reply);
  std::error_code put(const std::function<std::size_t(std::span<std::byte>)>&,
                      std::uint64_t total, const core::blob_digest& digest,
                      const std::function<bool()>& goes_on);
  /// What other nodes know of the steps after `last` and before `next`.
  std::vector<job_event> missed(core::job_id job, std::uint64_t last,
                                std::uint64_t next, follow_handler& watcher);

  std::set<std::string> silent_;          ///< others who gave no missed events
  bool lacked_ = false;                   ///< some were asked for
  bool forgot_ = false;                   ///< see forgot_oldest()
  std::function<bool(std::size_t)> sent_; ///< see watch_uploads()
  std::uint64_t expected_ = 0; ///< bytes, behind the upload under way
};

std::vector<job_event>
client::impl::missed(core::job_id job, std::uint64_t last, std::uint64_t next,
                     follow_handler& watcher) {
  missed_events out(job, last, next);
  lacked_ = true;
  for (const std::string& other : others()) {
    if (silent_.contains(other) || watcher.stops())
      continue;
    const way ask_other = way_to(other);
    if (!ask_other)
      silent_.insert(other);
    else
      out.read([&](const ask_events& what, client_reply& reply) {
        if (watcher.stops())
          return false;
        const bool answered = ask_other(what, reply);
        if (!answered)
          silent_.insert(other);
        return answered;
      });
    if (out.complete())
      break;
  }
  return out.take();
}

/// Until a disk without room is asked again: the node passes on what it has.
static constexpr milliseconds room_again_after{200};

std::error_code client::impl::begin_upload(std::uint64_t total,
                                           const std::function<bool()>& goes_on,
                                           client_reply& reply) {
  for (;;) {
    if (auto error = ask(put_begin{total, expected_}, reply))
      return error;
    if (reply.code != reply_code::again_later)
      return {};
    if (!goes_on || !goes_on())
      return fail(errc::refused, reply.text);
    std::this_thread::sleep_for(room_again_after);
  }
}

std::error_code
client::impl::put(const std::function<std::size_t(std::span<std::byte>)>& read,
                  std::uint64_t total, const core::blob_digest& digest,
                  const std::function<bool()>& goes_on) {
  expected_ -= std::min(expected_, total);
  client_reply reply;
  if (auto error = begin_upload(total, goes_on, reply))
    return error;
  std::uint64_t upload = reply.value;
  std::uint64_t offset = 0;
  while (offset < total) {
    put_chunk chunk{upload, offset, {}};
    chunk.bytes.resize(
      std::min<std::uint64_t>(blob_chunk_bytes_max, total - offset));
    std::size_t n = read(chunk.bytes);
    if (n != chunk.bytes.size())
      return fail(errc::corrupt, "the file has become shorter");
    offset += n;
    if (sent_ && !sent_(n))
      return fail(std::make_error_code(std::errc::operation_canceled),
                  "the upload was ended before all was sent: nothing runs");
    if (auto error = ask(std::move(chunk), reply))
      return error;
  }
  return ask(put_commit{upload, digest}, reply);
}

client::client(client_config config)
  : impl_(std::make_unique<impl>(std::move(config))) {
}

client::~client() = default;

std::error_code client::connect() {
  if (const std::string why = named_key_fault(impl_->config()); !why.empty())
    return impl_->fail(make_error_code(std::errc::invalid_argument), why);
  if (auto error = impl_->connect(false))
    return error;
  // A node that has too many clients says so to the first question.
  const auto error = impl_->learn();
  if (error == errc::timed_out)
    return impl_->fail(
      {}, silent_node_text(impl_->where(), impl_->config().timeout));
  return error == errc::refused ? error : std::error_code{};
}

void client::ask_of(std::string member) {
  impl_->ask_of(std::move(member));
}

std::error_code client::status(std::string& json) {
  client_reply reply;
  if (auto error = impl_->ask(ask_status{}, reply))
    return error;
  impl_->learn_from(reply.text);
  json = std::move(reply.text);
  return {};
}

void client::watch_uploads(std::function<bool(std::size_t)> sent) {
  impl_->sent_ = std::move(sent);
}

void client::expect_uploads(std::uint64_t bytes) {
  impl_->expected_ = bytes;
}

std::error_code
client::put_blob(std::span<const std::byte> bytes, core::blob_digest& digest) {
  const model::file_piece piece(bytes);
  return put_pieces({&piece, 1}, digest);
}

std::error_code client::put_pieces(std::span<const model::file_piece> pieces,
                                   core::blob_digest& digest,
                                   const std::function<bool()>& goes_on) {
  const auto hashed = model::sha256_joined(pieces);
  if (!hashed)
    return impl_->fail(errc::corrupt, hashed.message());
  digest = *hashed;
  model::piece_reader reader(pieces);
  std::string wrong;
  const auto error = impl_->put(
    [&](std::span<std::byte> out) {
      const auto got = reader.read(out);
      if (!got)
        wrong = got.message();
      return got ? *got : 0;
    },
    model::bytes_of(pieces), digest, goes_on);
  return wrong.empty() ? error : impl_->fail(errc::corrupt, wrong);
}

std::error_code client::get_blob(
  const core::blob_digest& digest,
  const std::function<std::error_code(std::span<const std::byte>)>& piece,
  const std::function<bool()>& goes_on) {
  std::uint64_t offset = 0;
  sha256_hash hash;
  auto until = steady_clock::now() + blob_patience;
  for (;;) {
    if (goes_on && !goes_on())
      return impl_->fail(std::make_error_code(std::errc::operation_canceled),
                         "the fetch was ended");
    client_reply reply;
    struct get_blob request {
      digest, offset, blob_chunk_bytes_max
    };
    if (auto error = impl_->ask(request, reply)) {
      bool gone = error == errc::lost || error == errc::timed_out;
      if (gone && impl_->move(until))
        continue;
      return error;
    }
    if (reply.code == reply_code::again_later) {
      if (steady_clock::now() >= until)
        return impl_->fail(errc::timed_out,
                           "the blob does not come: " + reply.text);
      std::this_thread::sleep_for(pause);
      continue;
    }
    hash.add(reply.bytes);
    if (auto error = piece(reply.bytes))
      return impl_->fail(error, "cannot write the blob: " + error.message());
    offset += reply.bytes.size();
    if (offset >= reply.value)
      break;
    if (reply.bytes.empty())
      return impl_->fail(errc::corrupt, "the node sends an empty piece");
    until = steady_clock::now() + blob_patience;
  }
  if (hash.finish() != digest)
    return impl_->fail(errc::corrupt, "the blob's bytes differ from its name");
  return {};
}

std::error_code client::submit(core::job_entry job, core::job_id& id,
                               const std::function<bool()>& goes_on) {
  client_reply reply;
  const auto error = impl_->ask(submit_job{std::move(job)}, reply, goes_on);
  if (error == errc::lost || error == errc::timed_out)
    return impl_->fail(error, impl_->text() + may_have_job_text);
  if (!error)
    id = reply.value;
  return error;
}

std::error_code client::events(core::job_id job, std::uint64_t& next,
                               std::vector<job_event>& out) {
  client_reply reply;
  if (auto error = impl_->ask(ask_events{job, next}, reply))
    return error;
  next = reply.value;
  out = std::move(reply.events);
  return {};
}

std::error_code client::follow(core::job_id job, follow_handler& watcher,
                               const follow_from& from, milliseconds patience) {
  std::uint64_t next = 0, old = from.old;
  std::set<event_key> seen;
  /// Of those that were handed over.
  std::optional<std::uint64_t> last_step = from.origin;
  bool has_steps = false;
  auto hand_over = [&](const job_event& e) {
    if (!seen.insert(key_of(e)).second)
      return true;
    if (e.kind == job_event_kind::step) {
      last_step = e.step;
      has_steps = true;
    }
    return watcher.on(e) && e.kind != job_event_kind::done;
  };
  bool up_to_date = false;
  const auto has_read_to = [&](std::uint64_t position) {
    if (position >= old && !std::exchange(up_to_date, true))
      watcher.up_to_date();
  };
  // At once: a node that had just been started knew only itself.
  auto refresh = steady_clock::now();
  for (;;) {
    if (watcher.stops())
      return {};
    client_reply reply;
    const std::uint64_t asked_from = next;
    if (auto error = impl_->ask(ask_events{job, next}, reply)) {
      if (error == errc::refused || error == errc::not_found)
        return error;
      const std::string before = impl_->where();
      impl_->silent_.clear();
      if (!impl_->move(steady_clock::now() + patience, [&watcher] {
            return watcher.stops() || watcher.lost();
          }))
        return watcher.stops()
                 ? std::error_code{}
                 : impl_->fail(
                   errc::no_node,
                   gone_node_text(
                     before, impl_->refusing(),
                     std::chrono::ceil<std::chrono::seconds>(patience)
                       .count()));
      next = old = 0; // positions are those of one node
      watcher.moved();
      continue;
    }
    next = reply.value;
    std::uint64_t position = next - reply.events.size();
    if (asked_from == 0 && position > 0 && !has_steps) {
      last_step.reset(); // logs have a limit: others lack the oldest, too
      impl_->forgot_ = true;
    }
    for (const job_event& e : reply.events) {
      has_read_to(position++);
      // A node that was out for a while lacks what was said meanwhile.
      const bool done = e.kind == job_event_kind::done;
      if (done ? e.step > last_step.value_or(0)
               : e.kind == job_event_kind::step && last_step
                   && e.step > *last_step + 1) {
        // A node that joined during the job lacks its beginning and not its end.
        const bool lacked = impl_->lacked_ || done || has_steps;
        const auto all = impl_->missed(job, last_step.value_or(0),
                                       e.step + (done ? 1 : 0), watcher);
        impl_->lacked_ = lacked;
        for (const job_event& m : all)
          if (!hand_over(m))
            return {};
      }
      if (!hand_over(e))
        return {};
      if (up_to_date && e.kind == job_event_kind::view) // of other members
        refresh = {};
    }
    has_read_to(next);
    if (reply.ended)
      return {};
    if (steady_clock::now() >= refresh) {
      (void)impl_->learn();
      refresh = steady_clock::now() + refresh_period;
    }
  }
}

std::error_code client::stop_job(core::job_id job, bool drain) {
  client_reply reply;
  struct stop_job request {
    job, drain
  };
  return impl_->ask(request, reply);
}

std::error_code client::remove_job(core::job_id job) {
  client_reply reply;
  struct remove_job request {
    job
  };
  return impl_->ask(request, reply);
}

std::error_code
client::lines(std::uint64_t& next, std::uint32_t count, std::string& json) {
  client_reply reply;
  if (auto error = impl_->ask(ask_lines{next, count}, reply))
    return error;
  json = std::move(reply.text);
  next = reply.value;
  return {};
}

std::error_code
client::job(core::job_id job, std::string& json, std::uint64_t& next) {
  client_reply reply;
  if (auto error = impl_->ask(ask_job{job}, reply))
    return error;
  json = std::move(reply.text);
  next = reply.value;
  return {};
}

std::error_code client::leave(bool drain) {
  client_reply reply;
  return impl_->ask(leave_shoal{drain}, reply);
}

std::error_code client::recover_force() {
  client_reply reply;
  struct recover_force request;
  return impl_->ask(request, reply);
}

std::error_code client::wait_no_longer(core::job_id job) {
  client_reply reply;
  struct wait_no_longer request {
    job
  };
  return impl_->ask(request, reply);
}

std::error_code
client::offer_checkpoint(core::job_id job, const core::blob_digest& manifest,
                         std::uint64_t step) {
  client_reply reply;
  struct offer_checkpoint request {
    job, manifest, step
  };
  return impl_->ask(request, reply);
}

std::error_code client::invite(std::uint32_t seconds, std::string& token) {
  client_reply reply;
  if (auto error = impl_->ask(make_invite{seconds}, reply))
    return error;
  token = std::move(reply.text);
  return {};
}

std::error_code
client::find_to_revoke(const std::string& peer, std::string& found) {
  client_reply reply;
  if (auto error = impl_->ask(runtime::revoke{peer, true}, reply))
    return error;
  found = std::move(reply.text);
  return {};
}

std::error_code client::revoke(const std::string& peer, std::string& id) {
  client_reply reply;
  if (auto error = impl_->ask(runtime::revoke{peer, false}, reply))
    return error;
  id = std::move(reply.text);
  return {};
}

const std::string& client::text() const noexcept {
  return impl_->text();
}

bool client::forgot_oldest() const noexcept {
  return impl_->forgot_;
}

bool client::lacked_steps() const noexcept {
  return impl_->lacked_;
}

const std::vector<std::string>& client::addresses() const noexcept {
  return impl_->addresses();
}

const std::string& client::where() const noexcept {
  return impl_->where();
}

} // namespace shoal::runtime
