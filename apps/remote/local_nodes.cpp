// apps/remote/local_nodes.cpp -- starts nodes by fork, with pipes and a folder.
#include "apps/remote/local_nodes.hpp"

#include "apps/common/version.hpp"
#include "runtime/files/temporary_folder.hpp"
#include "runtime/identity/stale_files.hpp"
#include "runtime/node/node.hpp"

#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <stdexcept>

namespace shoal::apps {

namespace fs = std::filesystem;

namespace {

void write_line(int to, const std::string& line) {
  const std::string text = line + "\n";
  if (::write(to, text.data(), text.size()) != ssize_t(text.size()))
    std::_Exit(1); // no process is listening any more
}

/// Binds this process to core number `n` of those it may use.
void use_one_core(std::size_t n) {
  cpu_set_t may;
  if (::sched_getaffinity(0, sizeof may, &may) != 0)
    return;
  std::vector<int> cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &may))
      cores.push_back(c);
  if (cores.empty())
    return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cores[n % cores.size()], &one);
  ::sched_setaffinity(0, sizeof one, &one);
}

/// Runs a node until `stop` ends.
void serve(const fs::path& folder, const std::string& join,
           const local_nodes::prepare& p, int report, int stop) {
  const local_nodes::sayer say = [report](const std::string& line) {
    write_line(report, line);
  };
  try {
    runtime::role_table roles;
    runtime::node_config c;
    c.name = "node-" + folder.filename().string();
    c.version = program_version();
    c.data_dir = folder;
    c.listen = "127.0.0.1:0";
    c.cluster = folder.parent_path().filename();
    c.discover = false;
    c.threads = 1;
    if (!join.empty())
      c.join = {join};
    p(c, roles, say);
    runtime::node node(c, roles);
    say("at " + node.address());
    char byte = 0;
    while (::read(stop, &byte, 1) > 0) {
    }
    node.stop();
  } catch (const std::exception& e) {
    say(std::string("failed ") + e.what());
  }
}

} // namespace

local_nodes::local_nodes(int count, const prepare& p) {
  const fs::path temp = runtime::temporary_folder();
  runtime::remove_abandoned_dirs(temp, runtime::bench_folder);
  folder_ = temp / (runtime::bench_folder + std::to_string(::getpid()));
  if (::mkdir(folder_.c_str(), 0700) != 0) // owned and readable only by this
                                           // user
    throw std::runtime_error(folder_.string() + " cannot be made");
  try {
    lock_ = std::make_unique<runtime::data_dir_lock>(folder_);
    start_all(count, p);
  } catch (...) {
    end();
    throw;
  }
}

void local_nodes::start_all(int count, const prepare& p) {
  start({}, p);
  std::pair<std::string, std::string> said;
  do { // prepare() may write further lines
    said = line(0);
  } while (said.first != "at");
  for (int i = 1; i < count; ++i)
    start(said.second, p);
}

local_nodes::~local_nodes() {
  end();
}

void local_nodes::end() noexcept {
  for (node& n : all_)
    n.stop.reset();
  for (node& n : all_) {
    n.process.wait();
    std::fclose(n.said);
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void local_nodes::start(const std::string& join, const prepare& p) {
  std::array<int, 2> said{}, stop{};
  if (::pipe2(said.data(), O_CLOEXEC) != 0
      || ::pipe2(stop.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipes");
  runtime::posix::descriptor report(said[1]), until(stop[0]);
  node n;
  n.said = ::fdopen(said[0], "r");
  n.stop = runtime::posix::descriptor(stop[1]);
  const std::size_t number = all_.size();
  n.process = runtime::child_process::fork([&] {
    n.stop.reset();
    for (node& other : all_)
      other.stop.reset(); // otherwise it would not notice its end
    use_one_core(number);
    serve(data_dir(number), join, p, report.get(), until.get());
    return 0;
  });
  all_.push_back(std::move(n));
}

std::pair<std::string, std::string> local_nodes::line(std::size_t i) {
  std::array<char, 512> text{};
  if (!std::fgets(text.data(), text.size(), all_[i].said))
    throw std::runtime_error("a node of the benchmark ended");
  std::string all(text.data());
  while (all.ends_with('\n'))
    all.pop_back();
  const auto space = std::min(all.find(' '), all.size());
  const std::string rest = all.substr(std::min(space + 1, all.size()));
  if (all.substr(0, space) == "failed")
    throw std::runtime_error("a node of the benchmark failed: " + rest);
  return {all.substr(0, space), rest};
}

fs::path local_nodes::data_dir(std::size_t i) const {
  return folder_ / std::to_string(i + 1);
}

} // namespace shoal::apps
