// runtime/core/canonical.cpp -- numbers and texts as bytes, and editions.
#include "runtime/core/canonical.hpp"

#include "runtime/core/assert.hpp"

namespace shoal::core {

void canonical_writer::append(const void* data, std::size_t size) {
  buffer& to = current_ == 0 ? *first_ : editions_[current_ - 1].bytes;
  const auto* begin = static_cast<const std::byte*>(data);
  to.insert(to.end(), begin, begin + size);
}

void canonical_writer::add(std::uint64_t number) {
  std::array<std::uint8_t, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  append(bytes.data(), bytes.size());
}

void canonical_writer::add(const std::string& text) {
  add(std::uint64_t{text.size()});
  append(text.data(), text.size());
}

void canonical_writer::edition(unsigned number, presence p) {
  SHOAL_ASSERT(number != 0 && number <= editions_.size() + 1);
  if (number > editions_.size())
    editions_.push_back({{}, false, p});
  current_ = number;
}

void canonical_writer::finish(buffer& to) const {
  std::size_t needed = 0; // editions before the last one that is set
  for (std::size_t i = 0; i < editions_.size(); ++i)
    if (editions_[i].set)
      needed = i;
  for (std::size_t i = 0; i < editions_.size(); ++i) {
    const later& e = editions_[i];
    if (e.set || unset_ == unset::written
        || (e.when == presence::if_set_or_later && i < needed))
      to.insert(to.end(), e.bytes.begin(), e.bytes.end());
  }
}

} // namespace shoal::core
