// runtime/hub/hub_client.hpp -- what is asked of the hub: the files of a
// repository, and their bytes.
//
// A transfer that breaks or is silent is tried again, from the byte where it
// broke. Each wait is four times the one before; a transfer that got on starts
// with the shortest again.
//
// Threads: one.
// Errors:  a failure says what to do. No token and no URL of a redirect is in
//          it.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/hub/http_fetch.hpp"
#include "runtime/hub/hub_cache.hpp"
#include "runtime/hub/hub_listing.hpp"
#include "runtime/hub/hub_name.hpp"
#include "runtime/hub/hub_settings.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace shoal::hub {

/// Failures in a row without a byte between them. With the waits below a server
/// that restarts has 34 s.
inline constexpr unsigned tries_max = 6;
inline constexpr std::chrono::milliseconds first_wait{100};
/// Of what a server asks for by Retry-After: a limit of the hub's lasts 5
/// minutes at most.
inline constexpr std::chrono::seconds server_wait_max{300};

class hub_client {
public:
  /// @param goes_on  is called at least once a second; false ends all
  hub_client(const hub_settings& settings, std::function<bool()> goes_on);

  /// The files at the name's revision.
  model::result<hub_listing> list(const hub_name& name);
  /// Whether list() failed as nothing answered: the cache may do.
  bool unreachable() const noexcept { return unreachable_; }

  /// Downloads a file of a commit to its blob. @pre the blob is locked
  /// @param told  of the bytes of the file that are here; `checking` while those
  ///              of an earlier download are read
  model::status
  download(const hub_name& name, const std::string& commit,
           const hub_file& file, const hub_cache& cache, const blob_lock& lock,
           const std::function<void(std::uint64_t, bool checking)>& told);

private:
  fetch_request request_for(std::string url) const;
  model::failure refusal(const hub_name& name, const answer_head& head) const;
  std::string trouble(const fetched& got) const;
  bool wait(unsigned failures, const answer_head& head) const;

  const hub_settings& settings_;
  std::function<bool()> goes_on_;
  http_fetch http_;
  bool unreachable_ = false;
};

} // namespace shoal::hub
