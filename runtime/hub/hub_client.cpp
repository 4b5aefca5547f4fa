// runtime/hub/hub_client.cpp -- URLs, tries, and what the hub's answers mean.
#include "runtime/hub/hub_client.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/hub/partial_blob.hpp"

#include <algorithm>
#include <optional>
#include <thread>

namespace shoal::hub {
namespace {

using model::failure;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A step of a wait: Ctrl-C is heard so soon.
constexpr milliseconds wait_step{50};

/// For a URL. @param kept  character that stays as it is, beside the usual ones
std::string escaped(std::string_view text, char kept) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
                       || (c >= '0' && c <= '9') || c == '-' || c == '_'
                       || c == '.' || c == '~' || c == kept;
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', "0123456789ABCDEF"[byte >> 4], "0123456789ABCDEF"[byte & 15]};
  }
  return out;
}

bool is_good(const answer_head& head) {
  return head.status == 200 || head.status == 206;
}

/// Whether the same request may succeed later.
bool may_pass(const fetched& got) {
  const long s = got.head.status;
  if (s == 408 || s == 429 || s == 500 || s == 502 || s == 503 || s == 504)
    return true;
  return (s == 0 || is_good(got.head))
         && (got.how == fetched::end::cut
             || got.how == fetched::end::unreachable);
}

} // namespace

hub_client::hub_client(const hub_settings& settings,
                       std::function<bool()> goes_on)
  : settings_(settings), goes_on_(std::move(goes_on)) {
}

fetch_request hub_client::request_for(std::string url) const {
  return {std::move(url), settings_.token, settings_.certificates,
          settings_.silence, 0};
}

failure
hub_client::refusal(const hub_name& name, const answer_head& head) const {
  const std::string status =
    " (" + std::to_string(head.status)
    + (head.error_code.empty() ? "" : ", " + core::shown(head.error_code, 64))
    + ")";
  const std::string& hub = settings_.endpoint;
  const bool sent =
    !settings_.token.empty() && may_send_token(settings_.endpoint);
  const std::string page = hub + "/" + name.repository;
  if (head.error_code == "GatedRepo")
    return {name.repository + " is gated" + status
            + ": accept its conditions at " + page + ", then "
            + (sent ? "use a token of that account that may read gated models"
                    : "set HF_TOKEN to a token of that account")
            + " (" + hub + "/settings/tokens)"};
  if (head.error_code == "RevisionNotFound")
    return {name.repository + " has no revision '" + name.revision + "'"
            + status + ": choose a branch, tag or commit that " + page
            + " shows"};
  if (head.error_code == "EntryNotFound")
    return {name.repository + ": the hub lists a file that it does not have"
            + status + ": try again, or choose another revision"};
  if (head.status == 401)
    return {sent ? "the hub refuses the token" + status
                     + ": set HF_TOKEN to a valid one (" + hub
                     + "/settings/tokens), or unset it for public models"
                 : hub + " shows " + name.repository
                     + " to nobody without a token" + status
                     + ": check the spelling; if it is private or gated, set "
                       "HF_TOKEN to a token that may read it"};
  if (head.status == 403)
    return {"the hub refuses access to " + name.repository + status + ": "
            + (sent ? "use a token that may read it"
                    : "set HF_TOKEN to a token that may read it")
            + ", and accept its conditions at " + page + " if it has any"};
  if (head.status == 404)
    return {hub + " has no model " + name.repository + status
            + ": check the spelling"
            + (sent ? ", and that the token may read it"
                    : "; if it is private, set HF_TOKEN")};
  return {hub + " answers with status " + std::to_string(head.status)
          + (head.status == 429   ? ", too many requests: try again later"
             : head.status >= 500 ? ", a fault of its own: try again later"
                                  : ", which no hub does: check HF_ENDPOINT")};
}

/// Why there is no whole answer. Not for statuses.
std::string hub_client::trouble(const fetched& got) const {
  const std::string reason = core::shown(got.reason);
  switch (got.how) {
  case fetched::end::unreachable:
    return "cannot reach " + settings_.endpoint + ": " + reason
           + ": check the network, HF_ENDPOINT and https_proxy";
  case fetched::end::refused:
    return "cannot download from " + settings_.endpoint + ": " + reason;
  default:
    return "the connection to " + settings_.endpoint
           + " broke: " + (reason.empty() ? "it ended too early" : reason);
  }
}

/// @returns false if that was the last try, or the user has stopped it
bool hub_client::wait(unsigned failures, const answer_head& head) const {
  if (failures >= tries_max)
    return false;
  auto time = first_wait;
  for (unsigned i = 1; i < failures; ++i)
    time *= 4;
  if (head.retry_after_s)
    time = std::min<milliseconds>(
      std::chrono::seconds(std::min<std::uint64_t>(
        *head.retry_after_s, std::uint64_t(server_wait_max.count()))),
      server_wait_max);
  const auto end = steady_clock::now() + time;
  while (steady_clock::now() < end) {
    if (!goes_on_())
      return false;
    std::this_thread::sleep_for(
      std::min<steady_clock::duration>(wait_step, end - steady_clock::now()));
  }
  return goes_on_();
}

model::result<hub_listing> hub_client::list(const hub_name& name) {
  const fetch_request request =
    request_for(settings_.endpoint + "/api/models/" + name.repository
                + "/revision/" + escaped(name.revision, '-') + "?blobs=true");
  unreachable_ = false;
  for (unsigned failures = 1;; ++failures) {
    std::string text;
    bool too_long = false;
    const fetched got = http_.get(
      request, {is_good,
                [&](std::span<const std::byte> bytes) {
                  too_long = text.size() + bytes.size() > listing_bytes_max;
                  if (!too_long)
                    text.append(reinterpret_cast<const char*>(bytes.data()),
                                bytes.size());
                  return !too_long;
                },
                goes_on_});
    if (too_long)
      return failure{settings_.endpoint + ": its list of the files of "
                     + name.repository + " has more than "
                     + std::to_string(listing_bytes_max) + " bytes"};
    if (got.how == fetched::end::whole)
      return parse_listing(text, settings_.endpoint + "'s list of the files of "
                                   + name.repository);
    if (!goes_on_())
      return failure{"stopped while asking " + settings_.endpoint};
    // Where nothing listens, waiting rarely helps, and a cache may do.
    if (may_pass(got) && got.how != fetched::end::unreachable
        && wait(failures, got.head))
      continue;
    unreachable_ = may_pass(got);
    if (got.head.status != 0 && !is_good(got.head))
      return refusal(name, got.head);
    return failure{trouble(got)};
  }
}

model::status
hub_client::download(const hub_name& name, const std::string& commit,
                     const hub_file& file, const hub_cache& cache,
                     const blob_lock& lock,
                     const std::function<void(std::uint64_t, bool)>& told) {
  partial_blob part(cache.blob(file.hash), file, lock.held());
  if (auto opened = part.open([&](std::uint64_t n) {
        told(n, true);
        return goes_on_();
      });
      !opened)
    return opened;
  fetch_request request =
    request_for(settings_.endpoint + "/" + name.repository + "/resolve/"
                + commit + "/" + escaped(file.path, '/'));
  const std::string what = name.repository + ": " + core::shown(file.path);
  std::optional<failure> wrong; // with what came, or with the disk
  const fetch_sink sink{
    [&](const answer_head& head) {
      if (!is_good(head))
        return false;
      const std::uint64_t first =
        head.status == 206 ? head.first.value_or(0) : 0;
      // A server need not know of parts: then all comes again.
      if (first != part.bytes()) {
        if (auto again = part.restart(); !again)
          wrong = again.why();
        if (first != 0)
          return false;
      }
      if (head.bytes && *head.bytes != file.bytes - part.bytes())
        wrong = failure{what + " should have " + std::to_string(file.bytes)
                        + " bytes by the hub's list, but the server has "
                        + std::to_string(part.bytes() + *head.bytes)
                        + ": try again later, or check HF_ENDPOINT"};
      return !wrong;
    },
    [&](std::span<const std::byte> bytes) {
      if (bytes.size() > file.bytes - part.bytes())
        wrong =
          failure{what + " has more than the " + std::to_string(file.bytes)
                  + " bytes of the hub's list: try again later, or check "
                    "HF_ENDPOINT"};
      else if (auto added = part.add(bytes); !added)
        wrong = failure{added.message()
                        + "; what has come so far is kept, and the same "
                          "command goes on from there"};
      else
        told(part.bytes(), false);
      return !wrong;
    },
    goes_on_};
  for (unsigned failures = 0;;) {
    while (part.bytes() < file.bytes) {
      const std::uint64_t before = part.bytes();
      request.from = before;
      const fetched got = http_.get(request, sink);
      if (wrong)
        return *wrong;
      if (!goes_on_())
        return failure{"stopped while downloading " + what};
      if (part.bytes() == file.bytes)
        break;
      failures = part.bytes() > before ? 1 : failures + 1;
      const bool other_part = got.head.status == 206 || got.head.status == 416;
      if (got.head.status == 416)
        if (auto again = part.restart(); !again)
          return again;
      if ((other_part || may_pass(got) || got.how == fetched::end::whole)
          && wait(failures, got.head))
        continue;
      if (!goes_on_())
        return failure{"stopped while downloading " + what};
      if (got.head.status != 0 && !is_good(got.head))
        return refusal(name, got.head);
      return failure{what + ": " + trouble(got)
                     + "; what has come so far is kept, and the same command "
                       "goes on from there"};
    }
    const bool resumed = part.resumed();
    auto right = part.finish();
    if (!right)
      return right.why();
    if (*right)
      return model::done{};
    if (auto again = part.restart(); !again)
      return again;
    // A crash may have harmed what was there before.
    if (!resumed)
      return failure{what + " has another hash than the hub says (" + file.hash
                     + "): it is damaged, or changed on its way, and was not "
                       "kept. Try again; check HF_ENDPOINT and proxies"};
  }
}

} // namespace shoal::hub
