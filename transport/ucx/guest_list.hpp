// transport/ucx/guest_list.hpp -- who has been let in and is nobody yet.
//
// A guest is an endpoint that another node made (guests.cpp). It leaves when it
// becomes the endpoint of a link, fails, or has said nothing until its
// deadline. What its last hello said is kept with it: the link that it is for
// may come later.
//
// GL-1: a hello is kept of guests only, one for each, so that nothing is left
//       of an endpoint that has gone; its address may be another's soon.
// GL-2: of two guests that show one token, the later one has it.
//
// Threads: one. Cost: looks at all guests, who are few (guests_max).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

struct ucp_ep; // of UCX; here only told from others

namespace shoal::transport::ucx {

class guest_list {
public:
  using endpoint = ucp_ep*;
  using time_point = std::chrono::steady_clock::time_point;

  /// A hello that came before its sender was known.
  struct early {
    endpoint from = nullptr;
    std::uint64_t connection = 0; ///< as its sender calls it
  };

  bool contains(endpoint e) const { return guests_.contains(e); }
  bool empty() const { return guests_.empty(); }
  std::size_t size() const { return guests_.size(); }

  void enter(endpoint e, time_point deadline);
  /// It has said hello. Ignored of who is no guest.
  void keep_early(endpoint e, std::uint64_t token, std::uint64_t connection);
  /// What the guest with this token has said, if there is one; it is forgotten.
  std::optional<early> take_early(std::uint64_t token);
  /// It is a link's endpoint from now on. @returns false if it is no guest.
  bool adopt(endpoint e) { return guests_.erase(e) != 0; }
  /// If it is a guest, it is overdue.
  void failed(endpoint e);

  /// Takes those out who are overdue, or all.
  std::vector<endpoint> take_overdue(time_point now, bool all);
  /// When the next one is; never: max().
  time_point due() const;

private:
  struct guest {
    time_point deadline;
    std::uint64_t token = 0; ///< of its hello; 0: it has said none
    std::uint64_t connection = 0;
  };
  std::map<endpoint, guest> guests_;
};

} // namespace shoal::transport::ucx
