// runtime/node/setup.cpp -- checks a node's configuration and loads its keys.
#include "runtime/node/setup.hpp"

#include "runtime/host_list.hpp"
#include "runtime/node.hpp" // node_error
#include "runtime/node/file.hpp"
#include "runtime/node/ucx_ways.hpp"
#include "runtime/wire/codec.hpp" // limits

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

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

void set_up(const node_config& config, node_setup& out) {
  check_text(config.name, "--name");
  check_text(config.cluster, "--cluster");
  if (config.name.find('/') != std::string::npos || config.name == "."
      || config.name == "..")
    throw node_error("--name '" + config.name
                     + "' is no plain name: leave out '/'");
  if (config.cluster.empty())
    throw node_error("--cluster is empty");
  check(
    fabric_choice{config.ucx, config.force_fabric, config.trusted_networks});
  if (config.threads < 0)
    throw node_error("--threads is negative");
  for (const std::string& address : config.join)
    (void)host_of(address);
  if (config.slurm)
    out.names = slurm_names();

  bool shared = !config.cluster_key_file.empty();
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
  out.cluster_key =
    shared ? load_cluster_key(config.cluster_key_file) : load_user_key();
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
