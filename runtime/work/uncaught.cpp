// runtime/work/uncaught.cpp -- the last line of output of a process.
#include "runtime/work/uncaught.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/files/posix.hpp"

#include <caf/scheduled_actor.hpp>
#include <cxxabi.h>
#include <poll.h>
#include <pthread.h>

#include <climits>
#include <cstdlib>
#include <exception>
#include <map>
#include <mutex>
#include <span>

namespace shoal::runtime {
namespace {

std::string type_name(const std::type_info& type) {
  int error = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &error);
  std::string out = error == 0 ? text : type.name();
  std::free(text); // __cxa_demangle allocates with malloc
  return out;
}

/// Time for which a reader that stalls may delay the end of the process.
constexpr int line_wait_ms = 1000;
/// Bytes that a descriptor that polls as writable accepts without blocking.
constexpr std::size_t line_bytes_max = PIPE_BUF;

struct actor_names {
  std::mutex mutex;
  std::map<std::uint64_t, std::string> roles;
};

actor_names& names() {
  static actor_names all;
  return all;
}

std::string name_of(const caf::scheduled_actor& actor) {
  {
    std::lock_guard lock(names().mutex);
    if (auto at = names().roles.find(actor.id()); at != names().roles.end())
      return "the role " + at->second;
  }
  return std::string("the actor ") + actor.name() + " ("
         + std::to_string(actor.id()) + ")";
}

[[noreturn]] void terminated() {
  char thread[16] = "?";
  pthread_getname_np(pthread_self(), thread, sizeof thread);
  const std::string what = current_exception_text();
  last_line(std::string("internal error: the thread ") + thread
            + (what.empty() ? " called std::terminate" : " threw " + what)
            + "; this process ends, start it again");
  std::abort();
}

} // namespace

void last_line(const std::string& text) {
  const std::string line =
    "shoal: " + core::shown(text, line_bytes_max - 8) + "\n";
  pollfd out{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, line_wait_ms) > 0)
    static_cast<void>(
      posix::write_all(STDERR_FILENO, std::as_bytes(std::span(line))));
}

void report_uncaught() {
  std::set_terminate(terminated);
}

void name_actor(std::uint64_t id, std::string role) {
  std::lock_guard lock(names().mutex);
  names().roles[id] = std::move(role);
}

std::string current_exception_text() {
  if (!std::current_exception())
    return {};
  try {
    throw;
  } catch (const std::exception& e) {
    return type_name(typeid(e)) + ": " + e.what();
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return type ? type_name(*type) : "an unknown exception";
  }
}

} // namespace shoal::runtime

/// CAF's own function prints and lets the process go on without the actor.
/// _Exit: destructors would wait for an actor that will not answer.
caf::error
caf::scheduled_actor::default_exception_handler(pointer self,
                                                std::exception_ptr& thrown) {
  using namespace shoal::runtime;
  std::string what;
  try {
    std::rethrow_exception(thrown);
  } catch (...) {
    what = current_exception_text();
  }
  last_line("internal error: " + name_of(*self) + " threw " + what
            + "; this process ends, start it again");
  std::_Exit(EXIT_FAILURE);
}
