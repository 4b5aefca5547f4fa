// apps/reduce_meter.cpp -- nodes in processes, and the role that they run.
#include "apps/reduce_meter.hpp"

#include "actors/all_reduce.hpp"
#include "runtime/core/view.hpp"
#include "runtime/links.hpp"
#include "runtime/node.hpp"
#include "runtime/posix.hpp"

#include <caf/all.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <sstream>
#include <stdexcept>

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

namespace fs = std::filesystem;
using actors::all_reduce;

struct task {
  std::size_t processes = 0;
  std::vector<std::size_t> sizes;
  int runs = 0;
  int report = -1; ///< lines go there
};

void write_line(int to, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(to, text.data(), text.size()) != ssize_t(text.size()))
    std::_Exit(1); // nobody listens any more
}

/// Sums an array over all peers, again and again: a barrier, then the run.
class summing_actor : public caf::event_based_actor {
public:
  summing_actor(caf::actor_config& cfg, runtime::context& node, task t)
    : caf::event_based_actor(cfg), node_(node), task_(std::move(t)) {}

  const char* name() const override { return "reduce_meter"; }
  void on_exit() override { sums_.reset(); }

  caf::behavior make_behavior() override {
    return {
      [this](const runtime::view_changed& m) {
        if (peers_.empty() && m.view->members.size() == task_.processes)
          start(*m.view);
      },
      [this](const summed& m) {
        if (m.error)
          return failed(m.error.message());
        if (timing_)
          end_run();
        else
          run();
      },
    };
  }

private:
  using clock = std::chrono::steady_clock;
  static constexpr std::uint64_t plan = 0x7265647563650001; // any
  enum : std::uint32_t { barrier_bucket = 0, array_bucket = 1 };

  void failed(const std::string& why) {
    write_line(task_.report, "failed " + why);
  }

  void start(const core::view& view) {
    for (const core::member& m : view.members)
      peers_.push_back(m.id.peer);
    std::ranges::sort(peers_);
    me_ =
      std::uint32_t(std::ranges::find(peers_, node_.self()) - peers_.begin());
    sums_ = std::make_unique<all_reduce>(all_reduce::config{
      &node_.links(), &node_.reductions(), &buffers_, plan, me_, nullptr,
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
    timing_ = false;
    add(barrier_bucket, barrier_.shared());
  }

  void add(std::uint32_t index, const runtime::shared_bytes& what) {
    ++step_;
    sums_->begin(step_, {{index, peers_, what}});
    sums_->ready(step_, index);
  }

  void run() {
    timing_ = true;
    began_ = clock::now();
    runtime::shared_bytes bytes = array_.shared();
    bytes.bytes = std::as_writable_bytes(values());
    add(array_bucket, bytes);
  }

  void end_run() {
    const std::chrono::duration<double> took = clock::now() - began_;
    const auto n = float(peers_.size());
    if (!std::ranges::all_of(
          values(), [sum = n * (n + 1) / 2](float v) { return v == sum; }))
      return failed("a sum is wrong");
    if (run_ > 0) { // the first one warms up
      std::ostringstream line;
      line << "took " << size() << " " << took.count();
      write_line(task_.report, line.str());
    }
    if (++run_ > task_.runs) {
      run_ = 0;
      if (++at_ == task_.sizes.size())
        return write_line(task_.report, "end");
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
  std::size_t at_ = 0; ///< which size
  int run_ = 0;
  bool timing_ = false;
  clock::time_point began_;
};

/// In a process of its own, until `stop` ends.
void serve(const fs::path& folder, const std::string& join, const task& t,
           int stop) {
  try {
    runtime::role_table roles;
    roles["reduce_meter"] = [t](caf::actor_system& system,
                                runtime::context& node) -> caf::actor {
      return system.spawn<summing_actor>(node, t);
    };
    runtime::node_config c;
    c.data_dir = folder;
    c.listen = "127.0.0.1:0";
    c.cluster = folder.parent_path().filename();
    c.discover = false;
    c.threads = 1;
    c.mflops = 1; // it computes nothing: no need to measure
    if (!join.empty())
      c.join = {join};
    runtime::node node(c, roles);
    write_line(t.report, "at " + node.address());
    char byte = 0;
    while (::read(stop, &byte, 1) > 0) {
    }
    node.stop();
  } catch (const std::exception& e) {
    write_line(t.report, std::string("failed ") + e.what());
  }
}

/// The processes, and what they say.
class nodes {
public:
  nodes() {
    std::random_device random;
    folder_ =
      fs::temp_directory_path() / ("shoal-bench-" + std::to_string(random()));
    fs::create_directories(folder_);
  }
  ~nodes() {
    for (node& n : all_)
      n.stop.reset();
    for (node& n : all_)
      ::waitpid(n.pid, nullptr, 0);
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  void start(const std::string& join, task t) {
    std::array<int, 2> said{}, stop{};
    if (::pipe(said.data()) != 0 || ::pipe(stop.data()) != 0)
      throw std::runtime_error("no pipes");
    node n;
    n.said = ::fdopen(said[0], "r");
    n.stop = runtime::posix::descriptor(stop[1]);
    const fs::path folder = folder_ / std::to_string(all_.size() + 1);
    n.pid = ::fork();
    if (n.pid < 0)
      throw std::runtime_error("no more processes");
    if (n.pid == 0) {
      n.stop.reset();
      for (node& other : all_)
        other.stop.reset(); // or it would not see its end
      t.report = said[1];
      serve(folder, join, t, stop[0]);
      std::_Exit(0);
    }
    ::close(said[1]);
    ::close(stop[0]);
    all_.push_back(std::move(n));
  }

  /// The next line of node `i`: "WORD rest". @throws std::runtime_error
  std::pair<std::string, std::string> line(std::size_t i) {
    std::array<char, 512> text{};
    if (!std::fgets(text.data(), text.size(), all_[i].said))
      throw std::runtime_error("a node of the benchmark ended");
    const std::string all(text.data());
    const auto space = std::min(all.find(' '), all.size() - 1);
    const std::string word = all.substr(0, space);
    const std::string rest = all.substr(std::min(space + 1, all.size()));
    if (word == "failed")
      throw std::runtime_error("a node of the benchmark failed: " + rest);
    return {word, rest};
  }

private:
  struct node {
    pid_t pid = -1;
    std::FILE* said = nullptr; // to the end of the program
    runtime::posix::descriptor stop;
  };
  fs::path folder_;
  std::vector<node> all_;
};

} // namespace

reduce_times
measure_all_reduce(int processes, std::vector<std::size_t> sizes, int runs) {
  const task t{std::size_t(processes), std::move(sizes), runs};
  nodes all;
  all.start({}, t);
  std::string address = all.line(0).second;
  address.pop_back(); // the line's end
  for (int i = 1; i < processes; ++i)
    all.start(address, t);
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
