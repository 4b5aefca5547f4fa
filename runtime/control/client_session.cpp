// runtime/control/client_session.cpp -- ways to a node.
#include "runtime/control/client_session.hpp"

#include "runtime/control/client_keys.hpp"
#include "runtime/control/client_text.hpp"
#include "runtime/control/node_folders.hpp"
#include "runtime/files/json.hpp"
#include "runtime/identity/identity.hpp"

#include <algorithm>
#include <thread>

namespace shoal::runtime {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Between two looks for a node.
static constexpr milliseconds pause{100};
/// How long connections to one address may take while there are others.
static constexpr milliseconds dial_max{2000};
/// A node that is being started, or whose shoal makes a new view, answers within
/// a second. Before that, no node is reported as gone.
static constexpr milliseconds first_answer_wait{2000};

client_session::client_session(client_config config)
  : config_(std::move(config)) {
  if (!config_.data_dir.empty())
    config_.data_dir = fs::absolute(config_.data_dir);
}

bool client_session::try_local(const fs::path& folder) {
  link_ = make_unix_link(control_socket(folder));
  if (!link_)
    return false;
  where_ = folder.string();
  near_ = true;
  asked_ = folder;
  return true;
}

std::unique_ptr<client_link> client_session::dial(const std::string& address) {
  bool refuses = false;
  const client_keys keys = keys_for(config_, asked_);
  no_key_ = keys.why;
  if (keys.all.empty())
    text_ = no_key_;
  for (const auto& key : keys.all) {
    auto link = make_tls_link(address, key, std::min(config_.timeout, dial_max),
                              text_, refuses);
    if (link)
      return link;
    if (!refuses)
      return nullptr;
  }
  if (refuses && std::ranges::count(refusing_, address) == 0)
    refusing_.push_back(address);
  return nullptr;
}

/// Whether the node of `folder` is in a shoal with one at `address`, and that
/// one answers.
bool client_session::try_through(const fs::path& folder,
                                 const std::string& address) {
  if (!try_local(folder))
    return false;
  member_ = address;
  where_ = address + ", through " + folder.string();
  client_reply reply;
  if (!ask(ask_status{}, reply))
    return true;
  not_there_ = text_;
  member_.clear();
  link_.reset();
  return false;
}

bool client_session::try_address(const std::string& address) {
  if (config_.cluster_key_file.empty() && !config_.through.empty())
    for (const fs::path& folder : folders_of_nodes(config_.through))
      if ((!config_.named || folder == config_.through)
          && try_through(folder, address))
        return true;
  link_ = dial(address);
  if (!link_)
    return false;
  where_ = address;
  near_ = false;
  return true;
}

std::error_code client_session::connect(bool anywhere) {
  text_.clear();
  refusing_.clear();
  link_.reset();
  if (!config_.data_dir.empty()) {
    if (try_local(config_.data_dir))
      return {};
    // All nodes of the user's default directory are his.
    if (anywhere || (!config_.named && is_by_name(config_.data_dir)))
      for (const fs::path& folder : folders_of_nodes(config_.data_dir))
        if (try_local(folder))
          return {};
  }
  std::vector<std::string> addresses = config_.addresses;
  if (anywhere)
    addresses.insert(addresses.end(), addresses_.begin(), addresses_.end());
  for (const std::string& address : addresses)
    if (try_address(address))
      return {};
  return fail(errc::no_node,
              no_node_text(config_, {text_, no_key_, not_there_}));
}

std::error_code client_session::ask(client_request_body body, client_reply& out,
                                    const std::function<bool()>& goes_on) {
  if (!link_) // text_ says why it was lost
    return text_.empty() ? fail(errc::lost, "not connected to a node")
                         : make_error_code(errc::lost);
  milliseconds timeout = config_.timeout;
  if (takes_agreement(body))
    timeout += milliseconds(35000); // the shoal may take its time to agree
  client_request request{++last_number_, std::move(body), member_};
  if (auto error = link_->call(request, out, timeout, goes_on)) {
    link_.reset();
    return fail(error, "node " + where_ + ": " + error.message());
  }
  switch (out.code) {
  case reply_code::ok:
  case reply_code::again_later:
    return {};
  case reply_code::not_found:
    return fail(errc::not_found, out.text);
  case reply_code::refused:
    break;
  }
  return fail(errc::refused, out.text);
}

std::error_code client_session::learn() {
  client_reply reply;
  if (auto error = ask(ask_status{}, reply))
    return error;
  learn_from(reply.text);
  return {};
}

void client_session::learn_from(const std::string& status) {
  const auto all = model::parse_json(status);
  if (!all.is_object() || !all.contains("peers") || !all.contains("self"))
    return;
  std::vector<std::string> addresses;
  others_.clear();
  for (const auto& peer : all["peers"]) {
    if (!peer.is_object())
      continue;
    if (const auto id = peer.find("id");
        id != peer.end() && id->is_string() && *id != all["self"])
      others_.push_back(id->template get<std::string>());
    if (peer.contains("addresses"))
      for (const auto& a : peer["addresses"])
        if (a.is_string())
          addresses.push_back(a.template get<std::string>());
  }
  if (!addresses.empty())
    addresses_ = std::move(addresses);
}

bool client_session::move(steady_clock::time_point until,
                          const std::function<bool()>& gives_up) {
  std::string before = where_;
  const auto say_at = steady_clock::now() + first_answer_wait;
  for (bool said = false;;) {
    if (!connect(true)) {
      (void)learn();
      if (link_) {
        if (config_.say && where_ != before)
          config_.say("lost the node at " + before + "; using " + where_);
        return true;
      }
    }
    if (steady_clock::now() >= until || (gives_up && gives_up()))
      return false;
    if (config_.say && !said && steady_clock::now() >= say_at) {
      said = true;
      config_.say(lost_node_text(
        before,
        {!addresses_.empty(), no_key_, refusing_, config_.cluster_key_file},
        std::chrono::ceil<std::chrono::seconds>(until - steady_clock::now())
          .count()));
    }
    std::this_thread::sleep_for(pause);
  }
}

const std::vector<std::string>& client_session::others() const {
  return near_ ? others_ : addresses_;
}

client_session::way client_session::way_to(const std::string& other) {
  if (!near_ && other == where_)
    return {};
  std::shared_ptr<client_link> far = near_ ? nullptr : dial(other);
  if (!near_ && !far)
    return {};
  return [this, far, member = near_ ? other : std::string()](
           const client_request_body& body, client_reply& reply) {
    client_link* const to = far ? far.get() : link_.get();
    if (to == nullptr)
      return false;
    const client_request request{++last_number_, body, member};
    if (!to->call(request, reply, config_.timeout))
      return reply.code == reply_code::ok;
    if (!far)
      link_.reset();
    return false;
  };
}

} // namespace shoal::runtime
