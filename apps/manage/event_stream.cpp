// apps/manage/event_stream.cpp -- follows a job for one client.
#include "apps/manage/event_stream.hpp"

#include "apps/manage/management_requests.hpp"
#include "runtime/jobs/event_json.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace shoal::apps {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds comment_every{15};
/// Between two looks whether the server ends, while a client reads nothing.
constexpr std::chrono::milliseconds look_again{500};

/// What the server says of the client.
class client_state final : public runtime::http_watcher {
public:
  void closed() override {
    std::lock_guard lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }
  void writable() override {
    std::lock_guard lock(mutex_);
    writable_ = true;
    changed_.notify_all();
  }
  bool gone() const {
    std::lock_guard lock(mutex_);
    return gone_;
  }
  /// After a `pause`. @returns false if the stream is over
  bool wait(const std::function<bool()>& ends) {
    std::unique_lock lock(mutex_);
    while (!writable_ && !gone_ && !ends())
      changed_.wait_for(lock, look_again);
    return std::exchange(writable_, false) && !gone_;
  }

private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool gone_ = false;
  bool writable_ = false;
};

class stream final : public runtime::follow_handler {
public:
  stream(runtime::http_exchange& out, client_state& client,
         const std::function<bool()>& ends)
    : out_(out), client_(client), ends_(ends) {}

  bool on(const runtime::job_event& e) override {
    return write("id: " + std::to_string(++count_)
                 + "\ndata: " + runtime::to_json_line(e) + "\n\n")
           && e.kind != runtime::job_event_kind::done;
  }
  bool stops() override {
    if (ends_() || client_.gone())
      return true;
    if (steady_clock::now() - written_ > comment_every)
      return !write(": waiting\n\n");
    return false;
  }
  /// The node of this process: there is no other one to go on with.
  bool lost() override { return true; }

private:
  bool write(const std::string& text) {
    written_ = steady_clock::now();
    switch (out_.write(text)) {
    case runtime::http_write::ok:
      return true;
    case runtime::http_write::pause:
      return client_.wait(ends_);
    case runtime::http_write::gone:
      break;
    }
    return false;
  }

  runtime::http_exchange& out_;
  client_state& client_;
  const std::function<bool()>& ends_;
  std::uint64_t count_ = 0;
  steady_clock::time_point written_ = steady_clock::now();
};

} // namespace

void stream_events(runtime::client& client, const std::string& wanted,
                   const std::shared_ptr<runtime::http_exchange>& exchange,
                   const std::function<bool()>& ends) {
  const auto job = job_of_path(client, wanted);
  if (auto* const error = std::get_if<openai::api_error>(&job)) {
    exchange->respond(*error);
    return;
  }
  const auto state = std::make_shared<client_state>();
  exchange->watch(state);
  if (!exchange->begin_stream(200, {{"Content-Type", "text/event-stream"},
                                    {"Cache-Control", "no-cache"}}))
    return;
  exchange->write(""); // the page is told that it has begun
  stream to(*exchange, *state, ends);
  if (client.follow(std::get<found_job>(job).id, to) && !state->gone()
      && !ends())
    return; // the node is gone: the stream is cut off
  exchange->end();
}

} // namespace shoal::apps
