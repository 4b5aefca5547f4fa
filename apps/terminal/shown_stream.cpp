// apps/terminal/shown_stream.cpp -- passes on text in pieces, with whole
// characters.
#include "apps/terminal/shown_stream.hpp"

#include "runtime/core/text/shown.hpp"
#include "runtime/core/text/utf8.hpp"

#include <algorithm>

namespace shoal::apps {
namespace {

/// Number of bytes at the end that begin an incomplete character.
std::size_t cut_off_bytes(std::string_view text) {
  constexpr std::size_t character_bytes_max = 4;
  for (std::size_t n = 1; n < character_bytes_max && n <= text.size(); ++n) {
    const core::character c =
      core::first_character(text.substr(text.size() - n));
    if (c.is == core::character::kind::cut_off && c.bytes == n)
      return n;
  }
  return 0;
}

} // namespace

shown_stream::shown_stream(std::ostream& stream)
  : stream_(stream), own_(stream.rdbuf(this)) {
}

shown_stream::~shown_stream() {
  stream_.rdbuf(own_);
  const std::string rest = core::shown(pending_);
  own_->sputn(rest.data(), std::streamsize(rest.size()));
}

std::streamsize shown_stream::xsputn(const char* text, std::streamsize count) {
  std::lock_guard lock(mutex_);
  pending_.append(text, std::size_t(count));
  const std::size_t whole = pending_.size() - cut_off_bytes(pending_);
  const std::string out = core::shown(
    std::string_view(pending_).substr(0, whole), core::line_ends::kept);
  pending_.erase(0, whole);
  const auto size = std::streamsize(out.size());
  return own_->sputn(out.data(), size) == size ? count : 0;
}

shown_stream::int_type shown_stream::overflow(int_type byte) {
  if (traits_type::eq_int_type(byte, traits_type::eof()))
    return traits_type::not_eof(byte);
  const char text = traits_type::to_char_type(byte);
  return xsputn(&text, 1) == 1 ? byte : traits_type::eof();
}

int shown_stream::sync() {
  return own_->pubsync();
}

} // namespace shoal::apps
