// apps/bench/reduce_meter.cpp -- the role that sums and measures the time.
#include "apps/bench/reduce_meter.hpp"

#include "actors/reduction/all_reduce.hpp"
#include "apps/remote/local_nodes.hpp"
#include "runtime/core/view.hpp"
#include "runtime/links/links.hpp"
#include "runtime/node/node.hpp"

#include <caf/all.hpp>

#include <algorithm>
#include <chrono>
#include <sstream>

namespace shoal::apps {

namespace {

struct summed {
  std::error_code error;
};

} // namespace
} // namespace shoal::apps

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(shoal::apps::summed)

namespace shoal::apps {
namespace {

using actors::all_reduce;

struct task {
  std::size_t processes = 0;
  std::vector<std::size_t> sizes;
  int runs = 0;
  local_nodes::sayer say = {};
};

/// Sums an array over all peers repeatedly: a barrier, the run, and a barrier
/// again, so that no peer checks its sum while others still add.
class summing_actor : public caf::event_based_actor {
public:
  summing_actor(caf::actor_config& cfg, runtime::context& node, task t)
    : caf::event_based_actor(cfg), node_(node), task_(std::move(t)),
      buffers_(node.links().memory()) {}

  const char* name() const override { return "reduce_meter"; }
  void on_exit() override { sums_.reset(); }

  caf::behavior make_behavior() override {
    return {
      [this](const runtime::view_changed& m) {
        const bool all = m.view->members.size() == task_.processes;
        if (peers_.empty() && all)
          start(*m.view);
        else if (!peers_.empty() && !all && at_ < task_.sizes.size())
          failed("a node has left");
      },
      [this](const summed& m) {
        if (m.error)
          return failed(m.error.message());
        switch (now_) {
        case phase::before:
          return run();
        case phase::timed:
          return end_run();
        case phase::after:
          return check();
        }
      },
    };
  }

private:
  using clock = std::chrono::steady_clock;
  enum class phase { before, timed, after };
  static constexpr std::uint64_t plan = 0x7265647563650001; // arbitrary
  enum : std::uint32_t { barrier_bucket = 0, array_bucket = 1 };

  void failed(const std::string& why) { task_.say("failed " + why); }

  void start(const core::view& view) {
    for (const core::member& m : view.members)
      peers_.push_back(m.id.peer);
    std::ranges::sort(peers_);
    me_ =
      std::uint32_t(std::ranges::find(peers_, node_.self()) - peers_.begin());
    sums_ = std::make_unique<all_reduce>(all_reduce::config{
      &node_.links(), &node_.reductions(), &buffers_, plan, 0, node_.self(),
      nullptr,
      [self = address()](std::uint64_t, std::uint32_t, std::error_code error) {
        if (const auto to = caf::actor_cast<caf::actor>(self))
          caf::anon_send(to, summed{error});
      }});
    array_ = buffers_.get(std::ranges::max(task_.sizes));
    prepare();
  }

  std::size_t size() const { return task_.sizes[at_]; }
  std::span<float> values() const {
    return array_.as<float>().first(size() / sizeof(float));
  }

  void prepare() {
    std::ranges::fill(values(), float(me_ + 1));
    now_ = phase::before;
    add(barrier_bucket, barrier_.shared());
  }

  void add(std::uint32_t index, const runtime::shared_bytes& what) {
    ++step_;
    sums_->begin(step_, {{index, peers_, what}});
    sums_->ready(step_, index);
  }

  void run() {
    now_ = phase::timed;
    began_ = clock::now();
    runtime::shared_bytes bytes = array_.shared();
    bytes.bytes = std::as_writable_bytes(values());
    add(array_bucket, bytes);
  }

  void end_run() {
    took_ = clock::now() - began_;
    now_ = phase::after;
    add(barrier_bucket, barrier_.shared());
  }

  void check() {
    const auto n = float(peers_.size());
    if (!std::ranges::all_of(
          values(), [sum = n * (n + 1) / 2](float v) { return v == sum; }))
      return failed("a sum is wrong");
    if (run_ > 0) { // the first run warms up
      std::ostringstream line;
      line << "took " << size() << " " << took_.count();
      task_.say(line.str());
    }
    if (++run_ > task_.runs) {
      run_ = 0;
      if (++at_ == task_.sizes.size())
        return task_.say("end");
    }
    prepare();
  }

  runtime::context& node_;
  task task_;
  actors::buffer_pool buffers_;
  actors::buffer array_;
  actors::buffer barrier_ = buffers_.get(sizeof(float));
  std::vector<core::peer_id> peers_;
  std::uint32_t me_ = 0;
  std::unique_ptr<all_reduce> sums_;
  std::uint64_t step_ = 0;
  std::size_t at_ = 0; ///< index of the size
  int run_ = 0;
  phase now_ = phase::before;
  clock::time_point began_;
  std::chrono::duration<double> took_{};
};

} // namespace

reduce_times
measure_all_reduce(int processes, std::vector<std::size_t> sizes, int runs) {
  const task t{std::size_t(processes), std::move(sizes), runs};
  local_nodes all(processes, [&t](runtime::node_config&,
                                  runtime::role_table& roles,
                                  const local_nodes::sayer& say) {
    task mine = t;
    mine.say = say;
    roles["reduce_meter"] = [mine](caf::actor_system& system,
                                   runtime::context& node) -> caf::actor {
      return system.spawn<summing_actor>(node, mine);
    };
  });
  reduce_times slowest;
  for (std::size_t i = 0; i < t.processes; ++i) {
    reduce_times mine;
    for (;;) {
      const auto [word, rest] = all.line(i);
      if (word == "end")
        break;
      std::istringstream in(rest);
      std::size_t bytes = 0;
      double seconds = 0;
      if (word == "took" && in >> bytes >> seconds)
        mine[bytes].push_back(seconds);
    }
    for (auto& [bytes, seconds] : mine) {
      std::vector<double>& all_runs = slowest[bytes];
      all_runs.resize(seconds.size());
      std::ranges::transform(seconds, all_runs, all_runs.begin(),
                             [](double a, double b) { return std::max(a, b); });
    }
  }
  return slowest;
}

} // namespace shoal::apps
