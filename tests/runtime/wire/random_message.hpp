// tests/runtime/wire/random_message.hpp -- any message, from a seed.
#pragma once

#include "runtime/wire/codec.hpp"

#include <random>

namespace shoal::tests {

class random_message {
public:
  explicit random_message(std::uint64_t seed) : engine_(seed) {}

  runtime::envelope any(std::size_t kind);
  core::view view();
  core::cluster::record record();
  static constexpr std::size_t kinds = 17 + 17 + 18 + 7;

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
  std::vector<std::string> texts();
  std::vector<core::network_profile> networks();
  core::invitation invitation();
  core::member_id member_id();
  core::device_profile device();
  core::member member();
  core::job_entry job();
  core::assignment assignment();
  core::cluster::ballot ballot();
  core::cluster::message cluster(std::size_t kind);
  core::job_header header();
  core::state_version version();
  core::step_record step();
  core::vote vote();
  core::job_message job_message(std::size_t kind);
  runtime::client_request request(std::size_t kind);
  runtime::client_reply reply();
  runtime::job_event event();

  std::mt19937_64 engine_;
};

} // namespace shoal::tests
