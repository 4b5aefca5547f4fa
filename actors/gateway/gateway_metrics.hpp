// actors/gateway/gateway_metrics.hpp -- what a gateway counts, for Prometheus.
#pragma once

#include "actors/gateway/served_model.hpp"
#include "runtime/core/serving/served_load.hpp"
#include "runtime/observe/metric_page.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shoal::runtime {
class key_accounts; // runtime/http/keys/key_account.hpp
}

namespace shoal::actors {

/// A request that has ended.
struct ended_request {
  /// Of HTTP; `client_gone` if the client did not wait for the end.
  unsigned status = 0;
  static constexpr unsigned client_gone = 499; ///< as nginx logs it
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generated_tokens = 0;
  core::nanoseconds first_token = 0; ///< time to the first one; 0: none came
  core::nanoseconds all = 0;         ///< time
  std::size_t choices = 1;           ///< texts that were generated side by side
};

/// Since the start, by the names of models.
class gateway_metrics {
public:
  void asked() { ++asked_; }
  /// `name`: of a model that is served
  void ended(const std::string& name, const ended_request& is);
  /// A request was answered without generating anything.
  void told(const std::string& name);
  void generated(core::job_id model, std::uint64_t tokens) {
    generated_ += tokens;
    generated_of_[model] += tokens;
  }

  /// For the node's status. Forgets models that are not served any more.
  std::vector<core::served_load>
  loads(const std::map<core::job_id, std::shared_ptr<served_model>>& models);

  void add(const std::map<core::job_id, std::shared_ptr<served_model>>& models,
           runtime::metric_page& to) const;

  /// Names that are counted apart; the others are counted together, as "".
  static constexpr std::size_t names_max = 256;

private:
  struct of_model {
    std::map<unsigned, std::uint64_t> by_status;
    std::uint64_t prompt_tokens = 0;
    runtime::metric_histogram first_token{runtime::request_seconds};
    runtime::metric_histogram each_token{runtime::token_seconds};
    runtime::metric_histogram request{runtime::request_seconds};
  };
  of_model& of(const std::string& name);

  std::uint64_t asked_ = 0;
  std::uint64_t generated_ = 0;
  std::map<core::job_id, std::uint64_t> generated_of_;
  std::map<std::string, of_model> models_;
};

/// Requests that exceeded the limits of keys, by the keys' names.
void add_refusals(const runtime::key_accounts& of, runtime::metric_page& to);

/// All of them, for the reference.
const std::vector<runtime::metric_kind>& gateway_metric_kinds();

} // namespace shoal::actors
