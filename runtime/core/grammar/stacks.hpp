// runtime/core/grammar/stacks.hpp -- where a text is in a grammar.
//
// A position is the set of all stacks that the text so far allows: a node on top,
// and below it the nodes at which the rules that called go on. Stacks share what
// is below; equal stacks and equal positions are kept once, so that a step by a
// byte from a known position is a look-up.
//
// Its tops are the nodes that the last byte led to, or the end of a rule; the rules
// that they can call come on top of them only when the next byte is taken, as items of
// an LR parser's kernel and of its closure. So all that a node can call is known from
// the node, whatever is below.
//
// A position may lie on an unknown stack: then it says whether the text can have
// ended the rule on top. That is how a token is decided for all texts that have
// the same node on top (token_masks.hpp).
//
// Threads: one at a time.
// Errors:  a text that the grammar does not allow has the position `nowhere`. A text
//          that has more than stacks_max stacks lacks some: then it is_cut(), and
//          what it allows is not known. Stacks are as deep as the text makes them.
#pragma once

#include "runtime/core/grammar/grammar.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace shoal::core::grammar {

using position = std::uint32_t;
/// No text that goes on from here is allowed.
inline constexpr position nowhere = 0;

/// Stacks of a position, with the rules that they can call: an object of as many
/// properties that may all come next has as many.
inline constexpr std::size_t stacks_max = 1024;
/// Nodes that are looked at for a byte: rules that may be nothing lead to each other
/// in very many ways.
inline constexpr std::size_t visits_max = 16'384;

class stacks {
public:
  /// @pre `of` outlives this
  explicit stacks(const grammar& of);

  /// Before the first byte.
  position start();
  /// On this node, with an unknown stack below; what comes is a byte of its rule or
  /// of a rule that it can call.
  position on_unknown(node_id top);

  position step(position from, std::uint8_t byte);
  position step(position from, std::string_view text);

  /// Whether the whole text may end here.
  bool may_end(position at) const { return positions_[at].ends; }
  /// Whether no byte may follow, so that only the end is left.
  bool only_ends(position at) const {
    return positions_[at].ends && positions_[at].frames.empty();
  }
  /// Whether the unknown stack is reached: any text of its rules may follow.
  bool is_open(position at) const { return positions_[at].open; }
  /// Whether it has lost stacks: it, or a position on the way to it.
  bool is_cut(position at) const { return positions_[at].cut; }

  /// The stacks of a position, by their tops; ids of the same stack are equal.
  struct top {
    node_id node = 0;
    std::uint32_t stack = 0;
  };
  std::vector<top> tops(position at) const;
  /// The position that has this stack alone.
  position only(std::uint32_t stack);

  /// Work of all steps that were no look-up: stacks that were looked at, and those
  /// that each was compared with.
  std::size_t work() const noexcept { return work_; }
  /// Memory kept for steps and stacks, roughly, in bytes.
  std::size_t bytes() const noexcept { return bytes_; }
  /// The position as another object of the same grammar has it.
  position copy_to(stacks& other, position at) const;

private:
  struct frame {
    node_id node = 0;
    std::uint32_t below = 0; ///< a frame, or one of the two below
  };
  static constexpr std::uint32_t bottom = 0, unknown = 1;

  struct place {
    std::vector<std::uint32_t> frames; ///< that take a byte; ascending
    std::vector<std::uint32_t> tops;   ///< that lead to these
    bool ends = false, open = false, cut = false;
    std::unique_ptr<std::array<position, 256>> next;
  };

  /// What a step collects.
  struct found {
    std::vector<std::uint32_t> frames, tops;
    std::unordered_set<std::uint64_t> seen;     ///< node and frame below
    std::unordered_set<std::uint64_t> seen_top; ///< of tops
    bool ends = false, open = false, cut = false;
  };

  std::uint32_t push(node_id node, std::uint32_t below);
  void close(node_id node, std::uint32_t below, found& into);
  position keep(found f);
  std::uint32_t copy_frame(stacks& other, std::uint32_t f) const;

  const grammar* grammar_;
  std::vector<bool> only_ends_; ///< nodes at which nothing but the end follows
  std::vector<frame> frames_;
  std::unordered_map<std::uint64_t, std::uint32_t> frame_ids_;
  std::vector<place> positions_;
  std::unordered_map<std::string, position> position_ids_;
  std::size_t bytes_ = 0;
  std::size_t work_ = 0;
};

} // namespace shoal::core::grammar
