// runtime/leftovers.cpp -- names, locks and /proc.
#include "runtime/leftovers.hpp"

#include "runtime/node_config.hpp" // control_socket, default_data_dir
#include "runtime/posix.hpp"

#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace shoal::runtime {

namespace fs = std::filesystem;
using kind = leftover::kind;

namespace {

bool is_mine(const fs::path& path, mode_t type) {
  struct stat is {};
  return ::lstat(path.c_str(), &is) == 0 && (is.st_mode & S_IFMT) == type
         && is.st_uid == ::geteuid();
}

/// The lock of a folder, held; empty if somebody has it, or there is none.
posix::descriptor lock_of(const fs::path& folder) {
  posix::descriptor fd(
    ::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
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

std::vector<fs::path> list(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error))
    out.push_back(at->path());
  return out;
}

std::vector<fs::path>
abandoned(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> out;
  for (const fs::path& folder : list(parent))
    if (is_gone(pid_in(folder.filename().string(), prefix))
        && is_mine(folder, S_IFDIR) && lock_of(folder))
      out.push_back(folder);
  return out;
}

std::vector<int> processes(const fs::path& proc) {
  std::vector<int> out;
  for (const fs::path& entry : list(proc)) {
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

/// UCX names its memory; who uses it in another container is not seen.
void find_memory(const leftover_places& in, std::vector<leftover>& out) {
  std::vector<fs::path> found;
  for (const fs::path& file : list(in.memory))
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
                       + " of UCX is used by no process that is seen here: "
                         "delete it unless another container uses it"});
}

/// Processes that run a program named shoal and whose data is gone.
void find_processes(const leftover_places& in, std::vector<leftover>& out) {
  static const std::string lost = "/lock (deleted)";
  for (int pid : processes(in.processes)) {
    const fs::path folder = in.processes / std::to_string(pid);
    const std::string program = link_of(folder / "exe");
    const auto name = program.substr(program.rfind('/') + 1);
    if (name != "shoal" && name != "shoal (deleted)")
      continue;
    for (const fs::path& fd : list(folder / "fd"))
      if (const std::string to = link_of(fd); to.ends_with(lost)) {
        out.push_back(
          {kind::process, folder, false,
           "process " + std::to_string(pid) + " is a node whose data directory "
             + to.substr(0, to.size() - lost.size())
             + " was deleted: end it with kill " + std::to_string(pid)});
        break;
      }
  }
}

} // namespace

leftover_places usual_places(const fs::path& more) {
  leftover_places out;
  out.temp = fs::temp_directory_path();
  out.data_dirs = list(default_data_dir({}).parent_path());
  if (std::ranges::find(out.data_dirs, more) == out.data_dirs.end())
    out.data_dirs.push_back(more);
  return out;
}

std::vector<leftover> find_leftovers(const leftover_places& in) {
  std::vector<leftover> out;
  for (const fs::path& folder : in.data_dirs)
    if (const fs::path socket = control_socket(folder);
        is_mine(socket, S_IFSOCK) && lock_of(folder))
      out.push_back({kind::socket, socket, true,
                     "socket " + socket.string() + " of a node that is dead"});
  for (const char* prefix :
       {train_folder, chaos_folder, bench_folder, embedded_folder})
    for (const fs::path& folder : abandoned(in.temp, prefix))
      out.push_back({kind::folder, folder, true,
                     "folder " + folder.string()
                       + " of a process that is "
                         "dead"});
  find_memory(in, out);
  find_processes(in, out);
  return out;
}

std::error_code remove(const leftover& l) {
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
