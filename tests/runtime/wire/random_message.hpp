// tests/runtime/wire/random_message.hpp -- any message, from a seed.
#pragma once

#include "runtime/wire/codec.hpp"
#include "tests/runtime/wire/random_fields.hpp"

#include <random>

namespace shoal::tests {

class random_message {
public:
  explicit random_message(std::uint64_t seed) : engine_(seed) {}
  random_message(const random_message&) = delete;

  runtime::envelope any(std::size_t kind);
  core::view view();
  core::cluster::record record();
  // Of cluster cores, of jobs, of served models, of clients, and of nodes.
  static constexpr std::size_t cluster_kinds =
    std::variant_size_v<core::cluster::message>;
  static constexpr std::size_t job_kinds =
    std::variant_size_v<core::job_message>;
  static constexpr std::size_t serve_kinds =
    std::variant_size_v<core::serve_message>;
  static constexpr std::size_t request_kinds =
    std::variant_size_v<runtime::client_request_body>;
  static constexpr std::size_t kinds =
    cluster_kinds + job_kinds + serve_kinds + request_kinds + 7;

private:
  std::uint64_t below(std::uint64_t n) { return engine_() % n; }
  bool coin() { return below(2) == 1; }
  double real() { return static_cast<double>(below(1000)) / 7; }
  std::uint64_t number() { return below(std::uint64_t{1} << 40); }
  std::string text(std::size_t max = 20);
  std::vector<std::byte> bytes(std::size_t max);
  template <std::size_t N>
  void fill(std::array<std::uint8_t, N>& id) {
    for (std::uint8_t& b : id)
      b = static_cast<std::uint8_t>(below(256));
  }
  template <class Id>
  Id id() {
    Id out{};
    fill(out);
    return out;
  }
  runtime::client_request request(std::size_t kind);
  runtime::client_reply reply();
  runtime::job_event event();

  std::mt19937_64 engine_;
  random_fields fields_{engine_};
};

} // namespace shoal::tests
