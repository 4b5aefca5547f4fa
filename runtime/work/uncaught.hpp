// runtime/work/uncaught.hpp -- an exception that nobody catches ends the process.
//
// An exception in an actor is a bug, and its work stays half done. CAF ends
// that actor alone: a node without its membership actor went on answering
// `shoal status` and held its seat in the shoal, but never voted again. A
// process that ends is expelled by the others at once, and can be started
// again.
//
// Every actor of the process is covered, those of plug-ins and their children
// too: each begins with caf::scheduled_actor::default_exception_handler, and
// uncaught.cpp defines that function anew. The program's definition goes
// before that of the shared library, as it does for malloc.
//
// A thread that throws ends the process anyway; it says so in the same way.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

namespace shoal::runtime {

/// From now on std::terminate() prints a line that names thread and exception.
/// A program that never calls it keeps CAF's handler of exceptions.
void report_uncaught();

/// Says for exceptions to come that the actor with this id plays `role`.
void name_actor(std::uint64_t id, std::string role);

/// "std::runtime_error: the text", of the exception that is being handled;
/// "" if none is.
[[nodiscard]] std::string current_exception_text();

} // namespace shoal::runtime
