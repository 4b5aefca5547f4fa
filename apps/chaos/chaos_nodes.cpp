// apps/chaos/chaos_nodes.cpp -- uses fork, exec and signals.
#include "apps/chaos/chaos_nodes.hpp"

#include "runtime/files/temporary_folder.hpp"
#include "runtime/identity/stale_files.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace shoal::apps {

namespace fs = std::filesystem;
using unique_fd = runtime::posix::descriptor;

namespace {

constexpr const char* port_of_hosts = "7717";

/// This process's environment without the variables that configure a node.
std::vector<std::string> environment(const fs::path& folder) {
  std::vector<std::string> out;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view v(*at);
    if (!v.starts_with("SHOAL_") && !v.starts_with("XDG_"))
      out.emplace_back(v);
  }
  for (const char* name : {"CONFIG", "DATA", "CACHE"})
    out.push_back("XDG_" + std::string(name)
                  + "_HOME=" + (folder / "home").string());
  return out;
}

std::vector<char*> pointers(const std::vector<std::string>& all) {
  std::vector<char*> out;
  out.reserve(all.size() + 1);
  for (const std::string& s : all)
    out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

} // namespace

fs::path chaos_nodes::new_folder() {
  runtime::remove_abandoned_dirs(runtime::temporary_folder(),
                                 runtime::chaos_folder);
  return runtime::temporary_folder()
         / (runtime::chaos_folder + std::to_string(::getpid()));
}

chaos_nodes::chaos_nodes(chaos_nodes_config config, fs::path folder)
  : config_(std::move(config)), folder_(std::move(folder)),
    all_(config_.count) {
  if (::mkdir(folder_.c_str(), 0700) != 0) // owned and readable only by this
                                           // user
    throw std::runtime_error(folder_.string() + ": " + std::strerror(errno));
  lock_ = std::make_unique<runtime::data_dir_lock>(folder_);
  runtime::new_cluster_key(folder_ / "key");
}

chaos_nodes::~chaos_nodes() {
  for (std::size_t i = 0; i < all_.size(); ++i)
    kill(i);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string chaos_nodes::name(std::size_t i) {
  return "peer" + std::to_string(i + 1);
}

fs::path chaos_nodes::data_dir(std::size_t i) const {
  return folder_ / name(i);
}

void chaos_nodes::start(std::size_t i, const std::string& join) {
  std::vector<std::string> words{"shoal",
                                 "node",
                                 "--data-dir",
                                 data_dir(i).string(),
                                 "--name",
                                 name(i),
                                 "--cluster",
                                 folder_.filename().string(),
                                 "--cluster-key",
                                 (folder_ / "key").string(),
                                 "--listen",
                                 config_.network ? chaos_network::address(i)
                                                     + ":" + port_of_hosts
                                                 : std::string("127.0.0.1:0"),
                                 "--no-discovery",
                                 "--threads",
                                 "1",
                                 "--fabric.force",
                                 config_.fabric,
                                 "--json"};
  if (!join.empty()) {
    words.push_back("--join");
    words.push_back(join);
  }
  const std::vector<std::string> variables = environment(folder_);
  const std::vector<char*> arguments = pointers(words);
  const std::vector<char*> values = pointers(variables);
  std::array<int, 2> said{};
  if (::pipe2(said.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe for a node");
  unique_fd from(said[0]), to(said[1]);
  ::fcntl(from.get(), F_SETFL, O_NONBLOCK);
  const int space = config_.network ? config_.network->descriptor(i) : -1;
  const pid_t parent = ::getpid();
  all_[i].process = runtime::child_process::fork([&] {
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::setpgid(0, 0); // Ctrl-C is meant for the parent
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent
        || (space >= 0 && ::setns(space, CLONE_NEWNET) != 0))
      return 126;
    ::dup2(to.get(), STDOUT_FILENO);
    ::dup2(to.get(), STDERR_FILENO);
    ::execve("/proc/self/exe", arguments.data(), values.data());
    return 127;
  });
  all_[i].said = std::move(from);
  all_[i].rest.clear();
}

void chaos_nodes::kill(std::size_t i) {
  node& n = all_[i];
  n.process.kill();
  n.said.reset();
}

void chaos_nodes::pause(std::size_t i) {
  all_[i].process.pause();
}

void chaos_nodes::wake(std::size_t i) {
  all_[i].process.resume();
}

std::vector<std::string> chaos_nodes::lines(std::size_t i) {
  node& n = all_[i];
  std::vector<std::string> out;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = ::read(n.said.get(), piece.data(), piece.size());
    if (got == 0)
      ended(i);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      break; // no more for now
    n.rest.append(piece.data(), std::size_t(got));
  }
  std::size_t begin = 0;
  for (std::size_t end; (end = n.rest.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    out.push_back(n.rest.substr(begin, end - begin));
    n.last.push_back(out.back());
    if (n.last.size() > last_max)
      n.last.pop_front();
  }
  n.rest.erase(0, begin);
  return out;
}

void chaos_nodes::ended(std::size_t i) {
  node& n = all_[i];
  n.said.reset();
  std::string text = name(i) + " " + runtime::how_it_ended(n.process.wait())
                     + ", which was not our doing; it said last:";
  for (const std::string& line : n.last)
    text += "\n  " + line;
  throw std::runtime_error(text);
}

} // namespace shoal::apps
