// runtime/store/blob_server.cpp -- reads blobs, and sends their bytes.
#include "runtime/store/blob_server.hpp"

#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <utility>

namespace shoal::runtime {

using core::peer_id;

void blob_server::serve(const peer_id& from, const blob_request& request,
                        const poster& post) {
  if (closed_ || served_[from] >= blob_exchange::served_per_peer_max)
    return;
  ++served_[from];
  auto a = std::make_shared<answer>();
  disk_.submit(
    [blobs = &blobs_, request, a](kernels::backend&) {
      a->chunk.number = request.number;
      a->chunk.digest = request.digest;
      a->chunk.offset = request.offset;
      if (request.pledged_to != 0
          && !blobs->pledge(request.digest, request.pledged_to))
        return;
      std::error_code error;
      const auto found = blobs->read(request.digest, error);
      if (!found || request.offset > found->bytes().size())
        return;
      const auto bytes = found->bytes().subspan(request.offset);
      if (request.plan != 0) {
        if (bytes.size() < request.bytes)
          return; // it asks for what it does not know
        a->bytes = bytes.first(request.bytes);
        a->keep = found;
      } else {
        const auto size = std::min<std::size_t>(
          {bytes.size(), request.bytes, blob_chunk_bytes_max});
        a->chunk.bytes.assign(
          bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      }
      a->chunk.found = true;
      a->chunk.total_bytes = found->bytes().size();
    },
    [post, from, request, a] {
      post([from, request, a, post](blob_server& me) {
        me.answered(from, request, *a, post);
      });
    });
}

void blob_server::answered(const peer_id& from, const blob_request& request,
                           answer& a, const poster& post) {
  if (closed_)
    return;
  if (request.plan == 0 || !a.chunk.found || links_ == nullptr) {
    a.chunk.found = a.chunk.found && request.plan == 0;
    release(from);
    moved_ += a.chunk.bytes.size();
    // An error is a lost message: the peer asks again.
    (void)sender_.send_chunk(from, std::move(a.chunk));
    return;
  }
  if (!is_blob_plan(request.plan))
    return release(from); // of a job: no honest peer asks for that
  const plan_of_peer plan{from, request.plan};
  sending& s = sends_[plan];
  ++s.pieces;
  s.moved_at = now_;
  links_->send(from, request.plan, std::uint32_t(request.number), a.bytes,
               a.keep,
               [post, plan, bytes = a.bytes.size()](std::error_code error) {
                 post([plan, bytes, error](blob_server& me) {
                   me.sent(plan, bytes, error);
                 });
               });
}

/// An error: the peer has asked twice, or wants it no more.
void blob_server::sent(const plan_of_peer& plan, std::uint64_t bytes,
                       std::error_code error) {
  release(plan.first);
  if (!error)
    moved_ += bytes;
  const auto at = sends_.find(plan);
  if (at == sends_.end())
    return;
  at->second.moved_at = now_;
  if (--at->second.pieces == 0)
    sends_.erase(at);
}

void blob_server::release(const peer_id& peer) {
  const auto at = served_.find(peer);
  if (at != served_.end() && --at->second == 0)
    served_.erase(at);
}

void blob_server::peer_down(const peer_id& peer) {
  for (auto at = sends_.begin(); at != sends_.end();)
    if (at->first.first == peer) {
      const std::uint64_t plan = at->first.second;
      at = sends_.erase(at);
      links_->cancel(plan);
    } else {
      ++at;
    }
}

void blob_server::tick(core::nanoseconds now) {
  now_ = now;
  for (auto at = sends_.begin(); at != sends_.end();)
    if (now - at->second.moved_at >= blob_exchange::taken_within) {
      const std::uint64_t plan = at->first.second;
      at = sends_.erase(at);
      links_->cancel(plan);
    } else {
      ++at;
    }
}

void blob_server::close() {
  closed_ = true;
  for (const auto& [plan, s] : std::exchange(sends_, {}))
    links_->cancel(plan.second);
}

std::size_t blob_server::most_served() const {
  std::size_t most = 0;
  for (const auto& [peer, requests] : served_)
    most = std::max(most, requests);
  return most;
}

} // namespace shoal::runtime
