// transport/ucx/guest_list.hpp -- accepted connections of peers not yet known.
//
// A guest is an endpoint that another node made (guests.cpp). It leaves the
// list when it becomes the endpoint of a link, fails, or has sent no hello
// until its deadline. Its last hello is kept, since its link may come later.
//
// GL-1: a hello is kept only for guests, one for each. So nothing is left of an
//       endpoint that has gone; a new one may soon have the same address.
// GL-2: if two guests show the same token, the later one owns it.
//
// Threads: one. Cost: a look at all guests, at most guests_max.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

struct ucp_ep; // of UCX; only used to distinguish endpoints

namespace shoal::transport::ucx {

class guest_list {
public:
  using endpoint = ucp_ep*;
  using time_point = std::chrono::steady_clock::time_point;

  /// A hello that came before its sender was known.
  struct early {
    endpoint from = nullptr;
    std::uint64_t connection = 0; ///< the sender's number for it
  };

  bool contains(endpoint e) const { return guests_.contains(e); }
  bool empty() const { return guests_.empty(); }
  std::size_t size() const { return guests_.size(); }

  void enter(endpoint e, time_point deadline);
  /// Stores the hello of a guest. Ignored for any other endpoint.
  void keep_early(endpoint e, std::uint64_t token, std::uint64_t connection);
  /// The hello of the guest with this token, if there is one; it is forgotten.
  std::optional<early> take_early(std::uint64_t token);
  /// The endpoint now belongs to a link. @returns false if it is no guest.
  bool adopt(endpoint e) { return guests_.erase(e) != 0; }
  /// Makes a guest overdue.
  void failed(endpoint e);

  /// Removes the guests that are overdue, or all.
  std::vector<endpoint> take_overdue(time_point now, bool all);
  /// When the next guest is overdue; never: max().
  time_point due() const;

private:
  struct guest {
    time_point deadline;
    std::uint64_t token = 0; ///< of its hello; 0: no hello yet
    std::uint64_t connection = 0;
  };
  std::map<endpoint, guest> guests_;
};

} // namespace shoal::transport::ucx
