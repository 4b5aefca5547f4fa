// apps/cmd_node.cpp -- node, status, recover: the shoal itself.
#include "actors/supervisor.hpp"
#include "apps/commands.hpp"
#include "apps/line_printer.hpp"
#include "apps/remote.hpp"
#include "apps/signals.hpp"
#include "runtime/client.hpp"
#include "runtime/memory_keeper.hpp"
#include "runtime/model/json.hpp"
#include "runtime/node.hpp"
#include "runtime/node/status.hpp" // view_line
#include "runtime/plugin.hpp"
#include "runtime/wire/codec.hpp" // view_digest

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <optional>

namespace shoal::apps {

using json = nlohmann::ordered_json;

namespace {

std::optional<std::uint64_t> parse_bytes(const std::string& text) {
  if (text.empty())
    return 0;
  std::size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  const std::string unit = text.substr(end);
  double factor = 1;
  if (unit == "K" || unit == "k")
    factor = 1024.0;
  else if (unit == "M")
    factor = 1024.0 * 1024;
  else if (unit == "G")
    factor = 1024.0 * 1024 * 1024;
  else if (!unit.empty())
    return std::nullopt;
  if (!(value >= 0) || value * factor > 1e18)
    return std::nullopt;
  return std::uint64_t(value * factor);
}

/// Lines of a node, as text or as JSON. A reader that stalls holds up nobody.
class printer {
public:
  explicit printer(bool as_json) : json_(as_json) {}
  void line(const char* event, const std::string& text) {
    out_.line(shape(event, text));
  }

  /// A view; as JSON with its numbers, too.
  void view(const core::view& v, bool member) {
    const std::string text = runtime::view_line(v, member);
    if (!json_)
      return line("view", text);
    json names = json::array();
    for (const core::member& m : v.members)
      names.push_back(m.name);
    json shaped = {{"event", "view"},
                   {"text", text},
                   {"shoal", core::to_hex(v.shoal)},
                   {"epoch", v.number},
                   {"digest", core::to_hex(runtime::codec::view_digest(v))},
                   {"peers", v.members.size()},
                   {"names", names},
                   {"jobs", std::ranges::count(v.jobs, core::job_state::running,
                                               &core::job_entry::state)},
                   {"member", member}};
    out_.line(shaped.dump(-1, ' ', false, json::error_handler_t::replace));
  }

private:
  std::string shape(const char* event, const std::string& text) const {
    return json_ ? json{{"event", event}, {"text", text}}.dump() : text;
  }

  bool json_;
  line_printer out_{STDOUT_FILENO, [this](std::size_t count) {
                      return shape("say", "[node] " + std::to_string(count)
                                            + " lines left out: nobody read "
                                              "them");
                    }};
};

runtime::node_config
config_of(const node_options& o, std::uint64_t memory, printer& out) {
  runtime::node_config c;
  c.name = o.at.name;
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
  c.trace_file = o.trace;
  auto to = [&out](const char* event) {
    return [&out, event](const std::string& text) { out.line(event, text); };
  };
  c.observer.ready = to("ready");
  c.observer.agreed = [&out](const core::view& v, bool member) {
    out.view(v, member);
  };
  c.observer.waiting = to("waiting");
  c.observer.say = to("say");
  c.observer.stopped = to("stopped");
  return c;
}

void print_status(const json& s) {
  std::printf(
    "shoal %s  epoch %llu  %s\n", s.value("id", "").substr(0, 12).c_str(),
    (unsigned long long)s.value("epoch", 0ull), s.value("state", "").c_str());
  std::printf("%-10s %-16s %-12s %-22s %s\n", "PEER", "NAME", "STATE",
              "ADDRESS", "DEVICES");
  for (const json& p : s["peers"]) {
    std::string devices;
    for (const json& d : p["devices"])
      devices += (devices.empty() ? "" : ", ") + d.value("kind", "") + " "
                 + std::to_string(d.value("threads", 0)) + " threads "
                 + std::to_string(d.value("mflops", 0ull) / 1000) + " GFLOP/s "
                 + std::to_string(d.value("memory_bytes", 0ull) >> 20) + " MiB";
    const std::string address =
      p["addresses"].empty() ? "" : p["addresses"][0].get<std::string>();
    std::printf("%-10s %-16s %-12s %-22s %s\n",
                p.value("id", "").substr(0, 8).c_str(),
                p.value("name", "").c_str(), p.value("state", "").c_str(),
                address.c_str(),
                p.value("witness", false) ? "witness"
                : p.value("voter", true)  ? devices.c_str()
                                          : (devices + ", no vote").c_str());
  }
  for (const json& cut : s["cuts"])
    std::printf("no way between %s and %s\n",
                cut[0].get<std::string>().substr(0, 8).c_str(),
                cut[1].get<std::string>().substr(0, 8).c_str());
  for (const json& j : s["jobs"])
    std::printf("job %s  %s  %s  %s\n", j.value("id", "").c_str(),
                j.value("name", "").c_str(), j.value("state", "").c_str(),
                j.value("plan", j.value("waiting", "")).c_str());
}

std::string size_text(std::uint64_t bytes) {
  static const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value,
                units[unit]);
  return text;
}

/// A speed of a link, or "-" while nothing has measured it.
std::string speed_text(const json& value, double per, const char* unit) {
  if (!value.is_number())
    return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value.get<double>() / per, unit);
  return text;
}

std::string name_of(const json& status, const std::string& id) {
  for (const json& p : status["peers"])
    if (p.value("id", "") == id && !p.value("name", "").empty())
      return p.value("name", "");
  return id.substr(0, 8);
}

/// One line for each fabric that has carried something, the one in use first.
void print_links(const json& s) {
  std::printf("%-16s %-6s %10s %12s %11s %11s  %s\n", "PEER", "FABRIC",
              "LATENCY", "BANDWIDTH", "SENT", "RECEIVED", "WHY NOT BETTER");
  for (const json& l : s["links"]) {
    std::string why;
    for (const json& r : l["instead_of"])
      why += (why.empty() ? "" : "; ") + r.value("fabric", "") + ": "
             + r.value("why", "");
    const std::string used = l.value("fabric", "");
    json now = {{"fabric", used}, {"jobs", json::array()}};
    std::vector<json> lines{now};
    for (const json& m : l["moved"])
      if (m.value("fabric", "") == used)
        lines[0] = m;
      else
        lines.push_back(m);
    const std::string peer = name_of(s, l.value("peer", ""));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const json& m = lines[i];
      std::printf(
        "%-16s %-6s %10s %12s %11s %11s  %s\n", peer.c_str(),
        m.value("fabric", "").c_str(),
        speed_text(m.value("latency_ns", json()), 1e3, "us").c_str(),
        speed_text(m.value("bytes_per_s", json()), 1e6, "MB/s").c_str(),
        size_text(m.value("sent_bytes", 0ull)).c_str(),
        size_text(m.value("received_bytes", 0ull)).c_str(),
        i == 0 ? why.c_str() : "before");
      for (const json& j : m["jobs"])
        std::printf(
          "  %-38s %20s %11s\n",
          (j.value("job", "").empty() ? "no job" : "job " + j.value("job", ""))
            .c_str(),
          size_text(j.value("sent_bytes", 0ull)).c_str(),
          size_text(j.value("received_bytes", 0ull)).c_str());
    }
  }
}

int fail(const runtime::client& c) {
  std::cerr << "shoal: " << c.text() << "\n";
  return exit_failed;
}

} // namespace

runtime::client_config client_of(const node_address& at) {
  runtime::client_config c;
  if (at.peers.empty())
    c.data_dir = data_dir_of(at);
  c.addresses = at.peers;
  c.cluster_key_file = at.cluster_key;
  return c;
}

std::filesystem::path data_dir_of(const node_address& at) {
  return at.data_dir.empty() ? runtime::default_data_dir(at.name) : at.data_dir;
}

namespace {

/// From a signal that comes while the node starts to the end of the process.
constexpr unsigned start_end_s = 20;

/// Hands the first signal to the node, or keeps it until there is one: a start
/// that never ends is then ended by SIGALRM, for which no thread is needed.
class node_signals {
public:
  node_signals() {
    std::signal(SIGALRM, [](int) {
      constexpr char line[] = "shoal: stopped before the node had started\n";
      (void)!::write(STDERR_FILENO, line, sizeof line - 1);
      ::_exit(exit_failed);
    });
    signals_.on_first([this] {
      std::lock_guard lock(mutex_);
      early_ = node_ == nullptr;
      if (early_)
        ::alarm(start_end_s);
      else
        node_->leave(runtime::leave_deadline);
    });
  }
  void started(runtime::node& node) {
    std::lock_guard lock(mutex_);
    node_ = &node;
    ::alarm(0);
    if (early_)
      node.leave(runtime::leave_deadline);
  }
  /// Before the node goes.
  void ended() {
    std::lock_guard lock(mutex_);
    node_ = nullptr;
  }

private:
  std::mutex mutex_;
  runtime::node* node_ = nullptr;
  bool early_ = false;
  signals signals_; // last: its thread uses the others
};

} // namespace

int run_node(const node_options& o) {
  const auto memory = parse_bytes(o.memory);
  if (!memory) {
    std::cerr << "shoal: --memory is '" << o.memory
              << "'; expected bytes such as 8G or 512M\n";
    return exit_usage;
  }
  node_signals interrupts;
  const runtime::memory_keeper keeper;
  printer out(o.json);
  runtime::role_table roles;
  actors::add_builtin(roles);
  std::unique_ptr<runtime::node> node;
  try {
    for (const auto& file : o.plugins)
      out.line("plugin", "plug-in " + runtime::load_plugin(file, roles) + " ("
                           + file.string() + ") loaded");
    node = std::make_unique<runtime::node>(config_of(o, *memory, out), roles);
  } catch (const runtime::node_error& e) {
    std::cerr << "shoal: " << e.what() << "\n";
    return exit_failed;
  }
  interrupts.started(*node);
  while (!node->wait_stopped(std::chrono::hours(1))) {
  }
  interrupts.ended();
  return node->failed() ? exit_failed : exit_done;
}

int run_status(const status_options& o) {
  runtime::client client(client_of(o.at));
  std::string text;
  if (client.connect() || client.status(text))
    return fail(client);
  if (o.json) {
    std::cout << text << "\n";
    return exit_done;
  }
  const json status = model::parse_json<json>(text);
  if (!status.is_object()) {
    std::cerr << "shoal: the node at " << client.where() << " has no status\n";
    return exit_failed;
  }
  o.links ? print_links(status) : print_status(status);
  return exit_done;
}

int run_recover(const recover_options& o) {
  if (!o.force) {
    std::cerr << "shoal: recover needs --force: it makes a new shoal of this "
                 "node alone, which never merges with the old one\n";
    return exit_usage;
  }
  runtime::client client(client_of(o.at));
  if (client.connect() || client.recover_force())
    return fail(client);
  std::cout << "a new shoal was made; its members may join again\n";
  return exit_done;
}

} // namespace shoal::apps
