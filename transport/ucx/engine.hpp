// transport/ucx/engine.hpp -- the work of a ucx fabric's progress thread.
//
// run() is the thread's body: take commands, progress UCX, advance links that
// end, and sleep if there was nothing to do. UCX callbacks may send, fill
// posted memory and call the handler. They never close an endpoint; only the
// loop does.
//
//   links.cpp      connecting, hello, the end of a link
//   guests.cpp     over TCP: incoming connections of unknown peers
//   transfers.cpp  control messages and bulk
//   engine.cpp     the loop, commands, frames in
//
// E-1  UCX touches memory of a caller only while its op is in link::sends or
//      link::fetching.
// E-2  An op leaves those only after UCX has called back; its completion runs
//      then, once.
// E-3  A frame has an effect only if it comes from a connected peer, with our
//      token, on the current connection.
//
// Threads: constructed, run and destroyed on one thread.
#pragma once

#include "transport/line_budget.hpp"
#include "transport/ucx/fabric.hpp"
#include "transport/ucx/guest_list.hpp"
#include "transport/ucx/link.hpp"
#include "transport/ucx/listener.hpp"
#include "transport/ucx/worker.hpp"

#include <memory>
#include <string>
#include <unordered_map>

namespace shoal::transport::ucx {

class engine final : public introduced::engine {
public:
  /// Hello frames and acks that may wait until one peer reads them.
  static constexpr std::size_t small_frames_max = 16384;
  /// Over TCP: incoming connections that have not identified themselves, and
  /// the time they have to do so.
  static constexpr std::size_t guests_max = 256;
  static constexpr std::chrono::seconds guest_timeout{30};
  /// How long a bye may take before the endpoint is closed without it: within a
  /// machine, and between machines, where it waits for the bulk bytes before
  /// it. A peer that gets none notices by itself, over RDMA by its pings.
  static constexpr std::chrono::milliseconds bye_timeout{250};
  static constexpr std::chrono::milliseconds network_bye_timeout{2000};
  /// Over RDMA: how often each peer gets a frame that its card must
  /// acknowledge.
  static constexpr std::chrono::seconds ping_interval{1};
  /// How long UCX may keep requests of a closed endpoint while the fabric
  /// closes; then the worker is destroyed, which ends them all.
  static constexpr std::chrono::seconds close_timeout{5};

  /// `wake_fd` is an eventfd that is written when `queue` gets a command.
  /// @throws as the fabric's constructor
  engine(const config& settings, fabric_handler& handler, commands& queue,
         int wake_fd);
  ~engine() override;

  const std::string& address() const override { return address_; }
  void run() override;

private:
  // engine.cpp
  static ucs_status_t
  on_frame(void* self, const void* header, std::size_t header_bytes, void* data,
           std::size_t bytes, const ucp_am_recv_param_t* param) noexcept;
  ucs_status_t handle_frame(const frame& f, void* data, std::size_t bytes,
                            const ucp_am_recv_param_t& param);
  bool take_commands();
  void execute(command& c);
  void fail(command& c, std::error_code why);
  void sleep(steady::time_point now);
  void ready(std::uint64_t cookie);
  bool learn(link& l, const frame& f);
  /// Logs within the budget of lines, since a peer causes each line.
  void say(const std::string& line);

  // links.cpp
  static void
  on_failure(void* self, ucp_ep_h endpoint, ucs_status_t status) noexcept;
  void start_connects();
  void connect(const std::string& address);
  bool open(link& l);
  void start_hello(link& l);
  void give_up(link& l, std::error_code why);
  void send_hello(link& l);
  void send_pings(steady::time_point now);
  void on_hello(link& l, const frame& f, const ucp_am_recv_param_t& param);
  void go_up(link& l);
  void begin_close(link& l, std::error_code why, bool silent);
  bool advance_links();
  bool advance_closing(link& l, steady::time_point now);
  void start_close(link& l);
  bool must_not_close(const link& l) const;
  void bury(link& l);
  void finish(link& l);
  void drop_worker();
  void end_transfers(link& l);
  link* find(const peer_id& peer);
  bool make_endpoint(link& l);
  void send_ack(link& l);

  // guests.cpp
  bool lets_other_begin(const link& l) const;
  void on_knock(ucp_listener_h door, ucp_conn_request_h request);
  void adopt(link& l, ucp_ep_h endpoint);
  void keep_early(const frame& f, const ucp_am_recv_param_t& param);
  void take_early(link& l);
  void guest_failed(ucp_ep_h endpoint);
  bool receive_guests(steady::time_point now);
  steady::time_point guests_due(steady::time_point now) const;

  // transfers.cpp
  static void on_sent(void* request, ucs_status_t status, void* op) noexcept;
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes,
                         void* op) noexcept;
  send_op& make_send(link& l, frame_kind kind);
  void submit(send_op& op, std::uint32_t flags);
  void sent(send_op& op, ucs_status_t status);
  send_op* send_small(link& l, frame f, std::uint32_t flags = 0);
  void send_message(link& l, command& c);
  void send_bulk(link& l, command& c);
  void post_receive(link& l, command& c);
  ucs_status_t on_bulk(link& l, const frame& f, void* data, std::size_t bytes,
                       bool rendezvous);
  void on_bulk_ack(link& l, const frame& f);
  void on_control(link& l, const frame& f, const void* data, std::size_t bytes);
  void received(receive_op& op);
  void answer(link& l, const frame& of, errc status);
  void complete_send(send_op& op, std::error_code result);
  void complete_receive(receive_op& op, std::error_code result);
  void cancel(std::uint64_t plan);

  bool sums_bulk() const { return settings_.over != medium::ucx_memory; }

  const config settings_;
  fabric_handler& handler_;
  commands& queue_;
  int wake_fd_;
  host_id host_;
  std::uint64_t token_;
  std::unique_ptr<worker> worker_;
  std::string address_;

  std::map<peer_id, std::unique_ptr<link>> links_;
  std::unordered_map<std::uint64_t, link*> by_token_;
  std::vector<std::unique_ptr<link>> buried_; ///< see bury()
  std::unique_ptr<listeners> doors_;
  std::vector<std::pair<ucp_listener_h, ucp_conn_request_h>> knocks_;
  guest_list guests_;
  std::vector<void*> leaving_; ///< requests of guests' closes
  line_budget lines_;          ///< of say()
  std::vector<std::string> to_connect_;
  std::vector<command> batch_;
  steady::time_point poll_at_{};
  steady::time_point ping_at_{};
  std::uint64_t next_transfer_ = 1;
  std::size_t changing_ = 0; ///< links that are connecting or closing
  bool woken_ = false;       ///< wake_fd_ is readable
  bool taking_ = false;
  bool closing_ = false;
  bool abandoned_ = false; ///< the worker is gone, with all its requests
  steady::time_point abandon_at_{};
};

} // namespace shoal::transport::ucx
