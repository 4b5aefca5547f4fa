// transport/tls/fabric.cpp -- the calls of applications, from any thread.
#include "transport/tls/fabric.hpp"

#include "transport/assert.hpp"
#include "transport/tls/engine.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <pthread.h>

#include <csignal>

namespace shoal::transport::tls {

class fabric::impl : public engine {
public:
  using engine::engine;
};

namespace {

/// The application's signals are not for this thread, and a write to a closed
/// socket must be an error, not SIGPIPE.
template <class Body>
std::thread start_without_signals(Body body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(body);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread.native_handle(), "shoal-tls");
  return thread;
}

} // namespace

fabric::fabric(config settings, fabric_handler& handler)
  : impl_(std::make_unique<impl>(std::move(settings), handler)) {
  auto* e = impl_.get();
  e->thread = start_without_signals([e] {
    const auto work = asio::make_work_guard(e->io);
    e->accept();
    e->io.run();
  });
}

fabric::~fabric() {
  close();
}

const peer_id& fabric::id() const noexcept {
  return impl_->id;
}

std::size_t fabric::message_bytes_max() const noexcept {
  return control_bytes_max;
}

std::string fabric::local_address() const {
  return impl_->local_address;
}

void fabric::connect(const std::string& address) {
  auto* e = impl_.get();
  std::lock_guard guard(e->mutex);
  if (e->closing || e->dialling.contains(address))
    return;
  if (e->dialling.size() >= e->settings.dials_max)
    return asio::post(e->io, [e, address] {
      e->handler.connect_failed(address, errc::would_block);
    });
  e->dialling.insert(address);
  asio::post(e->io, [e, address] { e->dial(address); });
}

std::error_code
fabric::send(const peer_id& to, std::span<const std::byte> message) {
  if (message.size() > control_bytes_max)
    return errc::too_large;
  buffer copy(message.begin(), message.end());
  std::lock_guard guard(impl_->mutex);
  if (impl_->closing)
    return errc::canceled;
  const auto p = impl_->find(to);
  if (!p)
    return errc::peer_lost;
  const auto& limit = impl_->settings.queue;
  if (p->control.size() >= limit.messages
      || p->control_bytes + message.size() > limit.message_bytes)
    return errc::would_block;
  p->control_bytes += message.size();
  p->control.push_back(std::move(copy));
  impl_->schedule_write(p);
  return {};
}

std::error_code
fabric::post_receive(const peer_id& from, bulk_tag tag,
                     std::span<std::byte> into, completion done) {
  std::lock_guard guard(impl_->mutex);
  if (impl_->closing)
    return errc::canceled;
  const auto p = impl_->find(from);
  if (!p)
    return errc::peer_lost;
  if (p->receives.size() >= impl_->settings.queue.receives)
    return errc::would_block;
  p->receives.emplace(tag, posted_receive{into, done});
  return {};
}

std::error_code
fabric::send_bulk(const peer_id& to, bulk_tag tag,
                  std::span<const std::byte> bytes, completion done) {
  std::lock_guard guard(impl_->mutex);
  if (impl_->closing)
    return errc::canceled;
  const auto p = impl_->find(to);
  if (!p)
    return errc::peer_lost;
  if (p->bulk_sends >= impl_->settings.queue.bulk_sends)
    return errc::would_block;
  ++p->bulk_sends;
  // Equal tags use the same stream, so that they stay in order.
  const auto mix = tag.plan + (std::uint64_t{tag.link} << 16) + tag.sequence;
  p->bulk[mix % p->bulk.size()].push_back({tag, bytes, done});
  impl_->schedule_bulk(p);
  return {};
}

void fabric::cancel(std::uint64_t plan) {
  auto* e = impl_.get();
  std::lock_guard guard(e->mutex);
  if (!e->closing)
    asio::post(e->io, [e, plan] { e->cancel(plan); });
}

void fabric::drop(const peer_id& peer) {
  auto* e = impl_.get();
  std::lock_guard guard(e->mutex);
  if (!e->closing)
    asio::post(e->io, [e, peer] {
      if (const auto p = e->find(peer))
        e->lose(p, errc::canceled, errc::peer_lost);
    });
}

void fabric::set_keys(keyring keys) {
  auto* e = impl_.get();
  auto shared = std::make_shared<const keyring>(std::move(keys));
  std::lock_guard guard(e->mutex);
  if (!e->closing)
    asio::post(e->io, [e, shared] { e->use(shared); });
}

void fabric::run_soon(std::function<void()> event) {
  auto* e = impl_.get();
  std::lock_guard guard(e->mutex);
  if (!e->closing)
    asio::post(e->io, std::move(event));
}

traffic fabric::traffic_with(const peer_id& peer) const {
  std::lock_guard guard(impl_->mutex);
  const auto p = impl_->find(peer);
  return p ? p->moved : traffic{};
}

void fabric::close() {
  auto* e = impl_.get();
  SHOAL_ASSERT(std::this_thread::get_id() != e->thread.get_id());
  {
    std::lock_guard guard(e->mutex);
    e->closing = true;
  }
  std::call_once(e->joined, [e] {
    asio::post(e->io, [e] { e->shut_down(); });
    e->thread.join();
  });
}

} // namespace shoal::transport::tls
