// tests/runtime/model/fixture.hpp -- small models, stages and folders.
#pragma once

#include "kernels/backend.hpp"
#include "kernels/common/thread_team.hpp"
#include "runtime/model/hf/hf_directory.hpp"
#include "runtime/model/stage_model.hpp"
#include "tests/support/folder.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace shoal::tests {

/// The folder of the golden files: $SHOAL_GOLDEN, else tests/golden.
std::filesystem::path golden_folder();

/// All values of a tensor of a golden file.
std::vector<float>
golden(const model::safetensors_source& from, std::string_view name);
std::vector<model::token_id> as_ids(std::span<const float> values);

/// Why there is no value; "" if there is one.
template <class Value>
std::string why(const model::result<Value>& of) {
  return of ? std::string() : of.message();
}

/// max |a - b| / max |b|.
double relative_error(std::span<const float> a, std::span<const float> b);

/// A folder that is removed at the end.
class temporary_folder {
public:
  const std::filesystem::path& path() const { return home_.path; }
  std::filesystem::path operator/(const std::string& name) const {
    return path() / name;
  }

private:
  test::folder home_;
};

void write_text(const std::filesystem::path& path, std::string_view text);

/// A llama of odd sizes with grouped heads.
model::model_config tiny_config(bool tied = false);
/// The same sizes as another family, with all its switches on: biases, scaled
/// rotary frequencies, windows shorter than 13 tokens, small caps.
model::model_config tiny_family(const std::string& model_type);
/// All families, as names.
std::vector<std::string> family_names();

/// All units of a model, on one or several stages of one cpu device.
struct model_rig {
  /// `cuts` are the first units of all stages but the first.
  explicit model_rig(const model::model_config& config, std::uint64_t seed = 1,
                     std::vector<model::unit_index> cuts = {},
                     unsigned threads = 1,
                     kernels::factor_type factors = kernels::factor_type::f32,
                     const model::logits_budget& logits = {});
  /// Takes the units of a directory.
  explicit model_rig(model::model_directory directory,
                     std::vector<model::unit_index> cuts = {},
                     unsigned threads = 1);

  model::stage_model& whole() { return *stages.at(0); }
  /// One microbatch through all stages: forward, B and W. @returns the sum of
  /// losses.
  double train(const std::vector<model::token_id>& ids,
               const std::vector<model::token_id>& targets,
               std::size_t sequences, float scale);
  /// Forward only.
  double
  loss(const std::vector<model::token_id>& ids,
       const std::vector<model::token_id>& targets, std::size_t sequences);
  void zero_gradients();
  /// Sums tied gradients, clips, applies. @returns the gradient norm.
  double step(kernels::adamw_options options, double norm_max);

  std::shared_ptr<const model::unit_layout> layout;
  std::vector<model::unit_state> units;
  std::unique_ptr<kernels::thread_team> team;
  std::unique_ptr<kernels::backend> device;
  std::vector<std::unique_ptr<model::stage_model>> stages;

private:
  void build(const std::vector<model::unit_index>& cuts, unsigned threads,
             kernels::factor_type factors = kernels::factor_type::f32,
             const model::logits_budget& logits = {});
  double forward(const std::vector<model::token_id>& ids,
                 const std::vector<model::token_id>& targets,
                 std::size_t sequences, float scale, bool keep);
};

} // namespace shoal::tests
