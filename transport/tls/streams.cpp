// transport/tls/streams.cpp -- the sockets that carry bulk.
#include "transport/tls/engine.hpp"

#include <algorithm>

namespace shoal::transport::tls {
namespace {

/// A stream may be pushed out while strangers flood admission: it is dialled
/// again, after a pause that grows by this.
constexpr std::chrono::milliseconds stream_pause{50};
/// After this many failures the peer counts as lost. All pauses together: 2.75
/// s.
constexpr int stream_failures_max = 10;

} // namespace

void engine::want_streams(const peer_ptr& p) {
  if (p->connections.empty() || std::exchange(p->streams_wanted, true))
    return;
  for (const auto& c : p->connections)
    if (c->dialled())
      return dial_streams(p, settings.bulk_streams);
  const auto first = p->connections.front();
  first->ask_for_streams(settings.bulk_streams);
}

void engine::streams_asked(const std::shared_ptr<connection>& c,
                           std::size_t count) {
  if (c->owner && c->dialled())
    dial_streams(c->owner, count);
}

void engine::dial_streams(const peer_ptr& p, std::size_t count) {
  while (p->streams_dialled < std::min<std::size_t>(count, streams_max))
    dial_stream(p, ++p->streams_dialled);
}

void engine::dial_stream(const peer_ptr& p, std::size_t number) {
  for (const auto& other : p->connections) {
    if (!other->dialled())
      continue;
    boost::system::error_code gone;
    const auto where = other->socket().remote_endpoint(gone);
    if (gone)
      return; // the loss of the peer is on its way
    const auto c = std::make_shared<connection>(
      *this, p, static_cast<std::uint8_t>(number), to_string(where));
    unopened_.insert(c);
    c->start_deadline();
    return resolved(c, {where});
  }
}

bool engine::stream_opened(const std::shared_ptr<connection>& c,
                           const peer_info& info) {
  const auto found = find(info.id);
  if (!found || found->info.instance != info.instance
      || (c->dialled() && c->target.lock() != found)
      || found->streams.size() >= std::size_t{2} * streams_max) {
    c->fail(errc::refused, "a stream of a peer that is not up");
    return false;
  }
  ++open_;
  c->owner = found;
  c->place = found->streams.size();
  found->streams.push_back(c);
  found->stream_failures = 0;
  return true;
}

void engine::stream_ended(const std::shared_ptr<connection>& c) {
  const auto p = c->target.lock();
  if (!p || find(p->info.id) != p)
    return;
  if (++p->stream_failures > stream_failures_max)
    return lose(p, errc::unreachable, errc::peer_lost);
  const auto timer = std::make_shared<asio::steady_timer>(io);
  timer->expires_after(p->stream_failures * stream_pause);
  timer->async_wait(
    [this, timer, number = c->stream(), to = c->target](auto canceled) {
      const auto still = to.lock();
      if (!canceled && still && find(still->info.id) == still)
        dial_stream(still, number);
    });
}

} // namespace shoal::transport::tls
