// tests/fuzz/ucx_frame_fuzz.cpp -- input by UCX: frames, the addresses on which
// other nodes claim to listen, and pending peers.
//
// The input is a list of events, as the engine gets them: endpoints come in and
// fail, frames arrive on them (made from critical values, or any bytes of any
// length), links ask for their pending peer, time passes. A frame is accepted
// only if it is addressed to us; a listen address only if it is in a trusted
// network; a pending peer is handed out once, and by the token that it showed
// last.
#include "transport/assert.hpp"
#include "transport/ucx/frame.hpp"
#include "transport/ucx/guest_list.hpp"
#include "transport/ucx/place.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

using namespace shoal::transport::ucx;

namespace {

constexpr std::uint64_t ours = 77;
constexpr std::size_t guests_max = 8;

class input {
public:
  input(const std::uint8_t* data, std::size_t size)
    : data_(data), left_(size) {}
  bool empty() const { return left_ == 0; }
  std::uint8_t byte() {
    if (left_ == 0)
      return 0;
    --left_;
    return *data_++;
  }
  std::vector<std::byte> bytes(std::size_t n) {
    std::vector<std::byte> out(std::min(n, left_)); // of exact size
    if (!out.empty())
      std::memcpy(out.data(), data_, out.size());
    data_ += out.size();
    left_ -= out.size();
    return out;
  }

private:
  const std::uint8_t* data_;
  std::size_t left_;
};

std::vector<std::byte> any_header(input& in) {
  if (in.byte() % 4 == 0)
    return in.bytes(in.byte() % 100);
  frame f;
  f.version = in.byte() % 8 == 0 ? in.byte() : 1;
  f.kind = frame_kind(in.byte() % 9);
  f.to_token = in.byte() % 8 == 0 ? in.byte() : ours;
  f.from_token = in.byte() % 4;
  f.to_connection = in.byte() % 4;
  f.from_connection = in.byte() % 4;
  std::vector<std::byte> out(sizeof f);
  std::memcpy(out.data(), &f, sizeof f);
  return out;
}

/// The pending peers in a plain list.
class guests {
public:
  using endpoint = guest_list::endpoint;

  void step(input& in) {
    switch (in.byte() % 6) {
    case 0:
      if (list_.size() < guests_max && !list_.contains(at(in))) {
        const endpoint e = chosen_;
        list_.enter(e, now_ + std::chrono::seconds(in.byte()));
        known_[e] = {};
      }
      break;
    case 1:
      hear(in, at(in));
      break;
    case 2:
      list_.failed(at(in));
      if (known_.contains(chosen_))
        failed_.insert(chosen_);
      break;
    case 3:
      take(in.byte() % 4);
      break;
    case 4:
      now_ += std::chrono::seconds(in.byte());
      leave(false);
      break;
    default:
      if (in.byte() % 16 == 0)
        leave(true);
      else
        adopt(at(in));
    }
    SHOAL_ASSERT(list_.size() == known_.size());
    SHOAL_ASSERT(list_.empty()
                 == (list_.due() == guest_list::time_point::max()));
  }

private:
  struct hello {
    std::uint64_t token = 0;
    std::uint64_t connection = 0;
  };

  endpoint at(input& in) {
    // Never looked into.
    return chosen_ = reinterpret_cast<endpoint>(
             std::uintptr_t(8 + 8 * (in.byte() % (2 * guests_max))));
  }

  void hear(input& in, endpoint e) {
    const auto header = any_header(in);
    const auto f = frame_of(header, ours);
    SHOAL_ASSERT(!f || header.size() == sizeof(frame));
    if (!f)
      return;
    SHOAL_ASSERT(f->to_token == ours && f->from_connection != 0
                 && f->version == 1);
    std::uint64_t peers = in.byte() % 4;
    const auto before = peers;
    if (belongs(*f, 2, peers))
      SHOAL_ASSERT(f->to_connection == 2 && peers == f->from_connection
                   && (before == 0 || before == peers));
    else
      SHOAL_ASSERT(before == 0 || peers == before);
    (void)tag_of(*f);
    list_.keep_early(e, f->from_token, f->from_connection);
    if (f->from_token == 0 || !known_.contains(e))
      return;
    for (auto& [other, h] : known_)
      if (h.token == f->from_token)
        h = {};
    known_[e] = {f->from_token, f->from_connection};
  }

  void take(std::uint64_t token) {
    const auto found = list_.take_early(token);
    std::optional<endpoint> wanted;
    for (const auto& [e, h] : known_)
      if (token != 0 && h.token == token)
        wanted = e;
    SHOAL_ASSERT(found.has_value() == wanted.has_value());
    if (!found)
      return;
    SHOAL_ASSERT(found->from == *wanted && list_.contains(found->from)
                 && found->connection == known_[*wanted].connection);
    adopt(found->from);
    SHOAL_ASSERT(!list_.take_early(token)); // once
  }

  void adopt(endpoint e) {
    SHOAL_ASSERT(list_.adopt(e) == (known_.erase(e) == 1));
    SHOAL_ASSERT(!list_.contains(e));
    failed_.erase(e);
  }

  void leave(bool all) {
    for (const endpoint e : list_.take_overdue(now_, all)) {
      SHOAL_ASSERT(known_.erase(e) == 1);
      failed_.erase(e);
    }
    for (const auto& [e, h] : known_)
      SHOAL_ASSERT(!all && !failed_.contains(e));
    SHOAL_ASSERT(list_.due() > now_);
  }

  guest_list list_;
  std::map<endpoint, hello> known_;
  std::set<endpoint> failed_; ///< until they are removed
  endpoint chosen_ = nullptr;
  guest_list::time_point now_{std::chrono::hours(1)};
};

/// Another node's listen addresses: raw, or with some trusted ones.
void dial(input& in) {
  static const std::vector<network> trusted{*parse_network("10.1.0.0/16"),
                                            *parse_network("fd00::/8")};
  std::vector<std::byte> way;
  if (in.byte() % 2 == 0) {
    way = in.bytes(in.byte());
  } else {
    for (int n = in.byte() % 4; n > 0; --n) {
      sockaddr_storage at{};
      std::array<std::uint8_t, 16> raw{};
      for (std::uint8_t& b : raw)
        b = in.byte();
      if (in.byte() % 2 == 0) {
        at.ss_family = AF_INET;
        auto& v4 = reinterpret_cast<sockaddr_in&>(at);
        std::memcpy(&v4.sin_addr, raw.data(), 4);
      } else {
        at.ss_family = AF_INET6;
        auto& v6 = reinterpret_cast<sockaddr_in6&>(at);
        std::memcpy(&v6.sin6_addr, raw.data(), raw.size());
      }
      add_place(at, way);
      const bool good =
        contains_any(trusted, reinterpret_cast<const sockaddr&>(at));
      // The trusted ones are found in a list of their own, unchanged.
      std::vector<std::byte> alone;
      add_place(at, alone);
      const auto back = door_of(alone, trusted);
      SHOAL_ASSERT(back.has_value() == good);
      SHOAL_ASSERT(!back || std::memcmp(&*back, &at, sizeof at) == 0);
    }
    const auto rest = in.bytes(in.byte() % 19); // cut off
    way.insert(way.end(), rest.begin(), rest.end());
  }
  const std::vector<std::byte> exact(way.begin(), way.end());
  const auto door = door_of(exact, trusted);
  SHOAL_ASSERT(
    !door || contains_any(trusted, reinterpret_cast<const sockaddr&>(*door)));
  SHOAL_ASSERT(!door_of(exact, {}));
}

} // namespace

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  input in(data, size);
  guests g;
  while (!in.empty()) {
    if (in.byte() % 8 == 0)
      dial(in);
    else
      g.step(in);
  }
  return 0;
}
