// apps/terminal/shown_stream.hpp -- makes all text of a stream safe to show.
//
// Messages of commands on stderr contain names from files, from models and from
// other peers. While an object of this class exists, all text written to its
// stream is made safe to show (runtime/core/text/shown.hpp); line ends and tabs
// stay.
//
// Threads: any may write to the stream, as before; one makes and ends this.
// Errors:  as the stream's own.
#pragma once

#include <mutex>
#include <ostream>
#include <streambuf>
#include <string>

namespace shoal::apps {

class shown_stream : private std::streambuf {
public:
  explicit shown_stream(std::ostream& stream);
  /// Gives the stream its own buffer back.
  ~shown_stream() override;
  shown_stream(const shown_stream&) = delete;
  shown_stream& operator=(const shown_stream&) = delete;

private:
  std::streamsize xsputn(const char* text, std::streamsize count) override;
  int_type overflow(int_type byte) override;
  int sync() override;

  std::ostream& stream_;
  std::streambuf* own_;
  std::mutex mutex_;    ///< guards what follows, and the text in own_
  std::string pending_; ///< an incomplete character
};

} // namespace shoal::apps
