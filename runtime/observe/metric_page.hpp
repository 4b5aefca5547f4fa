// runtime/observe/metric_page.hpp -- what Prometheus reads from a node.
//
// Code that counts something describes it by a table of metric_kind, from which the
// page and `shoal reference` are made. Names begin with "shoal_" and have base
// units; a few have the names of vLLM besides, for dashboards that exist.
//
// Threads: each object one at a time.
// Source:  https://prometheus.io/docs/instrumenting/exposition_formats, and
//          https://prometheus.io/docs/practices/naming
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::runtime {

enum class metric_type { counter, gauge, histogram };

struct metric_kind {
  const char* name;
  metric_type type = metric_type::gauge;
  const char* help;
  const char* labels = "";    ///< their names: "peer, transport"
  const char* vllm = nullptr; ///< a name that vLLM gives the same
};

using metric_labels = std::vector<std::pair<std::string, std::string>>;

/// Values by size.
class metric_histogram {
public:
  /// @param bounds upper ones of the classes, ascending; they outlive this
  explicit metric_histogram(std::span<const double> bounds)
    : bounds_(bounds), counts_(bounds.size() + 1) {}
  void observe(double value);

  std::span<const double> bounds() const noexcept { return bounds_; }
  /// By class; the last one has what exceeds all bounds.
  const std::vector<std::uint64_t>& counts() const noexcept { return counts_; }
  double sum() const noexcept { return sum_; }

private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

/// Bounds for times, in seconds: of a token, and of a request.
extern const std::span<const double> token_seconds;
extern const std::span<const double> request_seconds;

class metric_page {
public:
  /// @param vllm_names also the names that vLLM gives the same
  explicit metric_page(bool vllm_names = false);
  ~metric_page();
  metric_page(const metric_page&) = delete;
  metric_page& operator=(const metric_page&) = delete;

  void add(const metric_kind& kind, metric_labels labels, double value);
  void add(const metric_kind& kind, metric_labels labels,
           const metric_histogram& value);

  /// In the text format, version 0.0.4.
  std::string text() const;
  static constexpr const char* content_type = "text/plain; version=0.0.4";

private:
  struct families;
  std::unique_ptr<families> families_;
  const bool vllm_names_;
};

} // namespace shoal::runtime
