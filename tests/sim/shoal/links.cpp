// tests/sim/shoal/links.cpp -- checks that each transfer ends once, with the
// bytes sent.
#include "tests/sim/shoal/links.hpp"

#include "actors/training/link_names.hpp"
#include "tests/sim/shoal/node.hpp"
#include "tests/sim/shoal/world.hpp"

#include <xxhash.h>

#include <algorithm>

namespace shoal::sim {

namespace {

std::uint64_t hash(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

actors::link_kind kind_of(const transport::bulk_tag& tag) {
  return static_cast<actors::link_kind>(tag.link >> 26);
}

} // namespace

runtime::link_hub::callback
watched_links::once(callback done, const char* which, transport::bulk_tag tag) {
  open_->emplace(tag, which);
  if (open() > open_max)
    world_.fail("more transfers are open than may be");
  auto left = std::make_shared<bool>(true);
  const auto ended = [done = std::move(done), which, tag, left, open = open_,
                      world = &world_,
                      canceled = canceled_](std::error_code error) {
    if (!*left)
      world->fail(std::string("a transfer ended twice at its ") + which);
    *left = false;
    if (error == transport::make_error_code(transport::errc::canceled)
        && !canceled->all && !canceled->plans.contains(tag.plan))
      world->fail("a transfer was canceled though its island goes on");
    if (auto at = open->find({tag, which}); at != open->end())
      open->erase(at);
    world->note(tag.link * 31 + tag.sequence, std::uint64_t(error.value()));
    done(error);
  };
  return [this, ended](std::error_code error) {
    if (closed_ || world_.at_work == node_)
      return ended(error);
    world_.machines()[std::size_t(node_)].node->enter(
      [ended, error] { ended(error); });
  };
}

std::string watched_links::an_open_one() const {
  const auto& [tag, which] = *open_->begin();
  return "kind " + std::to_string(tag.link >> 26) + " index "
         + std::to_string(tag.link & 0xffff) + " sequence "
         + std::to_string(tag.sequence) + " at its " + which;
}

void watched_links::expect(const transport::peer_id& from,
                           transport::bulk_tag tag, runtime::shared_bytes into,
                           callback done) {
  if (closed_)
    return;
  world_.past_of(tag.plan).uses_plan(node_, tag.plan);
  if (world_.has(mutant::tags_without_plan))
    tag.plan = 1;
  const int sender = world_.number_of(from);
  inner_.expect(
    from, tag, into,
    once(
      [this, sender, tag, into, done = std::move(done)](std::error_code error) {
        if (!error && !closed_)
          world_.arrived({sender, node_, tag}, hash(into.bytes));
        done(error);
      },
      "receiver", tag));
}

void watched_links::list_pending(
  std::uint64_t plan, std::function<void(std::vector<pending>)> then) {
  std::vector<pending> lost;
  for (const lost_transfer& t : lost_)
    if (t.what.tag.plan == plan)
      lost.push_back(t.what);
  inner_.list_pending(plan, [lost, then = std::move(then)](auto all) {
    all.insert(all.end(), lost.begin(), lost.end());
    then(std::move(all));
  });
}

void watched_links::cancel(std::uint64_t plan) {
  canceled_->plans.insert(world_.has(mutant::tags_without_plan) ? 1 : plan);
  if (world_.has(mutant::all_islands_canceled))
    for (const std::uint64_t other : world_.digests_beside(plan))
      inner_.cancel(other);
  for (std::size_t i = lost_.size(); i-- > 0;)
    if (lost_[i].what.tag.plan == plan) {
      const callback done = std::move(lost_[i].done);
      lost_.erase(lost_.begin() + long(i));
      done(transport::make_error_code(transport::errc::canceled));
    }
  if (!world_.has(mutant::cancel_forgotten))
    inner_.cancel(world_.has(mutant::tags_without_plan) ? 1 : plan);
}

void watched_links::send(const transport::peer_id& to, transport::bulk_tag tag,
                         runtime::shared_bytes from, callback done) {
  if (closed_)
    return;
  world_.past_of(tag.plan).uses_plan(node_, tag.plan);
  const actors::link_kind kind = kind_of(tag);
  if (kind == actors::link_kind::tokens)
    world_.past_of(tag.plan).sends_tokens(tag.plan, tag.sequence, from.bytes);
  if (kind == actors::link_kind::reduce_part
      && world_.has(mutant::stale_part_summed)) {
    std::vector<std::byte>& before = parts_[tag.link];
    std::vector<std::byte> now(from.bytes.begin(), from.bytes.end());
    if (before.size() == now.size() && world_.chance(0.02))
      std::ranges::copy(before, from.bytes.begin());
    before = std::move(now);
  }
  if (world_.has(mutant::tags_without_plan))
    tag.plan = 1;
  if (std::exchange(loses_, false)) {
    world_.say(node_,
               "loses a transfer of kind " + std::to_string(tag.link >> 26));
    lost_.push_back({{to, tag, from.bytes.size(), true, true},
                     once(std::move(done), "sender", tag)});
    return;
  }
  world_.sent({node_, world_.number_of(to), tag}, hash(from.bytes));
  inner_.send(to, tag, std::move(from), once(std::move(done), "sender", tag));
}

} // namespace shoal::sim
