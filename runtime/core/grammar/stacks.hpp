// runtime/core/grammar/stacks.hpp -- where a text is in a grammar.
//
// A position is the set of all stacks that the text so far allows: a node on top,
// and below it the nodes at which the rules that called go on. Sets are kept as graphs:
// of one position, a node is on top once, and lies on all that it may lie on. So an
// ambiguous text, whose stacks may double with each byte, has no more tops than the
// grammar has nodes (M. Tomita's graph-structured stack, 1985). Equal sets and equal
// positions are kept once, so that a step by a byte from a known position is a look-up.
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
// Errors:  a text that the grammar does not allow has the position `nowhere`. One that
//          is over a limit lacks some stacks: then it is_cut(), and may refuse
//          what the grammar allows. Stacks are as deep as the text makes them.
#pragma once

#include "runtime/core/grammar/grammar.hpp"
#include "runtime/core/grammar/piles.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shoal::core::grammar {

using position = std::uint32_t;
/// No text that goes on from here is allowed.
inline constexpr position nowhere = 0;

/// Nodes of a position that take a byte: an object of as many properties that may all
/// come next has as many.
inline constexpr std::size_t stacks_max = 4096;
/// Nodes on top, each with one that it may lie on, that are looked at for a byte.
inline constexpr std::size_t visits_max = 32'768;

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
  /// Whether a text may go on from here, and all is known of that.
  bool is_known(position at) const {
    return at != nowhere && !positions_[at].cut;
  }

  /// The stacks of a position with the same node on top.
  struct top {
    node_id node = 0;
    std::uint32_t stack = 0;
  };
  std::vector<top> tops(position at) const;
  /// The position that has these stacks alone.
  position only(std::uint32_t stack);

  /// Work of all steps that were no look-up: stacks that were looked at, and those
  /// that each was compared with.
  std::size_t work() const noexcept { return work_; }
  /// Memory kept for steps and stacks, roughly, in bytes.
  std::size_t bytes() const noexcept { return bytes_; }
  /// The position as another object of the same grammar has it.
  position copy_to(stacks& other, position at) const;

private:
  /// Stacks, by what is on top of them: a frame, that is a node and the stacks below
  /// it, or several frames.
  using stack_set = std::uint32_t;
  struct frame {
    node_id node = 0;
    stack_set below = 0; ///< of `several`: an index of lists_
  };
  static constexpr stack_set bottom = 0, unknown = 1;
  static constexpr node_id several = ~node_id{0};

  struct place {
    std::vector<stack_set> frames; ///< that take a byte; ascending
    std::vector<stack_set> tops;   ///< that lead to these
    bool ends = false, open = false, cut = false;
    std::unique_ptr<std::array<position, 256>> next;
  };

  stack_set push(node_id node, stack_set below);
  /// @param frames ascending
  stack_set set_of(const std::vector<stack_set>& frames);
  template <class F>
  void each_frame(stack_set of, F f) const;

  // What a step finds: begin(), add() of each node that the byte leads to, keep().
  void begin(bool cut);
  void add(node_id node, stack_set below);
  position keep();
  bool visit();
  void look_at(node_id node, stack_set frame);
  void end_rules();
  void call_rules();
  void call(const rule_edge& e, stack_set from);
  void take_bytes(node_id node, stack_set below);
  position keep(place made);

  const grammar* grammar_;
  std::vector<frame> frames_;
  std::unordered_map<std::uint64_t, stack_set> frame_ids_;
  std::vector<std::vector<stack_set>> lists_;
  std::unordered_map<std::string, stack_set> list_ids_;
  std::vector<place> positions_;
  std::unordered_map<std::string, position> position_ids_;
  std::size_t bytes_ = 0;
  std::size_t work_ = 0;

  // Of the step that is taken. Frames by the node that is on top of them:
  piles reached_;            ///< by the last byte, or after a rule's end
  piles inside_;             ///< of a rule that is called
  piles takers_;             ///< that take a byte
  piles called_;             ///< rules; frames to which they return
  std::vector<bool> is_top_; ///< of reached_
  std::vector<std::pair<node_id, stack_set>> todo_;
  std::vector<std::pair<std::uint32_t, rule_id>> order_; ///< a heap, by rank
  std::size_t visits_ = 0;
  place found_;
};

} // namespace shoal::core::grammar
