// runtime/plugin.hpp -- roles from a shared library: `shoal node --plugin F`.
//
// The public interface for external code: this header, context.hpp and what it
// includes, links.hpp, device_queue.hpp, store/store.hpp and job_log.hpp. A
// plug-in is one or more C++ files that end with
//
//   SHOAL_PLUGIN("mine", [](shoal::runtime::role_table& roles) {
//     roles["mine"] = ...;          // one actor on each node, or
//     roles.placed["mine"] = ...;   // where a run file's [[roles]] says
//   })
//
// It is built as a shared library against these headers and libcaf_core. It
// links none of shoal's libraries: the program contains them.
//
// Stability. Sources: a plug-in that compiles goes on compiling while the first
// number of the program's version stays the same; members are added, but not
// removed or given another meaning. Binaries: C++ types cross the boundary, so
// a plug-in is loaded only if plugin_abi, the layout of these types, CAF and
// the compiler's ABI are those of the program. Otherwise it is refused with a
// text that names the difference, and has to be compiled again.
//
// Security: a plug-in can do what the node can. Only files that the operator
// names are loaded, only by their path (no search), and none that other users
// could have written.
//
// Threads: load before the node starts. Never unloaded: its actors may live.
// Errors:  setup_error, which names the file, what is wrong and what to do. An
//          exception that an actor or a thread does not catch ends the process
//          (uncaught.hpp).
#pragma once

#include "runtime/context.hpp"
#include "runtime/core/planning/plan.hpp"
#include "runtime/core/view.hpp"

#include <caf/config.hpp>

#include <cstdint>
#include <filesystem>
#include <string>

namespace shoal::runtime {

/// Increased whenever the interface changes in a way that sizes do not show.
inline constexpr std::uint32_t plugin_abi = 3;
inline constexpr const char* plugin_symbol = "shoal_plugin";

/// Sizes of all types that cross the boundary by value or are read in place.
constexpr std::uint64_t plugin_layout() {
  std::uint64_t sum = 0;
  for (std::uint64_t bytes :
       {sizeof(core::view), sizeof(core::member), sizeof(core::job_entry),
        sizeof(core::assignment), sizeof(core::plan), sizeof(view_changed),
        sizeof(role_message_in), sizeof(node_stopping), sizeof(placed_role),
        sizeof(job_place), sizeof(role_table), sizeof(std::string)})
    sum = sum * 1099511628211u + bytes;
  return sum;
}

/// The result of the entry point. The first member never moves, so that any two
/// versions can tell that they differ.
struct plugin_info {
  std::uint32_t abi = plugin_abi;
  std::uint32_t caf = CAF_VERSION;
  std::uint32_t compiler = __GXX_ABI_VERSION;
  std::uint64_t layout = plugin_layout();
  const char* name = "";
  void (*add)(role_table& roles) = nullptr;
};

/// Loads `file` and lets it add its roles. A role that exists already is not
/// replaced: that is an error.
/// @returns the plug-in's name
std::string load_plugin(const std::filesystem::path& file, role_table& roles);

} // namespace shoal::runtime

/// The entry point of a plug-in: its name as shown to users, and a function (a
/// lambda without captures) that adds its roles.
#define SHOAL_PLUGIN(plugin_name, ...)                                         \
  extern "C" __attribute__((visibility("default")))                            \
  const shoal::runtime::plugin_info*                                           \
  shoal_plugin() {                                                             \
    static const shoal::runtime::plugin_info info = [] {                       \
      shoal::runtime::plugin_info made;                                        \
      made.name = plugin_name;                                                 \
      made.add = __VA_ARGS__;                                                  \
      return made;                                                             \
    }();                                                                       \
    return &info;                                                              \
  }
