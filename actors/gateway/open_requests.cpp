// actors/gateway/open_requests.cpp -- two tables: by request, and by stream.
#include "actors/gateway/open_requests.hpp"

#include "runtime/context.hpp"

#include <utility>

namespace shoal::actors {

open_request* open_requests::find(std::uint64_t id) {
  const auto at = all_.find(id);
  return at == all_.end() ? nullptr : &at->second;
}

core::stream_id open_requests::open_stream(std::uint64_t request) {
  open_request& r = all_.at(request);
  const core::stream_id out = new_id();
  streams_[out] = {request, r.asked++};
  r.streams.insert(out);
  return out;
}

const open_requests::stream_place*
open_requests::place_of(core::stream_id stream) const {
  const auto at = streams_.find(stream);
  return at == streams_.end() ? nullptr : &at->second;
}

void open_requests::stream_ended(core::stream_id stream) {
  const auto at = streams_.find(stream);
  if (at == streams_.end())
    return;
  all_.at(at->second.request).streams.erase(stream);
  streams_.erase(at);
}

void open_requests::drop_stream(core::stream_id stream) {
  const auto at = streams_.find(stream);
  if (at == streams_.end())
    return;
  const auto version = all_.at(at->second.request).version;
  stream_ended(stream);
  for (core::serve_send& s : version->streams.cancel(stream).sends)
    node_.send(s.to, std::move(s.what));
}

void open_requests::drop_all(open_request& r) {
  for (const core::stream_id s : std::set(r.streams))
    drop_stream(s);
}

void open_requests::hold(std::uint64_t request, bool held) {
  open_request* const r = find(request);
  if (!r)
    return;
  const auto version = r->version;
  for (const core::stream_id s : std::set(r->streams))
    for (core::serve_send& out : version->streams.hold(s, held).sends)
      node_.send(out.to, std::move(out.what));
}

void open_requests::begin_again(open_request& r,
                                std::shared_ptr<served_version> with) {
  drop_all(r);
  r.version = std::move(with);
  r.slow = false;
  r.asked = 0;
  r.first_token_after = 0;
}

open_request open_requests::take(std::uint64_t id) {
  const auto at = all_.find(id);
  drop_all(at->second);
  open_request out = std::move(at->second);
  all_.erase(at);
  return out;
}

} // namespace shoal::actors
