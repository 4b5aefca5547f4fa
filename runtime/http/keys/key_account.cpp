// runtime/http/keys/key_account.cpp -- buckets, and what is said of them.
#include "runtime/http/keys/key_account.hpp"

#include "runtime/core/text/amounts.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::runtime {
namespace {

constexpr double minute = 60;
/// What rounding may lack: far less than one request or token.
constexpr double rounding = 1e-6;

unsigned whole_seconds(rate_bucket::seconds time) {
  return unsigned(std::clamp(std::ceil(time.count() - rounding), 1.0, 4e9));
}

/// "120ms", "6m0s", as OpenAI's API writes times.
std::string time_text(rate_bucket::seconds time) {
  if (time.count() < 1)
    return std::to_string(std::int64_t(std::ceil(time.count() * 1000))) + "ms";
  auto rest = std::uint64_t(std::ceil(time.count() - rounding));
  std::string out;
  for (const auto& [unit, name] : {std::pair{3600u, "h"}, {60u, "m"}})
    if (rest >= unit || !out.empty()) {
      out += std::to_string(rest / unit) + name;
      rest %= unit;
    }
  return out + std::to_string(rest) + "s";
}

/// "2026-11-27T08:30:00Z": RFC 3339.
std::string day_time_text(std::time_t at) {
  std::tm utc{};
  char text[40] = {};
  if (::gmtime_r(&at, &utc) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void add_anthropic(const std::string& what, rate_bucket& of,
                   rate_bucket::time_point now, std::time_t day_time,
                   key_account::named_values& to) {
  const std::string begin = "anthropic-ratelimit-" + what;
  const double wait = std::ceil(of.full_in(now).count() - rounding);
  to.emplace_back(begin + "-limit", std::to_string(of.size()));
  to.emplace_back(begin + "-remaining", std::to_string(of.left(now)));
  to.emplace_back(begin + "-reset",
                  day_time_text(day_time + std::time_t(std::max(wait, 0.0))));
}

void add_headers(const char* what, rate_bucket& of, rate_bucket::time_point now,
                 key_account::named_values& to) {
  const auto add = [&](const char* which, std::string value) {
    to.emplace_back(std::string("x-ratelimit-") + which + "-" + what,
                    std::move(value));
  };
  add("limit", std::to_string(of.size()));
  add("remaining", std::to_string(of.left(now)));
  add("reset", time_text(of.full_in(now)));
}

} // namespace

void rate_bucket::refill(time_point now) {
  if (now <= at_)
    return;
  const double more = seconds(now - at_).count() * size_ / minute;
  level_ = std::min(size_, level_ + more);
  at_ = now;
}

std::uint64_t rate_bucket::left(time_point now) {
  refill(now);
  return std::uint64_t(std::max(level_ + rounding, 0.0));
}

rate_bucket::seconds rate_bucket::full_in(time_point now) {
  refill(now);
  return seconds((size_ - level_) * minute / size_);
}

rate_bucket::seconds rate_bucket::take(std::uint64_t amount, time_point now) {
  refill(now);
  const double lacks = double(amount) - level_;
  if (lacks > rounding)
    return seconds(lacks * minute / size_);
  level_ -= double(amount);
  return seconds(0);
}

void rate_bucket::owe(std::uint64_t amount, time_point now) {
  refill(now);
  level_ -= double(amount);
}

void rate_bucket::give_back(std::uint64_t amount, time_point now) {
  refill(now);
  level_ = std::min(size_, level_ + double(amount));
}

key_account::key_account(std::string name, key_limits limits, key_clock now)
  : name_(std::move(name)), limits_(limits), now_(std::move(now)) {
  if (limits_.requests_per_minute > 0)
    requests_.emplace(limits_.requests_per_minute, now_());
  if (limits_.tokens_per_minute > 0)
    tokens_.emplace(limits_.tokens_per_minute, now_());
}

openai::api_error key_account::refusal(const char* what, std::uint64_t limit,
                                       rate_bucket::seconds after) const {
  const unsigned seconds = whole_seconds(after);
  return openai::rate_limited(
    "the limit of the key \"" + name_
      + "\" at this node is reached: " + std::to_string(limit) + " " + what
      + " a minute; try again in " + std::to_string(seconds) + " s",
    seconds);
}

std::optional<openai::api_error> key_account::take_request() {
  const std::lock_guard guard(mutex_);
  if (!requests_)
    return std::nullopt;
  const auto wait = requests_->take(1, now_());
  if (wait.count() == 0)
    return std::nullopt;
  ++refused_requests_;
  return refusal("requests", requests_->size(), wait);
}

std::optional<openai::api_error>
key_account::take_prompt(std::uint64_t tokens) {
  const std::lock_guard guard(mutex_);
  if (!tokens_)
    return std::nullopt;
  if (tokens > tokens_->size()) {
    ++refused_tokens_;
    return openai::rate_limited(
      "the prompt has " + core::count_text(tokens, "token") + ", and the key \""
        + name_ + "\" may use " + std::to_string(tokens_->size())
        + " a minute: a shorter one is needed",
      openai::api_error::never);
  }
  const auto wait = tokens_->take(tokens, now_());
  if (wait.count() == 0)
    return std::nullopt;
  ++refused_tokens_;
  return refusal("tokens", tokens_->size(), wait);
}

void key_account::give_back(std::uint64_t tokens) {
  const std::lock_guard guard(mutex_);
  if (tokens_)
    tokens_->give_back(tokens, now_());
}

void key_account::generated(std::uint64_t tokens) {
  const std::lock_guard guard(mutex_);
  if (tokens_)
    tokens_->owe(tokens, now_());
}

key_account::named_values
key_account::anthropic_headers(std::time_t now) const {
  const std::lock_guard guard(mutex_);
  named_values out;
  if (requests_)
    add_anthropic("requests", *requests_, now_(), now, out);
  if (tokens_)
    add_anthropic("tokens", *tokens_, now_(), now, out);
  return out;
}

key_account::named_values key_account::headers() const {
  const std::lock_guard guard(mutex_);
  named_values out;
  if (requests_)
    add_headers("requests", *requests_, now_(), out);
  if (tokens_)
    add_headers("tokens", *tokens_, now_(), out);
  return out;
}

key_refusals key_account::refusals() const {
  const std::lock_guard guard(mutex_);
  return {name_, refused_requests_, refused_tokens_};
}

std::shared_ptr<key_account> key_accounts::of(const api_key& key) {
  if (!key.limits.any())
    return nullptr;
  const std::lock_guard guard(mutex_);
  auto& account = all_[key.name];
  if (!account || account->limits() != key.limits)
    account = std::make_shared<key_account>(key.name, key.limits, now_);
  return account;
}

std::vector<key_refusals> key_accounts::refusals() const {
  const std::lock_guard guard(mutex_);
  std::vector<key_refusals> out;
  for (const auto& [name, account] : all_)
    out.push_back(account->refusals());
  return out;
}

void token_bill::up_to(std::uint64_t tokens) {
  if (tokens <= charged_)
    return;
  if (account_)
    account_->generated(tokens - charged_);
  charged_ = tokens;
}

void token_bill::give_back_prompt(std::uint64_t tokens) {
  if (account_ && charged_ == 0)
    account_->give_back(tokens);
}

} // namespace shoal::runtime
