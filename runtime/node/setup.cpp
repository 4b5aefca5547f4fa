// runtime/node/setup.cpp -- checks a node's configuration and loads its keys.
#include "runtime/node/setup.hpp"

#include "runtime/control/invite.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"
#include "runtime/discovery/host_list.hpp"
#include "runtime/discovery/multicast.hpp" // list_interfaces
#include "runtime/discovery/own_addresses.hpp"
#include "runtime/files/file.hpp"
#include "runtime/host/ip_address.hpp"
#include "runtime/identity/stale_files.hpp"
#include "runtime/identity/vote_file.hpp"
#include "runtime/links/data_paths.hpp"
#include "runtime/wire/codec.hpp" // limits

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;

static_assert(own_addresses_max <= codec::addresses_max);

throw_away_dir::~throw_away_dir() {
  std::error_code ignored;
  if (!path_.empty())
    fs::remove_all(path_, ignored);
}

const fs::path& throw_away_dir::make() {
  const char* tmp = std::getenv("TMPDIR");
  std::string name = std::string(tmp && *tmp ? tmp : "/tmp") + "/"
                     + embedded_folder + std::to_string(::getpid()) + "-XXXXXX";
  if (!::mkdtemp(name.data()))
    throw setup_error("cannot make a directory " + name + ": "
                      + std::strerror(errno));
  return path_ = name;
}

static void check_text(const std::string& text, const char* flag) {
  if (text.size() > codec::name_bytes_max)
    throw usage_error(std::string(flag) + " is longer than "
                      + std::to_string(codec::name_bytes_max) + " bytes");
  // Invalid UTF-8 is replaced first: by itself it is no control character.
  if (!core::is_shown(core::replace_broken(text)))
    throw usage_error(std::string(flag) + " has a control character");
}

/// Two names that differ only in invalid UTF-8 would become equal, and their
/// shoals must not meet for that reason.
static void check_cluster(const std::string& name) {
  check_text(name, "--cluster");
  if (name.empty())
    throw usage_error("--cluster is empty");
  if (!core::is_utf8(name))
    throw usage_error("--cluster '" + name
                      + "' is not UTF-8: give a name that is");
}

/// The host of "host:port". @param flag source of the address, for errors
/// @param port_min 0 where it may mean any free port
static std::string
checked_host(const char* flag, const std::string& address, int port_min) {
  const std::string what = std::string(flag) + ": '" + address + "' ";
  const std::string host = host_of(address);
  if (host.empty() || !core::is_shown(address))
    throw usage_error(what + "is not host:port or [IPv6 address]:port");
  const auto digits = std::string_view(address).substr(address.rfind(':') + 1);
  std::uint16_t port = 0;
  const auto [end, error] =
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc()
      || end != digits.data() + digits.size() || port < port_min)
    throw usage_error(what + "has no port from " + std::to_string(port_min)
                      + " to 65535 after its last ':'");
  return host;
}

static bool names_loopback(const std::string& host) {
  const auto ip = parse_ip(host);
  return host == "localhost" || (ip && is_loopback(ip->address));
}

/// The default address for serving: [::] accepts IPv4 as well, if the system
/// supports IPv6 at all; loopback is IPv4 unless there is none.
static std::string default_host(bool loopback) {
  if (!loopback)
    return unique_fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0))
             ? "[::]"
             : "0.0.0.0";
  bool six = false;
  for (const network_interface& i : list_interfaces())
    for (const ip_address& a : i.addresses) {
      if (is_loopback(a) && is_v4(a))
        return "127.0.0.1";
      six = six || is_loopback(a);
    }
  return six ? "[::1]" : "127.0.0.1";
}

static std::vector<std::string> slurm_names() {
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  auto hosts = list ? parse_slurm_hosts(list) : std::nullopt;
  if (!hosts)
    throw usage_error(
      std::string("--slurm: SLURM_JOB_NODELIST is ")
      + (list ? "no list of nodes" : "not set: run inside a Slurm job"));
  for (std::string& host : *hosts)
    host += ":" + std::to_string(node_port);
  return *hosts;
}

static std::string host_name() {
  char text[65] = {};
  ::gethostname(text, sizeof text - 1);
  return text;
}

static void choose_data_dir(const node_config& config, node_setup& out) {
  if (config.embedded)
    out.data_dir =
      config.data_dir.empty() ? out.embedded.make() : config.data_dir;
  else
    out.data_dir =
      config.data_dir.empty() ? default_data_dir(config.name) : config.data_dir;
  out.data_dir = fs::absolute(out.data_dir);
  if (mend_data_dir(out.data_dir) && config.observer)
    config.observer->say("[node] data directory " + out.data_dir.string()
                         + " was open to others: made it private (0700)");
  out.lock = std::make_unique<data_dir_lock>(out.data_dir);
  // A directory that was removed under a node that was writing to it. A new peer
  // that went on from its records would wait for its former self.
  const fs::path key = identity_file(out.data_dir);
  if (!config.embedded && !fs::exists(key) && vote_file::set_aside(out.data_dir)
      && config.observer)
    config.observer->say("[node] " + out.data_dir.string()
                         + " has no identity.key: this is a new peer, and what "
                           "the former one knew of its shoal is set aside "
                           "(*.former)");
  if (!config.embedded && config.data_dir.empty() && !fs::exists(key)
      && config.observer)
    if (const auto beside = nodes_beside(out.data_dir); !beside.empty())
      config.observer->say(
        "[node] this is a new peer; of nodes that were started here before, "
        "the data of "
        + core::listed(beside)
        + " is there: `shoal node --name NAME` starts "
          "one of them"
        + (std::ranges::count(beside, "default") > 0
             ? " (default: without --name)"
             : ""));
  out.identity = config.embedded ? transport::tls::make_private_key()
                                 : load_private_key(key);
}

/// Follows the chain of replacements from the key that the user has named.
static void follow_replacements(const node_config& config, node_setup& out) {
  const auto self = transport::tls::id_of_private(out.identity);
  auto kept = vote_file(out.data_dir, spare_folders(self)).load().keys;
  auto has = [&](const std::vector<core::cluster_key>& list) {
    return std::ranges::find(list, out.cluster_key) != list.end();
  };
  if (!kept
      || (kept->current != out.cluster_key && !has(kept->replaced)
          && !has(kept->pending)))
    return;
  if (has(kept->replaced) && config.observer)
    config.observer->say("[node] that cluster key was replaced; using the one "
                         "in "
                         + own_key_file(out.data_dir).string());
  out.cluster_key = kept->current;
  out.keys = std::move(kept);
}

/// Says which key is used where the data directory keeps one.
static void say_kept_key(const node_config& config, const node_setup& out) {
  const fs::path own = own_key_file(out.data_dir);
  if (config.embedded || !config.observer || !fs::exists(own))
    return;
  bool same = false;
  try {
    same = load_cluster_key(own) == out.cluster_key;
  } catch (const setup_error&) { // it is not needed now
    return;
  }
  if (same && config.cluster_key_file.empty())
    config.observer->say("[node] uses the cluster key that this node keeps, in "
                         + own.string());
  else if (!same && !config.cluster_key_file.empty())
    config.observer->say("[node] uses the cluster key of "
                         + config.cluster_key_file.string()
                         + "; this node keeps another one, in " + own.string()
                         + ", which it uses where --cluster-key is left out");
}

/// Takes from a join token the inviter's addresses, the cluster's name and,
/// unless this node has one already, the cluster key.
static void use_token(const node_config& config, node_setup& out) {
  if (fs::exists(own_key_file(out.data_dir))) {
    if (const auto token = parse_token(config.join_token))
      out.seeds = token->addresses;
    if (config.observer)
      config.observer->say("[node] this node has its cluster key already: the "
                           "token was not used");
    return;
  }
  const invite_token token = decode_token(config.join_token);
  if (config.cluster && *config.cluster != token.cluster)
    throw usage_error("--cluster is '" + *config.cluster
                      + "', but the join token is for the cluster '"
                      + token.cluster + "': leave out --cluster");
  out.seeds = token.addresses;
  const auto key = redeem(token, out.identity);
  keep_own_cluster(out.data_dir, token.cluster); // first: a stored key means
                                                 // "done"
  keep_own_key(out.data_dir, key);
}

/// @returns whether machines share the key: it is not the user's own.
static bool choose_key(const node_config& config, node_setup& out) {
  const fs::path own = own_key_file(out.data_dir);
  if (!config.join_token.empty() && !config.cluster_key_file.empty())
    throw usage_error(
      "a join token and --cluster-key each bring the cluster key: leave one of "
      "them out. With the key, name a peer by --join instead of the token, "
      "which was not used");
  if (!config.join_token.empty())
    use_token(config, out);
  bool shared = true;
  if (!config.cluster_key_file.empty()) {
    out.cluster_key = load_cluster_key(config.cluster_key_file);
  } else if (!config.embedded && fs::exists(own)) {
    out.cluster_key = load_cluster_key(own);
  } else if (config.embedded && config.join.empty()) {
    // Nobody else meets it, so nothing need be written into the user's home.
    out.cluster_key = transport::tls::make_shared_key();
    shared = false;
  } else {
    out.cluster_key = load_user_key();
    shared = false;
  }
  if (!config.embedded)
    follow_replacements(config, out);
  say_kept_key(config, out);
  if (config.cluster_key_file.empty() && out.keys
      && fs::exists(user_key_file()))
    shared = std::ranges::find(out.keys->replaced, load_user_key())
             == out.keys->replaced.end();
  return shared;
}

/// Several nodes of one machine may serve others: the first has node_port, where
/// a list of hosts names it, the rest any free port.
static void
choose_listener(const node_config& config, bool shared, node_setup& out) {
  if (!config.listen.empty()) {
    out.listen = config.listen;
    return;
  }
  const bool listed = !config.hosts_file.empty() || config.slurm;
  const bool serves = shared && !config.embedded;
  const std::string host = default_host(!serves);
  out.listen = host + ":" + std::to_string(listed || serves ? node_port : 0);
  if (listed || serves)
    out.listen_else = host + ":0";
}

void set_up(const node_config& config, node_setup& out) {
  check_text(config.name, "--name");
  if (config.cluster)
    check_cluster(*config.cluster);
  if (config.name.find('/') != std::string::npos || config.name == "."
      || config.name == "..")
    throw usage_error("--name '" + config.name
                      + "' may not be '.' or '..', or contain '/'");
  check(fabric_choice{config.shared_memory, config.force_fabric, config.ucx_tcp,
                      config.exclude_fabrics, config.trusted_networks});
  if (config.threads < 0)
    throw usage_error("--threads is negative");
  for (const std::string& address : config.join) {
    out.join.push_back(with_node_port(address));
    (void)checked_host("--join", out.join.back(), 1);
  }
  if (!config.hosts_file.empty())
    if (const auto hosts = read_hosts_file(config.hosts_file); !hosts)
      throw usage_error("--hosts: " + hosts.message());
  if (config.slurm)
    out.names = slurm_names();

  choose_data_dir(config, out);
  bool shared = choose_key(config, out);
  if (config.cluster)
    out.cluster = *config.cluster;
  else
    out.cluster = (config.embedded ? std::nullopt : own_cluster(out.data_dir))
                    .value_or(default_cluster);
  choose_listener(config, shared, out);
  out.loopback_only = names_loopback(checked_host("--listen", out.listen, 0));
  if (!shared && !out.loopback_only)
    throw usage_error("--listen " + out.listen
                      + " reaches other machines: give all peers one key by "
                        "--cluster-key FILE");
  for (const std::string& address : out.join)
    if (!shared && !config.embedded
        && !names_loopback(checked_host("--join", address, 1)))
      throw usage_error("--join " + address
                        + " is another machine: give all peers one key by "
                          "--cluster-key FILE");
  // The others refuse a name that is not UTF-8.
  out.name =
    core::shown(!config.name.empty() ? config.name
                : config.embedded    ? "train-" + std::to_string(::getpid())
                                     : host_name(),
                codec::name_bytes_max);
}

} // namespace shoal::runtime
