// transport/tls/keyring.cpp -- judges proofs.
#include "transport/tls/keyring.hpp"

#include <algorithm>

namespace shoal::transport::tls {

bool is_revoked(const keyring& keys, const peer_id& id) {
  return std::ranges::binary_search(keys.revoked, id);
}

static judgement
admit_invitee(const keyring& keys, const exporter& binding, const peer_id& id,
              const proof_frame& frame, std::int64_t now_s) {
  judgement out;
  for (const invite_key& i : keys.invites) {
    out.key = i.key;
    out.wrong = check_proof(i.key, binding, side::dialler, id, frame, out.what);
    if (out.wrong)
      continue;
    if (is_revoked(keys, id)) {
      out.wrong = "its identity was revoked";
      out.because = refusal::revoked;
    } else if (i.used_by != peer_id{} && i.used_by != id) {
      out.wrong = "its invite was used by another peer";
      out.because = refusal::invite_used;
    } else if (now_s >= i.expires_s) {
      out.wrong = "its invite has expired";
      out.because = refusal::invite_expired;
    }
    return out;
  }
  out.wrong = "its invite is unknown here: used, expired or of another cluster";
  return out;
}

judgement admit(const keyring& keys, const exporter& binding, const peer_id& id,
                const proof_frame& frame, std::int64_t now_s) {
  if (claims_role(frame, peer_role::invitee))
    return admit_invitee(keys, binding, id, frame, now_s);
  judgement out;
  const auto holds = [&](const shared_key& key) {
    out.key = key;
    out.wrong = check_proof(key, binding, side::dialler, id, frame, out.what);
    return out.wrong == nullptr;
  };
  bool ok = holds(keys.current);
  const char* first = out.wrong; // the error is the same for every key
  for (auto k = keys.pending.begin(); !ok && k != keys.pending.end(); ++k)
    ok = holds(*k);
  if (!ok) {
    if (std::ranges::none_of(keys.replaced, holds)) {
      out.wrong = first;
      return out;
    }
    if (!std::ranges::binary_search(keys.known, id)) {
      out.wrong = "it holds a cluster key that was replaced";
      out.because = refusal::key_replaced;
    }
  }
  if (is_revoked(keys, id)) {
    out.wrong = "its identity was revoked";
    out.because = refusal::revoked;
  }
  return out;
}

} // namespace shoal::transport::tls
