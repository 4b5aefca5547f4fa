// runtime/node/setup.cpp -- checks a node's configuration and loads its keys.
#include "runtime/node/setup.hpp"

#include "runtime/host_list.hpp"
#include "runtime/invite.hpp"
#include "runtime/node.hpp" // node_error
#include "runtime/node/file.hpp"
#include "runtime/node/paired_ways.hpp"
#include "runtime/vote_file.hpp"
#include "runtime/wire/codec.hpp" // limits

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace shoal::runtime {

namespace fs = std::filesystem;

throw_away_dir::~throw_away_dir() {
  std::error_code ignored;
  if (!path_.empty())
    fs::remove_all(path_, ignored);
}

const fs::path& throw_away_dir::make() {
  const char* tmp = std::getenv("TMPDIR");
  std::string name = std::string(tmp && *tmp ? tmp : "/tmp") + "/shoal-XXXXXX";
  if (!::mkdtemp(name.data()))
    throw node_error("cannot make a directory " + name + ": "
                     + std::strerror(errno));
  return path_ = name;
}

static void check_text(const std::string& text, const char* flag) {
  if (text.size() > codec::name_bytes_max)
    throw node_error(std::string(flag) + " is longer than "
                     + std::to_string(codec::name_bytes_max) + " bytes");
  for (unsigned char c : text)
    if (c < 32 || c == 127)
      throw node_error(std::string(flag) + " has a control character");
}

/// "host:port" or "[host]:port".
static std::string host_of(const std::string& address) {
  std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0)
    throw node_error("address '" + address + "' is no host:port");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  return host;
}

static bool is_loopback(const std::string& host) {
  in_addr a{};
  return host == "localhost" || host == "::1"
         || (::inet_pton(AF_INET, host.c_str(), &a) == 1
             && (ntohl(a.s_addr) >> 24) == 127);
}

static std::vector<std::string> slurm_names() {
  const char* list = std::getenv("SLURM_JOB_NODELIST");
  auto hosts = list ? parse_slurm_hosts(list) : std::nullopt;
  if (!hosts)
    throw node_error(
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
  if (mend_data_dir(out.data_dir) && config.observer.say)
    config.observer.say("[node] data directory " + out.data_dir.string()
                        + " was open to others: made it private (0700)");
  out.lock = std::make_unique<data_dir_lock>(out.data_dir);
  out.identity = config.embedded
                   ? transport::tls::make_private_key()
                   : load_private_key(out.data_dir / "identity.key");
}

/// Follows the chain of replacements from the key that the user names.
static void follow_replacements(const node_config& config, node_setup& out) {
  auto kept = vote_file(out.data_dir).load().keys;
  auto has = [&](const std::vector<core::cluster_key>& list) {
    return std::ranges::find(list, out.cluster_key) != list.end();
  };
  if (!kept
      || (kept->current != out.cluster_key && !has(kept->replaced)
          && !has(kept->pending)))
    return;
  if (has(kept->replaced) && config.observer.say)
    config.observer.say("[node] that cluster key was replaced; using the one "
                        "in "
                        + own_key_file(out.data_dir).string());
  out.cluster_key = kept->current;
  out.keys = std::move(kept);
}

/// @returns whether the key is one that machines share: not the user's own.
static bool choose_key(const node_config& config, node_setup& out) {
  const fs::path own = own_key_file(out.data_dir);
  if (!config.join_token.empty()) {
    const invite_token token = decode_token(config.join_token);
    out.seeds = token.addresses;
    if (!fs::exists(own))
      keep_own_key(out.data_dir, redeem(token, out.identity));
    else if (config.observer.say)
      config.observer.say("[node] this node has its cluster key already: the "
                          "token was not used");
  }
  bool shared = true;
  if (!config.cluster_key_file.empty()) {
    out.cluster_key = load_cluster_key(config.cluster_key_file);
  } else if (!config.embedded && fs::exists(own)) {
    out.cluster_key = load_cluster_key(own);
  } else {
    out.cluster_key = load_user_key();
    shared = false;
  }
  if (!config.embedded)
    follow_replacements(config, out);
  if (config.cluster_key_file.empty() && out.keys
      && fs::exists(user_key_file()))
    shared = std::ranges::find(out.keys->replaced, load_user_key())
             == out.keys->replaced.end();
  return shared;
}

void set_up(const node_config& config, node_setup& out) {
  check_text(config.name, "--name");
  check_text(config.cluster, "--cluster");
  if (config.name.find('/') != std::string::npos || config.name == "."
      || config.name == "..")
    throw node_error("--name '" + config.name
                     + "' is no plain name: leave out '/'");
  if (config.cluster.empty())
    throw node_error("--cluster is empty");
  check(fabric_choice{config.shared_memory, config.force_fabric,
                      config.trusted_networks});
  if (config.threads < 0)
    throw node_error("--threads is negative");
  for (const std::string& address : config.join)
    (void)host_of(address);
  if (config.slurm)
    out.names = slurm_names();

  choose_data_dir(config, out);
  bool shared = choose_key(config, out);
  const bool listed = !config.hosts_file.empty() || config.slurm;
  const std::string port = ":" + std::to_string(listed ? node_port : 0);
  out.listen = !config.listen.empty()       ? config.listen
               : shared && !config.embedded ? "0.0.0.0" + port
                                            : "127.0.0.1" + port;
  out.host = host_of(out.listen);
  out.loopback_only = is_loopback(out.host);
  if (!shared && !out.loopback_only)
    throw node_error("--listen " + out.listen
                     + " reaches other machines: give all peers one key by "
                       "--cluster-key FILE");
  out.name = !config.name.empty() ? config.name
             : config.embedded    ? "train-" + std::to_string(::getpid())
                                  : host_name();
}

std::vector<std::string> reachable_addresses(const std::string& bound) {
  std::string host = host_of(bound);
  std::string port = bound.substr(bound.rfind(':'));
  if (host != "0.0.0.0" && host != "::")
    return {bound};
  std::vector<std::string> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    for (ifaddrs* i = list; i && out.size() < codec::addresses_max;
         i = i->ifa_next) {
      if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET
          || !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
        continue;
      char text[INET_ADDRSTRLEN] = {};
      auto* a = reinterpret_cast<sockaddr_in*>(i->ifa_addr);
      ::inet_ntop(AF_INET, &a->sin_addr, text, sizeof text);
      out.push_back(text + port);
    }
    ::freeifaddrs(list);
  }
  if (out.empty())
    out.push_back("127.0.0.1" + port);
  return out;
}

} // namespace shoal::runtime
