// actors/serving/stage_runner.cpp -- passes from links, over the device, to links.
#include "actors/serving/stage_runner.hpp"

#include "actors/training/link_names.hpp"
#include "kernels/backend.hpp"
#include "runtime/context.hpp"
#include "runtime/files/bytes_hash.hpp"
#include "runtime/links/links.hpp"
#include "runtime/model/stage_model.hpp" // valid_ids
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <utility>

namespace shoal::actors {

/// Passes with the device at once: one runs, the next is ready.
static constexpr std::size_t on_device_max = 2;

struct stage_runner::work {
  std::uint64_t number = 0;
  model::row_batch batch;
  std::vector<model::token_id> ids;
  std::vector<core::serve_row>
    asking; ///< with a choice, with scores, or pooled
  std::vector<std::shared_ptr<slot>> texts;      ///< of these; null: no rule
  std::vector<std::shared_ptr<pooled_sum>> sums; ///< the same; null: no mean
  buffer in, out; ///< hidden states, and their digest behind them
  std::size_t hidden_bytes = 0;
  buffer logits, normed;
  bool damaged = false; ///< `in` is not what its sender computed
  bool ready = false;   ///< its input is here
  bool strays = false;  ///< a row does not go on with its text where that is
  std::unique_ptr<model::pass> pass;
  core::serve_chosen answer;
};

std::uint64_t digest_of(std::span<const std::byte> hidden, std::uint64_t plan,
                        std::uint32_t to_stage, std::uint64_t pass) {
  const std::array<std::uint64_t, 3> which{plan, to_stage, pass};
  return runtime::hash_of(hidden, runtime::hash_of(std::as_bytes(
                                    std::span<const std::uint64_t>(which))));
}

namespace {

std::span<std::byte> hidden_of(const buffer& b, std::size_t bytes) {
  return b.as<std::byte>().first(bytes);
}

model::row_batch batch_of(const core::stage_tables::ready_pass& p) {
  model::row_batch out;
  for (std::size_t i = 0; i < p.pass.rows.size(); ++i) {
    const core::serve_row& r = p.pass.rows[i];
    out.sequences.push_back({std::size_t(r.first), r.tokens.size(), p.tables[i],
                             core::logits_of(r), p.windows[i],
                             core::pooled_of(r)});
  }
  return out;
}

} // namespace

void stage_runner::take(const core::peer_id& from, const core::serve_pass& p) {
  if (over_)
    return;
  if (const auto again = tables_.put(p)) {
    if (is_last())
      config_.node->send(from, core::serve_message(*again));
    return;
  }
  pump();
}

void stage_runner::take(const core::serve_rule& rule) {
  if (over_ || !is_last() || !config_.rules || rule.sequence < oldest_)
    return;
  if (texts_.size() >= texts_max && !texts_.contains(rule.sequence)) {
    over_ = true;
    return config_.broken("its pipeline has sent more than "
                          + std::to_string(texts_max) + " rules of texts");
  }
  const auto at = slot_of(rule.sequence);
  if (std::exchange(at->opened, true))
    return; // it has come again
  config_.rules->open(rule, [self = weak_from_this(), at, id = rule.sequence](
                              std::shared_ptr<ruled_text> text) {
    at->kept = std::move(text);
    at->text.store(at->kept.get(), std::memory_order_release);
    if (const auto me = self.lock())
      me->tell_ready(id, *at);
  });
}

std::shared_ptr<stage_runner::slot>
stage_runner::slot_of(std::uint64_t sequence) {
  auto& at = texts_[sequence];
  if (!at)
    at = std::make_shared<slot>();
  return at;
}

std::shared_ptr<pooled_sum> stage_runner::sum_of(const core::serve_row& r) {
  if (!is_last() || !r.pooled || r.pooled->how != core::pooling::mean)
    return nullptr;
  auto& sum = sums_[r.sequence];
  if (!sum)
    sum = std::make_shared<pooled_sum>();
  return sum;
}

/// A row of it that waited can be given again.
void stage_runner::tell_ready(std::uint64_t sequence, slot& of) {
  ++*config_.moved;
  if (!over_ && std::exchange(of.awaited, false))
    config_.node->send(
      config_.stages.front(),
      core::serve_message(core::serve_text_ready{config_.header, sequence}));
}

/// After a pass: what may come next in its texts is found while others are computed.
void stage_runner::find_next(const work& w) {
  for (std::size_t i = 0; i != w.texts.size(); ++i) {
    const auto& at = w.texts[i];
    if (!at)
      continue;
    const std::uint64_t id = w.asking[i].sequence;
    const core::row_result& came = w.answer.rows[i];
    at->awaited = came.waits;
    if (came.waits && at->kept && at->kept->ready())
      tell_ready(id, *at); // it was found meanwhile
    if (!came.tokens.empty())
      config_.rules->find_allowed(at->kept, [self = weak_from_this(), at, id] {
        if (const auto me = self.lock())
          me->tell_ready(id, *at);
      });
  }
}

std::optional<core::peer_id> stage_runner::waits_for() const {
  if (on_device() || works_.empty() || works_.front()->ready)
    return std::nullopt;
  return config_.stages[config_.stage - 1];
}

std::string stage_runner::where() const {
  if (!works())
    return {};
  return "pass "
         + std::to_string(on_device() ? computing_ : works_.front()->number)
         + ", stage " + std::to_string(config_.stage + 1);
}

void stage_runner::pump() {
  // Inputs of later passes may come while earlier ones wait for the device.
  while (!over_
         && works_.size() + on_device_ < core::stage_tables::waiting_max) {
    auto next = tables_.next();
    if (!next)
      break;
    begin(std::move(*next));
  }
  if (tables_.broken() && !over_) {
    over_ = true;
    config_.broken("a pass of its pipeline names pages that cannot be");
  }
}

void stage_runner::begin(core::stage_tables::ready_pass next) {
  const model::model_config& model = config_.model->stage->config();
  const auto w = std::make_shared<work>();
  w->number = next.pass.number;
  w->batch = batch_of(next);
  for (core::serve_row& r : next.pass.rows) {
    w->ids.insert(w->ids.end(), r.tokens.begin(), r.tokens.end());
    if (core::logits_of(r) == 0 && !r.pooled)
      continue;
    w->texts.push_back(
      r.choice && r.choice->ruled && is_last() ? slot_of(r.sequence) : nullptr);
    w->sums.push_back(sum_of(r));
    w->asking.push_back(std::move(r));
  }
  for (const std::uint64_t id : next.pass.ended) {
    texts_.erase(id);
    sums_.erase(id);
  }
  if (sums_.size() > sums_max) {
    over_ = true;
    return config_.broken("its pipeline has sent more than "
                          + std::to_string(sums_max)
                          + " prompts whose mean is wanted");
  }
  // Also those whose rule came again after their end.
  oldest_ = std::max(oldest_, next.pass.oldest);
  texts_.erase(texts_.begin(), texts_.lower_bound(oldest_));
  sums_.erase(sums_.begin(), sums_.lower_bound(oldest_));
  const auto has = [&](const auto& list) {
    return std::ranges::all_of(list, [&](const auto& entry) {
      return std::uint64_t(entry.token) < std::uint64_t(model.vocab_size);
    });
  };
  const auto good = [&](const core::serve_row& r) {
    return (!r.choice
            || (model::valid_ids(model, r.choice->seen) && has(r.choice->counts)
                && has(r.choice->how.biases)))
           && (!r.scores || model::valid_ids(model, r.scores->tokens));
  };
  // A text belongs to one row: two would work on it at once.
  std::set<std::uint64_t> ruled;
  const bool once =
    std::ranges::all_of(w->asking, [&](const core::serve_row& r) {
      return !r.choice || !r.choice->ruled || ruled.insert(r.sequence).second;
    });
  if (!once || !config_.model->cache->accepts(w->batch)
      || !model::valid_ids(model, w->ids)
      || !std::ranges::all_of(w->asking, good)) {
    over_ = true;
    return config_.broken("a pass of its pipeline names pages, positions or "
                          "tokens that the model does not have");
  }
  const std::size_t hidden =
    w->ids.size() * std::size_t(model.hidden_size) * sizeof(float);
  works_.push_back(w);
  w->hidden_bytes = hidden;
  if (!is_last())
    w->out = config_.buffers->get(hidden + sizeof(std::uint64_t));
  else
    w->logits =
      config_.buffers->get(std::max<std::size_t>(1, w->batch.logits())
                           * std::size_t(model.vocab_size) * sizeof(float));
  if (is_last() && w->batch.normed() > 0)
    w->normed = config_.buffers->get(
      w->batch.normed() * std::size_t(model.hidden_size) * sizeof(float));
  if (is_first()) {
    w->ready = true;
    return submit_ready();
  }
  w->in = config_.buffers->get(hidden + sizeof(std::uint64_t));
  config_.node->links().expect(
    config_.stages[config_.stage - 1],
    make_tag(config_.header.digest, link_kind::serve_hidden, 0, config_.stage,
             w->number),
    w->in.shared(),
    [self = weak_from_this(), w, post = config_.post](std::error_code error) {
      if (!error)
        post([self, w] {
          if (const auto me = self.lock()) {
            w->ready = true;
            ++*me->config_.moved;
            me->submit_ready();
          }
        });
    });
}

/// Whether its input is what the stage before has computed for it.
bool stage_runner::matches(const work& w, std::uint64_t plan,
                           std::uint32_t stage) {
  const auto hidden = hidden_of(w.in, w.hidden_bytes);
  std::uint64_t sum = 0;
  std::memcpy(&sum, hidden.data() + hidden.size(), sizeof sum);
  return sum == digest_of(hidden, plan, stage, w.number);
}

void stage_runner::submit_ready() {
  while (!over_ && on_device_ < on_device_max && !works_.empty()
         && works_.front()->ready) {
    const auto w = works_.front();
    works_.pop_front();
    ++on_device_;
    computing_ = w->number;
    const auto model = config_.model;
    auto run = [w, model, first = is_first(), last = is_last(),
                stage = config_.stage, header = config_.header,
                moved = config_.moved,
                ended = ended_](kernels::backend& device) {
      ++*moved;
      if (ended->load()) {
        w->pass.reset();
        return false;
      }
      if (!first && !w->pass && !matches(*w, header.digest, stage)) {
        w->damaged = true;
        return false;
      }
      const std::size_t vocabulary =
        std::size_t(model->stage->config().vocab_size);
      const auto logits =
        last ? w->logits.as<float>().first(w->batch.logits() * vocabulary)
             : std::span<float>();
      const std::size_t width = std::size_t(model->stage->config().hidden_size);
      const std::size_t pooled = last ? w->batch.normed() : 0;
      const auto normed = pooled > 0
                            ? w->normed.as<float>().first(pooled * width)
                            : std::span<float>();
      const std::size_t values = w->hidden_bytes / sizeof(float);
      if (!w->pass)
        w->pass = model->cache->begin_batch(
          w->batch, w->ids,
          first ? std::span<const float>()
                : w->in.as<const float>().first(values),
          last ? std::span<float>() : w->out.as<float>().first(values), logits,
          normed);
      static_cast<void>(w->pass->advance());
      if (!w->pass->done())
        return true;
      w->pass.reset();
      if (!last) {
        const auto hidden = hidden_of(w->out, w->hidden_bytes);
        const std::uint64_t sum =
          digest_of(hidden, header.digest, stage + 1, w->number);
        std::memcpy(hidden.data() + hidden.size(), &sum, sizeof sum);
        return false;
      }
      w->answer.header = header;
      w->answer.number = w->number;
      std::size_t row = 0, normed_row = 0;
      for (std::size_t i = 0; i != w->asking.size(); ++i) {
        const core::serve_row& r = w->asking[i];
        if (r.pooled) {
          const std::size_t rows = core::pooled_of(r);
          w->answer.rows.push_back(pooled_result_of(
            r, normed.subspan(normed_row * width, rows * width), width,
            w->sums[i].get()));
          normed_row += rows;
          continue;
        }
        const std::size_t rows = core::logits_of(r);
        ruled_text* const text =
          w->texts[i] ? w->texts[i]->text.load(std::memory_order_acquire)
                      : nullptr;
        w->strays =
          w->strays
          || (text && text->ready() && text->tokens() != r.choice->drawn);
        if (w->strays)
          return false;
        w->answer.rows.push_back(result_of(
          device, r, logits.subspan(row * vocabulary, rows * vocabulary),
          vocabulary, text));
        row += rows;
      }
      return false;
    };
    auto done = [self = weak_from_this(), w, post = config_.post] {
      post([self, w] {
        if (const auto me = self.lock())
          me->computed(w);
      });
    };
    config_.node->device().submit_pass(
      std::move(run), std::move(done),
      {config_.header.job, runtime::urgency::urgent});
  }
}

void stage_runner::computed(const std::shared_ptr<work>& w) {
  --on_device_;
  ++*config_.moved;
  if (over_)
    return;
  if (w->damaged) {
    over_ = true;
    return config_.damaged(config_.stages[config_.stage - 1], w->number);
  }
  if (w->strays) {
    over_ = true;
    return config_.broken(
      "a pass of its pipeline does not go on with a text where it is");
  }
  if (is_last()) {
    tables_.answered(w->answer);
    config_.node->send(config_.stages.front(), core::serve_message(w->answer));
    find_next(*w);
  } else {
    config_.node->links().send(config_.stages[config_.stage + 1],
                               make_tag(config_.header.digest,
                                        link_kind::serve_hidden, 0,
                                        config_.stage + 1, w->number),
                               w->out.shared(), [](std::error_code) {});
  }
  submit_ready();
  pump();
}

} // namespace shoal::actors
