// apps/node/cmd_doctor.cpp -- doctor: checks whether this machine suits shoal.
//
// Each check gives one line: ok, note (works, but), or bad (with what to do).
#include "apps/common/commands.hpp"
#include "apps/common/json_documents.hpp"
#include "apps/remote/remote.hpp"
#include "apps/remote/status_json.hpp"
#include "apps/remote/status_text.hpp"
#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/control/client.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/discovery/host_list.hpp" // node_port
#include "runtime/discovery/multicast.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/host/host_limits.hpp"
#include "runtime/identity/stale_files.hpp"
#include "runtime/node/node_config.hpp"
#include "transport/shm/segment.hpp"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <thread>

namespace shoal::apps {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

namespace {

struct finding {
  const char* grade; ///< "ok", "note", "bad"
  std::string what;
};

const runtime::json_table<finding>& finding_table() {
  static const runtime::json_table<finding> table{
    {"grade", "text", "", "`ok`, `note` (works, but) or `bad`",
     [](const finding& f) { return json(f.grade); }},
    {"text", "text", "", "what was found, and what to do",
     [](const finding& f) { return json(f.what); }}};
  return table;
}

finding check_kernels() {
  kernels::thread_team team(1);
  const auto on = kernels::make_cpu_backend(team);
  return {"ok", "kernels: " + on->name() + " (" + on->libraries() + "), "
                  + std::to_string(
                    runtime::usable_threads(runtime::read_host_limits()))
                  + " cores"};
}

finding check_data_dir(const fs::path& dir) {
  std::error_code error;
  try {
    runtime::make_private_dir(dir);
  } catch (const std::exception& e) {
    return {"bad", "data directory " + dir.string() + ": " + e.what()
                     + "; choose another with --data-dir"};
  }
  const auto space = fs::space(dir, error);
  const std::string free = core::size_text(space.available) + " free";
  if (access(dir.c_str(), W_OK) != 0)
    return {"bad", "data directory " + dir.string() + " cannot be written"};
  const bool small = space.available < (1u << 30);
  return {small ? "note" : "ok",
          "data directory " + dir.string() + ": " + free
            + (small
                 ? "; texts and checkpoints go there, and a full disk keeps "
                   "none: make room, or choose another with --data-dir"
                 : "")};
}

finding check_multicast() {
  runtime::multicast sockets;
  std::string why;
  if (!sockets.open())
    why = std::strerror(errno);
  else
    for (const std::string& wrong : sockets.join(
           *runtime::parse_ip("127.0.0.1"), runtime::list_interfaces()))
      why = wrong;
  if (why.empty())
    return {"ok",
            "multicast on loopback works: nodes on this machine find each "
            "other. Whether those of other machines do shows only when "
            "nodes run there: if not, start them with --join HOST"};
  return {"note",
          "no multicast on loopback (" + why + "): start nodes with --join"};
}

finding check_shared_memory() {
  try {
    const transport::shm::segment mine(4096);
    if (transport::shm::view::open(
          static_cast<std::uint32_t>(getpid()),
          static_cast<std::uint64_t>(mine.descriptor()), 4096))
      return {"ok", "shared memory works between processes of one user"};
  } catch (const std::exception& e) {
    return {"note", std::string("no shared memory (") + e.what()
                      + "): peers of this host use TLS"};
  }
  return {"note", "memory of a process cannot be opened through /proc: peers "
                  "of this host use TLS"};
}

finding check_node(const node_address& at) {
  runtime::client client(client_of(at));
  std::string text;
  if (client.connect() || client.status(text))
    return {"note", client.text()};
  const auto status = parse_status(text);
  if (!status)
    return {"note", "the node at " + client.where() + ": " + status.message()};
  const json& s = *status;
  const std::string node = "node " + s["name"].get<std::string>() + " at "
                           + client.where() + ": epoch "
                           + std::to_string(s["epoch"].get<std::uint64_t>())
                           + ", " + core::count_text(s["peers"].size(), "peer");
  if (const std::string why = no_quorum_text(s); !why.empty())
    return {"note", node + "; " + why};
  if (const auto away = unreachable_of(s); !away.empty())
    return {"note", node + "; cannot reach " + core::listed(away)
                      + ": see `shoal status`"};
  return {"ok", node};
}

std::vector<finding> check_environment(const doctor_options& o) {
  std::string set, unknown;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view v(*at);
    const std::string name(v.substr(0, v.find('=')));
    if (std::ranges::find(o.unknown_variables, name)
        != o.unknown_variables.end()) {
      unknown += " " + name;
      continue;
    }
    for (const char* prefix : {"SHOAL_", "UCX_", "OMP_", "NCCL_"})
      if (v.starts_with(prefix))
        set += " " + name;
  }
  std::vector<finding> out{
    {"ok", "variables set:" + (set.empty() ? " none" : set)}};
  if (!unknown.empty())
    out.push_back({"note", "variables that mean nothing to shoal:" + unknown});
  return out;
}

/// By default jobs may use half of the memory that is free when a node starts.
finding check_memory() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long free = ::sysconf(_SC_AVPHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  const auto limit = runtime::read_host_limits().memory_bytes;
  if (pages <= 0 || page <= 0)
    return {"note", "the size of the memory is not known"};
  return {
    "ok",
    "memory: " + core::size_text(std::uint64_t(pages) * std::uint64_t(page))
      + ", of which unused "
      + core::size_text(std::uint64_t(std::max(0L, free)) * std::uint64_t(page))
      + (limit ? "; this process may have " + core::size_text(limit)
               : std::string())};
}

/// Descriptors for the links of a few dozen peers, each with four streams, and
/// for the files of a store: a usual limit, and more than enough.
constexpr rlim_t descriptors_wanted = 1024;
/// A node has some 20 threads in addition to those that compute.
constexpr rlim_t processes_wanted = 256;

finding check_limits() {
  rlimit files{}, processes{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  ::getrlimit(RLIMIT_NPROC, &processes);
  const auto text = [](rlim_t n) {
    return n == RLIM_INFINITY ? std::string("unlimited") : std::to_string(n);
  };
  const bool few = files.rlim_cur < descriptors_wanted
                   || processes.rlim_cur < processes_wanted;
  return {few ? "note" : "ok",
          "limits: " + text(files.rlim_cur) + " open files, "
            + text(processes.rlim_cur) + " processes and threads of this user"
            + (few ? "; raise them (ulimit -n "
                       + std::to_string(descriptors_wanted) + ", ulimit -u "
                       + std::to_string(processes_wanted) + ")"
                   : "")};
}

/// Whether a node that serves other machines could use its default port.
bool port_is_free() {
  const runtime::posix::descriptor fd(
    ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(runtime::node_port);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any)
           == 0
         && ::listen(fd.get(), 1) == 0;
}

finding check_network() {
  std::string addresses;
  for (const runtime::network_interface& i : runtime::list_interfaces())
    for (const runtime::ip_address& a : i.addresses)
      if (!i.loopback && !runtime::is_loopback(a) && !runtime::is_link_local(a))
        addresses += (addresses.empty() ? "" : ", ")
                     + runtime::host_of(runtime::to_text({a, 0}, 1));
  const std::string port = std::to_string(runtime::node_port);
  if (addresses.empty())
    return {"note",
            "network: no address but loopback, so that no other machine "
            "can reach a node here"};
  return {"ok", "network: " + addresses + "; port " + port + " is "
                  + (port_is_free() ? "free" : "in use (by a node?)")
                  + ". Firewalls must let TCP and UDP port " + port
                  + " through; they are not checked"};
}

/// One finding for each stale file, or one that there is none.
std::vector<finding> check_stale_files(const doctor_options& o) {
  std::vector<finding> out;
  for (const runtime::stale_file& l :
       runtime::find_stale_files(runtime::usual_places(data_dir_of(o.at)))) {
    if (!l.dead)
      out.push_back({"note", l.text});
    else if (!o.clean)
      out.push_back({"note", l.text + ": run `"
                               + command_line("doctor --clean", o.at) + "`"});
    else if (const auto error = runtime::remove(l))
      out.push_back({"bad", l.text + " is not removed: " + error.message()});
    else
      out.push_back({"ok", l.text + " is removed"});
  }
  if (out.empty())
    out.push_back({"ok", "nothing is left of nodes that were killed"});
  return out;
}

} // namespace

std::vector<runtime::field_text> doctor_fields() {
  return runtime::texts_of(finding_table());
}

int run_doctor(const doctor_options& o) {
  std::vector<finding> all{
    check_kernels(),       check_memory(),
    check_limits(),        check_data_dir(data_dir_of(o.at)),
    check_network(),       check_multicast(),
    check_shared_memory(), check_node(o.at)};
  for (finding& f : check_environment(o))
    all.push_back(std::move(f));
  for (finding& f : check_stale_files(o))
    all.push_back(std::move(f));
  bool bad = false;
  for (const finding& f : all) {
    bad = bad || std::strcmp(f.grade, "bad") == 0;
    if (!o.json)
      std::printf("%-5s %s\n", f.grade, core::shown(f.what).c_str());
  }
  if (o.json)
    std::cout << model::json_text(runtime::written_each(finding_table(), all))
              << "\n";
  return bad ? exit_failed : exit_done;
}

} // namespace shoal::apps
