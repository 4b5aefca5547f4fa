// apps/node/cmd_node.cpp -- node: this process as a peer.
#include "actors/supervisor.hpp"
#include "apps/common/commands.hpp"
#include "apps/common/json_documents.hpp"
#include "apps/common/memory_size.hpp"
#include "apps/common/version.hpp"
#include "apps/manage/management.hpp"
#include "apps/terminal/confirm.hpp" // shell_word
#include "apps/terminal/line_printer.hpp"
#include "apps/terminal/signals.hpp"
#include "runtime/control/invite.hpp" // decode_token
#include "runtime/control/node_folders.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/view_changes.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/host/host_limits.hpp"
#include "runtime/host/memory_keeper.hpp"
#include "runtime/identity/identity.hpp" // check_secret
#include "runtime/identity/kept_folder.hpp"
#include "runtime/node/node.hpp"
#include "runtime/plugin.hpp"
#include "runtime/wire/codec.hpp" // view_digest

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <optional>
#include <thread>

namespace shoal::apps {

using json = nlohmann::ordered_json;
using runtime::json_table;

namespace {

struct node_event_kind {
  std::string_view name;
  const char* meaning;
};
constexpr char view_event[] = "view";
constexpr char http_event[] = "http";
constexpr node_event_kind node_event_kinds[] = {
  {"plugin", "a plug-in is loaded"},
  {"ready", "the node listens, and answers commands"},
  {http_event, "follows ready, unless --http is off: where the web page is"},
  {view_event, "another view of the shoal is agreed on"},
  {"waiting", "there is no quorum: what is missing, and what to do"},
  {"say", "something that people should know"},
  {"stopped", "the node has ended: no event follows"},
};

struct event_line {
  const char* event;
  const std::string& text;
};

const json_table<event_line>& line_table() {
  using l = const event_line&;
  static const json_table<event_line> table{
    {"event", "text", "", "which kind of event this is",
     [](l v) { return json(v.event); }},
    {"text", "text", "", "the line, in words",
     [](l v) { return json(v.text); }}};
  return table;
}

/// Fields of the line about HTTP besides its text.
const json_table<std::string>& http_table() {
  static const json_table<std::string> table{
    {"url", "text", "", "of the web page; clients of models add `v1`",
     [](const std::string& url) { return json(url); }}};
  return table;
}

struct view_numbers {
  const core::view& of;
  bool member;
};

json names_json(const view_numbers& v) {
  json names = json::array();
  for (const core::member& m : v.of.members)
    names.push_back(m.name);
  return names;
}

/// Fields of a view's line besides its text.
const json_table<view_numbers>& view_table() {
  using n = const view_numbers&;
  static const json_table<view_numbers> table{
    {"shoal", "text", "", "its id, in hexadecimal digits",
     [](n v) { return json(core::to_hex(v.of.shoal)); }},
    {"epoch", "whole number", "", "of the view, counted up",
     [](n v) { return json(v.of.number); }},
    {"digest", "text", "", "of the view: equal for peers that have the same",
     [](n v) { return json(core::to_hex(runtime::codec::view_digest(v.of))); }},
    {"peers", "whole number", "", "members",
     [](n v) { return json(v.of.members.size()); }},
    {"names", "list of texts", "", "their names", names_json},
    {"jobs", "whole number", "", "that run",
     [](n v) {
       return json(std::ranges::count(v.of.jobs, core::job_state::running,
                                      &core::job_entry::state));
     }},
    {"member", "true or false", "", "whether this node is one",
     [](n v) { return json(v.member); }}};
  return table;
}

/// Time from a signal during the node's start to the end of the process.
constexpr unsigned start_end_s = 20;

/// Passes the first signal to the node, or keeps it until there is one. A start
/// that never ends is then ended by SIGALRM, which needs no thread. A command's
/// wish that the node leaves is the same, without a signal.
class node_signals {
public:
  node_signals() {
    std::signal(SIGALRM, [](int) {
      constexpr char line[] = "shoal: stopped before the node had started\n";
      (void)!::write(STDERR_FILENO, line, sizeof line - 1);
      ::_exit(exit_interrupted);
    });
    signals_.on_second("stopped, before what this node held was handed over: "
                       "steps that no other peer holds are lost, back to the "
                       "newest checkpoint");
    signals_.on_first([this] {
      std::cerr << "shoal: leaving, when the step that runs is over and handed "
                   "over ("
                << again_text << ")\n";
      leave();
    });
  }
  ~node_signals() {
    if (leaving_.joinable())
      leaving_.join();
  }
  /// From any thread; does not wait.
  void leave_asked() {
    std::lock_guard lock(mutex_);
    if (!leaving_.joinable())
      leaving_ = std::thread([this] { leave(); });
  }
  /// @pre it outlives this
  void answers(http_front& http) { http_ = &http; }
  void started(runtime::node& node) {
    std::lock_guard lock(mutex_);
    node_ = &node;
    ::alarm(0);
    if (early_)
      node.leave(runtime::leave_deadline);
  }
  /// To be called before the node is destroyed.
  void ended() {
    std::lock_guard lock(mutex_);
    node_ = nullptr;
    over_ = true;
  }

private:
  /// By a signal and by a command at the same time: the second one waits.
  void leave() {
    std::call_once(drained_, [this] {
      if (http_front* const http = http_)
        http->drain(drain_max); // requests that are being answered
    });
    std::lock_guard lock(mutex_);
    if (over_)
      return;
    early_ = node_ == nullptr;
    if (early_)
      ::alarm(start_end_s);
    else
      node_->leave(runtime::leave_deadline);
  }

  std::atomic<http_front*> http_ = nullptr;
  std::mutex mutex_;
  runtime::node* node_ = nullptr;
  bool early_ = false;
  bool over_ = false; ///< the node has ended
  std::once_flag drained_;
  std::thread leaving_;
  signals signals_; // last: its thread uses the others
};

/// Prints a node's lines, as text or as JSON. A stalled reader delays nothing.
class printer final : public runtime::node_observer {
public:
  /// @param looks  whether the node looks for other peers
  printer(bool as_json, bool looks) : json_(as_json), looks_(looks) {}
  /// @param more  fields for JSON
  void line(const char* event, const std::string& text,
            const json& more = json::object()) {
    out_.line(shape(event, core::shown(text), more));
  }

  void ready(const std::string& text) override {
    line("ready", text);
    if (http_ == nullptr || http_->endpoint().empty())
      return;
    const std::string url = http_->url();
    line(http_event,
         "web page: " + url
           + " (chat, models, peers, training, jobs); API: " + url + "v1"
           + (http_->has_all_addresses()
                ? ", also at the other addresses of this machine"
                : ""),
         runtime::written<std::string>(http_table(), url));
  }
  void waiting(const std::string& text) override { line("waiting", text); }
  void say(const std::string& text) override { line("say", text); }
  void stopped(const std::string& why) override { line("stopped", why); }
  bool leave_asked() override {
    leaves_->leave_asked();
    return true;
  }
  /// @pre before the node starts; it outlives the node
  void leave_by(node_signals& s) { leaves_ = &s; }
  /// @pre before the node starts; it outlives the node
  void tell_of(const http_front& http) { http_ = &http; }
  /// A view; as JSON also with its numbers.
  void agreed(const core::view& v, bool member) override {
    const std::string text =
      core::view_line({before_ ? &*before_ : nullptr, v, member, looks_});
    before_ = v;
    line(view_event, text,
         json_ ? runtime::written<view_numbers>(view_table(), {v, member})
               : json::object());
  }

private:
  std::string shape(const char* event, const std::string& text,
                    const json& more = json::object()) const {
    SHOAL_ASSERT(std::ranges::count(node_event_kinds, std::string_view(event),
                                    &node_event_kind::name)
                 == 1);
    if (!json_)
      return text;
    json shaped = runtime::written<event_line>(line_table(), {event, text});
    shaped.update(more);
    return model::json_text(shaped);
  }

  bool json_;
  bool looks_;
  node_signals* leaves_ = nullptr;
  const http_front* http_ = nullptr;
  std::optional<core::view> before_; ///< view of the last line
  line_printer out_{STDOUT_FILENO, [this](std::size_t count) {
                      return shape("say", "[node] " + std::to_string(count)
                                            + " lines left out: nobody read "
                                              "them");
                    }};
};

/// The first line of a file that no other user can read, or of stdin. May wait:
/// for a user who pastes the token, or for another program. Throws setup_error.
std::string read_secret_line(const std::filesystem::path& file) {
  runtime::posix::descriptor opened;
  if (file != "-") {
    opened = runtime::posix::descriptor(
      ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
    if (!opened)
      throw runtime::usage_error(file.string() + " cannot be read: "
                                 + runtime::posix::last_error().message());
    runtime::check_secret(opened.get(), file.string());
  }
  const int from = opened ? opened.get() : STDIN_FILENO;
  if (!opened && isatty(STDIN_FILENO) == 1)
    std::cerr << "join token (paste the line of `shoal invite`): ";
  std::string text;
  ssize_t size = 1;
  for (char c = 0; text.size() <= runtime::token_text_max
                   && (size = ::read(from, &c, 1)) == 1 && c != '\n';)
    text += c;
  if (size < 0)
    throw runtime::usage_error(file.string() + " cannot be read: "
                               + runtime::posix::last_error().message());
  if (text.empty())
    throw runtime::usage_error((opened ? file.string() : "stdin")
                               + " is empty");
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.pop_back();
  return text;
}

runtime::node_config config_of(const node_options& o, std::uint64_t memory,
                               std::uint64_t disk, printer& out) {
  runtime::node_config c;
  c.name = o.at.name;
  c.version = program_version();
  c.data_dir = o.at.data_dir;
  c.listen = o.listen;
  c.join = o.join;
  c.cluster = o.cluster;
  c.cluster_key_file = o.at.cluster_key;
  c.hosts_file = o.hosts;
  c.slurm = o.slurm;
  c.join_token = o.join_token;
  c.witness = o.witness;
  c.voter = !o.non_voting;
  c.threads = o.threads;
  c.discover = !o.no_discovery;
  c.shared_memory = !o.no_shared_memory;
  c.force_fabric = o.force_fabric;
  c.ucx_tcp = o.ucx_tcp;
  c.exclude_fabrics = o.exclude_fabrics;
  c.trusted_networks = o.trusted_networks;
  c.memory_bytes = memory;
  c.disk_bytes = disk;
  c.trace_file = o.trace;
  c.observer = &out;
  return c;
}

/// What a peer needs to be of use for any but a tiny model.
constexpr std::uint64_t little_memory = 64ull << 20;

} // namespace

std::vector<runtime::event_text> node_events() {
  std::vector<runtime::event_text> out;
  for (const node_event_kind& kind : node_event_kinds) {
    auto fields = runtime::texts_of(line_table());
    if (kind.name == http_event)
      std::ranges::move(runtime::texts_of(http_table()),
                        std::back_inserter(fields));
    if (kind.name == view_event)
      std::ranges::move(runtime::texts_of(view_table()),
                        std::back_inserter(fields));
    out.push_back({std::string(kind.name), kind.meaning, fields});
  }
  return out;
}

int run_node(node_options o) {
  const auto memory =
    parse_memory(o.memory, runtime::host_memory(runtime::read_host_limits()));
  if (!memory) {
    std::cerr << "shoal: --memory " << memory.message() << "\n";
    return exit_usage;
  }
  const auto disk = parse_memory(o.disk, 0);
  if (!disk) {
    std::cerr << "shoal: --disk " << disk.message() << "\n";
    return exit_usage;
  }
  if (!o.join_token_file.empty()) {
    try {
      o.join_token = read_secret_line(o.join_token_file);
    } catch (const runtime::usage_error& e) {
      std::cerr << "shoal: --join-token-file: " << e.what() << "\n";
      return exit_usage;
    } catch (const runtime::setup_error& e) {
      std::cerr << "shoal: --join-token-file: " << e.what() << "\n";
      return exit_failed;
    }
    try {
      (void)runtime::decode_token(o.join_token);
    } catch (const runtime::usage_error& e) {
      std::cerr << "shoal: --join-token-file: the first line of "
                << (o.join_token_file == "-" ? "stdin"
                                             : o.join_token_file.string())
                << " is wrong: " << e.what() << "\n";
      return exit_usage;
    }
  }
  // Of commands that were killed, or whose checkpoint was moved away.
  runtime::remove_empty_kept_folders();
  // Before the others, which say things until they end.
  printer out(o.json, !o.no_discovery || !o.join.empty() || !o.hosts.empty()
                        || o.slurm || !o.join_token.empty());
  const auto manage = std::make_shared<management>(o.http.jobs);
  std::unique_ptr<http_front> http;
  node_signals interrupts;
  out.leave_by(interrupts);
  if (!o.at.data_dir.empty() && !runtime::is_by_name(o.at.data_dir))
    out.say("[node] commands on this machine find it by --data-dir "
            + shell_word(o.at.data_dir.string()));
  if (*memory > 0 && *memory < little_memory && !o.witness)
    out.say("[node] --memory is " + memory_text(*memory)
            + ": one layer of most models needs more to be trained or served, "
              "so this peer may get no work; give it at least "
            + memory_text(little_memory));
  const runtime::memory_keeper keeper;
  runtime::role_table roles;
  actors::add_builtin(roles);
  std::unique_ptr<runtime::node> node;
  try {
    runtime::check_data_dir_is_free(data_dir_of(o.at)); // it has the port, too
    http = std::make_unique<http_front>(
      o.http, [&out](const std::string& line) { out.say(line); }, manage);
    http->open(roles);
    interrupts.answers(*http);
    out.tell_of(*http);
    for (const auto& file : o.plugins)
      out.line("plugin", "plug-in " + runtime::load_plugin(file, roles) + " ("
                           + file.string() + ") loaded");
    runtime::node_config config = config_of(o, *memory, *disk, out);
    config.http = http->endpoint();
    node = std::make_unique<runtime::node>(config, roles);
  } catch (const runtime::usage_error& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_usage;
  } catch (const runtime::setup_error& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_failed;
  }
  manage->open(data_dir_of(o.at));
  interrupts.started(*node);
  while (!node->wait_stopped(std::chrono::hours(1))) {
  }
  interrupts.ended();
  return node->failed() ? exit_failed : exit_done;
}

} // namespace shoal::apps
