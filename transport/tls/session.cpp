// transport/tls/session.cpp -- a BIO that counts, and the results of OpenSSL.
#include "transport/tls/session.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace shoal::transport::tls {
namespace {

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

} // namespace

int session::take(BIO* bio, char* into, int bytes) {
  auto& in = *static_cast<intake*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto want = std::min(in.left, static_cast<std::size_t>(bytes));
  if (want == 0) {
    in.spent = true;
    BIO_set_retry_read(bio);
    return -1;
  }
  const auto got = ::recv(in.socket, into, want, 0);
  if (got > 0)
    in.left -= static_cast<std::size_t>(got);
  else if (got == 0)
    in.ended = true;
  else if (would_block(errno)) {
    in.empty = true;
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

int session::give(BIO* bio, const char* from, int bytes) {
  const auto& in = *static_cast<const intake*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto gone =
    ::send(in.socket, from, static_cast<std::size_t>(bytes), MSG_NOSIGNAL);
  if (gone < 0 && would_block(errno))
    BIO_set_retry_write(bio);
  return static_cast<int>(gone);
}

long session::control(BIO* bio, int what, long, void*) {
  if (what == BIO_CTRL_EOF)
    return static_cast<const intake*>(BIO_get_data(bio))->ended ? 1 : 0;
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* session::method() {
  static const BIO_METHOD* const made = [] {
    BIO_METHOD* m =
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "shoal socket");
    if (!m || BIO_meth_set_read(m, take) != 1
        || BIO_meth_set_write(m, give) != 1
        || BIO_meth_set_ctrl(m, control) != 1)
      throw std::bad_alloc();
    return m;
  }();
  return made;
}

session::session(SSL_CTX* context, int socket, bool dialled)
  : intake_{socket}, ssl_(SSL_new(context)) {
  BIO* bio = ssl_ ? BIO_new(method()) : nullptr;
  if (!bio)
    throw std::bad_alloc();
  BIO_set_data(bio, &intake_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_clear_mode(ssl_.get(), SSL_MODE_AUTO_RETRY); // S-3
  SSL_set_msg_callback(ssl_.get(), on_record);
  SSL_set_msg_callback_arg(ssl_.get(), this);
  if (dialled)
    SSL_set_connect_state(ssl_.get());
  else
    SSL_set_accept_state(ssl_.get());
}

/// Sees each record before it is processed. After one too many, makes the
/// library believe that the other end has closed: it discards everything that
/// follows.
void session::on_record(int written, int, int type, const void* data,
                        std::size_t bytes, SSL* ssl, void* self) {
  auto& s = *static_cast<session*>(self);
  if (written != 0 || type != SSL3_RT_INNER_CONTENT_TYPE || bytes == 0
      || !s.shaken_
      || *static_cast<const unsigned char*>(data) != SSL3_RT_HANDSHAKE)
    return;
  if (s.messages_left_ > 0) {
    --s.messages_left_;
    return;
  }
  s.flooded_ = true;
  SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
}

void session::admit_messages(std::size_t count) {
  messages_left_ = count;
}

void session::read_ahead(std::size_t bytes) {
  SSL_set_default_read_buffer_len(ssl_.get(), bytes);
  SSL_free_buffers(ssl_.get()); // does nothing while it holds bytes
}

void session::prepare() {
  ERR_clear_error();
  errno = 0;
  intake_.empty = false;
  intake_.spent = false;
}

session::outcome session::outcome_of(int returned) {
  const int saved = errno;
  if (flooded_)
    return {result::flooded};
  if (returned > 0)
    return {result::done, static_cast<std::size_t>(returned)};
  switch (SSL_get_error(ssl_.get(), returned)) {
  case SSL_ERROR_WANT_READ:
    if (intake_.spent)
      return {result::spent};
    return {intake_.empty ? result::wait_read : result::again};
  case SSL_ERROR_WANT_WRITE:
    return {result::wait_write};
  case SSL_ERROR_SSL: {
    const auto error = ERR_peek_error();
    const auto* text = ERR_reason_error_string(error);
    reason_ = std::string("TLS: ") + (text ? text : "unknown error");
    if (ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER)
      reason_ +=
        ": what answers at that port is no node (HTTP has another one)";
    ERR_clear_error();
    return {result::failed};
  }
  case SSL_ERROR_SYSCALL:
    ERR_clear_error();
    return {result::closed, 0, saved};
  default:
    return {result::closed};
  }
}

session::outcome session::handshake() {
  prepare();
  const auto out = outcome_of(SSL_do_handshake(ssl_.get()));
  shaken_ = out.what == result::done;
  return out;
}

session::outcome session::read(std::span<std::byte> into) {
  prepare();
  return outcome_of(
    SSL_read(ssl_.get(), into.data(), static_cast<int>(into.size())));
}

session::outcome session::write(std::span<const std::byte> from) {
  prepare();
  return outcome_of(
    SSL_write(ssl_.get(), from.data(), static_cast<int>(from.size())));
}

void session::shut_down() {
  ERR_clear_error();
  SSL_shutdown(ssl_.get());
  ERR_clear_error();
}

} // namespace shoal::transport::tls
