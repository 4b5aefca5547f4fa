// transport/tls/engine.hpp -- the state behind a TLS fabric.
//
// The engine knows peers and addresses; a connection knows one socket.
// Application threads only touch the data that the mutex guards: the table of
// peers and their queues. Sockets, OpenSSL and handlers belong to the progress
// thread.
//
//   fabric -> engine -> peer (queues) -> connections, streams (sockets)
//
// Control messages go by connections: at least one, and at most one per
// direction. Bulk goes by streams, so that no transfer delays a message. The
// end that dialled a connection also dials the streams, when either end has
// bulk to send; the other end asks for them.
//
// T-1: a peer is in the table exactly while it is up.
// T-2: an open connection has a peer and is in one of its lists. The first of
//      `connections` is sent on; `streams[i]` sends `bulk[i]`.
// T-3: the memory of a transfer is touched only within connection::read_some()
//      and write_some(), so it is free whenever neither runs.
//
// Only .cpp files of this folder include it: it pulls in Asio.
#pragma once

#include "transport/line_budget.hpp"
#include "transport/tls/admission.hpp"
#include "transport/tls/context.hpp"
#include "transport/tls/fabric.hpp"
#include "transport/tls/frame.hpp"
#include "transport/tls/proof.hpp"
#include "transport/tls/session.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

// The library chooses the widest vectors that the processor has.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <atomic>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility> // Asio 1.74 forgets it

namespace shoal::transport::tls {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
class connection;
class engine;

/// An XXH3-64: of small data in one call, of large data as it passes.
class hasher {
public:
  explicit hasher(std::size_t total_bytes) {
    if (total_bytes <= at_once_max)
      return;
    state_.reset(XXH3_createState());
    XXH3_64bits_reset(state_.get());
  }
  void add(std::span<const std::byte> bytes) {
    if (state_)
      XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  /// @param whole all bytes that were added, in one piece
  std::uint64_t sum(std::span<const std::byte> whole) const {
    return state_ ? XXH3_64bits_digest(state_.get())
                  : XXH3_64bits(whole.data(), whole.size());
  }

private:
  /// Still in the cache when the last bytes come.
  static constexpr std::size_t at_once_max = std::size_t{256} << 10;
  struct release {
    void operator()(XXH3_state_t* s) const noexcept { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, release> state_;
};

struct queued_bulk {
  bulk_tag tag;
  std::span<const std::byte> bytes;
  completion done;
};

struct posted_receive {
  std::span<std::byte> into;
  completion done;
};

struct due {
  completion done;
  std::error_code result;
};
using due_list = std::vector<due>;
void run(const due_list& list) noexcept;

/// A peer that is up. engine::mutex guards it, except for the members after
/// `info`.
struct peer {
  std::deque<buffer> control;
  std::size_t control_bytes = 0;
  std::vector<std::deque<queued_bulk>> bulk; ///< config::bulk_streams
  std::size_t bulk_sends = 0;                ///< queued or not yet acknowledged
  std::multimap<bulk_tag, posted_receive> receives;
  traffic moved;
  bool scheduled = false;      ///< the progress thread will run a write
  bool bulk_scheduled = false; ///< the same for bulk
  peer_info info;
  // For the progress thread only.
  std::vector<std::shared_ptr<connection>> connections;
  std::vector<std::shared_ptr<connection>> streams;
  std::size_t streams_dialled = 0;
  bool streams_wanted = false; ///< by us; dialled or asked for
  int stream_failures = 0;
};
using peer_ptr = std::shared_ptr<peer>;

/// One socket: handshake, proof, then frames. Progress thread only.
class connection final : public std::enable_shared_from_this<connection>,
                         private frame_sink {
public:
  connection(engine& e, tcp::socket socket, side role, std::string address);
  /// A stream to a peer that is up, to be dialled.
  connection(engine& e, const peer_ptr& to, std::uint8_t stream,
             std::string address);

  void start_deadline();
  /// Waits for the first bytes of an accepted connection, for engine::spoke().
  void listen();
  /// Runs until there is nothing to do or the connection is open: TLS, then the
  /// proof. Counts the cost. @pre the socket is connected
  void work();
  void read_some();
  void write_some();
  /// Ends all transfers of `plan`; adds the completions to run to `out`.
  void cancel(std::uint64_t plan, due_list& out);
  /// Closes the socket; adds all pending completions. Nothing runs afterwards.
  void abandon(std::error_code result, due_list& out);
  void fail(std::error_code why, std::string_view reason);

  /// Asks the dialling end for streams. @pre open
  void ask_for_streams(std::size_t count);

  bool dialled() const { return side_ == side::dialler; }
  bool is_stream() const { return stream_ != 0; }
  std::uint8_t stream() const { return stream_; }
  bool closed() const { return stage_ == stage::closed; }
  bool proving() const { return stage_ == stage::proof; }
  const std::string& address() const { return address_; }
  const peer_id& id() const { return id_; }
  bool heard_since(std::chrono::steady_clock::time_point t) const {
    return heard_at_ >= t;
  }
  tcp::socket& socket() { return socket_; }

  std::vector<tcp::socket> dials; ///< of one address on several networks
  peer_ptr owner;                 ///< set by engine::opened()
  std::weak_ptr<peer> target;     ///< of a stream that we dial
  admission::ticket ticket = 0;   ///< of an accepted connection; 0: none
  std::size_t place = 0;          ///< in the peer's streams

private:
  enum class stage { connecting, handshake, proof, open, closed };
  bool unproved() const {
    return stage_ != stage::open && stage_ != stage::closed;
  }
  struct sending {
    explicit sending(const queued_bulk& q) : what(q), hash(q.bytes.size()) {}
    queued_bulk what;
    std::size_t offset = 0;
    bool begun = false; ///< its header is written
    bool ended = false; ///< its end is written
    hasher hash;
  };
  struct receiving {
    receiving(bulk_tag t, const posted_receive& r)
      : tag(t), what(r), hash(r.into.size()) {}
    bulk_tag tag;
    posted_receive what;
    std::size_t offset = 0;
    hasher hash;
  };

  /// There is work(); for an accepted connection, once it is its turn.
  void ready();
  void count_work();
  void start();
  void handshake();
  void secured();
  void read_proof();
  void judge();
  void refuse(const judgement& a);
  void meet_self(judgement& a);
  void proved(const claim& what);
  void wait_read(void (connection::*next)());
  void wait_write(void (connection::*next)());
  /// Continues after a call of `tls_` that did not succeed.
  void retry(const session::outcome& o, void (connection::*next)());
  std::string reason_of(const session::outcome& o) const;
  void set_options();
  void prepare_open();

  void answer();
  void gather();
  bool gather_control();
  bool gather_bulk();
  void gather_chunk(std::uint64_t transfer, sending& s);
  void activate_bulk();
  bool write_piece();
  void forget_payload(std::uint64_t transfer);
  void reply(std::uint64_t transfer, verdict v);
  void count_traffic();

  void on_control(std::span<const std::byte> message) override;
  void on_bulk_header(std::uint64_t transfer, bulk_tag tag,
                      std::uint64_t bytes) override;
  std::span<std::byte>
  bulk_room(std::uint64_t transfer, std::size_t bytes) override;
  void on_bulk_bytes(std::uint64_t transfer, std::size_t bytes) override;
  void on_bulk_end(std::uint64_t transfer, std::uint64_t checksum) override;
  void on_bulk_abort(std::uint64_t transfer) override;
  bool on_bulk_ack(std::uint64_t transfer, verdict v) override;
  void on_streams(std::uint32_t count) override;

  engine& engine_;
  tcp::socket socket_;
  asio::steady_timer deadline_;
  std::optional<session> tls_;
  side side_;
  stage stage_ = stage::connecting;
  std::uint8_t stream_ = 0;
  std::string address_; ///< as dialled, or the remote endpoint
  peer_id id_{};
  exporter binding_{};
  shared_key key_{}; ///< that both ends prove
  std::chrono::steady_clock::time_point heard_at_{};
  std::chrono::nanoseconds worked_{0}; ///< of this thread, before the proof
  std::optional<std::chrono::nanoseconds> working_since_; ///< within work()
  proof_frame proof_{};
  std::size_t proof_fill_ = 0;
  bool waiting_read_ = false;
  bool waiting_write_ = false;
  bool read_wants_write_ = false; ///< read_some() goes on after a write

  frame_reader reader_{*this, stream_kind::control};
  std::map<std::uint64_t, receiving> receives_;
  std::uint64_t read_bytes_ = 0;

  buffer out_; ///< small frames, being written from out_done_ on
  std::size_t out_done_ = 0;
  std::span<const std::byte> payload_; ///< of the chunk whose head is in out_
  std::uint64_t payload_of_ = 0;
  std::size_t retry_bytes_ = 0; ///< a record that OpenSSL holds; 0: none
  buffer replies_;              ///< acks, aborts and streams
  bool write_after_read_ = false;
  std::map<std::uint64_t, sending> sends_;
  std::deque<std::uint64_t> turn_; ///< transfers with bytes left to send
  std::uint64_t next_transfer_ = 0;
  std::uint64_t written_bytes_ = 0;
};

class engine {
public:
  engine(config settings, fabric_handler& handler);
  ~engine();

  // Progress thread.
  void dial(const std::string& address);
  void accept();
  /// An accepted connection that is not proved has sent bytes.
  void spoke(const std::shared_ptr<connection>& c);
  /// Reports the cost of the work() of such a connection.
  void worked(std::chrono::nanoseconds cost) { door_.spend(cost); }
  void secured(const connection& c); ///< its handshake has ended
  /// The peer at the other end of `c` wants `count` bulk streams.
  void streams_asked(const std::shared_ptr<connection>& c, std::size_t count);
  /// A connection has proved itself. @returns false if it is not wanted.
  bool opened(const std::shared_ptr<connection>& c, peer_info info);
  /// A connection of `lost` has failed, so the peer is down.
  void
  lose(const peer_ptr& lost, std::error_code why, std::error_code completions);
  /// A connection ended before it was open. Reports it if we dialled it.
  void ended(const std::shared_ptr<connection>& c, std::error_code why);
  bool dialled_already(const connection& c) const;
  void use(std::shared_ptr<const keyring> next);
  /// Whether another process with this identity is connected and alive.
  bool duplicate(const peer_id& peer, std::uint64_t instance) const;
  /// The key for the proof to `address`, which may have refused another key.
  const shared_key& key_for(const std::string& address) const;
  void note_refusal(const std::string& address);
  void unlist(connection& c);
  void log(const std::string& line) const;
  /// Logs the end of a connection that belonged to no peer. The same line again
  /// for the same address is counted, and logged after failure_log_pause; so is
  /// already the first one that says that a link-local address is unreachable,
  /// since it is one of several for a peer of this network, and means nothing to
  /// one of another. All these lines share one budget.
  void log_failure(const std::string& address, bool dialled,
                   std::error_code why, const std::string& reason);
  void cancel(std::uint64_t plan);
  void shut_down();

  // Any thread.
  void schedule_write(const peer_ptr& p); ///< with the mutex held
  void schedule_bulk(const peer_ptr& p);  ///< with the mutex held
  /// With the mutex held, or on the progress thread, which alone changes the
  /// table.
  peer_ptr find(const peer_id& id) const;

  config settings;
  fabric_handler& handler;
  peer_id id;
  std::string local_address;
  ssl_ctx_ptr context;
  std::shared_ptr<const keyring> keys; ///< progress thread
  asio::io_context io{1};

  mutable std::mutex mutex;
  std::map<peer_id, peer_ptr> peers; ///< T-1
  std::set<std::string> dialling;
  bool closing = false;

  std::thread thread;
  std::once_flag joined;

private:
  void listen();
  /// Endpoints that one address is dialled at together.
  static constexpr std::size_t dials_at_once_max = 16;
  /// For a link-local address without its interface: one endpoint for each
  /// interface that has one; of more than dials_at_once_max, others at each call.
  std::vector<tcp::endpoint>
  on_every_network(asio::ip::address_v6 local, std::uint16_t port);
  /// The first that answers is taken: on a wrong network nobody does, for long.
  void dial_on_all(const std::shared_ptr<connection>& c,
                   const std::vector<tcp::endpoint>& where);
  void resolved(const std::shared_ptr<connection>& c,
                const std::vector<tcp::endpoint>& where);
  void forget_dial(const std::string& address);
  void admit(tcp::socket socket, const tcp::endpoint& remote);
  void give_turns();
  void say_rest_later();
  bool
  stream_opened(const std::shared_ptr<connection>& c, const peer_info& info);
  void stream_ended(const std::shared_ptr<connection>& c);
  void want_streams(const peer_ptr& p);
  void dial_streams(const peer_ptr& p, std::size_t count);
  void dial_stream(const peer_ptr& p, std::size_t number);

  tcp::acceptor acceptor_{io};
  tcp::resolver resolver_{io};
  asio::steady_timer again_{io};
  std::set<std::shared_ptr<connection>> unopened_; ///< dials and unproved
  admission door_;
  std::uint64_t scopes_turn_ = 0;
  admission::ticket last_ticket_ = 0;
  std::map<admission::ticket, std::shared_ptr<connection>> unproved_;
  asio::steady_timer turn_{io}; ///< of the next stranger
  std::size_t open_ = 0;
  struct failure {
    std::chrono::steady_clock::time_point quiet_until{};
    std::size_t left_out = 0;
  };
  std::map<std::string, std::size_t> refusals_; ///< by address
  std::map<std::string, failure> failures_;     ///< by address and reason
  line_budget lines_;
  asio::steady_timer rest_{io};
  bool rest_due_ = false;
};

std::string to_string(const tcp::endpoint& e);

/// The first eight digits of an id, as shown to users.
std::string short_id(const peer_id& id);

/// Splits "host:port" or "[host]:port". @returns false if it is neither.
[[nodiscard]] bool split_address(const std::string& address, std::string& host,
                                 std::uint16_t& port);

} // namespace shoal::transport::tls
