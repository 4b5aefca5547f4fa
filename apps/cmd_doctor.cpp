// apps/cmd_doctor.cpp -- doctor: does this machine have what shoal needs?
//
// Each check is one line: ok, note (works, but), or bad (with what to do).
#include "apps/commands.hpp"
#include "apps/remote.hpp"
#include "apps/status_json.hpp"
#include "kernels/backend.hpp"
#include "kernels/thread_team.hpp"
#include "runtime/client.hpp"
#include "runtime/core/shown.hpp"
#include "runtime/host_limits.hpp"
#include "runtime/leftovers.hpp"
#include "runtime/model/json.hpp"
#include "runtime/node/multicast.hpp"
#include "runtime/node_config.hpp"
#include "transport/shm/segment.hpp"

#include <unistd.h>

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
  fs::create_directories(dir, error);
  if (error)
    return {"bad", "data directory " + dir.string() + ": " + error.message()
                     + "; choose another with --data-dir"};
  const auto space = fs::space(dir, error);
  const std::string free = std::to_string(space.available >> 20) + " MiB free";
  if (access(dir.c_str(), W_OK) != 0)
    return {"bad", "data directory " + dir.string() + " cannot be written"};
  return {space.available < (1u << 30) ? "note" : "ok",
          "data directory " + dir.string() + ": " + free};
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
    return {"ok", "multicast on loopback works: nodes find each other"};
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
    return {"note", "no node runs here: start one with `shoal node`"};
  const auto status = parse_status(text);
  if (!status)
    return {"note", "the node at " + client.where() + ": " + status.message()};
  const json& s = *status;
  return {"ok", "node " + s["name"].get<std::string>() + " at " + client.where()
                  + ": epoch " + std::to_string(s["epoch"].get<std::uint64_t>())
                  + ", " + std::to_string(s["peers"].size()) + " peers"};
}

finding check_environment() {
  std::string set;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view v(*at);
    for (const char* prefix : {"SHOAL_", "UCX_", "OMP_", "NCCL_"})
      if (v.starts_with(prefix))
        set += " " + std::string(v.substr(0, v.find('=')));
  }
  return {"ok", "variables set:" + (set.empty() ? " none" : set)};
}

/// One for each thing that is left, or one that there is none.
std::vector<finding> check_leftovers(const doctor_options& o) {
  std::vector<finding> out;
  for (const runtime::leftover& l :
       runtime::find_leftovers(runtime::usual_places(data_dir_of(o.at)))) {
    if (!l.dead)
      out.push_back({"note", l.text});
    else if (!o.clean)
      out.push_back({"note", l.text + ": run shoal doctor --clean"});
    else if (const auto error = runtime::remove(l))
      out.push_back({"note", l.text + " is not removed: " + error.message()});
    else
      out.push_back({"ok", l.text + " is removed"});
  }
  if (out.empty())
    out.push_back({"ok", "nothing is left of nodes that were killed"});
  return out;
}

} // namespace

int run_doctor(const doctor_options& o) {
  std::vector<finding> all{
    check_kernels(),     check_data_dir(data_dir_of(o.at)),
    check_multicast(),   check_shared_memory(),
    check_environment(), check_node(o.at)};
  for (finding& f : check_leftovers(o))
    all.push_back(std::move(f));
  bool bad = false;
  json list = json::array();
  for (const finding& f : all) {
    bad = bad || std::strcmp(f.grade, "bad") == 0;
    list.push_back({{"grade", f.grade}, {"text", f.what}});
    if (!o.json)
      std::printf("%-5s %s\n", f.grade, core::shown(f.what).c_str());
  }
  if (o.json)
    std::cout << model::json_text(list) << "\n";
  return bad ? exit_failed : exit_done;
}

} // namespace shoal::apps
