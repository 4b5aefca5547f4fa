// tests/apps/liar.cpp -- a holder of the cluster key that says what no node of
// ours would.
//
//   liar KEY_FILE HOST:PORT
//
// Introduces itself by a name in Latin-1, sends views with numbers at the end
// of their range in which it is a member, and asks after each lie for the
// node's view. Prints a line of JSON for each: the lie, and the number of the
// view that the node holds then. Ends with 1 if the node does not answer.
#include "runtime/core/cluster/credible.hpp"
#include "runtime/identity/identity.hpp"
#include "runtime/wire/codec.hpp"
#include "transport/tls/fabric.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace {

using namespace shoal;
namespace cluster = core::cluster;
namespace tls = transport::tls;

/// Far more than a node needs to answer, however busy the machine.
constexpr std::chrono::seconds deadline{60};

class listener final : public transport::fabric_handler {
public:
  void up(const transport::peer_info& peer) override {
    const std::lock_guard lock(mutex_);
    node_ = peer.id;
    is_up_ = true;
    changed_.notify_all();
  }
  void down(const core::peer_id&, std::error_code) override {
    const std::lock_guard lock(mutex_);
    is_up_ = false;
    changed_.notify_all();
  }
  void
  message(const core::peer_id&, std::span<const std::byte> bytes) override {
    runtime::envelope e;
    if (runtime::codec::decode(bytes, e))
      return;
    const auto* message = std::get_if<cluster::message>(&e);
    if (message == nullptr)
      return;
    const std::lock_guard lock(mutex_);
    if (const auto* hello = std::get_if<cluster::hello>(message))
      hello_ = *hello;
    if (const auto* decided = std::get_if<cluster::decided>(message))
      view_ = decided->value;
    changed_.notify_all();
  }
  void connect_failed(const std::string&, std::error_code why) override {
    std::fprintf(stderr, "cannot connect: %s\n", why.message().c_str());
  }

  /// Waits until `ready` says so; false if the time is over.
  template <class Ready>
  bool wait(const Ready& ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, deadline, ready);
  }
  bool introduced() const { return is_up_ && hello_; }
  bool is_up() const { return is_up_; }
  std::optional<core::view> take_view() {
    const std::lock_guard lock(mutex_);
    return std::exchange(view_, std::nullopt);
  }
  bool has_view() const { return view_.has_value(); }
  core::peer_id node() const { return node_; }
  cluster::hello hello() const { return *hello_; }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> is_up_{false};
  core::peer_id node_{};
  std::optional<cluster::hello> hello_;
  std::optional<core::view> view_;
};

class liar {
public:
  liar(const tls::shared_key& key, std::string address)
    : address_(std::move(address)) {
    tls::config config;
    config.listen.clear();
    config.identity = tls::make_private_key();
    config.cluster_key = key;
    config.planner = core::planner_version;
    fabric_.emplace(config, heard_);
  }

  bool run() {
    const auto before = view_now();
    if (!before || !report("none", before))
      return false;
    core::view forged = *before;
    core::member self = forged.members.front();
    self.id = {fabric_->id(), 1};
    forged.members.push_back(self);
    std::ranges::sort(forged.members, {},
                      [](const core::member& m) { return m.id.peer; });
    // The node's view may be a few later by then.
    constexpr core::epoch later = 1000;
    for (const auto number :
         {core::epoch_max, core::epoch_max - 1,
          cluster::believed_max(before->number + later) + 1}) {
      forged.number = number;
      if (!tell(cluster::decided{forged})
          || !report("number " + std::to_string(number), view_now()))
        return false;
    }
    cluster::hello named = heard_.hello();
    named.name = "Jos\xe9";
    return tell(named) && report("a name in Latin-1", view_now());
  }

private:
  /// Connects, if the node has hung up after a lie.
  bool connected() {
    if (!heard_.wait([this] { return !heard_.is_up() || heard_.introduced(); }))
      return false;
    if (!heard_.is_up())
      fabric_->connect(address_);
    return heard_.wait([this] { return heard_.introduced(); });
  }
  bool tell(cluster::message what) {
    return connected()
           && !fabric_->send(heard_.node(), runtime::codec::encode(what));
  }
  /// What the node says its view is.
  std::optional<core::view> view_now() {
    for (int tries = 0; tries < 10; ++tries) {
      if (!connected())
        return std::nullopt;
      heard_.take_view();
      tell(cluster::view_request{heard_.hello().shoal, 0});
      heard_.wait([this] { return heard_.has_view() || !heard_.is_up(); });
      if (auto view = heard_.take_view())
        return view;
    }
    return std::nullopt;
  }
  static bool
  report(const std::string& lie, const std::optional<core::view>& view) {
    if (!view)
      return false;
    std::printf("{\"lie\":\"%s\",\"view\":%llu}\n", lie.c_str(),
                static_cast<unsigned long long>(view->number));
    return true;
  }

  std::string address_;
  listener heard_;
  std::optional<tls::fabric> fabric_;
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: liar KEY_FILE HOST:PORT\n", stderr);
    return 2;
  }
  liar one(runtime::load_cluster_key(argv[1]), argv[2]);
  return one.run() ? 0 : 1;
}
