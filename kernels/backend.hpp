// kernels/backend.hpp -- all operations on one kind of device.
//
// Start here. Each operation is a member function; its header defines what it
// computes. reference/ has plain loops and defines the correct results; cpu/ is
// fast.
//
// Threads:   a call computes on the calling thread (and the team of the
//            backend) and returns when the result is written. One call at a
//            time per backend; different backends are independent.
// Precision: results depend on shapes, strides and values only, not on the
//            number of threads or on other work of the process. Rounding may
//            differ between backends and between instruction sets, except
//            where a header says otherwise.
// Errors:    shapes that do not agree are a bug of the caller and abort.
#pragma once

#include "kernels/inference/packed_weight.hpp"
#include "kernels/inference/paged_attention.hpp"
#include "kernels/inference/sampling.hpp"
#include "kernels/layers/add.hpp"
#include "kernels/layers/attention.hpp"
#include "kernels/layers/copy.hpp"
#include "kernels/layers/embedding.hpp"
#include "kernels/layers/gelu.hpp"
#include "kernels/layers/layernorm.hpp"
#include "kernels/layers/matmul.hpp"
#include "kernels/layers/rmsnorm.hpp"
#include "kernels/layers/rope.hpp"
#include "kernels/layers/routing.hpp"
#include "kernels/layers/scale.hpp"
#include "kernels/layers/swiglu.hpp"
#include "kernels/training/adamw.hpp"
#include "kernels/training/cross_entropy.hpp"
#include "kernels/training/sum_of_squares.hpp"

#include <memory>
#include <string>

namespace shoal::kernels {

class thread_team; // kernels/common/thread_team.hpp

/// An implementation of every operation.
class backend : public matmul_ops,
                public packed_weight_ops,
                public embedding_ops,
                public rmsnorm_ops,
                public layernorm_ops,
                public rope_ops,
                public attention_ops,
                public paged_attention_ops,
                public swiglu_ops,
                public gelu_ops,
                public routing_ops,
                public cross_entropy_ops,
                public copy_ops,
                public add_ops,
                public scale_ops,
                public adamw_ops,
                public sum_of_squares_ops,
                public sampling_ops {
public:
  virtual ~backend() = default;

  /// The name and the instruction set, such as "cpu AVX3 VNNI BF16 AMX".
  virtual std::string name() const = 0;
  /// The libraries that it computes with, and their versions.
  virtual std::string libraries() const { return "none"; }
};

/// The specification: plain loops on the calling thread.
std::unique_ptr<backend> make_reference_backend();

/// The fast one. `team` must outlive it; several backends may share a team.
std::unique_ptr<backend> make_cpu_backend(thread_team& team);

} // namespace shoal::kernels
