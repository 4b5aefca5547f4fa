// runtime/model/decode/evaluate.hpp -- the mean loss of a model over given
// text.
//
// The loss is the mean negative log likelihood, in nats, over all predicted
// tokens. Each document (documents.hpp) is a sequence of its own. A sequence
// longer than a window (at most max_position_embeddings) is cut into windows
// that do not overlap; each predicts all but its first token. A sequence of
// fewer than two tokens predicts nothing.
#pragma once

#include "runtime/model/data/sequences.hpp"
#include "runtime/model/decode/inference.hpp"

#include <filesystem>

namespace shoal::model {

/// Default tokens of a window: memory and the work of attention grow with it,
/// and models of 128 k positions would need hours for a result that hardly
/// changes.
inline constexpr std::uint64_t window_usual = 2048;

struct evaluation {
  double loss = 0;          ///< nats per predicted token
  double perplexity = 0;    ///< exp(loss)
  std::uint64_t tokens = 0; ///< predicted
};

/// The bits that the model needs per byte of the text: comparable between
/// models with different tokenizers. Tokens that begin a window are not
/// predicted; they count like an average token. NaN if `bytes` is 0.
double
bits_per_byte(const evaluation& of, std::uint64_t tokens, std::uint64_t bytes);

/// Sums up losses, in the order in which they are added.
struct evaluation_sum {
  double loss_sum = 0;
  std::uint64_t tokens = 0;

  void add(double loss, std::uint64_t predicted);
  evaluation mean() const; ///< zeros if nothing was predicted
};

/// Adds one sequence to `sum`. Windows are at most `window` tokens long (0 =
/// max_position_embeddings). @pre the stage has all units; ids are valid
void evaluate(stage_model& model, std::span<const token_id> sequence,
              evaluation_sum& sum, std::size_t window = 0);

/// Evaluates all sequences in order. @param told  is told the tokens done; its
/// result is ignored
evaluation
evaluate(stage_model& model, std::span<const std::vector<token_id>> sequences,
         std::size_t window = 0, const watch& told = {});

/// The same with a stage for generation: its weights, and its arithmetic.
evaluation evaluate(inference_stage& model,
                    std::span<const std::vector<token_id>> sequences,
                    std::size_t window = 0, const watch& told = {});

} // namespace shoal::model
