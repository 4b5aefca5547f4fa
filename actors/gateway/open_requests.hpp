// actors/gateway/open_requests.hpp -- requests under way, and their streams.
//
// A request has a stream for each choice, or for some of them at a time; each ends by
// itself, or is dropped: then its pipeline is told so.
//
// Threads: the gateway's. Errors: none.
#pragma once

#include "actors/gateway/client_watcher.hpp"
#include "actors/gateway/completion.hpp"
#include "actors/gateway/served_model.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace shoal::actors {

struct open_request {
  std::shared_ptr<completion> answer;
  std::shared_ptr<client_watcher> watcher;
  std::shared_ptr<served_model> model;
  std::shared_ptr<served_version> version;
  std::vector<core::stream_ask> asks; ///< by choice
  std::size_t asked = 0;              ///< of these, the first ones
  std::set<core::stream_id> streams;  ///< that have not ended
  core::nanoseconds came = 0;
  core::nanoseconds first_token_after = 0; ///< 0: it has none yet
  core::nanoseconds news_at = 0; ///< when its client was last told something
  bool slow = false;             ///< its client was, at some time
};

class open_requests {
public:
  struct stream_place {
    std::uint64_t request = 0;
    std::size_t choice = 0;
  };

  /// @param first  ids are larger: another start of this node has other ones
  open_requests(runtime::context& node, std::uint64_t first)
    : node_(node), last_(first) {}

  /// Of a request or a stream, as none before.
  std::uint64_t new_id() noexcept { return ++last_; }

  void add(std::uint64_t id, open_request r) { all_.emplace(id, std::move(r)); }
  /// Null: it is over.
  open_request* find(std::uint64_t id);
  template <class Which>
  std::vector<std::uint64_t> ids_of(Which which) const {
    std::vector<std::uint64_t> out;
    for (const auto& [id, r] : all_)
      if (which(r))
        out.push_back(id);
    return out;
  }

  /// A stream for the next choice. @pre one has not been asked for
  core::stream_id open_stream(std::uint64_t request);
  /// Null: it is not needed any more.
  const stream_place* place_of(core::stream_id stream) const;
  /// Its pipeline has ended it.
  void stream_ended(core::stream_id stream);
  /// Its choice does not need it any more.
  void drop_stream(core::stream_id stream);
  /// For a client that is slow. @param held  whether they wait, or go on
  void hold(std::uint64_t request, bool held);
  /// Its choices are asked for anew, of another version.
  void begin_again(open_request& r, std::shared_ptr<served_version> with);
  /// Takes it out and drops its streams. @pre it is there
  open_request take(std::uint64_t id);

private:
  void drop_all(open_request& r);

  runtime::context& node_;
  std::map<std::uint64_t, open_request> all_;
  std::map<core::stream_id, stream_place> streams_;
  std::uint64_t last_;
};

} // namespace shoal::actors
