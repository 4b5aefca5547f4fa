// runtime/hub/http_fetch.hpp -- one GET by libcurl, with its redirects.
//
// Redirects are followed, from https to https only. The token goes to the host,
// port and protocol of the first URL and to no other, and never over http to
// another machine. URLs of redirects carry signatures: no text here shows one.
//
// Threads: one for each object; the first object of a process must be made
//          before other threads use libcurl.
// Errors:  in fetched: a status, or the reason why there is no whole answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace shoal::hub {

inline constexpr std::chrono::seconds connect_max{10};
/// The hub needs one or two.
inline constexpr long redirects_max = 8;

struct fetch_request {
  std::string url;
  std::string token;                ///< empty: none
  std::string certificates;         ///< a file; empty: the system's
  std::chrono::seconds silence{30}; ///< without a byte, the connection is given
                                    ///< up
  std::uint64_t from = 0;           ///< asks for the bytes from this one on
};

/// The last answer, after redirects.
struct answer_head {
  long status = 0;                    ///< 0: there was none
  std::string error_code;             ///< X-Error-Code, of the hub
  std::optional<std::uint64_t> first; ///< byte, of a part (Content-Range)
  std::optional<std::uint64_t> bytes; ///< that follow (Content-Length)
  std::optional<std::uint64_t> retry_after_s;
};

struct fetched {
  enum class end {
    whole,       ///< as far as the server says
    cut,         ///< the connection broke, was silent, or was not made
    unreachable, ///< no such host, or nothing listens there
    refused,     ///< by libcurl, for good: certificate, protocol, redirects
    stopped      ///< by one of the functions of the request
  };
  end how = end::whole;
  answer_head head;
  std::string reason; ///< unless whole; shows no URL
};

/// Where an answer goes.
struct fetch_sink {
  /// Of the last answer, before its bytes. False ends the transfer.
  std::function<bool(const answer_head&)> begin;
  std::function<bool(std::span<const std::byte>)> bytes;
  /// Called at least once a second. False ends the transfer.
  std::function<bool()> goes_on;
};

class http_fetch {
public:
  http_fetch(); ///< throws setup_error where libcurl does not work
  ~http_fetch();
  http_fetch(const http_fetch&) = delete;
  http_fetch& operator=(const http_fetch&) = delete;

  fetched get(const fetch_request& request, const fetch_sink& sink);

private:
  struct state;
  std::unique_ptr<state> state_; ///< keeps connections for the next request
};

/// Whether the token may be sent to a URL: over https, or to this machine.
[[nodiscard]] bool may_send_token(const std::string& url);

} // namespace shoal::hub
