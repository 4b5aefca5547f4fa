// runtime/wire/envelope.hpp -- one control message of any kind: its valid
// senders, and its handler.
//
// A kind is one alternative of `envelope`. A new alternative does not compile
// until it has a row in the table of senders below, a take() in message_handler
// and its two conversions in codec.cpp.
//
// Threads: plain data; a handler says which thread calls it.
#pragma once

#include "runtime/core/cluster/messages.hpp"
#include "runtime/core/serving/serve_messages.hpp"
#include "runtime/core/training/job_messages.hpp"
#include "runtime/wire/client_messages.hpp"
#include "runtime/wire/messages.hpp"

#include <variant>

namespace shoal::runtime {

/// The content of one control message.
using envelope =
  std::variant<core::cluster::message, core::job_message, link_credit,
               blob_request, blob_chunk, paired_address, role_message,
               client_request, client_reply, link_probe, core::serve_message>;

/// The senders from which a kind of message counts. Every sender has proved the
/// cluster key, or an invite, to the fabric.
enum class senders : std::uint8_t {
  nodes,   ///< messages that make a view or that their handler checks itself,
           ///< and answers
  members, ///< of this node's view; held for a node that is not one yet
  clients, ///< and nodes that hand on a client's request
};

/// The table: one row for each kind.
struct senders_table {
  using enum senders;
  senders operator()(const core::cluster::message&) const { return nodes; }
  senders operator()(const core::job_message&) const { return nodes; }
  senders operator()(const link_credit&) const { return members; }
  senders operator()(const blob_request&) const { return members; }
  senders operator()(const blob_chunk&) const { return nodes; }
  senders operator()(const paired_address&) const { return members; }
  senders operator()(const role_message&) const { return members; }
  senders operator()(const client_request&) const { return clients; }
  senders operator()(const client_reply&) const { return nodes; }
  senders operator()(const link_probe&) const { return members; }
  senders operator()(const core::serve_message&) const { return members; }
};

[[nodiscard]] inline senders senders_of(const envelope& e) {
  return std::visit(senders_table{}, e);
}

/// Takes messages of every kind.
class message_handler {
public:
  virtual ~message_handler() = default;
  using peer = core::peer_id;
  virtual void take(const peer& from, core::cluster::message&& m) = 0;
  virtual void take(const peer& from, core::job_message&& m) = 0;
  virtual void take(const peer& from, link_credit&& m) = 0;
  virtual void take(const peer& from, blob_request&& m) = 0;
  virtual void take(const peer& from, blob_chunk&& m) = 0;
  virtual void take(const peer& from, paired_address&& m) = 0;
  virtual void take(const peer& from, role_message&& m) = 0;
  virtual void take(const peer& from, client_request&& m) = 0;
  virtual void take(const peer& from, client_reply&& m) = 0;
  virtual void take(const peer& from, link_probe&& m) = 0;
  virtual void take(const peer& from, core::serve_message&& m) = 0;
};

/// Passes `e` to the take() of its kind: the only place of a node that decides
/// by the kind of a message.
inline void
dispatch(message_handler& to, const core::peer_id& from, envelope&& e) {
  std::visit([&]<class Message>(Message& m) { to.take(from, std::move(m)); },
             e);
}

} // namespace shoal::runtime
