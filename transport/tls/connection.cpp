// transport/tls/connection.cpp -- handshake, proof, and the end of a socket.
#include "transport/assert.hpp"
#include "transport/tls/engine.hpp"

#include <boost/asio/post.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <ctime>

namespace shoal::transport::tls {
namespace {

constexpr char exporter_label[] = "EXPORTER-shoal-proof-1";
/// Bytes that the kernel holds unsent cannot be overtaken: above this, the
/// socket of a connection counts as full.
constexpr int unsent_bytes_max = 256 << 10;
/// A stream reads several records by one system call.
constexpr std::size_t read_ahead_bytes = std::size_t{128} << 10;
/// TLS messages that a peer may send after its proof. A node sends none; a
/// library that follows RFC 8446, 5.5, updates its key after 2^24 records of 16
/// KiB, 256 GiB. Each costs 8 us, so all of one connection cost 2 ms.
constexpr std::size_t tls_messages_max = 256;
/// How long sent bytes may stay unacknowledged before the kernel gives up the
/// connection. A second line of defence behind the failure detector.
constexpr unsigned user_timeout_ms = 15000;

/// The processor time of this thread: on a crowded machine, a stranger costs no
/// more.
std::chrono::nanoseconds thread_time() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

claim own_claim(const config& own, std::uint8_t stream) {
  return {own.role, own.instance, own.capabilities, stream, own.planner};
}

/// Whether both are members, or become members, and compute unlike plans.
bool plans_otherwise(const config& own, const claim& other) {
  return own.role != peer_role::client && other.role != peer_role::client
         && own.planner != other.planner;
}

} // namespace

connection::connection(engine& e, tcp::socket socket, side role,
                       std::string address)
  : engine_(e), socket_(std::move(socket)), deadline_(e.io), side_(role),
    address_(std::move(address)) {
}

connection::connection(engine& e, const peer_ptr& to, std::uint8_t stream,
                       std::string address)
  : engine_(e), socket_(e.io), deadline_(e.io), side_(side::dialler),
    stream_(stream), address_(std::move(address)) {
  target = to;
}

void connection::listen() {
  boost::system::error_code ignored;
  socket_.native_non_blocking(true, ignored);
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](auto) {
    if (!self->closed())
      self->engine_.spoke(self);
  });
}

void connection::start_deadline() {
  deadline_.expires_after(engine_.settings.handshake_max);
  deadline_.async_wait([self = shared_from_this()](auto error) {
    if (!error && self->stage_ != stage::open)
      self->fail(errc::unreachable, "no handshake within the deadline");
  });
}

void connection::set_options() {
  boost::system::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  const int fd = socket_.native_handle();
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms,
             sizeof user_timeout_ms);
}

void connection::start() {
  if (closed())
    return;
  boost::system::error_code error;
  socket_.native_non_blocking(true, error);
  if (error)
    return fail(errc::unreachable, error.message());
  tls_.emplace(engine_.context.get(), socket_.native_handle(), dialled());
  tls_->allow(engine_.settings.unproved_bytes_max);
  set_options();
  stage_ = stage::handshake;
  handshake();
}

void connection::ready() {
  if (ticket != 0)
    engine_.spoke(shared_from_this());
  else
    work();
}

void connection::work() {
  const auto self = shared_from_this();
  working_since_ = thread_time();
  if (stage_ == stage::connecting)
    start();
  else if (stage_ == stage::handshake)
    handshake();
  else if (stage_ == stage::proof)
    read_proof();
  count_work();
  if (unproved() && worked_ > engine_.settings.unproved_work_max)
    fail(errc::refused, "too much work before the proof");
}

void connection::wait_read(void (connection::*next)()) {
  if (waiting_read_)
    return;
  waiting_read_ = true;
  socket_.async_wait(tcp::socket::wait_read,
                     [self = shared_from_this(), next](auto) {
                       self->waiting_read_ = false;
                       if (!self->closed())
                         (self.get()->*next)();
                     });
}

void connection::wait_write(void (connection::*next)()) {
  if (waiting_write_)
    return;
  waiting_write_ = true;
  socket_.async_wait(
    tcp::socket::wait_write, [self = shared_from_this(), next](auto) {
      self->waiting_write_ = false;
      if (!self->closed())
        (self.get()->*next)();
      if (!self->closed() && std::exchange(self->read_wants_write_, false))
        self->read_some();
    });
}

/// Work after a proof does not count for admission.
void connection::count_work() {
  if (!working_since_)
    return;
  const auto cost = thread_time() - *working_since_;
  working_since_.reset();
  worked_ += cost;
  if (ticket != 0)
    engine_.worked(cost);
}

void connection::retry(const session::outcome& o, void (connection::*next)()) {
  using result = session::result;
  if (o.what == result::wait_read)
    return wait_read(next);
  if (o.what == result::again || (o.what == result::spent && !unproved())) {
    // The socket does not report bytes that the library already holds.
    asio::post(engine_.io, [self = shared_from_this(), next] {
      if (!self->closed())
        (self.get()->*next)();
    });
    return;
  }
  if (o.what == result::wait_write) {
    // A read answers a key update; a writer may be waiting already.
    read_wants_write_ = next == &connection::read_some;
    return wait_write(read_wants_write_ ? &connection::write_some : next);
  }
  if (stage_ == stage::proof && dialled())
    engine_.note_refusal(address_);
  // For the dialling end, silence of the other in the proof means a refusal.
  std::error_code why = errc::refused;
  if (stage_ == stage::handshake && o.what == result::closed)
    why = errc::unreachable;
  fail(stage_ == stage::open ? errc::peer_lost : why, reason_of(o));
}

std::string connection::reason_of(const session::outcome& o) const {
  using result = session::result;
  if (o.what == result::spent)
    return "too many bytes before the proof";
  if (o.what == result::flooded)
    return stage_ == stage::open
             ? "more than " + std::to_string(tls_messages_max)
                 + " messages of TLS after the handshake"
             : "a message of TLS before its proof";
  if (o.what == result::failed)
    return tls_->reason();
  // It has dialled two addresses of ours, and keeps the first connection.
  if (stage_ == stage::proof && !dialled() && o.error == 0 && engine_.find(id_))
    return {};
  std::string reason = o.error != 0 ? std::generic_category().message(o.error)
                                    : "the other end closed the connection";
  if (stage_ == stage::proof && dialled())
    reason +=
      " instead of proving itself: is it of the same cluster key and the same "
      "version of shoal?";
  return reason;
}

void connection::handshake() {
  const auto o = tls_->handshake();
  if (o.what == session::result::done)
    return secured();
  retry(o, &connection::ready);
}

void connection::secured() {
  const auto id = id_of_peer(tls_->ssl());
  if (!id)
    return fail(errc::refused, "its certificate holds no Ed25519 key");
  id_ = *id;
  if (id_ == engine_.id && engine_.settings.alive_window.count() == 0)
    return fail(errc::self, "");
  const auto& expected = engine_.settings.expected;
  if (dialled() && expected && id_ != *expected)
    return fail(errc::refused, "its fingerprint is not the expected one");
  if (is_revoked(*engine_.keys, id_) && dialled())
    return fail(errc::refused, "its identity was revoked");
  if (SSL_export_keying_material(tls_->ssl(), binding_.data(), binding_.size(),
                                 exporter_label, sizeof exporter_label - 1,
                                 nullptr, 0, 0)
      != 1)
    return fail(errc::refused, "no TLS exporter");
  // Only the dialling end knows that it already has a connection; the other end
  // takes a second one as a sign that the first is dead.
  if (dialled() && !is_stream() && engine_.dialled_already(*this))
    return fail(errc::ok, "");
  if (const auto to = target.lock(); is_stream() && (!to || to->info.id != id_))
    return fail(errc::refused, "a stream led to another peer");
  stage_ = stage::proof;
  if (ticket != 0)
    engine_.secured(*this);
  const auto& s = engine_.settings;
  if (dialled()) {
    key_ = engine_.key_for(address_);
    const auto frame =
      make_proof(key_, binding_, side_, engine_.id, own_claim(s, stream_));
    out_.assign(frame.begin(), frame.end());
    write_some();
  }
  if (!closed())
    read_proof();
}

void connection::read_proof() {
  while (proof_fill_ < proof_.size()) {
    const auto o = tls_->read(std::span(proof_).subspan(proof_fill_));
    if (o.what != session::result::done)
      return retry(o, &connection::ready);
    proof_fill_ += o.bytes;
  }
  judge();
}

static constexpr const char* copied =
  "another process has its identity (a copied data directory?)";

/// Both proofs use the key that the dialling end has chosen.
void connection::judge() {
  if (!dialled()) {
    const auto now_s = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
    auto a = admit(*engine_.keys, binding_, id_, proof_, now_s.count());
    key_ = a.key;
    if (!a.wrong && id_ == engine_.id)
      return meet_self(a);
    if (!a.wrong && engine_.duplicate(id_, a.what.instance)) {
      a.wrong = copied;
      a.because = refusal::duplicate;
    }
    if (!a.wrong && plans_otherwise(engine_.settings, a.what)) {
      a.wrong = to_text(refusal::other_planner);
      a.because = refusal::other_planner;
    }
    stream_ = a.what.stream;
    return a.wrong ? refuse(a) : proved(a.what);
  }
  claim what;
  std::optional<refusal> because;
  const auto* wrong =
    check_proof(key_, binding_, side::acceptor, id_, proof_, what, &because);
  const auto& s = engine_.settings;
  if (!wrong && id_ == engine_.id && what.instance == s.instance)
    return fail(errc::self, "");
  if (!wrong && (id_ == engine_.id || engine_.duplicate(id_, what.instance)))
    wrong = copied;
  if (!wrong && plans_otherwise(s, what)) {
    because = refusal::other_planner;
    wrong = to_text(*because);
  }
  if (because && s.refused)
    s.refused(*because, address_);
  if (wrong) {
    engine_.note_refusal(address_);
    return fail(errc::refused, wrong);
  }
  if (what.stream != stream_)
    return fail(errc::refused, "it answered as another stream");
  proved(what);
}

/// The dialler has our identity. If it is another process, the one with the
/// higher instance is the later one: the dialler is told so, or we are.
void connection::meet_self(judgement& a) {
  const auto& s = engine_.settings;
  if (a.what.instance == s.instance)
    return fail(errc::self, "");
  a.wrong = copied;
  if (a.what.instance > s.instance) {
    a.because = refusal::duplicate;
    return refuse(a);
  }
  const auto frame =
    make_proof(key_, binding_, side_, engine_.id, own_claim(s, 0));
  out_.insert(out_.end(), frame.begin(), frame.end());
  write_some();
  if (s.refused)
    s.refused(refusal::duplicate, address_);
  fail(errc::refused, a.wrong);
}

void connection::refuse(const judgement& a) {
  if (a.because) {
    const auto frame = make_refusal(key_, binding_, engine_.id, *a.because);
    out_.insert(out_.end(), frame.begin(), frame.end());
    write_some();
  }
  fail(errc::refused, a.wrong);
}

/// After the proof, speed counts instead of caution.
void connection::prepare_open() {
  deadline_.cancel();
  stage_ = stage::open;
  tls_->admit_messages(tls_messages_max);
  if (!is_stream()) {
    setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT,
               &unsent_bytes_max, sizeof unsent_bytes_max);
    return;
  }
  reader_.set_kind(stream_kind::bulk);
  tls_->read_ahead(read_ahead_bytes);
}

void connection::proved(const claim& what) {
  count_work();
  const auto self = shared_from_this();
  const auto& s = engine_.settings;
  if (!dialled()) {
    const auto frame =
      make_proof(key_, binding_, side_, engine_.id, own_claim(s, stream_));
    out_.insert(out_.end(), frame.begin(), frame.end());
    // In a record of its own: the other end reads little before it.
    write_some();
    if (closed())
      return;
  }
  boost::system::error_code ignored;
  const auto remote = socket_.remote_endpoint(ignored);
  peer_info info{id_, what.role, what.instance, what.capabilities,
                 to_string(remote)};
  prepare_open();
  if (!engine_.opened(self, std::move(info)) || closed())
    return;
  write_some();
  if (!closed())
    read_some();
}

void connection::fail(std::error_code why, std::string_view reason) {
  if (closed())
    return;
  const auto self = shared_from_this();
  if (!reason.empty() && owner)
    engine_.log("peer " + short_id(id_) + " at " + address_ + ": "
                + std::string(reason) + "; connection closed");
  else if (!reason.empty())
    engine_.log_failure(address_, dialled(), why, std::string(reason));
  if (owner)
    return engine_.lose(owner, why, errc::peer_lost);
  due_list none;
  abandon(why, none);
  engine_.ended(self, why);
}

void connection::abandon(std::error_code result, due_list& out) {
  if (closed())
    return;
  for (auto& [transfer, s] : sends_)
    out.push_back({s.what.done, result});
  for (auto& [transfer, r] : receives_)
    out.push_back({r.what.done, result});
  sends_.clear();
  receives_.clear();
  turn_.clear();
  payload_ = {};
  const bool orderly = stage_ == stage::open || stage_ == stage::proof;
  stage_ = stage::closed;
  deadline_.cancel();
  if (orderly && retry_bytes_ == 0)
    tls_->shut_down();
  boost::system::error_code ignored;
  socket_.close(ignored);
  dials.clear();
}

} // namespace shoal::transport::tls
