// apps/top/node_source.cpp -- the threads, and what they share.
#include "apps/top/node_source.hpp"

#include "apps/common/report.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_asker.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/jobs/job_log.hpp"

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shoal::apps {
namespace {

using json = status_json;

counter_rate::time steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch();
}

runtime::client_config quick(runtime::client_config c) {
  c.timeout = node_source::answer_max;
  return c;
}

/// Steps of jobs, which it asks a node for.
class step_reader {
public:
  explicit step_reader(runtime::client_config c) : client_(std::move(c)) {}

  /// Steps of a job: the last ones at first, then those since.
  std::vector<runtime::job_event> steps_of(core::job_id job) {
    std::vector<runtime::job_event> out;
    if (!connected_ && client_.connect())
      return out;
    connected_ = true;
    const auto [at, first] = next_.try_emplace(job, 0);
    std::string text;
    if (first) {
      if (client_.job(job, text, at->second)) {
        lose(job);
        return out;
      }
      at->second -=
        std::min<std::uint64_t>(at->second, job_history::losses_max);
    }
    if (client_.events(job, at->second, out)) {
      lose(job);
      out.clear();
    }
    std::erase_if(out, [](const runtime::job_event& e) {
      return e.kind != runtime::job_event_kind::step;
    });
    return out;
  }

private:
  /// Another node counts its events in its own way.
  void lose(core::job_id) {
    next_.clear();
    connected_ = false;
  }

  runtime::client client_;
  bool connected_ = false;
  std::map<core::job_id, std::uint64_t> next_;
};

bool job_id_of(const std::string& text, core::job_id& out) {
  const auto [end, error] =
    std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return error == std::errc() && end == text.data() + text.size();
}

} // namespace

class node_source::impl {
public:
  impl(const node_address& at, std::chrono::milliseconds interval,
       std::function<void()> changed)
    : interval_(interval), changed_(std::move(changed)),
      own_(client_through(at), answer_max),
      others_(client_through(at), answer_max), steps_(quick(client_of(at))),
      asks_events_(at.peers.empty()) {}

  ~impl() {
    {
      std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    for (std::thread* t : {&node_thread_, &peers_thread_})
      if (t->joinable())
        t->join();
  }

  std::string ask_first() {
    ask_node();
    std::lock_guard lock(mutex_);
    return now_.lost;
  }

  void start() {
    node_thread_ = std::thread([this] {
      while (pause())
        ask_node();
    });
    peers_thread_ = std::thread([this] {
      do
        ask_peers();
      while (pause());
    });
  }

  void set_paused(bool paused) {
    {
      std::lock_guard lock(mutex_);
      paused_ = paused;
    }
    wake_.notify_all();
  }

  void look(const std::function<void(const answers&)>& use) const {
    std::lock_guard lock(mutex_);
    use(now_);
  }

private:
  /// Waits for the next interval. @returns whether to go on
  bool pause() {
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, interval_, [this] { return over_; });
    wake_.wait(lock, [this] { return over_ || !paused_; });
    return !over_;
  }

  void ask_node() {
    auto status = own_.ask({});
    if (status && asks_events_)
      read_steps(*status);
    {
      std::lock_guard lock(mutex_);
      now_.lost = status ? std::string() : status.message();
      if (status) {
        now_.memory.add(*status, steady_ns(), unix_ms());
        now_.status = *std::move(status);
      }
    }
    changed_();
  }

  /// Of jobs that have done a step since: so no request waits for one.
  void read_steps(const json& status) {
    for (const json& j : status["jobs"]) {
      const std::string& id = text_of(j, "id");
      core::job_id job{};
      if (text_of(j, "kind") != "train" || j["step"].get<std::uint64_t>() == 0
          || !job_id_of(id, job))
        continue;
      {
        std::lock_guard lock(mutex_);
        const job_history* known = now_.memory.find_job(id);
        if (known && known->last_step() == j["step"].get<std::uint64_t>())
          continue;
      }
      const auto steps = steps_.steps_of(job);
      std::lock_guard lock(mutex_);
      for (const runtime::job_event& e : steps)
        now_.memory.job(id).add(e.step, e.loss, e.unix_ms);
    }
  }

  bool over() const {
    std::lock_guard lock(mutex_);
    return over_;
  }

  std::vector<std::string> peers_to_ask() {
    std::vector<std::string> out;
    std::lock_guard lock(mutex_);
    if (!now_.status)
      return out;
    for (const json& p : (*now_.status)["peers"]) {
      const std::string& id = text_of(p, "id");
      if (text_of(p, "state") == "unreachable")
        now_.memory.forget_peer(id);
      else if (id != text_of(*now_.status, "self"))
        out.push_back(id);
    }
    if (out.size() > peers_max) {
      turn_ %= out.size();
      std::rotate(out.begin(), out.begin() + std::ptrdiff_t(turn_), out.end());
      turn_ += peers_max;
      out.resize(peers_max);
    }
    return out;
  }

  void ask_peers() {
    for (const std::string& id : peers_to_ask()) {
      if (over())
        return;
      const auto status = others_.ask(id);
      std::lock_guard lock(mutex_);
      if (status && text_of(*status, "self") == id)
        now_.memory.add_peer(*status, steady_ns());
      else
        now_.memory.forget_peer(id);
    }
  }

  const std::chrono::milliseconds interval_;
  const std::function<void()> changed_;
  status_asker own_;         ///< of the first thread
  status_asker others_;      ///< of the second
  step_reader steps_;        ///< of the first
  const bool asks_events_;   ///< nodes elsewhere hand no events on
  std::size_t turn_ = 0;     ///< of the second
  mutable std::mutex mutex_; ///< guards what follows
  std::condition_variable wake_;
  answers now_;
  bool paused_ = false;
  bool over_ = false;
  std::thread node_thread_, peers_thread_;
};

node_source::node_source(const node_address& at,
                         std::chrono::milliseconds interval,
                         std::function<void()> changed)
  : impl_(std::make_unique<impl>(at, interval, std::move(changed))) {
}

node_source::~node_source() = default;

std::string node_source::ask_first() {
  return impl_->ask_first();
}

void node_source::start() {
  impl_->start();
}

void node_source::set_paused(bool paused) {
  impl_->set_paused(paused);
}

void node_source::look(const std::function<void(const answers&)>& use) const {
  impl_->look(use);
}

} // namespace shoal::apps
