// runtime/work/life_sign.hpp -- how a thread or an actor shows that it runs.
//
// A watchdog (runtime/node/state/node_life.hpp) counts in how many looks in a
// row a sign has not been given. Counts, not times: a process that was stopped
// as a whole has missed no look.
//
// Threads: any, without a lock; life_signs: one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::runtime {

class life_sign {
public:
  void give() noexcept { ++given_; }
  std::uint64_t given() const noexcept { return given_; }

private:
  friend std::shared_ptr<void> ask(const std::shared_ptr<life_sign>& sign);
  std::atomic<std::uint64_t> given_{0};
  std::atomic<bool> asked_{false};
};

/// Asks for the sign. It is given when the result is released: by the thread or
/// actor that takes the question out of its queue, even if it only drops it.
/// @returns null while an earlier question waits.
inline std::shared_ptr<void> ask(const std::shared_ptr<life_sign>& sign) {
  if (sign->asked_.exchange(true))
    return nullptr;
  // The value is not used; only a null pointer would be.
  return {sign.get(), [sign](void*) {
            sign->asked_ = false;
            sign->give();
          }};
}

/// The signs that a watchdog expects, by name.
class life_signs {
public:
  std::shared_ptr<life_sign> add(std::string part);
  /// @returns the first part that has given no sign in the last `looks_max`
  /// calls of this.
  std::optional<std::string> look(int looks_max);

private:
  struct expected {
    std::string part;
    std::shared_ptr<life_sign> sign;
    std::uint64_t given = 0; ///< at the last look
    int silent_looks = 0;
  };
  std::vector<expected> all_;
};

} // namespace shoal::runtime
