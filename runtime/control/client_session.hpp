// runtime/control/client_session.hpp -- the node that a client talks to, and the
// others that it may move to.
//
// Finds a node by the ways that a client_config names, asks it, learns the other
// peers of its shoal from its status, and moves to one of them when it is gone.
//
// Threads: one at a time. Errors: errc of the call; text() then says it in words.
#pragma once

#include "runtime/control/client.hpp"
#include "runtime/control/client_link.hpp"
#include "runtime/wire/client_messages.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace shoal::runtime {

class client_session {
public:
  /// Connects nowhere yet.
  explicit client_session(client_config config);

  /// @param anywhere also to nodes that the user has not named: other ones of this
  /// machine, and those that were learnt
  std::error_code connect(bool anywhere);

  /// What is asked from now on is asked of this member, through the node. Empty: of
  /// the node itself.
  void ask_of(std::string member) { member_ = std::move(member); }

  /// One request. @param goes_on see client_link::call
  std::error_code ask(client_request_body body, client_reply& out,
                      const std::function<bool()>& goes_on = {});

  /// Asks for the status, to learn the shoal's other peers.
  std::error_code learn();
  /// The same from what status() returns; other text gives nothing.
  void learn_from(const std::string& status);

  /// Looks for a node, also another one, until `until`, or until `gives_up`, which
  /// is asked while none answers.
  bool move(std::chrono::steady_clock::time_point until,
            const std::function<bool()>& gives_up = {});

  /// The peers of the shoal but the asked one, as way_to() names them.
  const std::vector<std::string>& others() const;

  using way = std::function<bool(const client_request_body&, client_reply&)>;
  /// A way to ask one of others(): through the node if it is of this machine, as that
  /// needs no key; else at its address. Valid until the next move.
  /// @returns what asks and says whether the answer is reply_code::ok; empty if the
  /// peer is not reached
  way way_to(const std::string& other);

  /// Keeps the text of an error. @returns the error
  std::error_code fail(std::error_code error, std::string text) {
    text_ = std::move(text);
    return error;
  }

  const client_config& config() const { return config_; }
  const std::string& text() const { return text_; }
  /// Whom it talks to: a socket's path or an address.
  const std::string& where() const { return where_; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// The addresses at which the key was refused, by the last connect().
  const std::vector<std::string>& refusing() const { return refusing_; }

private:
  bool try_local(const std::filesystem::path& folder);
  bool try_address(const std::string& address);
  bool
  try_through(const std::filesystem::path& folder, const std::string& address);
  std::unique_ptr<client_link> dial(const std::string& address);

  client_config config_;
  std::unique_ptr<client_link> link_;
  std::string where_;
  bool near_ = false;           ///< it is a node of this machine
  std::filesystem::path asked_; ///< data directory of the last such node
  std::string text_;
  std::vector<std::string> addresses_; ///< learnt; also the asked node's
  std::vector<std::string> others_;    ///< learnt ids of all but the asked node
  std::vector<std::string> refusing_;
  std::string no_key_;    ///< why dial() has no key; empty: it has
  std::string not_there_; ///< what a node says that might have handed on
  std::string member_;    ///< that is asked through the node; empty: the node
  std::uint64_t last_number_ = 0;
};

} // namespace shoal::runtime
