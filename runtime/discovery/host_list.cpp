// runtime/discovery/host_list.cpp -- reads lists of hosts.
#include "runtime/discovery/host_list.hpp"

#include "runtime/files/file_io.hpp"
#include "runtime/host/ip_address.hpp"

#include <algorithm>
#include <charconv>

namespace shoal::runtime {

namespace {

using names = std::vector<std::string>;

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
         || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_';
}

/// Appends the numbers of "01-03" or "7" to every name of `before`, padded as
/// written.
bool add_range(std::string_view range, const names& before, names& out) {
  const auto dash = range.find('-');
  const auto low = range.substr(0, dash);
  const auto high =
    dash == std::string_view::npos ? low : range.substr(dash + 1);
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const auto number = [](std::string_view text, std::uint32_t& to) {
    const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), to);
    return !text.empty() && text.size() <= 9 && error == std::errc()
           && end == text.data() + text.size();
  };
  if (!number(low, first) || !number(high, last) || first > last
      || last - first >= hosts_max)
    return false;
  for (const std::string& name : before)
    for (std::uint32_t n = first; n <= last; ++n) {
      std::string digits = std::to_string(n);
      if (digits.size() < low.size())
        digits.insert(0, low.size() - digits.size(), '0');
      if (out.size() >= hosts_max
          || name.size() + digits.size() > host_bytes_max)
        return false;
      out.push_back(name + digits);
    }
  return true;
}

/// Adds the ranges of a bracket, separated by commas.
bool add_ranges(std::string_view ranges, names& all) {
  names out;
  for (;;) {
    const auto comma = ranges.find(',');
    if (!add_range(ranges.substr(0, comma), all, out))
      return false;
    if (comma == std::string_view::npos)
      break;
    ranges.remove_prefix(comma + 1);
  }
  all = std::move(out);
  return true;
}

} // namespace

std::optional<names> parse_slurm_hosts(std::string_view list) {
  names out;
  if (list.empty() || list.size() > host_list_bytes_max)
    return std::nullopt;
  for (;;) {
    names all{""};
    std::size_t at = 0;
    while (at < list.size() && list[at] != ',') {
      if (list[at] == '[') {
        const auto end = list.find(']', at);
        if (end == std::string_view::npos
            || !add_ranges(list.substr(at + 1, end - at - 1), all))
          return std::nullopt;
        at = end + 1;
      } else {
        if (!plain(list[at]) || all[0].size() >= host_bytes_max)
          return std::nullopt;
        for (std::string& name : all)
          name += list[at];
        ++at;
      }
    }
    if (all[0].empty() || out.size() + all.size() > hosts_max)
      return std::nullopt;
    out.insert(out.end(), all.begin(), all.end());
    if (at == list.size())
      return out;
    list.remove_prefix(at + 1);
  }
}

std::string with_node_port(const std::string& address) {
  const std::string port = ":" + std::to_string(node_port);
  if (address.empty())
    return address;
  const bool bracketed = address.front() == '[' && address.back() == ']';
  if (bracketed || address.find(':') == std::string::npos)
    return address + port;
  return parse_ip(address) ? "[" + address + "]" + port : address;
}

bool split_host_port(const std::string& address, std::string& host,
                     std::string& port) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
    return false;
  host = address.substr(0, colon);
  port = address.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']' && host.size() > 2)
    host = host.substr(1, host.size() - 2);
  else if (host.find_first_of("[]:") != std::string::npos)
    return false;
  std::uint16_t number = 0;
  const auto [end, error] =
    std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size()
         && number != 0;
}

model::result<names> parse_hosts_file(std::string_view text) {
  if (text.size() > host_list_bytes_max)
    return model::failure{"more than " + std::to_string(host_list_bytes_max)
                          + " bytes"};
  names out;
  std::size_t number = 0;
  const auto wrong = [&number](const std::string& why) {
    return model::failure{"line " + std::to_string(number) + why};
  };
  while (!text.empty()) {
    ++number;
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    while (
      !line.empty()
      && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
      line.remove_prefix(1);
    if (line.empty())
      continue;
    std::string host;
    std::string port;
    std::string address(line);
    if (line.find(':') == std::string_view::npos)
      address += ":" + std::to_string(node_port);
    if (out.size() == hosts_max)
      return wrong(": more than " + std::to_string(hosts_max) + " hosts");
    const auto foreign = [](char c) {
      return !plain(c) && c != ':' && c != '%';
    };
    if (!split_host_port(address, host, port) || host.size() > host_bytes_max
        || std::any_of(host.begin(), host.end(), foreign))
      return wrong(" is no host or host:port");
    out.push_back(address);
  }
  return out;
}

model::result<names> read_hosts_file(const std::filesystem::path& file) {
  std::vector<std::byte> bytes;
  if (const auto error = read_file(file, host_list_bytes_max, bytes))
    return model::failure{file.string()
                          + " cannot be read: " + error.message()};
  auto hosts = parse_hosts_file(
    {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!hosts)
    return model::failure{file.string() + ", " + hosts.message()};
  return hosts;
}

} // namespace shoal::runtime
