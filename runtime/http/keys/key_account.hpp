// runtime/http/keys/key_account.hpp -- what a key may still ask for now.
//
// Two token buckets, each as large as its limit for one minute, full at first and
// refilled evenly. A request takes 1 from the first one. Its prompt is taken from the
// second one before anything is computed, whole or not at all; what is generated is
// taken as it comes, also beyond what is there: an answer is never cut off, and what
// it owes keeps later prompts waiting. A prompt of which nothing was computed, since
// the model had no room for it, is given back.
//
// A node counts alone: a key has its limits at each node again.
//
// Threads: any; a lock is held for some additions.
// Errors:  429, with the time until the same would be allowed; it names the limit and
//          the key's name.
#pragma once

#include "runtime/http/keys/api_keys.hpp"
#include "runtime/openai/api_error.hpp"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shoal::runtime {

using key_clock = std::function<std::chrono::steady_clock::time_point()>;

/// What may be taken from it in a minute; what is not taken is kept for that time.
class rate_bucket {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using seconds = std::chrono::duration<double>;

  /// @param per_minute not 0
  rate_bucket(std::uint64_t per_minute, time_point now)
    : size_(double(per_minute)), level_(size_), at_(now) {}

  std::uint64_t size() const { return std::uint64_t(size_); }
  /// What is there; 0 if something is owed.
  std::uint64_t left(time_point now);
  /// @returns time until it is full
  seconds full_in(time_point now);
  /// @returns time until `amount` is there; 0: it was, and is taken
  seconds take(std::uint64_t amount, time_point now);
  /// Takes it, though it may not be there.
  void owe(std::uint64_t amount, time_point now);
  /// Of what was taken; it is never more than full.
  void give_back(std::uint64_t amount, time_point now);

private:
  void refill(time_point now);

  double size_;
  double level_; ///< below 0: owed
  time_point at_;
};

/// Requests that were refused since the start.
struct key_refusals {
  std::string name;                       ///< of the key
  std::uint64_t requests = 0, tokens = 0; ///< by the limit that they exceeded
};

class key_account {
public:
  key_account(std::string name, key_limits limits, key_clock now);

  /// Takes 1 request. @returns why not
  std::optional<openai::api_error> take_request();
  /// Takes the tokens of a request's prompts. @returns why not
  std::optional<openai::api_error> take_prompt(std::uint64_t tokens);
  /// Tokens of take_prompt() that were not used.
  void give_back(std::uint64_t tokens);
  void generated(std::uint64_t tokens);

  using named_values = std::vector<std::pair<std::string, std::string>>;
  /// x-ratelimit-limit-requests and the like, as in OpenAI's API.
  named_values headers() const;
  /// anthropic-ratelimit-requests-limit and the like: the same as in Anthropic's API,
  /// with the time at which all is there again. @param now of the clock of the day
  named_values anthropic_headers(std::time_t now) const;
  key_refusals refusals() const;
  const key_limits& limits() const noexcept { return limits_; }

private:
  openai::api_error refusal(const char* what, std::uint64_t limit,
                            rate_bucket::seconds after) const;

  const std::string name_;
  const key_limits limits_;
  const key_clock now_;
  mutable std::mutex mutex_; ///< guards what follows
  mutable std::optional<rate_bucket> requests_, tokens_;
  std::uint64_t refused_requests_ = 0, refused_tokens_ = 0;
};

/// Of all keys that have limits, from their first request on.
class key_accounts {
public:
  explicit key_accounts(key_clock now) : now_(std::move(now)) {}

  /// Null if the key has no limits. A key whose limits have changed begins anew.
  std::shared_ptr<key_account> of(const api_key& key);
  /// In the order of their names.
  std::vector<key_refusals> refusals() const;

private:
  const key_clock now_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<key_account>> all_;
};

/// What a request has generated, on the account of its key.
class token_bill {
public:
  token_bill() = default;
  /// Tokens that a client has from before (Last-Event-ID) are charged, too: they may
  /// have to be generated again. @param account may be null
  explicit token_bill(std::shared_ptr<key_account> account)
    : account_(std::move(account)) {}
  /// The number generated in all. If it is lower than before, they are generated again:
  /// each is charged once.
  void up_to(std::uint64_t tokens);
  /// The request is refused for want of room: its prompt cost nothing, unless
  /// something was generated.
  void give_back_prompt(std::uint64_t tokens);

private:
  std::shared_ptr<key_account> account_;
  std::uint64_t charged_ = 0;
};

} // namespace shoal::runtime
