// tests/fuzz/door_fuzz.cpp -- any bytes at the listener: admission, and TLS.
//
// The first byte selects the meaning of the others:
//
//   0  events of admission: its limits hold in any order
//   1  bytes from a peer that has just connected
//   2  data after a complete handshake, before the proof: a script of records,
//      correctly encrypted, of any inner type, and raw bytes
//   3  the same after the proof
//
// In 2 and 3 the second byte selects whether we are the dialling end. Our end
// is a session as the fabric uses it; the other end has no cluster key, but all
// keys of TLS. Checked: bytes beyond the allowance stay in the socket, a TLS
// message before the proof ends the session, the received data equals the sent
// data, and every call ends.
#include "transport/assert.hpp"
#include "transport/tls/admission.hpp"
#include "transport/tls/proof.hpp"
#include "transport/tls/session.hpp"

#include <fcntl.h>
#include <openssl/hmac.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace shoal::transport;
using namespace shoal::transport::tls;
using bytes = std::vector<std::uint8_t>;

/// Twice the size of a complete handshake, so that short inputs get there.
constexpr std::size_t before_proof_max = 2048;
constexpr std::size_t turn_max = 512 << 10;
constexpr std::size_t messages_max = 256;
constexpr std::uint8_t data_record = 23, handshake_record = 22;

class input {
public:
  explicit input(std::span<const std::uint8_t> data) : rest_(data) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty())
      return 0;
    const auto b = rest_.front();
    rest_ = rest_.subspan(1);
    return b;
  }
  bytes take(std::size_t count) {
    count = std::min(count, rest_.size());
    bytes out(rest_.begin(),
              rest_.begin() + static_cast<std::ptrdiff_t>(count));
    rest_ = rest_.subspan(count);
    return out;
  }

private:
  std::span<const std::uint8_t> rest_;
};

// ---- 0: admission ----

void fuzz_admission(input in) {
  admission_limits l;
  l.unproved = 1 + in.byte() % 8;
  l.unproved_per_address = 1 + in.byte() % 8;
  l.handshakes_burst = 1 + in.byte() % 4;
  l.handshakes_per_second = 1 + in.byte() % 16;
  l.work_permille = 1 + in.byte() % 200;
  admission door(l);
  std::set<admission::ticket> here, begun;
  admission::ticket last = 0;
  admission::time now{0}, spent{0}, dearest{0};
  while (!in.empty()) {
    const auto event = in.byte(), number = in.byte();
    const auto who = 1 + number % std::max<admission::ticket>(1, last);
    switch (event % 6) {
    case 0:
      if (const auto gone = door.arrive(++last, std::to_string(number % 5)))
        SHOAL_ASSERT(here.erase(*gone) == 1);
      here.insert(last);
      break;
    case 1:
      door.advance(who, static_cast<admission::progress>(number % 3));
      break;
    case 2:
      if (here.contains(who))
        door.ask(who);
      break;
    case 3:
      door.leave(who);
      here.erase(who);
      break;
    case 4:
      now += std::chrono::milliseconds(number) * (event / 6);
      break;
    default:
      if (const auto next = door.next(now)) {
        SHOAL_ASSERT(here.contains(*next));
        begun.insert(*next);
        const auto cost = std::chrono::milliseconds(number);
        door.spend(cost);
        spent += cost;
        dearest = std::max<admission::time>(dearest, cost);
      }
    }
    SHOAL_ASSERT(door.places() == here.size() && here.size() <= l.unproved);
    SHOAL_ASSERT(
      begun.size()
      <= l.handshakes_burst
           + static_cast<std::size_t>(now / std::chrono::seconds(1) + 1)
               * l.handshakes_per_second);
    SHOAL_ASSERT(spent <= dearest + l.work_burst
                            + now * static_cast<long>(l.work_permille) / 1000);
    SHOAL_ASSERT(!door.due() || *door.due() >= admission::time(0));
  }
}

// ---- TLS ----

using mac = std::array<std::uint8_t, 32>;

/// HKDF-Expand-Label of RFC 8446, 7.1, with an empty context.
bytes expand(const mac& secret, std::string label, std::size_t length) {
  label = "tls13 " + label;
  bytes info{0, static_cast<std::uint8_t>(length),
             static_cast<std::uint8_t>(label.size())};
  info.insert(info.end(), label.begin(), label.end());
  info.push_back(0);
  info.push_back(1);
  mac out{};
  HMAC(EVP_sha256(), secret.data(), secret.size(), info.data(), info.size(),
       out.data(), nullptr);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(length)};
}

/// Encrypts records as TLS 1.3 does, with any content.
class sealer {
public:
  explicit sealer(const mac& secret) : secret_(secret) {}

  bytes record(std::uint8_t type, bytes inner) {
    inner.push_back(type);
    const auto key = expand(secret_, "key", 16);
    auto nonce = expand(secret_, "iv", 12);
    for (std::size_t i = 0; i < 8; ++i)
      nonce[11 - i] ^= static_cast<std::uint8_t>(sequence_ >> (8 * i));
    ++sequence_;
    const auto length = inner.size() + 16;
    bytes out{data_record, 3, 3, static_cast<std::uint8_t>(length >> 8),
              static_cast<std::uint8_t>(length)};
    out.resize(5 + length);
    EVP_CIPHER_CTX* c = EVP_CIPHER_CTX_new();
    int done = 0;
    EVP_EncryptInit_ex(c, EVP_aes_128_gcm(), nullptr, key.data(), nonce.data());
    EVP_EncryptUpdate(c, nullptr, &done, out.data(), 5);
    EVP_EncryptUpdate(c, out.data() + 5, &done, inner.data(),
                      static_cast<int>(inner.size()));
    EVP_EncryptFinal_ex(c, out.data() + 5 + done, &done);
    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, 16,
                        out.data() + 5 + inner.size());
    EVP_CIPHER_CTX_free(c);
    return out;
  }
  void update() {
    const auto next = expand(secret_, "traffic upd", secret_.size());
    std::copy(next.begin(), next.end(), secret_.begin());
    sequence_ = 0;
  }

private:
  mac secret_;
  std::uint64_t sequence_ = 0;
};

struct world {
  world()
    : ours(make_context(make_private_key())),
      theirs(make_context(make_private_key())) {
    SSL_CTX_set_keylog_callback(theirs.get(), note);
  }
  static void note(const SSL* ssl, const char* line) {
    const char* label = SSL_is_server(ssl) ? "SERVER_TRAFFIC_SECRET_0 "
                                           : "CLIENT_TRAFFIC_SECRET_0 ";
    if (std::strncmp(line, label, std::strlen(label)) != 0)
      return;
    const char* hex = std::strrchr(line, ' ') + 1;
    for (std::size_t i = 0; i < secret.size(); ++i)
      secret[i] = static_cast<std::uint8_t>(
        std::stoi(std::string(hex + 2 * i, 2), nullptr, 16));
  }
  ssl_ctx_ptr ours, theirs;
  static inline mac secret{};
};

world& the_world() {
  static world w;
  return w;
}

class connected {
public:
  explicit connected(bool dialled) : dialled_(dialled) {
    SHOAL_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_)
                 == 0);
    end_.emplace(the_world().ours.get(), ends_[0], dialled);
    end_->allow(before_proof_max);
  }
  ~connected() {
    end_.reset();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  /// Sends what fits in the socket; the rest is lost. @returns whether all
  /// fitted
  bool send(const bytes& data) {
    const auto gone = ::send(ends_[1], data.data(), data.size(), MSG_NOSIGNAL);
    sent_ += static_cast<std::size_t>(std::max<ssize_t>(gone, 0));
    char waste[4096]; // our end's answers are discarded
    while (::recv(ends_[1], waste, sizeof waste, 0) > 0)
      ;
    return gone == static_cast<ssize_t>(data.size());
  }
  /// Number of bytes that our end has taken.
  std::size_t taken() const {
    int left = 0;
    ::ioctl(ends_[0], FIONREAD, &left);
    return sent_ - static_cast<std::size_t>(left);
  }
  void shake_hands() {
    const ssl_ptr other(SSL_new(the_world().theirs.get()));
    SSL_set_fd(other.get(), ends_[1]);
    if (dialled_)
      SSL_set_accept_state(other.get());
    else
      SSL_set_connect_state(other.get());
    bool ours = false, theirs = false;
    for (int i = 0; i < 10 && !(ours && theirs); ++i) {
      theirs = theirs || SSL_do_handshake(other.get()) == 1;
      ours = ours || end_->handshake().what == session::result::done;
    }
    SHOAL_ASSERT(ours && theirs);
    SSL_set_quiet_shutdown(other.get(), 1);
  }
  session& end() { return *end_; }

private:
  bool dialled_;
  int ends_[2] = {-1, -1};
  std::optional<session> end_;
  std::size_t sent_ = 0;
};

bool over(session::result r) {
  return r == session::result::flooded || r == session::result::closed
         || r == session::result::failed || r == session::result::spent;
}

void fuzz_hello(input in) {
  connected c(in.byte() % 2 == 1);
  while (!in.empty()) {
    c.send(in.take(1 + in.byte() * 16));
    const auto o = c.end().handshake();
    SHOAL_ASSERT(o.what != session::result::done);
    SHOAL_ASSERT(c.taken() <= before_proof_max);
    if (over(o.what))
      return;
  }
}

/// Takes all available data. @returns false once the session is over
bool drain(session& end, bytes& got, int records) {
  std::array<std::byte, 777> into{};
  for (int calls = 0;; ++calls) {
    SHOAL_ASSERT(calls <= 100 * (records + 1));
    const auto o = end.read(into);
    if (o.what == session::result::done) {
      SHOAL_ASSERT(o.bytes > 0 && o.bytes <= into.size());
      for (std::size_t i = 0; i < o.bytes; ++i)
        got.push_back(static_cast<std::uint8_t>(into[i]));
      continue;
    }
    if (over(o.what))
      return false;
    if (o.what != session::result::again)
      return true;
  }
}

void fuzz_records(input in, bool proved) {
  connected c(in.byte() % 2 == 1);
  c.shake_hands();
  sealer seal(world::secret);
  if (proved) {
    c.end().allow(turn_max);
    c.end().admit_messages(messages_max);
  }
  bytes sent, got;
  bool honest = true; // only valid TLS has been sent
  std::size_t messages = 0;
  int records = 0;
  while (!in.empty()) {
    const auto what = in.byte();
    const auto content = in.take(in.byte());
    bool whole = true;
    ++records;
    switch (what % 5) {
    case 0:
      whole = c.send(seal.record(data_record, content));
      if (honest && (proved || messages == 0))
        sent.insert(sent.end(), content.begin(), content.end());
      break;
    case 1: // a key update with or without a request for an answer
      whole = c.send(seal.record(
        handshake_record, {24, 0, 0, 1, std::uint8_t(content.size() % 2)}));
      seal.update();
      ++messages;
      break;
    case 2: // a part of some message
      whole = c.send(seal.record(handshake_record, content));
      ++messages;
      honest = false;
      break;
    case 3:
      whole = c.send(seal.record(what / 5, content));
      honest = false;
      break;
    default:
      whole = c.send(content);
      honest = false;
    }
    honest = honest && whole;
    const bool goes_on = what >= 128 || drain(c.end(), got, records);
    SHOAL_ASSERT(got.size() <= sent.size() || !honest);
    SHOAL_ASSERT(std::equal(
      got.begin(),
      got.begin()
        + static_cast<std::ptrdiff_t>(std::min(got.size(), sent.size())),
      sent.begin()));
    SHOAL_ASSERT(proved || c.taken() <= before_proof_max);
    if (!goes_on) {
      std::byte more{};
      SHOAL_ASSERT(c.end().read({&more, 1}).what != session::result::done);
      return;
    }
    // All complete data was returned: there would be no further notice.
    SHOAL_ASSERT(!honest || what >= 128 || got.size() == sent.size());
    // A TLS message that was read before the proof ends the session (S-2).
    SHOAL_ASSERT(proved || what >= 128 || messages == 0 || !honest);
  }
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in({data, size});
  switch (in.byte() % 4) {
  case 0:
    fuzz_admission(in);
    break;
  case 1:
    fuzz_hello(in);
    break;
  case 2:
    fuzz_records(in, false);
    break;
  default:
    fuzz_records(in, true);
  }
  return 0;
}
