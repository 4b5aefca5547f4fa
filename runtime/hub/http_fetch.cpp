// runtime/hub/http_fetch.cpp -- libcurl's easy interface.
#include "runtime/hub/http_fetch.hpp"

#include "runtime/core/setup_error.hpp"

#include <curl/curl.h>
#include <signal.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <exception>
#include <string_view>

namespace shoal::hub {
namespace {

/// Of one header line: nobody needs longer ones here.
constexpr std::size_t header_line_max = 4096;

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] =
    std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data())
    return std::nullopt;
  return value;
}

/// A connection that the server closes is an error, not the end of the process:
/// libcurl does not see to that itself with CURLOPT_NOSIGNAL.
class without_sigpipe {
public:
  without_sigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~without_sigpipe() {
    const timespec at_once{};
    if (!was_pending_)
      while (sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
      }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  without_sigpipe(const without_sigpipe&) = delete;
  without_sigpipe& operator=(const without_sigpipe&) = delete;

private:
  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

/// A transfer under way, for libcurl's callbacks.
struct transfer {
  CURL* curl;
  const fetch_sink& sink;
  std::chrono::seconds silence;
  answer_head head{};
  std::chrono::steady_clock::time_point last_byte =
    std::chrono::steady_clock::now();
  bool begun = false;
  bool stopped = false;
  bool silent = false;
  std::exception_ptr thrown{}; ///< libcurl is in C: nothing passes through it

  template <class Function>
  bool guarded(Function f) {
    try {
      if (f())
        return true;
      stopped = true;
    } catch (...) {
      thrown = std::current_exception();
    }
    return false;
  }
  bool begin() {
    if (begun)
      return true;
    begun = true;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &head.status);
    return !sink.begin || sink.begin(head);
  }
};

void take_header(answer_head& head, std::string_view line) {
  if (line.starts_with("HTTP/")) { // of the next answer, after a redirect
    head = {};
    return;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || line.size() > header_line_max)
    return;
  std::string name(line.substr(0, colon));
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return char(std::tolower(c)); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ')
    value.remove_prefix(1);
  while (!value.empty()
         && std::isspace(static_cast<unsigned char>(value.back())))
    value.remove_suffix(1);
  if (name == "x-error-code")
    head.error_code = value;
  else if (name == "content-length")
    head.bytes = number(value);
  else if (name == "retry-after")
    head.retry_after_s = number(value);
  else if (name == "content-range" && value.starts_with("bytes "))
    head.first = number(value.substr(6));
}

extern "C" std::size_t
shoal_hub_header(char* line, std::size_t size, std::size_t count, void* to) {
  auto& t = *static_cast<transfer*>(to);
  const bool ok = t.guarded([&] {
    t.last_byte = std::chrono::steady_clock::now();
    take_header(t.head, {line, size * count});
    return true;
  });
  return ok ? size * count : 0;
}

extern "C" std::size_t
shoal_hub_body(char* bytes, std::size_t size, std::size_t count, void* to) {
  auto& t = *static_cast<transfer*>(to);
  const bool ok = t.guarded([&] {
    t.last_byte = std::chrono::steady_clock::now();
    return t.begin()
           && (!t.sink.bytes
               || t.sink.bytes(std::as_bytes(std::span(bytes, size * count))));
  });
  return ok ? size * count : 0;
}

extern "C" int
shoal_hub_progress(void* to, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& t = *static_cast<transfer*>(to);
  if (!t.guarded([&] { return !t.sink.goes_on || t.sink.goes_on(); }))
    return 1;
  // libcurl's own limit is on a mean over five seconds and more.
  t.silent = std::chrono::steady_clock::now() - t.last_byte > t.silence;
  return t.silent ? 1 : 0;
}

fetched::end end_of(CURLcode code) {
  switch (code) {
  case CURLE_OK:
    return fetched::end::whole;
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_RESOLVE_PROXY:
  case CURLE_COULDNT_CONNECT:
    return fetched::end::unreachable;
  case CURLE_PEER_FAILED_VERIFICATION:
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_TOO_MANY_REDIRECTS:
  case CURLE_UNSUPPORTED_PROTOCOL:
  case CURLE_URL_MALFORMAT:
    return fetched::end::refused;
  default:
    return fetched::end::cut;
  }
}

std::string_view host_of(std::string_view url) {
  const auto begin = url.find("://");
  url.remove_prefix(begin == std::string_view::npos ? 0 : begin + 3);
  url = url.substr(0, url.find('/'));
  if (url.starts_with('['))
    return url.substr(0, url.find(']') + 1);
  return url.substr(0, url.find(':'));
}

} // namespace

bool may_send_token(const std::string& url) {
  const std::string_view host = host_of(url);
  return url.starts_with("https://") || host == "localhost" || host == "[::1]"
         || (host.starts_with("127.")
             && host.find_first_not_of("0123456789.")
                  == std::string_view::npos);
}

struct http_fetch::state {
  CURL* curl = curl_easy_init();
  ~state() { curl_easy_cleanup(curl); }
};

http_fetch::http_fetch() {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  state_ = std::make_unique<state>();
  if (ready != CURLE_OK || state_->curl == nullptr)
    throw runtime::setup_error("libcurl, which downloads models, cannot start");
}

http_fetch::~http_fetch() = default;

fetched http_fetch::get(const fetch_request& request, const fetch_sink& sink) {
  CURL* const curl = state_->curl;
  const without_sigpipe quiet;
  curl_easy_reset(curl);
  transfer t{curl, sink, request.silence};
  char reason[CURL_ERROR_SIZE] = {};
  const bool https = request.url.starts_with("https://");
  const char* const protocols = https ? "https" : "http,https";
  const auto set = [curl](CURLoption option, auto value) {
    curl_easy_setopt(curl, option, value);
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, protocols);
  set(CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, redirects_max);
  set(CURLOPT_USERAGENT, "shoal");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT, long(connect_max.count()));
  set(CURLOPT_ERRORBUFFER, reason);
  if (!request.certificates.empty())
    set(CURLOPT_CAINFO, request.certificates.c_str());
  const std::string range = std::to_string(request.from) + "-";
  if (request.from > 0)
    set(CURLOPT_RANGE, range.c_str());
  // libcurl leaves it out after a redirect to another host, port or protocol.
  curl_slist* headers = nullptr;
  if (!request.token.empty() && may_send_token(request.url)) {
    headers = curl_slist_append(
      headers, ("Authorization: Bearer " + request.token).c_str());
    if (!https) // nor in clear text to a proxy
      set(CURLOPT_PROXY, "");
  }
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_HEADERFUNCTION, &shoal_hub_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&t));
  set(CURLOPT_WRITEFUNCTION, &shoal_hub_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&t));
  set(CURLOPT_XFERINFOFUNCTION, &shoal_hub_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&t));
  set(CURLOPT_NOPROGRESS, 0L);
  const CURLcode code = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  if (t.thrown)
    std::rethrow_exception(t.thrown);
  fetched out;
  out.how = end_of(code);
  if (code == CURLE_OK && !t.guarded([&] { return t.begin(); })) // no body
    out.how = fetched::end::stopped;
  if (t.stopped)
    out.how = fetched::end::stopped;
  out.head = t.head;
  if (out.how != fetched::end::whole)
    out.reason =
      t.silent ? "no byte for " + std::to_string(request.silence.count()) + " s"
      : reason[0] != 0 ? std::string(reason)
                       : std::string(curl_easy_strerror(code));
  curl_easy_reset(curl); // what it points to goes now
  return out;
}

} // namespace shoal::hub
