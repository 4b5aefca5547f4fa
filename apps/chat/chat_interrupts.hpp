// apps/chat/chat_interrupts.hpp -- Ctrl-C as a descriptor that becomes readable.
//
// At a terminal Ctrl-C stops an answer, not the chat, and may come many times:
// so it is not that of terminal/signals.hpp. SIGTERM and SIGHUP ask for the end,
// and the terminal is then left as it was.
//
// Threads: one object in a process, used by one thread.
// Errors:  std::system_error, when the system has no descriptors.
#pragma once

#include "runtime/files/posix.hpp"

namespace shoal::apps {

class chat_interrupts {
public:
  chat_interrupts();
  ~chat_interrupts(); ///< gives the signals their default effect back
  chat_interrupts(const chat_interrupts&) = delete;
  chat_interrupts& operator=(const chat_interrupts&) = delete;

  /// Readable from a signal on, until taken().
  int fd() const noexcept { return read_.get(); }
  /// Forgets the signals that have come. @returns whether there were any
  bool taken();
  /// Whether the chat is to end. It stays so, and fd() readable.
  bool ends() const noexcept;

private:
  runtime::posix::descriptor read_, write_;
};

} // namespace shoal::apps
