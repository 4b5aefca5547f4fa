// actors/training/evaluator.cpp -- sums over the microbatches of an evaluation.
#include "actors/training/evaluator.hpp"

#include "actors/training/link_names.hpp"
#include "actors/training/receiver.hpp"
#include "runtime/context.hpp"
#include "runtime/links/links.hpp"

#include <caf/all.hpp>

namespace shoal::actors {
namespace {

struct evaluator_name {
  const char* name = "evaluator";
};

caf::behavior evaluator(caf::stateful_actor<evaluator_name>* self,
                        const evaluator_config& config) {
  return {
    [=](const begin_eval& m) {
      const model::unit_index head = config.world->layout->head_unit();
      const auto values = 2 * std::size_t(config.world->run.validation_steps);
      buffer into = config.world->buffers.get(values * sizeof(double));
      config.world->node->links().expect(
        config.plan->holds.computer(0, head).peer,
        make_tag(config.plan->digest, link_kind::eval_losses, 0, 0, m.step),
        into.shared(),
        [to = caf::actor_cast<caf::actor>(self), step = m.step,
         into](std::error_code error) {
          caf::anon_send(
            to, arrived{link_kind::eval_losses, step, 0, into, error, 0, 0});
        });
    },
    [=](const arrived& m) {
      if (m.error)
        return; // the peer is lost: another sub-plan follows
      eval_summed sum{m.run, 0, 0};
      const auto values = m.what.as<const double>();
      for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
        sum.loss += values[i];
        sum.tokens += std::uint64_t(values[i + 1]);
      }
      if (sum.tokens > 0)
        sum.loss /= double(sum.tokens);
      self->send(config.owner, sum);
    },
  };
}

} // namespace

caf::actor spawn_evaluator(caf::actor_system& system, evaluator_config config) {
  return system.spawn(evaluator, std::move(config));
}

} // namespace shoal::actors
