// transport/ucx/worker.cpp -- sets UCX up, and checks that it obeyed.

#include "transport/ucx/worker.hpp"

#include "transport/introduced/host.hpp"

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace shoal::transport::ucx {

namespace {

/// Above this, the receiver aborts inside UCX 1.13.1 when fragments of 64 KiB
/// are joined. It is also the fastest of the sizes that work: 24 GB/s, against
/// 10 GB/s with the default of 8 KiB (4 MiB messages, measured 2026-11).
constexpr const char* segment_bytes = "65535";
constexpr long segment_bytes_max = 65535;
constexpr std::uint64_t worker_cookie = 0;

void require(ucs_status_t status, const char* what) {
  if (status != UCS_OK)
    throw std::runtime_error(std::string("ucx: ") + what + ": "
                             + ucs_status_string(status));
}

/// UCX takes POSIX_SEG_SIZE only from the environment, which overrides our
/// value.
void refuse_large_segments() {
  const char* text = std::getenv("UCX_POSIX_SEG_SIZE");
  if (text == nullptr)
    return;
  std::string_view digits(text);
  long value = 0;
  auto [end, error] =
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()
      || value < 1024 || value > segment_bytes_max)
    throw std::runtime_error(
      "ucx: UCX_POSIX_SEG_SIZE=" + std::string(digits)
      + " is not a number of bytes from 1024 to 65535, above which UCX aborts;"
        " unset it");
}

/// The transports that UCX may use; no fallback is among them.
const char* transports(medium over) {
  switch (over) {
  case medium::ucx_memory:
    return "posix,cma,self";
  case medium::rdma:
    return "rc,ud"; // ud also carries the wire-up of rc
  case medium::tcp:
    return "tcp";
  case medium::shared_memory: // shm::fabric
    break;
  }
  return "";
}

const char* name_of(medium over) {
  return over == medium::ucx_memory ? "shared memory"
         : over == medium::rdma     ? "RDMA"
                                    : "UCX-TCP";
}

/// Whether a device of "rxe0:1,mlx5_0:1" is soft RoCE.
bool any_is_software(std::string_view devices) {
  for (std::size_t end = 0; !devices.empty(); devices.remove_prefix(end)) {
    const auto name = devices.substr(0, devices.find_first_of(":,"));
    if (access(
          ("/sys/class/infiniband/" + std::string(name) + "/parent").c_str(),
          F_OK)
        == 0)
      return true;
    end = std::min(devices.find(','), devices.size() - 1) + 1;
  }
  return false;
}

using setting = std::pair<const char*, std::string>;

std::vector<setting> settings_for(medium over, const std::string& devices) {
  std::vector<setting> out{{"TLS", transports(over)}};
  if (over == medium::ucx_memory) {
    // Without it, peer error handling disables shared memory.
    out.emplace_back("MM_ERROR_HANDLING", "y");
    out.emplace_back("MM_SEG_SIZE", segment_bytes);
  } else {
    out.emplace_back("NET_DEVICES", devices);
  }
  // If ud gives up an endpoint that has not connected, because its peer is
  // dead, UCX 1.13.1 aborts (ucp_request_send_state_ff): so ud never gives up.
  // The engine notices deaths by pings over rc, which soft RoCE would repeat
  // for ever with the default of 7 retries.
  if (over == medium::rdma) {
    out.emplace_back("UD_TIMEOUT", "100000000s");
    out.emplace_back("RC_RETRY_COUNT", "6");
  }
  if (over == medium::tcp) {
    out.emplace_back("SOCKADDR_TLS_PRIORITY", "tcp");
    // An endpoint that is force-closed while a put waits for its answer aborts
    // UCX 1.13.1 when the answer comes (tcp_ep.c:939). It is no slower without
    // puts.
    out.emplace_back("PUT_ENABLE", "n");
    // CONN_NB stays off: with it UCX aborts often (tcp_iface.c:307). Without
    // it, connect() may stop the thread if a host goes away right after it
    // connected.
  }
  // Soft RoCE does not set the field by which UCX tells IPv4 from IPv6.
  if (over == medium::rdma && any_is_software(devices))
    out.emplace_back("UD_ETH_DGID_CHECK", "n");
  if (std::getenv("UCX_KEEPALIVE_INTERVAL") == nullptr)
    out.emplace_back("KEEPALIVE_INTERVAL", "1s");
  return out;
}

ucp_config_t* make_config(medium over, const std::string& devices) {
  ucp_config_t* config = nullptr;
  require(ucp_config_read(nullptr, nullptr, &config), "configuration");
  auto status = UCS_OK;
  for (const auto& [key, value] : settings_for(over, devices))
    if (status == UCS_OK)
      status = ucp_config_modify(config, key, value.c_str());
  if (status != UCS_OK)
    ucp_config_release(config);
  require(status, "configuration");
  return config;
}

ucp_worker_h make_worker(ucp_context_h context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SINGLE;
  ucp_worker_h out = nullptr;
  require(ucp_worker_create(context, &params, &out), "worker");
  return out;
}

std::vector<std::byte> address_of(ucp_worker_h handle) {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  require(ucp_worker_get_address(handle, &address, &bytes), "worker address");
  auto first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> out(first, first + bytes);
  ucp_worker_release_address(handle, address);
  return out;
}

ucp_ep_params_t
endpoint_params(std::uint64_t field, ucp_err_handler_cb_t failed, void* arg) {
  ucp_ep_params_t params{};
  params.field_mask = field | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                      | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = failed;
  params.err_handler.arg = arg;
  return params;
}

ucs_status_t
make_endpoint(ucp_worker_h handle, std::span<const std::byte> address,
              ucp_err_handler_cb_t failed, void* arg, ucp_ep_h& out) {
  auto params = endpoint_params(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, failed, arg);
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  return ucp_ep_create(handle, &params, &out);
}

/// UCX's description of an endpoint; 1.13 has no other way to ask.
std::string describe(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t bytes = 0;
  FILE* out = open_memstream(&text, &bytes);
  if (out == nullptr)
    return {};
  ucp_ep_print_info(endpoint, out);
  std::fclose(out);
  std::string result(text, bytes);
  std::free(text);
  return result;
}

/// The transports that a lane of the medium may have, as UCX prints them.
std::span<const std::string_view> lanes_of(medium over) {
  static constexpr std::string_view memory[] = {":posix/", ":cma/"};
  static constexpr std::string_view verbs[] = {":rc_verbs/", ":rc_mlx5/",
                                               ":ud_verbs/", ":ud_mlx5/"};
  static constexpr std::string_view tcp[] = {":tcp/"};
  if (over == medium::ucx_memory)
    return memory;
  return over == medium::rdma ? std::span<const std::string_view>(verbs) : tcp;
}

/// Whether there are lanes, and all belong to the medium.
bool lanes_agree(std::string_view info, medium over) {
  bool any = false;
  for (auto at = info.find("lane["); at != info.npos;
       at = info.find("lane[", at + 1)) {
    auto line = info.substr(at, info.find('\n', at) - at);
    bool good = false;
    for (auto name : lanes_of(over))
      good = good || line.find(name) != line.npos;
    if (!good)
      return false;
    any = any || line.find(":cma/") == line.npos; // cma only reads
  }
  return any;
}

/// How long two workers of this process may take to connect at start-up.
constexpr std::chrono::seconds connect_timeout{10};

/// Waits until the endpoint is connected. UCX 1.13.1 aborts if an endpoint over
/// ud is force-closed before that. @returns whether it is connected
bool connect_now(ucp_ep_h endpoint, std::span<const ucp_worker_h> all) {
  ucp_request_param_t params{};
  auto request = ucp_ep_flush_nbx(endpoint, &params);
  if (!UCS_PTR_IS_PTR(request))
    return UCS_PTR_STATUS(request) == UCS_OK;
  const auto end = std::chrono::steady_clock::now() + connect_timeout;
  auto status = UCS_INPROGRESS;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS
         && std::chrono::steady_clock::now() < end)
    for (auto handle : all)
      ucp_worker_progress(handle);
  ucp_request_free(request);
  return status == UCS_OK;
}

/// Force-closes and waits. Only for endpoints without traffic, at start-up.
void close_now(ucp_ep_h endpoint, std::span<const ucp_worker_h> all) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  auto request = ucp_ep_close_nbx(endpoint, &params);
  if (!UCS_PTR_IS_PTR(request))
    return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS)
    for (auto handle : all)
      ucp_worker_progress(handle);
  ucp_request_free(request);
}

void ignore_failure(void*, ucp_ep_h, ucs_status_t) {
}

/// Restores SIGILL, SIGSEGV, SIGBUS and SIGFPE if they still have the handlers
/// that UCX installs when it is loaded. Other handlers stay.
void release_signals() noexcept {
  for (int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0)
      continue;
    auto handler = reinterpret_cast<void*>(now.sa_handler);
    Dl_info where{};
    // sa_handler and sa_sigaction are a union.
    if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN
        && dladdr(handler, &where) != 0 && where.dli_fname != nullptr
        && std::strstr(where.dli_fname, "libuc") != nullptr)
      std::signal(signal, SIG_DFL);
  }
}

} // namespace

worker::worker(medium over, const std::string& devices,
               const std::function<void(std::string_view)>& log)
  : over_(over) {
  refuse_large_segments();
  if (log && std::getenv("UCX_TLS") != nullptr)
    log(std::string("[ucx] UCX_TLS is ignored: this fabric is ") + name_of(over)
        + " only");
  auto config = make_config(over, devices);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  auto status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  require(status, "init");
  release_signals();
  try {
    worker_ = make_worker(context_);
    int fd = -1;
    require(ucp_worker_get_efd(worker_, &fd), "event descriptor");
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0 || !watch(fd, worker_cookie))
      throw std::system_error(errno, std::generic_category(), "ucx: epoll");
    check_lanes();
  } catch (...) {
    const bool stuck = worker_ == nullptr && epoll_ >= 0;
    if (worker_ != nullptr)
      ucp_worker_destroy(worker_);
    if (epoll_ >= 0)
      ::close(epoll_);
    if (!stuck)
      ucp_cleanup(context_);
    throw;
  }
}

worker::~worker() {
  ucp_worker_destroy(worker_);
  ::close(epoll_);
  ucp_cleanup(context_);
}

std::vector<std::byte> worker::address() const {
  return address_of(worker_);
}

void worker::on_message(unsigned id, ucp_am_recv_callback_t callback,
                        void* arg) {
  ucp_am_handler_param_t params{};
  params.field_mask =
    UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB
    | UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  params.id = id;
  params.cb = callback;
  params.arg = arg;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  require(ucp_worker_set_am_recv_handler(worker_, &params), "AM handler");
}

ucs_status_t
worker::connect(std::span<const std::byte> address, ucp_err_handler_cb_t failed,
                void* arg, ucp_ep_h& out) {
  ucp_ep_h endpoint = nullptr;
  auto status = make_endpoint(worker_, address, failed, arg, endpoint);
  if (status != UCS_OK)
    return status;
  if (!lanes_agree(describe(endpoint), over_)) {
    close_now(endpoint, std::array{worker_});
    return UCS_ERR_UNREACHABLE;
  }
  out = endpoint;
  return UCS_OK;
}

ucs_status_t
worker::dial(const sockaddr_storage& door, ucp_err_handler_cb_t failed,
             void* arg, ucp_ep_h& out) {
  auto params = endpoint_params(
    UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR, failed, arg);
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&door);
  params.sockaddr.addrlen =
    door.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  return ucp_ep_create(worker_, &params, &out);
}

ucs_status_t
worker::accept(ucp_conn_request_h request, ucp_err_handler_cb_t failed,
               void* arg, ucp_ep_h& out) {
  auto params = endpoint_params(UCP_EP_PARAM_FIELD_CONN_REQUEST, failed, arg);
  params.conn_request = request;
  return ucp_ep_create(worker_, &params, &out);
}

void* worker::force_close(ucp_ep_h endpoint) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  auto request = ucp_ep_close_nbx(endpoint, &params);
  return UCS_PTR_IS_PTR(request) ? request : nullptr;
}

/// Connects to a second worker of this process: to itself, UCX would use
/// `self`.
void worker::check_lanes() {
  std::unique_ptr<ucp_worker, decltype(&ucp_worker_destroy)> other(
    make_worker(context_), &ucp_worker_destroy);
  auto address = address_of(other.get());
  ucp_ep_h endpoint = nullptr;
  require(make_endpoint(worker_, address, ignore_failure, nullptr, endpoint),
          "no endpoint with peer error handling");
  auto info = describe(endpoint);
  if (!connect_now(endpoint, std::array{worker_, other.get()})) {
    // Neither can be closed any more; this happens at most once in a process.
    static_cast<void>(other.release());
    worker_ = nullptr;
    throw std::runtime_error(std::string("ucx: two workers of this process "
                                         "cannot connect over ")
                             + name_of(over_) + "; its lanes:\n" + info);
  }
  close_now(endpoint, std::array{worker_, other.get()});
  if (!lanes_agree(info, over_))
    throw std::runtime_error(std::string("ucx: ") + name_of(over_)
                             + " is not what UCX would use; its lanes:\n"
                             + info);
}

bool worker::watch(int fd, std::uint64_t cookie) noexcept {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = cookie;
  return epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void worker::wait(int timeout_ms,
                  const std::function<void(std::uint64_t)>& ready) {
  // BUSY: events came since the last progress. Any other failure must not put
  // the thread to sleep for ever.
  auto status = ucp_worker_arm(worker_);
  if (status == UCS_ERR_BUSY)
    return;
  std::array<epoll_event, 16> events;
  int n = epoll_wait(epoll_, events.data(), events.size(),
                     status == UCS_OK ? timeout_ms : 1);
  for (int i = 0; i < n; ++i)
    if (events[static_cast<std::size_t>(i)].data.u64 != worker_cookie)
      ready(events[static_cast<std::size_t>(i)].data.u64);
}

void worker::poll(const std::function<void(std::uint64_t)>& ready) {
  std::array<epoll_event, 16> events;
  int n = epoll_wait(epoll_, events.data(), events.size(), 0);
  for (int i = 0; i < n; ++i)
    if (events[static_cast<std::size_t>(i)].data.u64 != worker_cookie)
      ready(events[static_cast<std::size_t>(i)].data.u64);
}

} // namespace shoal::transport::ucx
