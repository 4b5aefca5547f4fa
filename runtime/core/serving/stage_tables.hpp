// runtime/core/serving/stage_tables.hpp -- the passes that a stage has to compute,
// in their order, with the whole table of pages of each row.
//
// Passes come over a connection that may be lost, so they may come twice, or a
// later one first (pipeline.hpp, Q-2). Rows say only what is new in a table.
//
// Threads: none of its own.
#pragma once

#include "runtime/core/serving/serve_messages.hpp"

#include <map>
#include <optional>
#include <vector>

namespace shoal::core {

class stage_tables {
public:
  /// Passes that may wait for an earlier one.
  static constexpr std::size_t waiting_max = 64;
  /// Answers that are kept for passes that come again.
  static constexpr std::size_t answers_max = 64;

  struct ready_pass {
    serve_pass pass;
    std::vector<std::vector<page_id>> tables; ///< of its rows
    /// The same in layers with a window, each empty if they have no own pages.
    std::vector<std::vector<page_id>> windows;
  };

  /// Keeps a pass that is new.
  /// @returns the answer of one that has been computed
  std::optional<serve_chosen> put(const serve_pass& p);
  /// The next pass, once; nothing: it has not come. Also nothing, for ever, if
  /// it says what cannot be: `broken()`.
  std::optional<ready_pass> next();
  /// The answer to a pass.
  void answered(serve_chosen a);

  [[nodiscard]] bool broken() const noexcept { return broken_; }

private:
  struct table {
    std::vector<page_id> pages, windows;
  };

  std::map<std::uint64_t, serve_pass> waiting_;
  std::map<std::uint64_t, serve_chosen> answers_;
  std::map<std::uint64_t, table> tables_; ///< by sequence
  std::uint64_t next_ = 1;
  bool broken_ = false;
};

} // namespace shoal::core
