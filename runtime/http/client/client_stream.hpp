// runtime/http/client/client_stream.hpp -- bytes over a connection that does not
// wait: a socket, or TLS over one (tls_stream.hpp).
//
// Threads: one at a time. Nothing blocks: the caller polls the socket.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shoal::runtime {

class client_stream {
public:
  enum class step {
    done,        ///< some bytes were moved
    wants_read,  ///< nothing was: try again when the socket can be read
    wants_write, ///< the same, when it can be written
    wants_any,   ///< the same, when it can be read or written
    closed,      ///< the other end has ended what it sends
    failed       ///< error() says why
  };
  struct moved {
    step is;
    std::size_t bytes = 0;
  };

  virtual ~client_stream() = default;
  virtual moved read(std::span<char> into) = 0;
  virtual moved write(std::string_view from) = 0;
  /// After `closed`: whether the other end has said so, or the connection may have
  /// been cut by a third party. True where no such thing can be told.
  virtual bool closed_in_order() const = 0;
  virtual const std::string& error() const = 0;
};

} // namespace shoal::runtime
