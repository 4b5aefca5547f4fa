// transport/tls/keyring.hpp -- which keys and identities a fabric admits.
//
//   current   proves us, and is accepted of everybody
//   pending   accepted too; tried by us where the current one is refused
//   replaced  accepted of `known` only: peers that were away meanwhile
//   revoked   identities that are refused whatever they hold
//   invites   keys of tokens: of peers in the role invitee only
//
// A refusal is told to who has proved a key of ours, by a proof frame under
// that key whose role is the reason; strangers learn nothing.
//
// Threads: plain data. Cost: one HMAC for each key that is tried.
#pragma once

#include "transport/tls/proof.hpp"

#include <optional>
#include <vector>

namespace shoal::transport::tls {

struct invite_key {
  shared_key key{};
  std::int64_t expires_s = 0; ///< Unix time
  peer_id used_by{};          ///< zero: nobody yet; else only by this one
};

struct keyring {
  shared_key current{};
  std::vector<shared_key> pending;
  std::vector<shared_key> replaced;
  std::vector<peer_id> known;   ///< sorted
  std::vector<peer_id> revoked; ///< sorted
  std::vector<invite_key> invites;
};

/// What a keyring says of a dialler's proof.
struct judgement {
  const char* wrong = nullptr;    ///< why it is refused; for the log
  std::optional<refusal> because; ///< and what it is told; none: nothing
  shared_key key{};               ///< that the proof was made with
  claim what;
};

/// Judges the proof of the dialler `id` at Unix time `now_s`.
[[nodiscard]] judgement
admit(const keyring& keys, const exporter& binding, const peer_id& id,
      const proof_frame& frame, std::int64_t now_s);

bool is_revoked(const keyring& keys, const peer_id& id);

} // namespace shoal::transport::tls
