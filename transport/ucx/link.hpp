// transport/ucx/link.hpp -- one connection to a peer, and its transfers.
//
// State        Ends when
// connecting   the other end answered our hello, or sent a frame as if it had:
//              up; it never sent anything: parked
// parked       connect() again: connecting
// up           bye, failure, drop or close: closing
// closing      the endpoint is force-closed and UCX has no request left:
//              everything ends, handler.down (or connect_failed) runs, and
//              the link is gone
//
// Why parked: UCX pairs the n-th endpoint that A makes for B with the n-th that
// B makes for A, as long as both workers live. So one end may close an endpoint
// only if the other end has one and closes it too. The connection number is the
// number of the endpoint.
//
// Threads: the progress thread only.
#pragma once

#include "transport/introduced/address.hpp"
#include "transport/introduced/commands.hpp"
#include "transport/ucx/frame.hpp"

#include <ucp/api/ucp.h>

#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>

namespace shoal::transport::ucx {

using namespace introduced;

class engine;
struct link;

using steady = std::chrono::steady_clock;

/// One outgoing active message. UCX reads the header until it is done, so the
/// header lives here; the payload belongs to the caller or is `message`.
struct send_op {
  engine* owner = nullptr;
  link* on_link = nullptr;
  std::uint64_t id = 0; ///< its key in link::sends
  frame header;
  std::span<const std::byte> payload{};
  std::vector<std::byte> message{};
  completion done{}; ///< bulk only
  bool sent = false; ///< UCX no longer reads header and payload
  bool canceled = false;
  std::optional<std::error_code> answer{}; ///< from its bulk_ack
};

/// One posted receive; `header` once its transfer has begun.
struct receive_op {
  engine* owner = nullptr;
  link* on_link = nullptr;
  bulk_tag tag;
  std::span<std::byte> into{};
  completion done{};
  frame header{};
  bool canceled = false;
};

using send_table = std::unordered_map<std::uint64_t, send_op>; ///< by transfer
using receive_table = std::multimap<bulk_tag, receive_op>;     ///< oldest first

struct link {
  enum class state { connecting, parked, up, closing };
  enum class closing_step { say_bye, wait_bye, wait_close };

  node_address peer;
  std::string address;               ///< as given to connect()
  std::uint64_t connection = 0;      ///< our number for it
  std::uint64_t peer_connection = 0; ///< theirs; 0: not yet known
  ucp_ep_h endpoint = nullptr;
  int pidfd = -1;
  state now = state::connecting;
  steady::time_point deadline{}; ///< of hello; in closing: of the step
  std::shared_ptr<counters> in_flight = std::make_shared<counters>();

  std::uint32_t message_out = 0; ///< sequence of the next control message
  std::uint32_t message_in = 0;
  std::size_t requests = 0; ///< UCX requests that have not called back
  std::size_t small = 0;    ///< hellos and acks among them
  send_table sends;
  receive_table posted;
  receive_table fetching; ///< UCX writes into their memory

  closing_step step = closing_step::say_bye;
  state before = state::connecting; ///< in closing: the state before
  bool reached =
    false;             ///< a send has succeeded: UCX has connected the endpoint
  bool failed = false; ///< UCX or the pidfd said so: do not send on it
  bool silent = false; ///< no bye: the other end knows, or never heard of us
  send_op* bye = nullptr;
  send_op* ping = nullptr; ///< the last one, while UCX has it
  void* close_request = nullptr;
  steady::time_point reach_by{}; ///< see engine::must_not_close()
  std::error_code why;
  std::string
    next_address; ///< a connect() that waits until this link has ended
};

} // namespace shoal::transport::ucx
