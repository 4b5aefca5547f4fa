// apps/manage/management.cpp -- paths, and the threads behind them.
#include "apps/manage/management.hpp"

#include "apps/manage/event_stream.hpp"
#include "apps/manage/management_requests.hpp"
#include "apps/remote/traffic_look.hpp"
#include "runtime/files/json.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

namespace shoal::apps {

using runtime::http_exchange;
using exchange_ptr = std::shared_ptr<http_exchange>;

namespace {

constexpr std::size_t waiting_max = 32; ///< requests of one thread
constexpr std::size_t streams_max = 32; ///< jobs that are followed
constexpr unsigned come_again_s = 1;

/// Carries out requests, one after the other.
class request_thread {
public:
  using work = std::function<void(runtime::client&)>;

  /// @returns false if too many wait
  bool add(work w) {
    std::lock_guard lock(mutex_);
    if (work_.size() >= waiting_max || ended_)
      return false;
    work_.push_back(std::move(w));
    changed_.notify_one();
    return true;
  }
  void start(runtime::client_config config) {
    thread_ = std::jthread([this, config](const std::stop_token& stop) {
      while (const work w = next(stop)) {
        // Of each request, as of each command: what it uploads is its own.
        runtime::client client(config);
        w(client);
      }
    });
  }
  void end() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    thread_ = {}; // asks it to stop, and waits
    work_.clear();
  }

private:
  work next(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !work_.empty(); })
        || stop.stop_requested())
      return {};
    work w = std::move(work_.front());
    work_.pop_front();
    return w;
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<work> work_;
  bool ended_ = false;
  std::jthread thread_; // last: it uses the others
};

} // namespace

class management::impl {
public:
  explicit impl(bool changes) : changes_(changes) {}

  using blocking = std::function<http_answer(runtime::client&)>;

  /// Answers on a thread of its own.
  void ask(request_thread& by, const exchange_ptr& x, blocking question) {
    if (!is_open(x))
      return;
    const bool taken =
      by.add([x, question = std::move(question)](runtime::client& client) {
        const http_answer answer = answer_of(question, client);
        if (const auto* const error = std::get_if<openai::api_error>(&answer))
          x->respond(*error);
        else if (const auto& whole = std::get<json_answer>(answer); true)
          x->respond(whole.status, {{"Content-Type", "application/json"}},
                     whole.json);
      });
    if (!taken)
      too_many(x);
  }

  /// What a request does wrong must not end the node.
  static http_answer
  answer_of(const blocking& question, runtime::client& client) {
    try {
      return question(client);
    } catch (const std::exception& e) {
      return openai::server_error("the request failed: "
                                  + std::string(e.what()));
    }
  }

  void stream(const exchange_ptr& x, const std::string& job) {
    if (!is_open(x))
      return;
    std::lock_guard lock(mutex_);
    std::erase_if(streams_, [](const follower& f) { return f.ended->load(); });
    if (ended_ || streams_.size() >= streams_max)
      return too_many(x);
    auto ended = std::make_shared<std::atomic<bool>>(false);
    const auto follow = [x, job, ended,
                         config = config_](const std::stop_token& stop) {
      try {
        runtime::client client(config);
        stream_events(client, job, x, [&] { return stop.stop_requested(); });
      } catch (const std::exception&) {
        x->end(); // without a "done": the client asks again
      }
      *ended = true;
    };
    try {
      streams_.push_back({ended, std::jthread(follow)});
    } catch (const std::system_error&) {
      too_many(x);
    }
  }

  bool may_change(const exchange_ptr& x) const {
    if (!changes_)
      x->respond(changes_are_off());
    return changes_;
  }

  void open(const std::filesystem::path& data_dir) {
    std::lock_guard lock(mutex_);
    if (std::exchange(open_, true) || ended_)
      return;
    config_.data_dir = data_dir;
    config_.named = true;
    looks.start(config_);
    submits.start(config_);
    traffic_.emplace(config_);
    peers.start(config_);
  }

  void end() {
    std::list<follower> streams;
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
      streams.swap(streams_);
    }
    stops_ = true;
    for (follower& f : streams)
      f.thread.request_stop();
    looks.end();
    submits.end();
    peers.end();
  }

  bool goes_on() const { return !stops_; }
  /// Whether clients may change something.
  bool changes() const { return changes_; }

  /// Of all pairs of peers. On the thread of `peers`.
  http_answer traffic() {
    const auto now = std::chrono::steady_clock::now();
    if (now - peers_asked_ >= peers_apart) {
      if (const auto looked = traffic_->look([this] { return goes_on(); });
          !looked)
        return openai::unavailable(looked.message(), come_again_s);
      peers_asked_ = std::chrono::steady_clock::now();
    }
    return json_answer{model::json_text(traffic_json(traffic_->report()))};
  }

  request_thread looks, submits, peers;
  const std::shared_ptr<model_loads> loads = std::make_shared<model_loads>();

private:
  struct follower {
    std::shared_ptr<std::atomic<bool>> ended;
    std::jthread thread;
  };

  bool is_open(const exchange_ptr& x) {
    std::lock_guard lock(mutex_);
    if (!open_)
      x->respond(openai::unavailable("the node is starting", come_again_s));
    return open_;
  }
  static void too_many(const exchange_ptr& x) {
    x->respond(openai::rate_limited(
      "too many requests of this kind are waiting or being answered",
      come_again_s));
  }

  /// However many clients look, the peers are asked only this often.
  static constexpr std::chrono::seconds peers_apart{1};

  const bool changes_;
  std::atomic<bool> stops_{false};
  std::mutex mutex_; ///< guards what follows
  bool open_ = false;
  bool ended_ = false;
  runtime::client_config config_;
  std::list<follower> streams_;
  // Used by the thread of `peers` alone, once there is one.
  std::optional<traffic_look> traffic_;
  std::chrono::steady_clock::time_point peers_asked_{};
};

management::management(bool changes) : impl_(std::make_shared<impl>(changes)) {
}

management::~management() {
  end();
}

void management::open(const std::filesystem::path& data_dir) {
  impl_->open(data_dir);
}

void management::end() {
  impl_->end();
}

/// "ID" and "events" of "/shoal/jobs/ID/events".
static std::pair<std::string, std::string> job_and_rest(std::string_view path) {
  path.remove_prefix(std::string_view("/shoal/jobs/").size());
  const auto slash = path.find('/');
  const auto id = runtime::percent_decoded(path.substr(0, slash));
  return {id.value_or(""),
          std::string(slash == path.npos ? std::string_view()
                                         : path.substr(slash + 1))};
}

static void nothing_there(const exchange_ptr& x) {
  auto error = openai::invalid_request("there is nothing at this path", "",
                                       "unknown_path");
  error.status = 404;
  x->respond(error);
}

void management::add_to(runtime::http_routes& routes) {
  const auto i = impl_;
  const std::function<bool()> goes_on = [i] { return i->goes_on(); };
  routes.add("GET", "/shoal/status",
             [i](exchange_ptr x) { i->ask(i->looks, x, get_status); });
  routes.add("GET", "/shoal/traffic", [i](exchange_ptr x) {
    i->ask(i->peers, x, [i](runtime::client&) { return i->traffic(); });
  });
  routes.add("GET", "/models/loads", [i](exchange_ptr x) {
    x->respond(200, {{"Content-Type", "application/json"}},
               i->loads->answer(i->changes()));
  });
  routes.add("GET", "/shoal/jobs",
             [i](exchange_ptr x) { i->ask(i->looks, x, get_jobs); });
  routes.add("GET", "/shoal/jobs/*", [i](exchange_ptr x) {
    const auto [job, rest] = job_and_rest(x->request().path);
    if (rest == "events")
      i->stream(x, job);
    else if (rest.empty())
      i->ask(i->looks, x,
             [job](runtime::client& c) { return get_job(c, job); });
    else
      nothing_there(x);
  });
  routes.add(
    "POST", "/shoal/jobs",
    [i, goes_on](exchange_ptr x) {
      if (i->may_change(x))
        i->ask(i->submits, x, [x, goes_on](runtime::client& c) {
          return submit_job(c, x->request().body, goes_on);
        });
    },
    "application/json");
  routes.add(
    "POST", "/shoal/jobs/*",
    [i](exchange_ptr x) {
      const auto [job, rest] = job_and_rest(x->request().path);
      if (rest != "cancel")
        nothing_there(x);
      else if (i->may_change(x))
        i->ask(i->looks, x, [x, job](runtime::client& c) {
          return cancel_job(c, job, x->request().body);
        });
    },
    "application/json");
  routes.add(
    "POST", "/models/load",
    [i, goes_on](exchange_ptr x) {
      if (!i->may_change(x))
        return;
      const auto parsed = parse_load(x->request().body);
      if (auto* const error = std::get_if<openai::api_error>(&parsed)) {
        x->respond(*error);
        return;
      }
      const auto& o = std::get<serve_options>(parsed);
      i->ask(i->submits, x,
             [o, goes_on, load = i->loads->begin(o)](runtime::client& c) {
               return load_model(c, o, *load, goes_on);
             });
    },
    "application/json");
  routes.add(
    "POST", "/models/unload",
    [i](exchange_ptr x) {
      if (i->may_change(x))
        i->ask(i->looks, x, [x](runtime::client& c) {
          return unload_model(c, x->request().body);
        });
    },
    "application/json");
}

} // namespace shoal::apps
