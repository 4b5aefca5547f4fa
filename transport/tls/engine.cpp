// transport/tls/engine.cpp -- peers, dialling and accepting.
#include "transport/tls/engine.hpp"

#include "transport/assert.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace shoal::transport::tls {
namespace {

/// A peer that is gone may be dialled for ever, and a stranger may come for
/// ever: neither may fill a disk with lines.
constexpr std::chrono::seconds failure_log_pause{60};
constexpr std::size_t failures_logged_max = 256;
/// How long after a line was left out the count is logged, if no other line is.
constexpr std::chrono::seconds rest_log_pause{10};

void must(const boost::system::error_code& error, const std::string& what) {
  if (error)
    throw std::system_error({error.value(), std::system_category()}, what);
}

/// The interfaces that have a link-local address.
std::vector<unsigned long> link_local_scopes() {
  std::vector<unsigned long> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    return out;
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET6
        || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
      continue;
    const auto& a = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr);
    if (IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr)
        && std::find(out.begin(), out.end(), a->sin6_scope_id) == out.end())
      out.push_back(a->sin6_scope_id);
  }
  ::freeifaddrs(list);
  return out;
}

/// A link-local address may be of any network, unless it names one: "fe80::1%eth0".
bool is_of_any_network(const std::string& host) {
  boost::system::error_code error;
  const auto literal = asio::ip::make_address(host, error);
  return !error && literal.is_v6() && literal.to_v6().is_link_local()
         && host.find('%') == std::string::npos;
}

} // namespace

std::string to_string(const tcp::endpoint& e) {
  auto address = e.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  const auto host = address.to_string();
  return (address.is_v6() ? "[" + host + "]" : host) + ":"
         + std::to_string(e.port());
}

std::string short_id(const peer_id& id) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < 4; ++i) {
    text += digits[id[i] >> 4];
    text += digits[id[i] & 15];
  }
  return text;
}

bool split_address(const std::string& address, std::string& host,
                   std::uint16_t& port) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return false;
  host = address.substr(0, colon);
  if (host.front() == '[') {
    if (host.back() != ']' || host.size() < 3)
      return false;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return false; // an IPv6 address without brackets
  }
  const auto* first = address.data() + colon + 1;
  const auto* last = address.data() + address.size();
  const auto [end, error] = std::from_chars(first, last, port);
  return error == std::errc() && end == last && first != last;
}

engine::engine(config given, fabric_handler& h)
  : settings(std::move(given)), handler(h),
    id(id_of_private(settings.identity)),
    context(make_context(settings.identity)),
    keys(std::make_shared<const keyring>(
      keyring{settings.cluster_key, {}, {}, {}, {}, {}})),
    door_(settings.door) {
  if (settings.bulk_streams < 1 || settings.bulk_streams > streams_max)
    throw std::invalid_argument("bulk_streams is not 1 .. "
                                + std::to_string(streams_max));
  if (!settings.listen.empty())
    listen();
}

engine::~engine() = default;

void engine::listen() {
  std::string host;
  std::uint16_t port = 0;
  if (!split_address(settings.listen, host, port))
    throw std::invalid_argument("\"" + settings.listen
                                + "\" is not host:port or [host]:port");
  const auto what = "cannot listen on " + settings.listen;
  boost::system::error_code error;
  tcp::endpoint where(asio::ip::make_address(host, error), port);
  if (error) {
    const auto found = resolver_.resolve(host, std::to_string(port), error);
    if (error || found.empty())
      throw std::system_error(
        std::make_error_code(std::errc::address_not_available),
        what + ": unknown host");
    where = found.begin()->endpoint();
  }
  must(acceptor_.open(where.protocol(), error), what);
  must(acceptor_.set_option(tcp::acceptor::reuse_address(true), error), what);
  if (where.address().is_v6())
    must(acceptor_.set_option(asio::ip::v6_only(false), error), what);
  must(acceptor_.bind(where, error), what);
  must(acceptor_.listen(asio::socket_base::max_listen_connections, error),
       what);
  local_address = to_string(acceptor_.local_endpoint());
}

void engine::log(const std::string& line) const {
  if (settings.log)
    settings.log(line);
}

void engine::log_failure(const std::string& address, bool dialled,
                         std::error_code why, const std::string& reason) {
  // A peer that dials us has another port every time.
  const auto from = dialled ? address : address.substr(0, address.rfind(':'));
  if (failures_.size() >= failures_logged_max)
    failures_.clear();
  const auto now = std::chrono::steady_clock::now();
  const auto [at, first] = failures_.try_emplace(from + ": " + reason);
  failure& f = at->second;
  std::string host;
  std::uint16_t port = 0;
  if (first && why == errc::unreachable && split_address(address, host, port)
      && is_of_any_network(host))
    f.quiet_until = now + failure_log_pause;
  if (now < f.quiet_until) {
    ++f.left_out;
    return;
  }
  const auto line = lines_.pass(
    address + ": " + reason + "; connection closed"
      + (f.left_out ? " (and " + std::to_string(f.left_out) + " times before)"
                    : ""),
    now.time_since_epoch());
  if (!line)
    return say_rest_later();
  f.quiet_until = now + failure_log_pause;
  f.left_out = 0;
  log(*line);
}

void engine::say_rest_later() {
  if (std::exchange(rest_due_, true))
    return;
  rest_.expires_after(rest_log_pause);
  rest_.async_wait([this](auto canceled) {
    rest_due_ = false;
    if (canceled)
      return;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    if (const auto line = lines_.rest(now))
      log(*line);
    else if (lines_.left_out() > 0)
      say_rest_later();
  });
}

// ---- dialling ----

void engine::dial(const std::string& address) {
  {
    std::lock_guard guard(mutex);
    if (closing)
      return;
  }
  for (const auto& [peer, p] : peers)
    for (const auto& c : p->connections)
      if (c->dialled() && c->address() == address)
        return forget_dial(address);
  auto c = std::make_shared<connection>(*this, tcp::socket(io), side::dialler,
                                        address);
  unopened_.insert(c);
  std::string host;
  std::uint16_t port = 0;
  if (!split_address(address, host, port) || port == 0)
    return c->fail(errc::unreachable, "it is not host:port");
  c->start_deadline();
  boost::system::error_code error;
  const auto literal = asio::ip::make_address(host, error);
  if (!error && is_of_any_network(host))
    return dial_on_all(c, on_every_network(literal.to_v6(), port));
  if (!error)
    return dial_on_all(c, {tcp::endpoint(literal, port)});
  const auto found = [this, c](auto failed, auto results) {
    if (c->closed())
      return;
    if (failed)
      return c->fail(errc::unreachable, failed.message());
    std::vector<tcp::endpoint> where;
    for (const auto& r : results)
      where.push_back(r.endpoint());
    resolved(c, where);
  };
  try { // the first name starts a thread, which the system may refuse
    resolver_.async_resolve(host, std::to_string(port), found);
  } catch (const std::system_error& e) {
    c->fail(errc::unreachable, e.what());
  }
}

std::vector<tcp::endpoint>
engine::on_every_network(asio::ip::address_v6 local, std::uint16_t port) {
  std::vector<tcp::endpoint> out;
  for (const auto scope : link_local_scopes()) {
    local.scope_id(scope);
    out.emplace_back(local, port);
  }
  if (out.size() > dials_at_once_max) { // others at the next try
    // Spread by a multiplication (D. Knuth): in turn, addresses that are dialled in
    // turn, too, would each find the same networks again.
    const std::uint64_t spread = ++scopes_turn_ * 0x9E3779B97F4A7C15u >> 32;
    std::rotate(out.begin(), out.begin() + long(spread % out.size()),
                out.end());
    out.resize(dials_at_once_max);
  }
  return out.empty() ? std::vector{tcp::endpoint(local, port)} : out;
}

void engine::dial_on_all(const std::shared_ptr<connection>& c,
                         const std::vector<tcp::endpoint>& where) {
  const auto left = std::make_shared<std::size_t>(where.size());
  for (std::size_t i = 0; i != where.size(); ++i)
    c->dials.emplace_back(io);
  for (std::size_t i = 0; i != where.size(); ++i)
    c->dials[i].async_connect(where[i], [c, i, left](auto error) {
      if (c->closed() || c->dials.empty()) // ended, or another one was first
        return;
      if (!error) {
        c->socket() = std::move(c->dials[i]);
        c->dials.clear();
        c->work();
      } else if (--*left == 0) {
        c->dials.clear();
        c->fail(errc::unreachable, error.message());
      }
    });
}

void engine::resolved(const std::shared_ptr<connection>& c,
                      const std::vector<tcp::endpoint>& where) {
  const auto list = std::make_shared<std::vector<tcp::endpoint>>(where);
  asio::async_connect(c->socket(), *list,
                      [c, list](auto error, const tcp::endpoint&) {
                        if (c->closed())
                          return;
                        if (error)
                          return c->fail(errc::unreachable, error.message());
                        c->work();
                      });
}

void engine::forget_dial(const std::string& address) {
  std::lock_guard guard(mutex);
  dialling.erase(address);
}

bool engine::dialled_already(const connection& c) const {
  for (const auto& other : unopened_)
    if (other.get() != &c && other->dialled() && !other->is_stream()
        && other->proving() && other->id() == c.id())
      return true;
  const auto p = find(c.id());
  if (!p)
    return false;
  for (const auto& other : p->connections)
    if (other->dialled())
      return true;
  return false;
}

void engine::use(std::shared_ptr<const keyring> next) {
  keys = std::move(next);
  refusals_.clear();
  std::vector<peer_ptr> gone;
  for (const auto& [peer, p] : peers)
    if (is_revoked(*keys, peer))
      gone.push_back(p);
  for (const auto& p : gone) {
    log("peer " + short_id(p->info.id) + ": its identity was revoked");
    lose(p, errc::canceled, errc::peer_lost);
  }
}

bool engine::duplicate(const peer_id& peer, std::uint64_t instance) const {
  if (settings.alive_window.count() == 0)
    return false;
  const auto p = find(peer);
  if (!p || p->info.instance == instance)
    return false;
  const auto since = std::chrono::steady_clock::now() - settings.alive_window;
  for (const auto& c : p->connections)
    if (c->heard_since(since))
      return true;
  return false;
}

const shared_key& engine::key_for(const std::string& address) const {
  const auto at = refusals_.find(address);
  const auto turn =
    at == refusals_.end() ? 0 : at->second % (keys->pending.size() + 1);
  return turn == 0 ? keys->current : keys->pending[turn - 1];
}

void engine::note_refusal(const std::string& address) {
  if (refusals_.size() >= settings.dials_max)
    refusals_.clear();
  ++refusals_[address];
}

void engine::unlist(connection& c) {
  door_.leave(c.ticket);
  unproved_.erase(c.ticket);
  unopened_.erase(c.shared_from_this());
  if (c.dialled() && !c.is_stream())
    forget_dial(c.address());
}

void engine::ended(const std::shared_ptr<connection>& c, std::error_code why) {
  unlist(*c);
  if (c->is_stream())
    return stream_ended(c);
  if (!c->dialled())
    return;
  // The caller wanted a peer that is up, by whichever connection.
  if (find(c->id()))
    handler.reached(c->address(), c->id());
  else if (why)
    handler.connect_failed(c->address(), why);
}

// ---- peers ----

peer_ptr engine::find(const peer_id& peer) const {
  const auto found = peers.find(peer);
  return found == peers.end() ? nullptr : found->second;
}

bool engine::opened(const std::shared_ptr<connection>& c, peer_info info) {
  unlist(*c);
  if (c->is_stream())
    return stream_opened(c, info);
  if (c->dialled())
    std::erase_if(failures_, [&](const auto& f) {
      return f.first.starts_with(c->address() + ": ");
    });
  const auto same_direction = [&](const peer_ptr& p) {
    for (const auto& other : p->connections)
      if (other->dialled() == c->dialled())
        return true;
    return false;
  };
  auto known = find(info.id);
  if (known && (known->info.instance != info.instance || same_direction(known)))
    lose(std::exchange(known, nullptr), errc::peer_lost, errc::peer_lost);
  ++open_;
  if (known) {
    c->owner = known;
    known->connections.push_back(c);
    if (c->dialled())
      handler.reached(c->address(), c->id());
    return true;
  }
  known = std::make_shared<peer>();
  known->bulk.resize(settings.bulk_streams);
  known->info = std::move(info);
  known->connections.push_back(c);
  c->owner = known;
  {
    std::lock_guard guard(mutex);
    peers[known->info.id] = known;
  }
  log("peer " + short_id(known->info.id) + " up at "
      + known->info.remote_address);
  handler.up(known->info);
  if (c->dialled())
    handler.reached(c->address(), c->id());
  return true;
}

void engine::lose(const peer_ptr& lost, std::error_code why,
                  std::error_code completions) {
  // The reference may point into containers that are cleared below.
  const auto p = lost; // NOLINT(performance-unnecessary-copy-initialization)
  due_list list;
  {
    std::lock_guard guard(mutex);
    const auto found = peers.find(p->info.id);
    if (found == peers.end() || found->second != p)
      return;
    peers.erase(found);
    for (auto& queue : p->bulk) {
      for (const auto& b : queue)
        list.push_back({b.done, completions});
      queue.clear();
    }
    for (const auto& [tag, r] : p->receives)
      list.push_back({r.done, completions});
    p->receives.clear();
    p->control.clear();
  }
  for (auto* own : {&p->connections, &p->streams})
    for (const auto& c : std::exchange(*own, {})) {
      c->abandon(completions, list);
      --open_;
    }
  const auto unopened = unopened_;
  for (const auto& c : unopened)
    if (c->target.lock() == p) {
      c->abandon(completions, list);
      unlist(*c);
    }
  run(list);
  log("peer " + short_id(p->info.id) + " down: " + why.message());
  handler.down(p->info.id, why);
}

void engine::schedule_write(const peer_ptr& p) {
  if (std::exchange(p->scheduled, true))
    return;
  asio::post(io, [this, p] {
    {
      std::lock_guard guard(mutex);
      p->scheduled = false;
    }
    if (!p->connections.empty()) {
      const auto first = p->connections.front();
      first->write_some();
    }
  });
}

void engine::schedule_bulk(const peer_ptr& p) {
  if (std::exchange(p->bulk_scheduled, true))
    return;
  asio::post(io, [this, p] {
    {
      std::lock_guard guard(mutex);
      p->bulk_scheduled = false;
    }
    want_streams(p);
    const auto all = p->streams;
    for (const auto& c : all)
      c->write_some();
  });
}

void engine::cancel(std::uint64_t plan) {
  due_list list;
  for (const auto& [peer, p] : peers) {
    std::lock_guard guard(mutex);
    const auto first = p->receives.lower_bound({plan, 0, 0});
    const auto last = p->receives.upper_bound({plan, UINT32_MAX, UINT32_MAX});
    for (auto r = first; r != last; r = p->receives.erase(r))
      list.push_back({r->second.done, errc::canceled});
    for (auto& queue : p->bulk)
      std::erase_if(queue, [&, p = p.get()](const queued_bulk& b) {
        if (b.tag.plan != plan)
          return false;
        list.push_back({b.done, errc::canceled});
        --p->bulk_sends;
        return true;
      });
  }
  std::vector<std::shared_ptr<connection>> all;
  for (const auto& [peer, p] : peers)
    all.insert(all.end(), p->streams.begin(), p->streams.end());
  for (const auto& c : all)
    c->cancel(plan, list);
  run(list);
  for (const auto& c : all) // tells the other ends
    c->write_some();
}

void engine::shut_down() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  again_.cancel();
  turn_.cancel();
  rest_.cancel();
  resolver_.cancel();
  due_list none;
  for (const auto& c : std::exchange(unopened_, {}))
    c->abandon(errc::canceled, none);
  unproved_.clear();
  while (!peers.empty()) {
    const auto p = peers.begin()->second;
    // Queued messages leave if the socket takes them: a farewell should.
    const auto first = p->connections.front();
    first->write_some();
    lose(p, errc::canceled, errc::canceled);
  }
  io.stop();
}

} // namespace shoal::transport::tls
