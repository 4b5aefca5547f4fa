// transport/tls/bytes.hpp -- integers as little-endian bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::transport::tls {

template <class Integer>
void append(std::vector<std::byte>& out, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

/// @pre `offset + sizeof(Integer) <= from.size()`
template <class Integer>
Integer load(std::span<const std::byte> from, std::size_t offset) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |=
      static_cast<Integer>(static_cast<Integer>(from[offset + i]) << (8 * i));
  return value;
}

} // namespace shoal::transport::tls
