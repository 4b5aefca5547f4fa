// runtime/core/cluster/local/view_size.cpp -- adds up the sizes of fields and their tags.
#include "runtime/core/cluster/local/view_size.hpp"

#include <algorithm>

namespace shoal::core {

namespace {

// A field is a tag of at most two bytes and a value: a number of at most ten
// bytes, or a length of at most four bytes and its content.
constexpr std::size_t number = 12;
constexpr std::size_t framed = 6;

/// Adds up the sizes of fields.
class field_sizes : public visitor {
public:
  std::size_t sum = 0;

  template <class T, class Limit = any_value>
  void operator()(const char*, const T& x, Limit = {}) {
    sum += size(x);
  }

private:
  template <class T>
  static std::size_t size(const T& x) {
    if constexpr (is_number<T>) {
      return number;
    } else if constexpr (is_id<T>) {
      return framed + sizeof(T);
    } else if constexpr (std::same_as<T, std::string>) {
      return framed + x.size();
    } else if constexpr (is_optional<T>) {
      return size(x.value_or(typename T::value_type{}));
    } else if constexpr (has_fields<T>) {
      field_sizes within;
      fields(within, x);
      return framed + within.sum;
    } else {
      static_assert(is_list<T>);
      // All numbers of a list share one frame.
      std::size_t all = is_number<typename T::value_type> ? framed : 0;
      for (const auto& item : x)
        all += size(item);
      return all;
    }
  }
};

template <class T>
std::size_t size_of(const T& x) {
  field_sizes sizes;
  sizes("", x);
  return sizes.sum;
}

} // namespace

std::size_t bytes_bound(const member& m) {
  // Room for the networks that it will measure.
  constexpr std::size_t name_usual = 16;
  constexpr std::size_t usual =
    networks_max * (framed + name_usual + 2 * number);
  const std::size_t now = size_of(m.networks);
  return size_of(m) - now + std::max(usual, now);
}

std::size_t bytes_bound(const job_entry& j) {
  // Room for the cause of a failure, for one number, and for all marks and
  // versions.
  constexpr std::size_t mark = framed + 4 * number;
  constexpr std::size_t version =
    framed + number + framed + sizeof(blob_digest);
  const std::size_t now = size_of(j.marks);
  return size_of(j) - j.cause.size() + number
         + (versions_max - std::min(versions_max, j.versions.size())) * version
         + std::max(limits::job_cause_bytes_max, j.cause.size()) - now
         + std::max(now, marks_max / limits::islands_max
                           * std::max(j.want_islands, islands_of(j)) * mark);
}

std::size_t bytes_bound(const assignment& a) {
  return size_of(a);
}

static std::size_t without_previous(const view& v) {
  // All but the parts with a bound of their own, and the frames around the
  // whole and around `removed` and `outages`.
  std::size_t sum = size_of(v) - size_of(v.members) - size_of(v.jobs)
                    - size_of(v.previous) - 3 * framed;
  for (const member& m : v.members)
    sum += bytes_bound(m);
  for (const job_entry& j : v.jobs)
    sum += bytes_bound(j);
  return sum;
}

std::size_t bytes_bound(const view& v) {
  std::size_t sum = without_previous(v);
  for (const assignment& a : v.previous)
    sum += bytes_bound(a);
  return sum;
}

bool has_room(const view& v, std::size_t bytes) {
  return without_previous(v) + bytes + view_bytes_spare <= view_bytes_max;
}

} // namespace shoal::core
