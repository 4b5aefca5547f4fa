// actors/serving/rule_book.cpp -- reads tokens, compiles, keeps.
#include "actors/serving/rule_book.hpp"

#include "actors/checkpoint/blob_set.hpp"
#include "actors/serving/served_weights.hpp"
#include "actors/serving/text_files.hpp"
#include "runtime/context.hpp"
#include "runtime/openai/rules/rule_compiler.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

void rule_book::open(const core::serve_rule& rule, made done) {
  if (!rule.rule)
    return make(rule, nullptr, std::move(done));
  with_tokens([this, rule, done = std::move(done)] {
    compile(*rule.rule, [this, rule, done](const masks& by) {
      if (by)
        return make(rule, by, done);
      const auto out = std::make_shared<ruled_text>(rule.chosen.size());
      find_allowed(out, [out, done] { done(out); });
    });
  });
}

/// The tokens that were chosen elsewhere may be many.
void rule_book::make(const core::serve_rule& rule, masks by, made done) {
  const auto out = std::make_shared<std::shared_ptr<ruled_text>>();
  node_.prompts().submit(
    [out, by = std::move(by), rule](kernels::backend&) {
      *out = std::make_shared<ruled_text>(
        by, rule.filter.value_or(core::token_filter()), rule.chosen, rule.ends);
    },
    [self = weak_from_this(), out, done = std::move(done), post = post_] {
      post([self, out, done] {
        if (const auto me = self.lock())
          me->find_allowed(*out, [out, done] { done(*out); });
      });
    });
}

void rule_book::find_allowed(const std::shared_ptr<ruled_text>& text,
                             std::function<void()> done) {
  if (!text->has_rule()) { // there is nothing to find
    text->find_allowed();
    return done();
  }
  node_.masks().submit([text](kernels::backend&) { text->find_allowed(); },
                       [post = post_, done = std::move(done)] { post(done); });
}

void rule_book::with_tokens(std::function<void()> then) {
  if (read_)
    return then();
  waiting_.push_back(std::move(then));
  if (waiting_.size() > 1)
    return;
  source_([self = weak_from_this()](tokens read) {
    const auto me = self.lock();
    if (!me)
      return;
    me->tokens_ = std::move(read);
    me->read_ = me->tokens_ != nullptr; // else the next request tries again
    for (const auto& go_on : std::exchange(me->waiting_, {}))
      go_on();
  });
}

void rule_book::compile(const core::text_rule& rule, compiled then) {
  if (!tokens_)
    return then(nullptr);
  if (const auto known = kept_.find(rule); known != kept_.end()) {
    std::erase(order_, rule);
    order_.push_back(rule);
    return then(known->second);
  }
  auto& all = compiling_[rule];
  all.push_back(std::move(then));
  if (all.size() > 1)
    return;
  const auto out = std::make_shared<masks>();
  node_.prompts().submit(
    [out, rule, tokens = tokens_, counted = mask_bytes_](kernels::backend&) {
      if (auto by = openai::compile_rule(rule))
        *out = std::make_shared<core::grammar::token_masks>(*std::move(by),
                                                            tokens, counted);
    },
    [self = weak_from_this(), out, rule, post = post_] {
      post([self, out, rule] {
        const auto me = self.lock();
        if (!me)
          return;
        if (*out)
          me->keep(rule, *out);
        const auto done = std::move(me->compiling_.at(rule));
        me->compiling_.erase(rule);
        for (const compiled& go_on : done)
          go_on(*out);
      });
    });
}

void rule_book::keep(const core::text_rule& rule, const masks& by) {
  kept_[rule] = by;
  order_.push_back(rule);
  kept_nodes_ += by->rules().nodes.size();
  while (order_.size() > kept_max
         || (order_.size() > 1
             && (kept_nodes_ > kept_nodes_max
                 || *mask_bytes_ > core::grammar::all_masks_bytes_max / 2))) {
    const auto oldest = kept_.find(order_.front());
    kept_nodes_ -= oldest->second->rules().nodes.size();
    kept_.erase(oldest);
    order_.pop_front();
  }
}

namespace {

constexpr std::chrono::seconds rules_again_after{1};

using told = std::function<void(rule_book::tokens)>;

void read_fetched(const model_tokens& of, weights_owner& owner,
                  const poster& post, const told& done) {
  using read = model::result<rule_book::tokens>;
  const auto out = std::make_shared<read>(model::failure{});
  of.node->disk().submit(
    [out, of](kernels::backend&) {
      *out = read_token_texts(
        of.manifest, of.node->blobs(), of.node->data_dir(),
        of.node->data_dir() / "tmp" / of.folder, of.vocabulary);
    },
    [out, &owner, done, post] {
      post([out, &owner, done] {
        if (!*out)
          owner.say("the texts of tokens cannot be read: " + out->message());
        done(*out ? **out : nullptr);
      });
    });
}

void fetch_and_read(const model_tokens& of, weights_owner& owner,
                    const poster& post, const told& done) {
  blob_set set;
  set.texts.push_back(of.manifest);
  fetch_all(*of.node, std::move(set), owner.members(),
            [of, &owner, post, done](std::error_code error) {
              post([of, &owner, post, done, error] {
                if (!error)
                  return read_fetched(of, owner, post, done);
                owner.run_later(rules_again_after, [of, &owner, post, done] {
                  fetch_and_read(of, owner, post, done);
                });
              });
            });
}

} // namespace

rule_book::token_source
tokens_of(model_tokens of, weights_owner& owner, poster post) {
  return [of = std::move(of), &owner, post = std::move(post)](
           const told& done) { fetch_and_read(of, owner, post, done); };
}

} // namespace shoal::actors
