// runtime/identity/stale_files.cpp -- checks names, locks and /proc.
#include "runtime/identity/stale_files.hpp"

#include "runtime/files/file.hpp"
#include "runtime/files/posix.hpp"
#include "runtime/files/temporary_folder.hpp"
#include "runtime/host/memory_keeper.hpp" // keeper_name
#include "runtime/identity/identity.hpp"
#include "runtime/identity/kept_folder.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace shoal::runtime {

namespace fs = std::filesystem;
using kind = stale_file::kind;

namespace {

bool is_mine(const fs::path& path, mode_t type) {
  struct stat is {};
  return ::lstat(path.c_str(), &is) == 0 && (is.st_mode & S_IFMT) == type
         && is.st_uid == ::geteuid();
}

/// The lock of a folder, held; empty if another process has it, or there is
/// none.
posix::descriptor lock_of(const fs::path& folder) {
  std::error_code none;
  posix::descriptor fd =
    posix::open_regular(folder / "lock", O_RDWR | O_NOFOLLOW, none);
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    fd.reset();
  return fd;
}

/// The number after `prefix`, if nothing or "-..." follows it; else 0.
int pid_in(const std::string& name, const std::string& prefix) {
  if (!name.starts_with(prefix))
    return 0;
  int pid = 0;
  const char* const last = name.data() + name.size();
  const auto [end, wrong] =
    std::from_chars(name.data() + prefix.size(), last, pid);
  return wrong == std::errc{} && (end == last || *end == '-') ? pid : 0;
}

bool is_gone(int pid) {
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

std::vector<fs::path>
abandoned(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> out;
  for (const fs::path& folder : paths_in(parent))
    if (is_gone(pid_in(folder.filename().string(), prefix))
        && is_mine(folder, S_IFDIR) && lock_of(folder))
      out.push_back(folder);
  return out;
}

std::vector<int> processes(const fs::path& proc) {
  std::vector<int> out;
  for (const fs::path& entry : paths_in(proc)) {
    const std::string name = entry.filename().string();
    int pid = 0;
    const auto [end, wrong] =
      std::from_chars(name.data(), name.data() + name.size(), pid);
    if (wrong == std::errc{} && end == name.data() + name.size())
      out.push_back(pid);
  }
  return out;
}

std::string link_of(const fs::path& path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

void find_kept(const stale_file_places& in, std::vector<stale_file>& out) {
  for (const fs::path& folder : paths_in(in.temp)) {
    if (!is_kept(folder) || !is_mine(folder, S_IFDIR))
      continue;
    switch (state_of_kept(folder)) {
    case kept_state::in_use:
      break;
    case kept_state::empty:
      out.push_back({kind::folder, folder, true,
                     "empty folder " + folder.string()
                       + " of a run that had no room for its last checkpoint"});
      break;
    case kept_state::has_checkpoint:
      out.push_back({kind::folder, folder, false,
                     "folder " + folder.string()
                       + " holds the last checkpoint of a run whose --out had "
                         "no room for it: move it to checkpoint/ there and go "
                         "on with `shoal train DIR --resume`, or delete it"});
      break;
    }
  }
}

/// UCX names its shared memory; users in another container are not visible.
void find_memory(const stale_file_places& in, std::vector<stale_file>& out) {
  std::vector<fs::path> found;
  for (const fs::path& file : paths_in(in.memory))
    if (file.filename().string().starts_with("ucx_shm_posix_")
        && is_mine(file, S_IFREG))
      found.push_back(file);
  if (found.empty())
    return;
  std::string maps;
  for (int pid : processes(in.processes)) {
    std::ifstream file(in.processes / std::to_string(pid) / "maps");
    maps.append(std::istreambuf_iterator<char>(file), {});
  }
  for (const fs::path& file : found)
    if (maps.find(file.string()) == std::string::npos)
      out.push_back({kind::memory, file, false,
                     "shared memory " + file.string()
                       + " of UCX is used by no visible process: delete it "
                         "unless another container uses it"});
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A process of a program named shoal, also one that ended or keeps the memory.
struct process {
  int pid = 0;
  std::string program; ///< empty: it no longer has memory
  std::string name;    ///< in lists of processes
  std::vector<std::string> open;
};

std::string name_of(const fs::path& folder) {
  std::string name = text_of(folder / "comm");
  while (!name.empty() && name.back() == '\n')
    name.pop_back();
  return name;
}

std::vector<process> of_shoal(const fs::path& proc) {
  std::vector<process> out;
  for (int pid : processes(proc)) {
    const fs::path folder = proc / std::to_string(pid);
    process p{pid, link_of(folder / "exe"), name_of(folder), {}};
    const auto file = p.program.substr(p.program.rfind('/') + 1);
    if (file != "shoal" && file != "shoal (deleted)"
        && (!p.program.empty() || p.name != "shoal"))
      continue;
    for (const fs::path& fd : paths_in(folder / "fd"))
      p.open.push_back(link_of(fd));
    out.push_back(std::move(p));
  }
  return out;
}

/// The process that made it, or that has adopted it.
int parent_of(const fs::path& proc, int pid) {
  std::istringstream lines(text_of(proc / std::to_string(pid) / "status"));
  static const std::string key = "PPid:";
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key))
      return std::atoi(line.c_str() + key.size());
  return 0;
}

/// The TCP ports at which a process listens. In /proc/PID/net/tcp the third
/// word is the local address in hexadecimal digits, 0A in the fourth means
/// listening, and the tenth is the socket's number.
std::set<int> ports_of(const fs::path& proc, const process& p) {
  std::set<int> out;
  for (const char* table : {"tcp", "tcp6"}) {
    std::istringstream lines(
      text_of(proc / std::to_string(p.pid) / "net" / table));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      const std::vector<std::string> w{
        std::istream_iterator<std::string>(words), {}};
      if (w.size() < 10 || w[3] != "0A" || w[1].find(':') == std::string::npos)
        continue;
      if (std::ranges::count(p.open, "socket:[" + w[9] + "]") > 0)
        out.insert(
          int(std::strtol(w[1].c_str() + w[1].find(':') + 1, nullptr, 16)));
    }
  }
  return out;
}

std::string list_of(const std::set<int>& ports) {
  std::string out;
  for (const int port : ports)
    out += (out.empty() ? "" : ", ") + std::to_string(port);
  return out;
}

/// The problem with a process, as shown to users; empty: none.
std::string what_is_left(const stale_file_places& in, const process& p) {
  static const std::string lost = "/lock (deleted)";
  const std::string pid = std::to_string(p.pid);
  if (p.name == keeper_name) { // it only holds memory
    const int parent = parent_of(in.processes, p.pid);
    const fs::path of = in.processes / std::to_string(parent);
    return parent > 0 && link_of(of / "exe") != p.program
             ? "process " + pid
                 + " keeps the memory of a node that is dead: unless it ends "
                   "by itself in a moment, end it with kill -9 "
                 + pid
             : std::string{};
  }
  const auto ports = ports_of(in.processes, p);
  const std::string listens =
    ports.empty() ? std::string{} : ", listens at port " + list_of(ports);
  if (p.program.empty())
    return ports.empty()
             ? std::string{}
             : "process " + pid + " is a node that was killed and has not ended"
                 + listens + ": see what its threads wait for";
  const auto lock = std::ranges::find_if(
    p.open, [](const std::string& file) { return file.ends_with(lost); });
  if (lock != p.open.end())
    return "process " + pid + " is a node whose data directory "
           + lock->substr(0, lock->size() - lost.size()) + " was deleted"
           + listens + ": end it with kill " + pid;
  const bool has_data = std::ranges::any_of(
    p.open, [](const std::string& file) { return file.ends_with("/lock"); });
  return ports.empty() || has_data
           ? std::string{}
           : "process " + pid + " has no data directory" + listens
               + ": unless it is a benchmark, end it with kill " + pid;
}

void find_processes(const stale_file_places& in, std::vector<stale_file>& out) {
  for (const process& p : of_shoal(in.processes))
    if (std::string text = what_is_left(in, p); !text.empty())
      out.push_back({kind::process, in.processes / std::to_string(p.pid), false,
                     std::move(text)});
}

} // namespace

stale_file_places usual_places(const fs::path& more) {
  stale_file_places out;
  out.temp = temporary_folder();
  out.data_dirs = paths_in(default_data_dir({}).parent_path());
  if (std::ranges::find(out.data_dirs, more) == out.data_dirs.end())
    out.data_dirs.push_back(more);
  return out;
}

std::vector<stale_file> find_stale_files(const stale_file_places& in) {
  std::vector<stale_file> out;
  for (const fs::path& folder : in.data_dirs)
    if (const fs::path socket = control_socket(folder);
        is_mine(socket, S_IFSOCK) && lock_of(folder))
      out.push_back({kind::socket, socket, true,
                     "socket " + socket.string() + " of a node that is dead"});
  for (const char* prefix :
       {train_folder, chaos_folder, bench_folder, embedded_folder, gguf_folder})
    for (const fs::path& folder : abandoned(in.temp, prefix))
      out.push_back({kind::folder, folder, true,
                     "folder " + folder.string()
                       + " of a process that is "
                         "dead"});
  find_kept(in, out);
  find_memory(in, out);
  find_processes(in, out);
  return out;
}

std::error_code remove(const stale_file& l) {
  if (is_kept(l.path)) // no file in it is a lock
    return remove_if_empty(l.path);
  const fs::path folder =
    l.what == kind::socket ? l.path.parent_path() : l.path;
  const posix::descriptor held = lock_of(folder);
  if (!held)
    return std::make_error_code(std::errc::device_or_resource_busy);
  std::error_code error;
  fs::remove_all(l.path, error);
  return error;
}

void remove_abandoned_dirs(const fs::path& parent, const std::string& prefix) {
  for (const fs::path& folder : abandoned(parent, prefix))
    static_cast<void>(remove({kind::folder, folder, true, {}}));
}

} // namespace shoal::runtime
