// runtime/core/cluster/local/key_ring.hpp -- cluster keys that a peer knows.
//
// A key that is offered waits until a view names it by its digest; the key
// before it is remembered, so that peers that still use it are recognized.
// Where keys are never replaced (no digest function) all keys count as one.
#pragma once

#include "runtime/core/cluster/local/hello.hpp"
#include "runtime/core/view.hpp"

#include <vector>

namespace shoal::core::cluster {

/// The cluster keys that a peer knows.
struct key_record {
  cluster_key current{};
  std::vector<cluster_key> pending;  ///< offered, not yet named by a view
  std::vector<cluster_key> replaced; ///< newest last
  friend bool operator==(const key_record&, const key_record&) = default;
};
void fields(auto& v, of<key_record> auto& x) {
  v("current", x.current);
  v("pending", x.pending, list_of(keys_pending_max));
  v("replaced", x.replaced, list_of(keys_replaced_max));
}

/// How another shoal's cluster key relates to ours.
enum class key_age { same, newer, older, unrelated };

class key_ring {
public:
  /// @param digest how views name a key; null: keys are never replaced here
  key_ring(const cluster_key& key, key_digest (*digest)(const cluster_key&))
    : digest_(digest) {
    keys_.current = key;
  }

  /// Takes the keys as they were stored.
  void restore(key_record keys) { keys_ = std::move(keys); }
  const key_record& record() const { return keys_; }
  const cluster_key& current() const { return keys_.current; }
  bool can_be_replaced() const { return digest_ != nullptr; }
  /// @pre can_be_replaced()
  key_digest digest(const cluster_key& key) const { return digest_(key); }

  /// Keeps an offered key. @returns whether it is new
  bool hold(const cluster_key& key);
  /// Whether the key in use is the one that this view names.
  bool fits(const view& v) const;
  /// Starts to use the key that `v` names. @returns whether this peer has it
  bool take_into_use(const view& v);

  /// The key with which a new shoal of ours begins. The previous view, `v`, may
  /// name a key that we never got: then no member could give it, and all would
  /// ask.
  key_digest to_found_with(const view& v) const;
  key_age age_of(const hello& said) const;
  /// Adds to our hello which keys we use and used.
  void describe(hello& own) const;

private:
  key_digest (*digest_)(const cluster_key& key);
  key_record keys_;
};

} // namespace shoal::core::cluster
