// runtime/control/invite.cpp -- the joiner's side of an invite.
#include "runtime/control/invite.hpp"

#include "runtime/control/client_link.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/host/ip_address.hpp"

#include <algorithm>
#include <chrono>

namespace shoal::runtime {

/// For one address, and for the agreement of the shoal.
static constexpr std::chrono::seconds redeem_dial_max{5};
static constexpr std::chrono::seconds answer_max{40};

invite_token decode_token(const std::string& text) {
  auto token = parse_token(text);
  if (!token && is_token_of_another_version(text))
    throw usage_error("the join token was made by another version of shoal: "
                      "run `shoal invite` of this version for a new one");
  if (!token)
    throw usage_error("that is not a complete join token: paste the whole line "
                      "that `shoal invite` printed");
  return std::move(*token);
}

bool is_local(const invite_token& token) {
  return std::ranges::all_of(token.addresses, [](const std::string& address) {
    const auto ip = parse_ip(host_of(address));
    return ip && is_loopback(ip->address);
  });
}

transport::tls::shared_key
redeem(const invite_token& token, const transport::tls::private_key& identity) {
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
    std::chrono::system_clock::now().time_since_epoch());
  if (now.count() >= token.expires_s)
    throw setup_error("the join token has expired: ask for a new one");
  std::string why;
  for (const std::string& address : token.addresses) {
    std::string reason;
    bool revoked = false;
    auto link = make_invitee_link(address, token, identity, redeem_dial_max,
                                  reason, revoked);
    if (revoked)
      throw setup_error(
        "the shoal at " + address
        + " has revoked this node's identity, which no token brings back: "
          "start the node with a new --data-dir and this token, which is not "
          "used up");
    client_reply reply;
    if (link
        && !link->call({1, use_invite{token.key, {}}}, reply, answer_max)) {
      transport::tls::shared_key key{};
      if (reply.code == reply_code::ok && reply.bytes.size() == key.size()) {
        std::ranges::transform(reply.bytes, key.begin(), [](std::byte b) {
          return std::to_integer<std::uint8_t>(b);
        });
        return key;
      }
      reason = address + ": " + reply.text;
    } else if (link) {
      reason = address + ": the inviter gave no answer";
    }
    why += (why.empty() ? "" : "; ") + reason;
  }
  throw setup_error("the join token was not accepted: " + why
                    + " (a token also ends with a revocation, and when all "
                      "nodes of its shoal have left; ask for a new one)");
}

} // namespace shoal::runtime
