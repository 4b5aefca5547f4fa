// transport/shm/engine.hpp -- the work of an shm fabric's progress thread.
//
//   engine.cpp     the loop, commands, sleep
//   links.cpp      connecting, the end of a link
//   transfers.cpp  frames in and out
//   reads.cpp      transfers that are read in place
//
// Nothing waits. Each turn of the loop takes commands, moves as much as
// possible on each link, and ends links that are over. If nothing moved for
// config::spin, the thread sleeps on its bell, the queue of commands and the
// pidfds of its peers. Before that it announces the sleep in its directory and
// checks once more (E-2). A writer checks the announcement after it has
// written, so one of the two sees the other.
//
// E-1  Memory of a caller is touched only within turns of the loop, while its
//      op is in link::sends, link::posted, link::current or link::reads. Peers
//      may read exposed memory at any time: X-1 (exposed.hpp).
// E-2  sleep(): `asleep` is odd before the rings are checked; a writer
//      publishes before it checks `asleep`; both with a full fence between.
// E-3  A link is erased from links_ by finish() alone, once per turn.
//
// Threads: constructed, run and destroyed on one thread.
#pragma once

#include "transport/line_budget.hpp"
#include "transport/shm/arena.hpp"
#include "transport/shm/fabric.hpp"
#include "transport/shm/link.hpp"

#include <memory>

namespace shoal::transport::shm {

class engine final : public introduced::engine {
public:
  /// Bytes taken from one link before the next link's turn.
  static constexpr std::size_t turn_bytes = std::size_t{1} << 20;
  /// Bytes read in place of one link before the turn of its ring and of the
  /// other links: some 30 us, which is how long a message then waits for it.
  static constexpr std::size_t read_turn_bytes = std::size_t{256} << 10;
  /// Acks and ends that may wait until a peer reads them.
  static constexpr std::size_t small_frames_max = 65536;

  engine(const config& settings, fabric_handler& handler,
         introduced::commands& queue, int wake_fd,
         std::shared_ptr<const arena> memory);
  ~engine() override;

  const std::string& address() const override { return address_; }
  void run() override;

private:
  // engine.cpp
  bool take_commands();
  void execute(introduced::command& c);
  void fail(introduced::command& c, std::error_code why);
  bool move(link& l);
  bool poll(int timeout_ms);
  void unwatch(link& l);
  void sleep(steady::time_point now);
  bool anything_new() const;
  void ready(std::uint64_t cookie);
  void wake(link& l);
  /// Logs within the budget of lines, since a peer causes each line.
  void say(const std::string& line);
  const directory* directory_of(const link& l) const;

  // links.cpp
  void start_connects();
  void connect(const std::string& address);
  bool open(link& l);
  bool find_channel(link& l);
  bool advance_connecting(link& l);
  void go_up(link& l);
  void end(link& l, std::error_code why);
  void finish_links();
  void finish(link& l);
  void end_transfers(link& l, std::error_code why);
  void withdraw(link& l);
  link* find(const peer_id& peer);

  // transfers.cpp
  bool receive(link& l);
  void on_message(link& l, const frame& f, std::span<const std::byte> part);
  void on_bulk(link& l, const frame& f, std::span<const std::byte> part);
  void begin_transfer(link& l, const frame& f);
  std::optional<receive_op> claim(link& l, const frame& f);
  void on_bulk_ack(link& l, const frame& f);
  void on_bulk_end(link& l, const frame& f);
  void answer(link& l, std::uint64_t transfer, errc status);
  void send_small(link& l, frame f);
  bool send(link& l);
  std::size_t bytes_left(const link& l) const;
  std::optional<std::size_t> room(const link& l, std::uint64_t taken) const;
  bool look_at_taken(link& l);
  void send_next(link& l, std::size_t room);
  void complete_send(link& l, std::uint64_t transfer, std::error_code result);
  void complete_receive(link& l, const receive_op& op, std::error_code result);
  void cancel(std::uint64_t plan);
  void broken(link& l, const char* fault);

  // reads.cpp
  void map_arena(link& l);
  bool may_expose(const link& l, const send_op& op) const;
  void expose(link& l, std::uint64_t transfer, send_op& op);
  void withdraw(link& l, send_op& op);
  void on_bulk_at(link& l, const frame& f);
  bool read(link& l);
  bool end_reading(link& l, std::uint64_t transfer, std::error_code why);
  void cancel_reads(link& l, std::uint64_t plan);

  const config settings_;
  fabric_handler& handler_;
  introduced::commands& queue_;
  int wake_fd_;
  int epoll_ = -1;
  introduced::host_id host_;
  std::uint64_t token_;
  const std::shared_ptr<const arena> memory_; ///< may be null
  segment directory_memory_;
  directory* directory_;
  bell bell_;
  std::string address_;

  std::map<peer_id, std::unique_ptr<link>> links_;
  line_budget lines_; ///< of say()
  std::vector<std::string> to_connect_;
  std::vector<introduced::command> batch_;
  steady::time_point poll_at_{};
  std::uint64_t next_transfer_ = 1;
  std::size_t connecting_ = 0; ///< links in that state
  std::size_t ending_ = 0;     ///< links that are over
  bool woken_ = false;         ///< wake_fd_ is readable
  bool taking_ = false;
  bool closing_ = false;
};

} // namespace shoal::transport::shm
