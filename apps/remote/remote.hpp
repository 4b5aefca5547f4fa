// apps/remote/remote.hpp -- which node a command talks to.
//
// A command that only asks may use any node of this user: all of them know the
// shoal. A command that changes a node or a shoal must not guess: if there are
// several nodes, the user has to name one.
#pragma once

#include "apps/common/commands.hpp"
#include "apps/remote/status_json.hpp"
#include "runtime/control/client.hpp"

namespace shoal::apps {

/// The local node's socket, or by TLS the nodes named by --peer.
runtime::client_config client_of(const node_address& at);

/// The same, for a command that has connected before.
runtime::client_config client_again(const node_address& at);

/// The same as client_of(); without --cluster-key a node of this machine asks those of --peer.
/// @pre the command only asks what is_handed_on() (runtime/wire/client_messages.hpp)
runtime::client_config client_through(const node_address& at);

/// The connected node's answer to `shoal status`.
model::result<status_json> status_of(runtime::client& client);

/// Says on stderr that the connected node has no quorum, and why, if that is so:
/// what is asked next has to wait for one.
void say_no_quorum(runtime::client& client);

/// The options that express the same, for a command line that is printed: "
/// --name one", or nothing.
std::string options_text(const node_address& at);

/// Where a client that asked `at` is now: the node that was asked, here or at an
/// address, may have gone since. @param client  null: it has not asked yet
node_address address_now(node_address at, const runtime::client* client);

/// A command line that is printed for the user to copy, for the same node:
/// command_line("attach 1f", at, "a b") is "shoal attach 1f --name one --out
/// 'a b'". @param out  of --out; may be empty
std::string command_line(const std::string& command, const node_address& at,
                         const std::filesystem::path& out = {});

/// Whether the user has named the node: no other may be used.
bool says_which(const node_address& at);

/// Why the command needs a node's name: several nodes of this user run here,
/// and the address has neither name, directory nor peer.
/// @returns nothing if it is clear which node is meant.
std::string needs_a_name(const node_address& at, const std::string& command);

/// The address of the node that `member` names, if it runs on this machine and
/// the user has not named another one to ask; else `at`.
node_address address_of(const node_address& at, const std::string& member);

} // namespace shoal::apps
