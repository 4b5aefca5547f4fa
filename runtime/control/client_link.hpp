// runtime/control/client_link.hpp -- one connection of a client to one node.
//
// Threads: one at a time. Errors: errc::lost, errc::timed_out; after either of
// them, but for a wait() that is repeated, the link can no longer be used.
#pragma once

#include "runtime/control/invite.hpp"
#include "runtime/core/errc.hpp"
#include "runtime/wire/client_messages.hpp"
#include "transport/tls/identity.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace shoal::runtime {

class client_link {
public:
  virtual ~client_link() = default;
  /// Sends a request, whose reply can be waited for.
  virtual std::error_code begin(const client_request& request) = 0;
  /// Waits for the reply to what was begun last.
  virtual std::error_code
  wait(client_reply& reply, std::chrono::milliseconds timeout) = 0;
  /// Sends a request whose reply nobody waits for.
  virtual std::error_code tell(const client_request& request) = 0;

  /// Both. @param goes_on asked several times a second; once it says no, the request
  /// is taken back, and the reply says what it has come to
  std::error_code call(const client_request& request, client_reply& reply,
                       std::chrono::milliseconds timeout,
                       const std::function<bool()>& goes_on = {});
};

/// @returns null if no process listens there.
std::unique_ptr<client_link>
make_unix_link(const std::filesystem::path& socket);

/// @returns null if no node proves its identity at `address` in time; `why`
/// then has the reason, and `refuses` says whether a node answers that does not
/// use this key.
std::unique_ptr<client_link>
make_tls_link(const std::string& address, const transport::tls::shared_key& key,
              std::chrono::milliseconds timeout, std::string& why,
              bool& refuses);

/// Dials an inviter by a token. No other peer is accepted at its address.
/// @returns null otherwise; `why` then has the reason, and `revoked` says
/// whether the inviter's shoal has revoked the identity.
std::unique_ptr<client_link>
make_invitee_link(const std::string& address, const invite_token& token,
                  const transport::tls::private_key& identity,
                  std::chrono::milliseconds timeout, std::string& why,
                  bool& revoked);

} // namespace shoal::runtime
