// runtime/core/state/part_set.hpp -- runs of parts, and sets of them.
//
// A set is kept as few runs of consecutive parts: what a member holds is one run
// or two, however many parts a model has.
//
// Threads: plain data. Cost: linear in the runs; contains() and overlaps() take
// their logarithm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace shoal::core {

/// Identifies a part of a job's state (parts.hpp).
using part_index = std::uint32_t;

/// Parts [first, last).
struct part_range {
  part_index first = 0;
  part_index last = 0;

  [[nodiscard]] constexpr bool empty() const noexcept { return first >= last; }
  [[nodiscard]] constexpr std::uint32_t size() const noexcept {
    return empty() ? 0 : last - first;
  }
  [[nodiscard]] constexpr bool contains(part_index p) const noexcept {
    return first <= p && p < last;
  }
  friend bool operator==(const part_range&, const part_range&) = default;
};

/// The parts in both.
[[nodiscard]] constexpr part_range
common(const part_range& a, const part_range& b) noexcept {
  const part_range out{a.first > b.first ? a.first : b.first,
                       a.last < b.last ? a.last : b.last};
  return out.empty() ? part_range{} : out;
}

class part_set {
public:
  /// Visits the parts, ascending.
  class iterator {
  public:
    using value_type = part_index;
    using difference_type = std::ptrdiff_t;
    using reference = part_index;
    using pointer = const part_index*;
    using iterator_category = std::input_iterator_tag;
    using iterator_concept = std::forward_iterator_tag;

    iterator() = default;
    iterator(const part_range* run, const part_range* end)
      : run_(run), end_(end), part_(run == end ? 0 : run->first) {}
    part_index operator*() const noexcept { return part_; }
    iterator& operator++() noexcept {
      if (++part_ == run_->last)
        part_ = ++run_ == end_ ? 0 : run_->first;
      return *this;
    }
    iterator operator++(int) noexcept {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator&, const iterator&) = default;

  private:
    const part_range* run_ = nullptr;
    const part_range* end_ = nullptr;
    part_index part_ = 0; ///< 0 at the end
  };

  part_set() = default;
  explicit part_set(const part_range& r) { add(r); }
  /// All parts of these runs, in any order; empty ones do no harm.
  explicit part_set(const std::vector<part_range>& runs) {
    for (const part_range& r : runs)
      add(r);
  }

  void add(const part_range& r);
  void add(const part_set& s);
  void add(part_index p) { add(part_range{p, p + 1}); }
  void remove(const part_range& r);
  void remove(const part_set& s);

  [[nodiscard]] bool empty() const noexcept { return runs_.empty(); }
  [[nodiscard]] std::uint32_t size() const noexcept;
  [[nodiscard]] bool contains(part_index p) const noexcept;
  /// Whether it has all parts of `s`.
  [[nodiscard]] bool includes(const part_set& s) const noexcept;
  /// Whether it has some part of `r`.
  [[nodiscard]] bool overlaps(const part_range& r) const noexcept;
  /// The number of parts of `r` that it has.
  [[nodiscard]] std::uint32_t count(const part_range& r) const noexcept;
  /// Ascending; neither empty nor next to each other.
  [[nodiscard]] const std::vector<part_range>& runs() const noexcept {
    return runs_;
  }
  /// All parts, ascending.
  [[nodiscard]] std::vector<part_index> list() const;

  [[nodiscard]] iterator begin() const noexcept {
    return {runs_.data(), runs_.data() + runs_.size()};
  }
  [[nodiscard]] iterator end() const noexcept {
    return {runs_.data() + runs_.size(), runs_.data() + runs_.size()};
  }
  friend bool operator==(const part_set&, const part_set&) = default;

private:
  std::vector<part_range> runs_;
};

} // namespace shoal::core
