// runtime/core/serving/batcher.hpp -- which tokens of which sequences a pipeline
// computes next.
//
// A pass computes rows of many sequences at once: one token of each sequence
// that generates, and pieces of prompts in what is left of the pass's limit, so
// that a long prompt never holds up the tokens of others. Up to passes_max passes
// are under way, one behind the other on the pipeline's stages, each with its
// share of the sequences that generate. A sequence is in one of them at most then,
// since its next token follows from the last one.
//
//   waiting --room--> running: prompt --last piece--> running: generates --> ended
//      ^                 |                               |
//      `---- preempted: its pages are needed ------------'
//
// Invariants
// B-1: a pass has at most pass_tokens tokens, and tokens of each sequence in
//      order, without a gap, each computed once while the sequence keeps its pages.
// B-2: a page belongs to one sequence, or holds equal tokens of all that use it
//      (pages.hpp); it is given away only after the passes that read it were
//      given out, and stages compute passes in order.
// B-3: the oldest running sequence of the highest priority is never preempted,
//      and each sequence fits into the pages alone: so it ends.
//
// B-4: while a pass of a sequence that is to be alone is under way, no other one
//      is; it takes turns with the passes of all others.
//
// Fairness: among sequences of one priority, those whose clients have tokens already
// (from here before they were preempted, or from elsewhere) go first: a pause in a
// text is worse than a later beginning. Then prompts of the client with the fewest
// tokens so far (start-time fair queueing: P. Goyal et al., SIGCOMM 1996); within
// one client, in the order in which they came.
//
// Guesses: while few sequences generate and no prompt waits, a row of a sequence
// that generates may have more tokens behind its last one, which are only guessed
// (prompt_lookup.hpp): reading the weights for them costs nothing more. The last
// stage chooses a token after each, as far as the guesses are what it chooses.
// The sequence then goes on behind the last one that was right.
// B-5: pages with a guess are shared only when that token was chosen; otherwise
//      its place is computed again before a row sees it.
//
// Threads: none of its own. Cost: a pass is linear in the sequences; with guesses
// also in their tokens.
#pragma once

#include "runtime/core/serving/pages.hpp"
#include "runtime/core/serving/prompt_lookup.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace shoal::core {

using sequence_id = std::uint64_t;
using client_id = std::uint64_t;

/// All but those of windows are at least 1.
struct batcher_limits {
  std::uint32_t pages = 0; ///< of the cache
  /// Of layers with a window, if they have pages of their own: at least as many
  /// as one sequence needs, or as `pages`.
  window_pages windows;
  std::uint32_t pass_tokens = 512;  ///< in a pass
  std::uint32_t passes_max = 1;     ///< under way at once
  std::uint32_t running_max = 256;  ///< sequences that have pages; at most
                                    ///< pass_tokens
  std::uint32_t waiting_max = 1024; ///< sequences that have none
  std::uint32_t clients_max = 4096; ///< whose use is remembered
  /// In a pass, of sequences that are computed whole: each takes memory for the
  /// probabilities of the whole vocabulary.
  std::uint32_t whole_tokens = 64;
  /// In a pass, sequences whose answer is a hidden state: those answers are one
  /// message.
  std::uint32_t pooled_rows = 8;
  std::uint32_t guesses_max = 0; ///< in a row; 0: none
  /// Tokens of a pass with guesses: above, the products of a processor take
  /// longer for each further row.
  std::uint32_t guess_rows = 16;
};

struct sequence_request {
  sequence_id id = 0; ///< never used before
  client_id client = 0;
  std::int32_t priority = 0; ///< higher ones go first
  /// Also what was generated before, if the sequence was elsewhere.
  std::vector<token_id> tokens; ///< at least one
  std::uint32_t tokens_max = 1; ///< to be generated; at least one
  bool alone = false;           ///< no other sequence is computed while it is
  /// All of it is computed, also what shared pages have already: each of its
  /// tokens is wanted from the model, not only the last one.
  bool whole = false;
  bool guessed = true; ///< its next tokens may be
  bool begun = false;  ///< its client has tokens of it already
  /// No token follows: with the first sampled_token, whatever it is, it ends.
  bool pooled = false;
};

enum class refusal : std::uint8_t {
  none,
  empty,    ///< no token, or none to be generated
  too_long, ///< more tokens than the cache has room for
  too_many, ///< waiting_max sequences wait
};

/// Consecutive tokens of one sequence in a pass.
struct pass_row {
  sequence_id id = 0;
  std::size_t first = 0; ///< position of the first of them
  std::vector<token_id> tokens;
  std::vector<page_id> pages; ///< of all tokens up to the last of them
  /// The same in layers with a window, or empty (page_pool::table::windows()).
  std::vector<page_id> windows;
  bool samples = false;      ///< the next token is chosen after the last
  std::uint32_t guesses = 0; ///< of the tokens, at the end; then it samples
};

struct pass {
  std::uint64_t number = 0; ///< consecutive
  std::vector<pass_row> rows;
};

/// A token that was chosen at the end of a row; of a row with guesses one more
/// for each that was right, in their order.
struct sampled_token {
  sequence_id id = 0;
  token_id token = 0;
  bool last = false; ///< the sequence ends with it
};

class batcher {
public:
  explicit batcher(const batcher_limits& limits);

  [[nodiscard]] refusal add(sequence_request r);
  /// Ends a sequence early; unknown ids are ignored.
  void abort(sequence_id id);
  /// The client takes no more tokens for now, or takes them again. A sequence
  /// that is held keeps its pages until another one needs them.
  void hold(sequence_id id, bool held);
  /// A row of it waited (done()): the token after it can be chosen now.
  void resume(sequence_id id);

  /// Most tokens of prompts in a pass in which other sequences generate; at least
  /// one. At first as many as a pass may have.
  void set_beside(std::size_t tokens) { beside_ = tokens; }
  /// The next pass; nothing: no work, no room, or passes_max are under way.
  [[nodiscard]] std::optional<pass> next();
  /// The pass is complete; passes end in order.
  /// @param sampled of its rows that choose a token; those of sequences that
  ///        have been aborted meanwhile are ignored
  /// @param waiting of its rows that were to choose a token and could not: the last
  ///        token of each is given again after resume()
  /// @returns the sequences that have ended with it: by their last token, or
  ///          because tokens_max are generated
  std::vector<sequence_id> done(const std::vector<sampled_token>& sampled,
                                const std::set<sequence_id>& waiting = {});

  struct load {
    std::size_t running = 0;
    std::size_t waiting = 0;
    std::size_t under_way = 0;   ///< passes
    std::uint64_t preempted = 0; ///< since the start
    std::uint64_t reused = 0;    ///< tokens of prompts that pages had already
    std::uint64_t computed = 0;  ///< tokens given out in passes
    std::uint64_t guessed = 0;   ///< of these
    std::uint64_t accepted = 0;  ///< of these, chosen
  };
  [[nodiscard]] load present() const;
  /// Tokens of prompts that have still to be computed.
  [[nodiscard]] std::uint64_t tokens_waiting() const;
  [[nodiscard]] const page_pool& pages() const noexcept { return pool_; }

private:
  struct sequence {
    sequence_request what;  ///< tokens: also the generated ones
    std::uint32_t left = 0; ///< tokens to be generated
    std::uint64_t came = 0; ///< order of arrival
    bool begun = false;     ///< its client has tokens
    bool runs = false;      ///< has a table
    bool held = false;
    bool waits = false;      ///< for resume()
    std::uint64_t began = 0; ///< order in which it got its table
    std::uint32_t in_passes = 0;
    std::size_t given = 0; ///< tokens given out in passes
    page_pool::table table;
    guess_pace pace;
  };
  struct sent_row {
    sequence_id id = 0;
    std::size_t end = 0;     ///< position behind its last token
    std::size_t guesses = 0; ///< of its tokens
  };

  sequence* next_to_be_alone();
  std::optional<pass> next_alone(sequence& s);
  std::optional<pass> next_together();
  pass finished(pass p);
  std::size_t share() const;
  std::vector<sequence*> generating();
  std::vector<sequence*> with_prompt();
  std::size_t whole_room(const sequence& s) const;
  bool start(sequence& s);
  bool make_room(sequence& s, std::size_t tokens);
  sequence* victim(const sequence& for_whom);
  void preempt(sequence& s);
  void finish(sequence_id id);
  std::vector<token_id> guess(sequence& s, std::size_t most);
  void give(pass& to, sequence& s, std::size_t count,
            const std::vector<token_id>& guesses = {});
  void take_back(sequence& s, const sent_row& r);
  void charge(client_id c, std::size_t tokens);
  std::uint64_t fair_time(client_id c) const;

  batcher_limits limits_;
  page_pool pool_;
  std::map<sequence_id, sequence> all_;
  std::map<client_id, std::uint64_t> used_; ///< tokens, by fair time
  std::uint64_t fair_now_ = 0; ///< of the client that was served last
  std::size_t running_ = 0;
  std::size_t beside_;                           ///< see set_beside
  bool was_alone_ = false;                       ///< the newest pass
  std::vector<std::vector<sent_row>> under_way_; ///< oldest first
  std::uint64_t passes_ = 0;
  std::uint64_t arrivals_ = 0;
  std::uint64_t starts_ = 0;
  load counts_;
};

} // namespace shoal::core
