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
/// Submissions under way: each may hold a file's pieces, and a connection.
constexpr std::size_t submissions_max = 8;
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
  void start(const runtime::client_config& config) {
    thread_ = std::jthread([this, config](const std::stop_token& stop) {
      while (const work w = next(stop)) {
        try {
          // Of each request, as of each command: what it uploads is its own.
          runtime::client client(config);
          w(client);
        } catch (const std::exception&) {
          // The exchange goes with the work, and answers that it was given up.
        }
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

/// Work of which each piece has a thread of its own.
class work_threads {
public:
  /// What is left to do once the work counts as ended: to answer a client, who may
  /// ask for more at once.
  using last = std::function<void()>;
  using work = std::function<last(const std::stop_token&)>;

  explicit work_threads(std::size_t most) : most_(most) {}

  /// @returns false if so much is under way already
  bool add(work w) {
    std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const one& o) { return o.ended->load(); });
    if (stopped_ || all_.size() >= most_)
      return false;
    auto ended = std::make_shared<std::atomic<bool>>(false);
    try {
      all_.push_back({ended, std::jthread([ended, w = std::move(w)](
                                            const std::stop_token& stop) {
                        last finish;
                        const auto attempt = [](const auto& step) {
                          try {
                            step();
                          } catch (const std::exception&) {
                            // as in request_thread
                          }
                        };
                        attempt([&] { finish = w(stop); });
                        *ended = true;
                        if (finish)
                          attempt(finish);
                      })});
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }
  /// Asks all to stop, and waits.
  void end() {
    std::list<one> all;
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
      all.swap(all_);
    }
    for (one& o : all)
      o.thread.request_stop();
  }

private:
  struct one {
    std::shared_ptr<std::atomic<bool>> ended;
    std::jthread thread;
  };
  const std::size_t most_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::list<one> all_;
};

} // namespace

class management::impl {
public:
  explicit impl(bool changes) : changes_(changes) {}

  using blocking = std::function<http_answer(runtime::client&)>;

  /// Answers on the thread for short questions.
  void ask(const exchange_ptr& x, blocking question) {
    if (!is_open(x))
      return;
    const bool taken =
      looks_.add([x, question = std::move(question)](runtime::client& client) {
        respond(*x, answer_of(question, client));
      });
    if (!taken)
      too_many(x);
  }

  /// What may take long. `goes_on` is asked during that.
  using submission = std::function<http_answer(
    runtime::client&, const std::function<bool()>& goes_on)>;

  /// Answers on a thread of its own.
  void submit(const exchange_ptr& x, submission work) {
    if (!is_open(x))
      return;
    const bool taken =
      submissions_.add([x, work = std::move(work),
                        config = config()](const std::stop_token& stop) {
        const std::function<bool()> goes_on = [&] {
          return !stop.stop_requested();
        };
        runtime::client client(config);
        return work_threads::last(
          [x, answer =
                answer_of([&](runtime::client& c) { return work(c, goes_on); },
                          client)] { respond(*x, answer); });
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
    const bool taken =
      streams_.add([x, job, config = config()](const std::stop_token& stop) {
        try {
          runtime::client client(config);
          stream_events(client, job, x, [&] { return stop.stop_requested(); });
        } catch (const std::exception&) {
          x->end(); // without a "done": the client asks again
        }
        return work_threads::last();
      });
    if (!taken)
      too_many(x);
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
    looks_.start(config_);
    traffic_.emplace(config_);
    peers_.start(config_);
  }

  void end() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    stops_ = true;
    streams_.end();
    submissions_.end();
    looks_.end();
    peers_.end();
  }

  static void respond(http_exchange& x, const http_answer& answer) {
    if (const auto* const error = std::get_if<openai::api_error>(&answer))
      x.respond(*error);
    else if (const auto& whole = std::get<json_answer>(answer); true)
      x.respond(whole.status, {{"Content-Type", "application/json"}},
                whole.json);
  }

  /// Whether clients may change something.
  bool changes() const { return changes_; }

  /// Of all pairs of peers, asked on a thread of its own.
  void traffic(const exchange_ptr& x) {
    if (!is_open(x))
      return;
    const bool taken = peers_.add([this, x](runtime::client& client) {
      respond(*x,
              answer_of([this](runtime::client&) { return look_at_traffic(); },
                        client));
    });
    if (!taken)
      too_many(x);
  }

  const std::shared_ptr<model_loads> loads = std::make_shared<model_loads>();

private:
  http_answer look_at_traffic() {
    const auto now = std::chrono::steady_clock::now();
    if (now - peers_asked_ >= peers_apart) {
      if (const auto looked = traffic_->look([this] { return !stops_; });
          !looked)
        return openai::unavailable(looked.message(), come_again_s);
      peers_asked_ = std::chrono::steady_clock::now();
    }
    return json_answer{model::json_text(traffic_json(traffic_->report()))};
  }

  runtime::client_config config() {
    std::lock_guard lock(mutex_);
    return config_;
  }

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
  std::atomic<bool> stops_ = false;
  request_thread looks_, peers_;
  work_threads submissions_{submissions_max};
  work_threads streams_{streams_max};
  std::mutex mutex_; ///< guards what follows
  bool open_ = false;
  bool ended_ = false;
  runtime::client_config config_;
  // Used by the thread of `peers_` alone, once there is one.
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

/// Behind the first two parts of a path: "ID" of "/shoal/jobs/ID/events".
static std::string id_of(const http_exchange& x) {
  std::string_view path = x.request().path;
  for (int parts = 0; parts < 3; ++parts)
    path.remove_prefix(path.find('/') + 1);
  return runtime::percent_decoded(path.substr(0, path.find('/'))).value_or("");
}

void management::add_to(runtime::http_routes& routes) {
  const auto i = impl_;
  routes.add("GET", "/shoal/status",
             [i](const exchange_ptr& x) { i->ask(x, get_status); });
  routes.add("GET", "/shoal/traffic",
             [i](const exchange_ptr& x) { i->traffic(x); });
  routes.add("GET", "/models/loads", [i](const exchange_ptr& x) {
    x->respond(200, {{"Content-Type", "application/json"}},
               i->loads->answer(i->changes()));
  });
  routes.add("DELETE", "/models/loads/{load}", [i](const exchange_ptr& x) {
    if (i->may_change(x))
      i->respond(*x, cancel_load(*i->loads, id_of(*x)));
  });
  routes.add("GET", "/shoal/jobs",
             [i](const exchange_ptr& x) { i->ask(x, get_jobs); });
  routes.add("GET", "/shoal/jobs/{job}", [i](const exchange_ptr& x) {
    i->ask(x,
           [job = id_of(*x)](runtime::client& c) { return get_job(c, job); });
  });
  routes.add("GET", "/shoal/jobs/{job}/events",
             [i](const exchange_ptr& x) { i->stream(x, id_of(*x)); });
  routes.add(
    "POST", "/shoal/jobs",
    [i](const exchange_ptr& x) {
      if (i->may_change(x))
        i->submit(x, [x](runtime::client& c, const auto& goes_on) {
          return submit_job(c, x->request().body, goes_on);
        });
    },
    "application/json");
  routes.add(
    "POST", "/shoal/jobs/{job}/cancel",
    [i](const exchange_ptr& x) {
      if (i->may_change(x))
        i->ask(x, [x](runtime::client& c) {
          return cancel_job(c, id_of(*x), x->request().body);
        });
    },
    "application/json");
  routes.add(
    "POST", "/models/load",
    [i](const exchange_ptr& x) {
      if (!i->may_change(x))
        return;
      const auto parsed = parse_load(x->request().body);
      if (auto* const error = std::get_if<openai::api_error>(&parsed)) {
        x->respond(*error);
        return;
      }
      const auto& o = std::get<serve_options>(parsed);
      i->submit(x, [o, load = i->loads->begin(o)](runtime::client& c,
                                                  const auto& goes_on) {
        return load_model(c, o, *load, goes_on);
      });
    },
    "application/json");
  routes.add(
    "POST", "/models/unload",
    [i](const exchange_ptr& x) {
      if (i->may_change(x))
        i->ask(x, [x](runtime::client& c) {
          return unload_model(c, x->request().body);
        });
    },
    "application/json");
}

} // namespace shoal::apps
