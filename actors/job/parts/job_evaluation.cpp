// actors/job/parts/job_evaluation.cpp -- counts the parts of an evaluation.
#include "actors/job/parts/job_evaluation.hpp"

namespace shoal::actors {

void job_evaluation::begin(std::uint64_t step, bool stage, bool evaluator) {
  step_ = step;
  sum_.reset();
  parts_ = int(stage) + int(evaluator) + 1; // this call
  end_part();
}

void job_evaluation::computed(std::uint64_t step) {
  if (step_ == step)
    end_part();
}

void job_evaluation::summed(const eval_summed& sum) {
  if (step_ != sum.step)
    return;
  sum_ = sum;
  end_part();
}

void job_evaluation::halt() {
  step_.reset();
}

void job_evaluation::end_part() {
  if (--parts_ == 0)
    to_.evaluated(*step_, sum_);
}

} // namespace shoal::actors
