// tests/fuzz/host_list_fuzz.cpp -- lists of hosts from schedulers and users.
#include "runtime/discovery/host_list.hpp"

#include <cstdlib>

using namespace shoal::runtime;

extern "C" int
LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (auto hosts = parse_slurm_hosts(text))
    for (const std::string& h : *hosts)
      if (h.empty() || h.size() > host_bytes_max)
        std::abort();
  if (auto hosts = parse_hosts_file(text))
    for (const std::string& h : *hosts) {
      std::string host;
      std::string port;
      if (hosts->size() > hosts_max || !split_host_port(h, host, port))
        std::abort();
    }
  return 0;
}
