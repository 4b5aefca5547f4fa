// runtime/observe/metric_page.cpp -- families of metrics, written by prometheus-cpp.
#include "runtime/observe/metric_page.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace shoal::runtime {

namespace {

constexpr std::array token_bounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                  0.25,  0.5,    1.0,   2.5,  5.0,   10.0};
constexpr std::array request_bounds{0.01, 0.025, 0.05, 0.1,   0.25, 0.5,
                                    1.0,  2.5,   5.0,  10.0,  25.0, 50.0,
                                    100., 250.,  500., 1000., 2500.};

prometheus::MetricType type_of(metric_type t) {
  switch (t) {
  case metric_type::counter:
    return prometheus::MetricType::Counter;
  case metric_type::histogram:
    return prometheus::MetricType::Histogram;
  default:
    return prometheus::MetricType::Gauge;
  }
}

prometheus::ClientMetric labelled(const metric_labels& labels) {
  prometheus::ClientMetric out;
  for (const auto& [name, value] : labels)
    out.label.push_back({name, value});
  return out;
}

} // namespace

const std::span<const double> token_seconds = token_bounds;
const std::span<const double> request_seconds = request_bounds;

void metric_histogram::observe(double value) {
  const auto at = std::ranges::lower_bound(bounds_, value);
  ++counts_[std::size_t(at - bounds_.begin())];
  sum_ += value;
}

/// In the order in which they were begun.
struct metric_page::families {
  std::vector<prometheus::MetricFamily> all;
  std::map<std::string, std::size_t> by_name;

  void add(const char* name, const metric_kind& kind,
           const prometheus::ClientMetric& metric) {
    const auto [at, added] = by_name.try_emplace(name, all.size());
    if (added)
      all.push_back({name, kind.help, type_of(kind.type), {}});
    all[at->second].metric.push_back(metric);
  }
};

metric_page::metric_page(bool vllm_names)
  : families_(std::make_unique<families>()), vllm_names_(vllm_names) {
}

metric_page::~metric_page() = default;

void metric_page::add(const metric_kind& kind, metric_labels labels,
                      double value) {
  prometheus::ClientMetric metric = labelled(labels);
  if (kind.type == metric_type::counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  families_->add(kind.name, kind, metric);
  if (vllm_names_ && kind.vllm != nullptr)
    families_->add(kind.vllm, kind, metric);
}

void metric_page::add(const metric_kind& kind, metric_labels labels,
                      const metric_histogram& value) {
  prometheus::ClientMetric metric = labelled(labels);
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < value.counts().size(); ++i) {
    so_far += value.counts()[i];
    metric.histogram.bucket.push_back(
      {so_far, i < value.bounds().size()
                 ? value.bounds()[i]
                 : std::numeric_limits<double>::infinity()});
  }
  metric.histogram.sample_count = so_far;
  metric.histogram.sample_sum = value.sum();
  families_->add(kind.name, kind, metric);
  if (vllm_names_ && kind.vllm != nullptr)
    families_->add(kind.vllm, kind, metric);
}

std::string metric_page::text() const {
  return prometheus::TextSerializer{}.Serialize(families_->all);
}

} // namespace shoal::runtime
