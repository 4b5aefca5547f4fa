// runtime/model/jinja/loop.hpp -- the variable "loop" within a loop.
#pragma once

#include "runtime/model/jinja/values/value.hpp"

#include <functional>

namespace shoal::jinja {

class loop_object final : public object,
                          public std::enable_shared_from_this<loop_object> {
public:
  /// The loop again, over other items one level deeper.
  using again =
    std::function<marked_text(const value& over, std::size_t level)>;

  /// @param again  empty: the loop is not recursive
  loop_object(std::vector<value> items, std::size_t level, again run);

  bool more() const { return at_ < items_.size(); }
  const value& item() const { return items_[at_]; }
  void next() { ++at_; }
  /// Forgets what leads back to the interpreter.
  void end() {
    again_ = nullptr;
    changed_.clear();
  }

  std::string_view kind() const override { return "LoopContext"; }
  std::optional<value> attribute(std::string_view name) override;
  bool callable() const override { return bool(again_); }
  value call(interpreter& by, call_arguments args) override;
  std::size_t depth() const override { return depth_; }

  /// loop.cycle(...)
  value cycle(const std::vector<value>& through) const;
  /// loop.changed(...)
  bool changed(budget& from, std::vector<value> now);

private:
  std::vector<value> items_;
  std::size_t at_ = 0;
  std::size_t level_;
  std::size_t depth_ = 1;
  again again_;
  std::vector<value> changed_;
  bool asked_ = false;
};

} // namespace shoal::jinja
