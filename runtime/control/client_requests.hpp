// runtime/control/client_requests.hpp -- carries out the requests of clients,
// wherever a client is.
//
// A request is answered at once or kept until something happens: an event of a
// job, a view, the end of a fetch, or a time limit.
//
// Room on the disk is reserved for uploads: what a client has announced, and not
// written yet, no other one gets. So of two models of which the disk has room for one,
// one is uploaded, and the other one refused before anything of it is written. What a
// client announces may be in the store already: so a client that is alone is tried,
// keeps the room that there was when it began, and is refused later only for the upload
// that it begins.
//
// Threads: one at a time, except that answered() and the end of a fetch come
//          from any thread and only queue; and serves_follower().
#pragma once

#include "runtime/control/control.hpp"
#include "runtime/store/store.hpp"

#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>

namespace shoal::runtime {

using client_key = std::uint64_t;

class client_requests {
public:
  using clock = std::chrono::steady_clock;
  using answer = std::function<void(client_reply reply)>;

  /// `wake` makes the owner call work() soon; called from any thread.
  client_requests(control_handler& node, std::function<void()> wake);

  /// @param handed_on  by a peer, for its client
  void ask(client_key who, client_request request, const answer& reply,
           bool handed_on = false);
  /// The client is gone. Removes its unfinished uploads; if it has submitted no job,
  /// the node learns what it has left behind in the store.
  void forget(client_key who);
  void answered(std::uint64_t token, outcome o);

  /// Answers all requests that can be answered now.
  void work(clock::time_point now);

  /// Whether a client that has followed a job to its end here is still there,
  /// and has asked for something within `last_fetch_pause_max`: it fetches what
  /// the job has made. Any thread.
  bool serves_follower(clock::time_point now) const;

  /// Latest time of the next call of work().
  std::optional<clock::time_point> due() const;

private:
  struct upload {
    client_key owner = 0;
    std::unique_ptr<blob_writer> writer;
    std::uint64_t bytes = 0;
    std::uint64_t total_bytes = 0;
  };
  /// What a client has committed, until it submits a job.
  struct committed_blobs {
    std::set<core::blob_digest> all;
    std::set<core::blob_digest>
      added;              ///< of these; the store had the others before
    bool has_job = false; ///< what it has uploaded, and will, is of that job
  };
  /// A request that waits for events, for a view, or for another peer.
  struct waiter {
    client_key who = 0;
    std::uint64_t number = 0; ///< of the request
    std::uint64_t token = 0;  ///< of the expected answered(); 0: waits for
                              ///< events
    ask_events events;
    clock::time_point until;
    answer reply;
    std::string late = {};  ///< reply after `until`
    bool submits = false;   ///< a job: the answer has its id
    bool handed_on = false; ///< by a peer, for its client
  };
  /// Waits for an outcome: calls `start` with the token by which it will be
  /// answered, unless too many requests of the client are waiting.
  void wait_for(waiter w, std::chrono::milliseconds patience, std::string late,
                const std::function<void(std::uint64_t token)>& start);
  void agree(waiter w, const std::function<void(std::uint64_t token)>& start);

  // Requests that are kept until something happens. A kind of request without
  // an on() here or below does not compile.
  void on(waiter w, ask_events& r);
  void on(waiter w, submit_job& r);
  void on(waiter w, const recover_force& r);
  void on(waiter w, const make_invite& r);
  void on(waiter w, const use_invite& r);
  void on(waiter w, const revoke& r);
  void on(waiter w, const remove_job& r);

  // Requests that are answered at once.
  void on(client_key who, const ask_status&, client_reply& out);
  void on(client_key who, const put_begin& r, client_reply& out);
  void on(client_key who, const put_chunk& r, client_reply& out);
  void on(client_key who, const put_commit& r, client_reply& out);
  void on(client_key who, const get_blob& r, client_reply& out);
  void on(client_key who, const stop_job& r, client_reply& out);
  void on(client_key who, const wait_no_longer& r, client_reply& out);
  void on(client_key who, const offer_checkpoint& r, client_reply& out);
  void on(client_key who, const ask_job& r, client_reply& out);
  void on(client_key who, const leave_shoal& r, client_reply& out);
  void on(client_key who, const ask_lines& r, client_reply& out);
  void on(client_key who, const take_back& r, client_reply& out);
  /// Whether another peer has to answer: then `to` is that peer, or `out` has
  /// the reason why that is impossible.
  bool is_for_another(client_request& r, core::peer_id& to, client_reply& out);
  bool may_wait(client_key who, client_reply& out) const;
  bool read_events(const ask_events& r, client_reply& out);
  /// Whether `bytes` more may be written to the disk, of which `reserved` bytes are
  /// for other clients; otherwise `out` has the reason, and says again_later.
  bool has_room(std::uint64_t bytes, std::uint64_t reserved,
                client_reply& out) const;
  /// Without those reserved bytes; of a disk that is not known, all that one may have.
  std::uint64_t room_left(std::uint64_t reserved) const;
  /// What all uploads of other clients still need of the disk.
  std::uint64_t reserved_for_others(client_key who) const;
  upload* find_upload(client_key who, std::uint64_t number, client_reply& out);
  /// The client's blobs belong to a job now.
  void has_job(client_key who);
  void leave_blobs(client_key who);

  control_handler& node_;
  std::function<void()> wake_;
  std::map<std::uint64_t, upload> uploads_;
  /// What is kept for uploads of clients behind those: of put_begin::more_bytes as
  /// much as there was room for when they announced it.
  std::map<client_key, std::uint64_t> announced_;
  std::map<client_key, committed_blobs> committed_;
  std::list<waiter> waiters_;
  std::uint64_t last_token_ = 0;
  mutable std::mutex mutex_;                     ///< guards what follows
  std::map<client_key, core::job_id> followers_; ///< and their jobs
  clock::time_point last_asked_{}; ///< for events or bytes, by any client
  std::deque<std::pair<std::uint64_t, outcome>> outcomes_; ///< by token
  /// Fetches in progress, and the results of the latest ones.
  std::map<core::blob_digest, std::optional<std::error_code>> fetches_;
};

} // namespace shoal::runtime
