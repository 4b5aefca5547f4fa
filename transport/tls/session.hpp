// transport/tls/session.hpp -- TLS over one socket, with everything counted.
//
// OpenSSL does not bound its own work: one call of it goes on while the socket
// has bytes. So it does not get the socket. It reads through an intake that
// hands over a counted number of bytes and then says "later", at whatever point
// the library is. And each call returns after a record without application
// data.
//
// S-1: between two calls of allow() the library takes at most the allowed
//      bytes.
// S-2: of the records with TLS messages that come after the handshake (key
//      updates, tickets), at most as many are processed as admit_messages() has
//      allowed; none before its first call.
// S-3: a call processes at most one such record more than were in the buffer.
//
// No Asio: the owner waits for the socket and calls again. The socket belongs
// to the owner, is non-blocking and outlives the session.
//
// Threads: one at a time.
// Errors:  the constructor throws std::bad_alloc; otherwise by outcome.
#pragma once

#include "transport/tls/context.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace shoal::transport::tls {

class session {
public:
  enum class result {
    done,       ///< the handshake has ended; or outcome::bytes have passed
    wait_read,  ///< the socket has no bytes
    wait_write, ///< the socket takes none
    again,      ///< a record without data; there may be more without waiting
    spent,      ///< the allowance is used up
    flooded,    ///< more TLS messages than are admitted (S-2)
    closed,     ///< by the other end, or by the system
    failed,     ///< TLS could not process the incoming or outgoing data
  };
  struct outcome {
    result what = result::done;
    std::size_t bytes = 0;
    int error = 0; ///< errno of `closed`, if there is one
  };

  session(SSL_CTX* context, int socket, bool dialled);
  session(const session&) = delete;

  /// From now on the library may take `bytes` from the socket.
  void allow(std::size_t bytes) { intake_.left = bytes; }
  /// From now on it may process `count` records with TLS messages.
  void admit_messages(std::size_t count);
  /// Reads several records by one system call. @pre the handshake has ended
  void read_ahead(std::size_t bytes);

  [[nodiscard]] outcome handshake();
  [[nodiscard]] outcome read(std::span<std::byte> into);
  [[nodiscard]] outcome write(std::span<const std::byte> from);
  /// Sends a farewell, if the socket takes it.
  void shut_down();

  /// Whether the library holds bytes that it has not returned.
  bool pending() const { return SSL_has_pending(ssl_.get()) != 0; }
  /// The error, after `failed`.
  const std::string& reason() const { return reason_; }
  SSL* ssl() const { return ssl_.get(); }

private:
  struct intake {
    int socket = -1;
    std::size_t left = 0; ///< bytes that it may still take
    bool empty = false;   ///< the socket had no bytes, within this call
    bool spent = false;   ///< the library wanted more than `left` in this call
    bool ended = false;   ///< the other end has closed
  };
  static const BIO_METHOD* method();
  static int take(BIO* bio, char* into, int bytes);
  static int give(BIO* bio, const char* from, int bytes);
  static long control(BIO* bio, int what, long number, void* pointer);
  static void on_record(int written, int version, int type, const void* data,
                        std::size_t bytes, SSL* ssl, void* self);

  void prepare();
  outcome outcome_of(int returned);

  intake intake_;
  ssl_ptr ssl_;
  bool shaken_ = false; ///< the handshake has ended
  bool flooded_ = false;
  std::size_t messages_left_ = 0;
  std::string reason_;
};

} // namespace shoal::transport::tls
