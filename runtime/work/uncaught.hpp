// runtime/work/uncaught.hpp -- ends the process at an exception that is not
// caught.
//
// An exception in an actor is a bug, and its work stays half done. CAF ends
// only that actor: a node without its membership actor went on answering `shoal
// status` and kept its seat in the shoal, but never voted again. A process that
// ends is expelled by the others at once, and can be started again.
//
// Every actor of the process is covered, also those of plug-ins and their
// children: each begins with caf::scheduled_actor::default_exception_handler,
// and uncaught.cpp redefines that function. The program's definition has
// priority over that of the shared library, as for malloc.
//
// A thread that throws ends the process anyway; it reports that in the same
// way.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::runtime {

/// From now on std::terminate() prints a line with the thread and the
/// exception. A program that never calls this function keeps CAF's handler of
/// exceptions.
void report_uncaught();

/// Prints `text` to stderr as the last line of a process. Waits for no lock, and
/// a second at most for a reader that stalls.
void last_line(const std::string& text);

/// Sets the role to be named in reports about the actor with this id.
void name_actor(std::uint64_t id, std::string role);

/// "std::runtime_error: the text", for the exception that is being handled; ""
/// if there is none.
[[nodiscard]] std::string current_exception_text();

} // namespace shoal::runtime
