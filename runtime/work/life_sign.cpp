// runtime/work/life_sign.cpp -- counts looks without a sign.
#include "runtime/work/life_sign.hpp"

#include <utility>

namespace shoal::runtime {

std::shared_ptr<life_sign> life_signs::add(std::string part) {
  auto sign = std::make_shared<life_sign>();
  all_.push_back({std::move(part), sign});
  return sign;
}

std::optional<std::string> life_signs::look(int looks_max) {
  std::optional<std::string> silent;
  for (expected& e : all_) {
    const std::uint64_t given = e.sign->given();
    e.silent_looks = given == e.given ? e.silent_looks + 1 : 0;
    e.given = given;
    if (!silent && e.silent_looks >= looks_max)
      silent = e.part;
  }
  return silent;
}

} // namespace shoal::runtime
