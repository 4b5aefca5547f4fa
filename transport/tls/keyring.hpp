// transport/tls/keyring.hpp -- the keys and identities that a fabric admits.
//
//   current   proves us, and is accepted from every peer
//   pending   also accepted; we try it if the current key is refused
//   replaced  accepted from `known` only: peers that were away at the change
//   revoked   identities that are refused whatever key they hold
//   invites   keys of tokens: only from peers in the role invitee
//
// A peer that proved one of our keys is told why it is refused, by a proof
// frame under that key whose role is the reason. Strangers learn nothing.
//
// Threads: plain data. Cost: one HMAC for each key tried.
#pragma once

#include "transport/tls/proof.hpp"

#include <optional>
#include <vector>

namespace shoal::transport::tls {

struct invite_key {
  shared_key key{};
  std::int64_t expires_s = 0; ///< Unix time
  peer_id used_by{};          ///< zero: not used; otherwise valid for this peer
};

struct keyring {
  shared_key current{};
  std::vector<shared_key> pending;
  std::vector<shared_key> replaced;
  std::vector<peer_id> known;   ///< sorted
  std::vector<peer_id> revoked; ///< sorted
  std::vector<invite_key> invites;
};

/// The result of checking a dialler's proof against a keyring.
struct judgement {
  const char* wrong = nullptr;    ///< why it is refused; for the log
  std::optional<refusal> because; ///< the reason sent to it; none: nothing sent
  shared_key key{};               ///< that the proof was made with
  claim what;
};

/// Judges the proof of the dialler `id` at Unix time `now_s`.
[[nodiscard]] judgement
admit(const keyring& keys, const exporter& binding, const peer_id& id,
      const proof_frame& frame, std::int64_t now_s);

bool is_revoked(const keyring& keys, const peer_id& id);

} // namespace shoal::transport::tls
