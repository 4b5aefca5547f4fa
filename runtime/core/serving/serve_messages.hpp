// runtime/core/serving/serve_messages.hpp -- what gateways, pipelines and stages
// of a served model say to each other: control only; hidden states go over links.
//
//   gateway  --serve_request, serve_cancel, serve_hold, report_wanted-->  pipeline
//   gateway  <--serve_news, pipeline_report--------------  pipeline
//   pipeline --serve_ask, serve_pass, serve_rule-------->  its stages
//   pipeline <--serve_ready, serve_chosen, serve_text_ready-  its stages
//
// A pipeline is an island of a job that serves; the peer of its first stage
// speaks for it. Every message names the island's place; under another place it
// has no effect. Each may be lost with a connection, and may come twice: who
// waits for an answer sends again (replay.hpp, pipeline.hpp).
//
// Limits: each message is followed by its fields (fields.hpp); the codec refuses
// what exceeds them.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/serving/pages.hpp"
#include "runtime/core/text_rule.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace shoal::core {

namespace serving {
/// Tokens of a sequence, its prompt included.
inline constexpr std::size_t tokens_max = std::size_t{1} << 17;
/// Sequences in a pass.
inline constexpr std::size_t rows_max = 1024;
/// Tokens in a pass.
inline constexpr std::size_t pass_tokens_max = std::size_t{1} << 14;
/// Tokens that end a sequence.
inline constexpr std::size_t ends_max = 64;
/// Most probable tokens that are told with a token.
inline constexpr std::size_t top_max = 20;
/// Tokens of a prompt whose probabilities are told: with 5 others each they fit
/// into one message (98 bytes each, of 2^20).
inline constexpr std::size_t scored_max = 8192;
/// Of prompts, in one pass: each takes memory for a vocabulary's probabilities.
inline constexpr std::size_t pass_scored_max = 1024;
/// Tokens, with their probabilities, that a message of news has at most if it is
/// of several streams.
inline constexpr std::size_t news_tokens_max = 4096;
/// Tokens whose logits a request changes; OpenAI's API takes 300.
inline constexpr std::size_t biases_max = 1024;
/// Tokens that a request allows, if not all.
inline constexpr std::size_t allowed_max = 16384;
/// Sequences of tokens that a request bans: up to two for each word.
inline constexpr std::size_t banned_max = 512;
/// Tokens of one of these.
inline constexpr std::size_t word_tokens_max = 32;
/// Tokens that a row may guess (batcher.hpp).
inline constexpr std::size_t guesses_max = 16;
inline constexpr std::size_t vocabulary_max = std::size_t{1} << 24;
/// Of hidden states that are the answer to a request: 131'072 values of 4 bytes,
/// half of a message.
inline constexpr std::size_t pooled_bytes_max = std::size_t{1} << 19;
inline constexpr std::uint64_t pages_max = std::uint64_t{1} << 24;
} // namespace serving

/// What is added to the logit of a token.
struct token_bias {
  token_id token = 0;
  double bias = 0;
  friend bool operator==(const token_bias&, const token_bias&) = default;
};
void fields(auto& v, of<token_bias> auto& x) {
  v("token", x.token, at_most(serving::vocabulary_max - 1));
  v("bias", x.bias);
  v.must(runtime::errc::corrupt,
         [&] { return x.bias >= -1e4 && x.bias <= 1e4; });
}

/// How the next token is chosen; kernels/inference/sampling.hpp.
struct sampling_wish {
  double temperature = 1;
  std::uint32_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;
  std::uint64_t seed = 0;
  std::uint32_t logprobs = 0; ///< most probable tokens to tell with each
  double frequency_penalty = 0;
  double presence_penalty = 0;
  std::vector<token_bias> biases; ///< each token once
  /// Whether the choice depends on which tokens came before it.
  bool counts_tokens() const {
    return repetition_penalty != 1 || frequency_penalty != 0
           || presence_penalty != 0;
  }
  friend bool operator==(const sampling_wish&, const sampling_wish&) = default;
};
void fields(auto& v, of<sampling_wish> auto& x) {
  v("temperature", x.temperature);
  v("top_k", x.top_k, at_most(serving::vocabulary_max));
  v("top_p", x.top_p);
  v("min_p", x.min_p);
  v("repetition_penalty", x.repetition_penalty);
  v("seed", x.seed);
  v("logprobs", x.logprobs, at_most(serving::top_max));
  v("frequency_penalty", x.frequency_penalty);
  v("presence_penalty", x.presence_penalty);
  v("biases", x.biases, list_of(serving::biases_max));
  v.must(runtime::errc::corrupt, [&] {
    return x.temperature >= 0 && x.temperature <= 1e6 && x.top_p > 0
           && x.top_p <= 1 && x.min_p >= 0 && x.min_p <= 1
           && x.repetition_penalty >= 1e-6 && x.repetition_penalty <= 1e6
           && x.frequency_penalty >= -1e3 && x.frequency_penalty <= 1e3
           && x.presence_penalty >= -1e3 && x.presence_penalty <= 1e3;
  });
}

inline constexpr auto token_limit() {
  return at_most(serving::vocabulary_max - 1);
}

/// What of a prompt's hidden states after the final norm is the answer.
enum class pooling : std::uint8_t {
  none = 1, ///< nothing: tokens are
  last,     ///< that of its last token
  mean,     ///< the mean over its tokens
};

/// Tokens of which the last one is not chosen behind the others.
struct token_word {
  std::vector<token_id> tokens;
  friend bool operator==(const token_word&, const token_word&) = default;
};
void fields(auto& v, of<token_word> auto& x) {
  v("tokens", x.tokens, list_of(serving::word_tokens_max, token_limit()));
}

/// Which tokens may be chosen, whatever the text says.
struct token_filter {
  std::uint32_t least = 0; ///< as many are chosen before one that ends the text
  std::vector<token_id> allowed; ///< no others; empty: all
  std::vector<token_word> banned;
  friend bool operator==(const token_filter&, const token_filter&) = default;
};
void fields(auto& v, of<token_filter> auto& x) {
  v("least", x.least, at_most(serving::tokens_max));
  v("allowed", x.allowed, list_of(serving::allowed_max, token_limit()));
  v("banned", x.banned, list_of(serving::banned_max));
}

/// Asks a pipeline to go on with a sequence. Sent again with the tokens that
/// have come meanwhile, it asks for those after them.
struct serve_request {
  job_header header;
  std::uint64_t stream = 0;  ///< of its gateway
  std::uint64_t client = 0;  ///< for fairness
  std::int32_t priority = 0; ///< higher ones go first
  /// Equal if a client sends its request again, to any gateway; 0: it does not.
  /// Then what was chosen comes without probabilities (known_texts.hpp).
  std::uint64_t key = 0;
  std::vector<token_id> tokens; ///< of the prompt, and chosen so far
  std::uint32_t chosen = 0;     ///< those at the end that were chosen
  std::uint32_t tokens_max = 1; ///< to be chosen from here on
  std::vector<token_id> ends;   ///< a sequence ends with one of these
  sampling_wish how;
  bool alone = false; ///< in passes of its own: it may have killed peers
  /// The probabilities of the prompt's tokens are wanted, too; only if none is
  /// chosen.
  bool scored = false;
  /// What the text of the chosen tokens must be.
  std::optional<text_rule> rule = {};
  /// If not none, no token is chosen: the answer is one hidden state.
  pooling pooled = pooling::none;
  std::optional<token_filter> filter = {};
  friend bool operator==(const serve_request&, const serve_request&) = default;
};
void fields(auto& v, of<serve_request> auto& x) {
  v("header", x.header);
  v("stream", x.stream);
  v("client", x.client);
  v("priority", x.priority, within(-100, 100));
  v("key", x.key);
  v("tokens", x.tokens, list_of(serving::tokens_max, token_limit()));
  v("chosen", x.chosen, at_most(serving::tokens_max));
  v("tokens_max", x.tokens_max, at_most(serving::tokens_max));
  v("ends", x.ends, list_of(serving::ends_max, token_limit()));
  v("how", x.how);
  v("alone", x.alone);
  v("scored", x.scored);
  v("rule", x.rule);
  v("pooled", x.pooled, up_to(pooling::mean));
  v("filter", x.filter);
  v.must(runtime::errc::corrupt, [&] {
    return x.chosen <= x.tokens.size()
           && (!x.scored
               || (x.chosen == 0 && x.tokens.size() <= serving::scored_max))
           && (x.pooled == pooling::none
               || (x.chosen == 0 && !x.scored && !x.rule));
  });
}

/// The client has gone.
struct serve_cancel {
  job_header header;
  std::uint64_t stream = 0;
  friend bool operator==(const serve_cancel&, const serve_cancel&) = default;
};
void fields(auto& v, of<serve_cancel> auto& x) {
  v("header", x.header);
  v("stream", x.stream);
}

/// The client takes no more tokens for now, or takes them again.
struct serve_hold {
  job_header header;
  std::uint64_t stream = 0;
  bool held = false;
  friend bool operator==(const serve_hold&, const serve_hold&) = default;
};
void fields(auto& v, of<serve_hold> auto& x) {
  v("header", x.header);
  v("stream", x.stream);
  v("held", x.held);
}

struct token_chance {
  token_id token = 0;
  double logprob = 0;
  friend bool operator==(const token_chance&, const token_chance&) = default;
};
void fields(auto& v, of<token_chance> auto& x) {
  v("token", x.token, token_limit());
  v("logprob", x.logprob);
}

/// A token as it was chosen.
struct served_token {
  token_id token = 0;
  double logprob = 0; ///< of the model, before temperature and filters
  std::vector<token_chance> top; ///< the most probable, if asked for
  friend bool operator==(const served_token&, const served_token&) = default;
};
void fields(auto& v, of<served_token> auto& x) {
  v("token", x.token, token_limit());
  v("logprob", x.logprob);
  v("top", x.top, list_of(serving::top_max));
}

enum class stream_end : std::uint8_t {
  none = 1, ///< it goes on
  stop,     ///< by one of its `ends`
  length,   ///< tokens_max are chosen
  too_long, ///< more tokens than the pipeline's cache has room for
  busy,     ///< too many wait; nothing was computed
  broken,   ///< the model's output is not a number
  deadly,   ///< peers have died of it (replay.hpp)
  complete, ///< its rule leaves nothing to add
  stuck,    ///< its rule asks for what no token can give
};

/// What is new of a stream.
struct stream_news {
  std::uint64_t stream = 0;
  std::uint64_t first = 0; ///< position of the first of the tokens
  std::vector<served_token> tokens;
  stream_end end = stream_end::none;
  bool begun = false; ///< a pass of it has
  bool held = false;  ///< it is: its gateway is to ask for it, or hold it again
  /// Of the tokens of the prompt behind the first one, if asked for: with the
  /// first token that is chosen.
  std::vector<served_token> scored = {};
  /// The hidden state that was asked for: floats, as they are in memory. The end
  /// is `complete` then.
  std::vector<std::byte> pooled = {};
  friend bool operator==(const stream_news&, const stream_news&) = default;
};
void fields(auto& v, of<stream_news> auto& x) {
  v("stream", x.stream);
  v("first", x.first, at_most(serving::tokens_max));
  v("tokens", x.tokens, list_of(serving::tokens_max));
  v("end", x.end, up_to(stream_end::stuck));
  v("begun", x.begun);
  v("held", x.held);
  v("scored", x.scored, list_of(serving::scored_max));
  v("pooled", x.pooled, bytes_of(serving::pooled_bytes_max));
}

struct serve_news {
  job_header header;
  std::vector<stream_news> streams;
  friend bool operator==(const serve_news&, const serve_news&) = default;
};
void fields(auto& v, of<serve_news> auto& x) {
  v("header", x.header);
  v("streams", x.streams, list_of(serving::rows_max));
}

/// What a pipeline tells all gateways of itself.
struct pipeline_report {
  job_header header;
  bool ready = false;        ///< all of its stages have their weights
  std::uint64_t room = 0;    ///< tokens that its cache can hold
  std::uint64_t waiting = 0; ///< tokens of prompts that it has still to compute
  std::uint64_t per_s = 0;   ///< tokens of prompts that it computes in a second
  std::uint32_t streams = 0; ///< that it has, of all gateways
  std::uint32_t running = 0; ///< of these, with pages
  std::uint64_t pages = 0;   ///< in use
  std::uint64_t guessed = 0; ///< tokens (batcher.hpp), since it began
  std::uint64_t accepted = 0; ///< of these, chosen
  friend bool
  operator==(const pipeline_report&, const pipeline_report&) = default;
};
void fields(auto& v, of<pipeline_report> auto& x) {
  v("header", x.header);
  v("ready", x.ready);
  v("room", x.room, at_most(limits::bytes_max));
  v("waiting", x.waiting, at_most(limits::bytes_max));
  v("per_s", x.per_s, at_most(limits::bytes_max));
  v("streams", x.streams);
  v("running", x.running);
  v("pages", x.pages, at_most(serving::pages_max));
  v("guessed", x.guessed);
  v("accepted", x.accepted);
}

/// Asks a pipeline for a report.
struct report_wanted {
  job_header header;
  friend bool operator==(const report_wanted&, const report_wanted&) = default;
};
void fields(auto& v, of<report_wanted> auto& x) {
  v("header", x.header);
}

/// Asks a stage whether it has its weights; it answers when it has.
struct serve_ask {
  job_header header;
  friend bool operator==(const serve_ask&, const serve_ask&) = default;
};
void fields(auto& v, of<serve_ask> auto& x) {
  v("header", x.header);
}

struct serve_ready {
  job_header header;
  std::uint32_t stage = 0;
  friend bool operator==(const serve_ready&, const serve_ready&) = default;
};
void fields(auto& v, of<serve_ready> auto& x) {
  v("header", x.header);
  v("stage", x.stage, at_most(limits::stages_max - 1));
}

/// How often a token was chosen.
struct token_count {
  token_id token = 0;
  std::uint32_t count = 0;
  friend bool operator==(const token_count&, const token_count&) = default;
};
void fields(auto& v, of<token_count> auto& x) {
  v("token", x.token, at_most(serving::vocabulary_max - 1));
  v("count", x.count, at_most(serving::tokens_max));
}

/// How the token after a row is chosen.
struct row_choice {
  sampling_wish how;
  std::uint32_t drawn = 0; ///< tokens of the sequence that were chosen before
  /// The sequence's tokens, each once; only with a repetition penalty.
  std::vector<token_id> seen;
  /// Those that were chosen; only with a frequency or presence penalty.
  std::vector<token_count> counts;
  bool ruled = false; ///< by the serve_rule of the sequence
  friend bool operator==(const row_choice&, const row_choice&) = default;
};
void fields(auto& v, of<row_choice> auto& x) {
  v("how", x.how);
  v("drawn", x.drawn, at_most(serving::tokens_max));
  v("seen", x.seen, list_of(serving::tokens_max, token_limit()));
  v("counts", x.counts, list_of(serving::tokens_max));
  v("ruled", x.ruled);
}

/// What the text of a sequence must be: for the last stage, before the first pass in
/// which a token of the sequence is chosen, and again if that token does not come.
struct serve_rule {
  job_header header;
  std::uint64_t sequence = 0; ///< of the pipeline
  std::optional<text_rule> rule;
  std::optional<token_filter> filter = {};
  std::vector<token_id> chosen; ///< of the sequence, in other places
  std::vector<token_id> ends;   ///< with one of these the text may end
  friend bool operator==(const serve_rule&, const serve_rule&) = default;
};
void fields(auto& v, of<serve_rule> auto& x) {
  v("header", x.header);
  v("sequence", x.sequence);
  v("rule", x.rule);
  v("filter", x.filter);
  v("chosen", x.chosen, list_of(serving::tokens_max, token_limit()));
  v("ends", x.ends, list_of(serving::ends_max, token_limit()));
}

/// Tokens of a prompt whose probabilities are wanted.
struct row_scores {
  std::vector<token_id> tokens;
  std::uint32_t top = 0; ///< most probable tokens to tell with each
  friend bool operator==(const row_scores&, const row_scores&) = default;
};
void fields(auto& v, of<row_scores> auto& x) {
  v("tokens", x.tokens, list_of(serving::pass_tokens_max, token_limit()));
  v("top", x.top, at_most(serving::top_max));
}

/// What becomes of a row's hidden states. Of the mean every row of the prompt has
/// one, and the last stage keeps their sum.
struct row_pooling {
  pooling how = pooling::last;
  bool ends = false; ///< the prompt, with this row
  friend bool operator==(const row_pooling&, const row_pooling&) = default;
};
void fields(auto& v, of<row_pooling> auto& x) {
  v("how", x.how, up_to(pooling::mean));
  v("ends", x.ends);
  v.must(runtime::errc::corrupt, [&] {
    return x.how == pooling::mean || (x.how == pooling::last && x.ends);
  });
}

/// Consecutive tokens of one sequence in a pass.
struct serve_row {
  std::uint64_t sequence = 0; ///< of the pipeline
  std::uint64_t first = 0;    ///< position of the first token
  std::vector<token_id> tokens;
  /// The sequence's table: as many pages as before, then these.
  std::uint64_t pages_kept = 0;
  std::vector<page_id> pages;
  /// The same of layers with a window, if these have pages of their own.
  std::uint64_t windows_kept = 0;
  std::vector<page_id> windows;
  std::optional<row_choice> choice; ///< nothing: a piece of a prompt
  /// The last of the tokens are guesses: with a choice, one is chosen after the
  /// token before them, and after each of them that was chosen before it.
  std::uint32_t guesses = 0;
  /// What follows the tokens before those with a choice; as many of these.
  std::optional<row_scores> scores;
  std::optional<row_pooling> pooled = {}; ///< then neither choice nor scores
  friend bool operator==(const serve_row&, const serve_row&) = default;
};
/// Tokens of a row, the last ones, whose hidden states are needed.
[[nodiscard]] inline std::size_t pooled_of(const serve_row& r) {
  return !r.pooled ? 0 : r.pooled->how == pooling::last ? 1 : r.tokens.size();
}
/// Tokens of a row, the last ones, whose logits are needed.
[[nodiscard]] inline std::size_t logits_of(const serve_row& r) {
  return (r.scores ? r.scores->tokens.size() : 0)
         + (r.choice ? 1 + std::size_t(r.guesses) : 0);
}
void fields(auto& v, of<serve_row> auto& x) {
  v("sequence", x.sequence);
  v("first", x.first, at_most(serving::tokens_max));
  v("tokens", x.tokens, list_of(serving::pass_tokens_max, token_limit()));
  v("pages_kept", x.pages_kept, at_most(serving::pages_max));
  v("pages", x.pages,
    list_of(serving::tokens_max / page_tokens, at_most(serving::pages_max)));
  v("windows_kept", x.windows_kept, at_most(serving::pages_max));
  v("windows", x.windows,
    list_of(serving::tokens_max / page_tokens, at_most(serving::pages_max)));
  v("choice", x.choice);
  v("guesses", x.guesses, at_most(serving::guesses_max));
  v("scores", x.scores);
  v("pooled", x.pooled);
  v.must(runtime::errc::corrupt, [&] {
    return !x.tokens.empty() && x.guesses < x.tokens.size()
           && logits_of(x) <= x.tokens.size()
           && (!x.pooled || (!x.choice && !x.scores && x.guesses == 0));
  });
}

/// What all stages compute next, one behind the other.
struct serve_pass {
  job_header header;
  std::uint64_t number = 0; ///< consecutive, from 1 on
  std::vector<serve_row> rows;
  std::vector<std::uint64_t> ended; ///< sequences whose tables are not needed
  /// Sequences below this number have ended, also those whose end was not heard of.
  std::uint64_t oldest = 0;
  friend bool operator==(const serve_pass&, const serve_pass&) = default;
};
void fields(auto& v, of<serve_pass> auto& x) {
  v("header", x.header);
  v("number", x.number, at_most(epoch_max));
  v("rows", x.rows, list_of(serving::rows_max));
  v("ended", x.ended, list_of(serving::rows_max));
  v("oldest", x.oldest);
  v.must(runtime::errc::corrupt, [&] {
    std::size_t scored = 0;
    for (const serve_row& r : x.rows)
      scored += r.scores ? r.scores->tokens.size() : 0;
    return scored <= serving::pass_scored_max;
  });
}

/// What came of a row.
struct row_result {
  std::uint64_t sequence = 0;
  /// As they were chosen: the first, and one more for each guess that was right.
  std::vector<served_token> tokens;
  std::vector<served_token> scored; ///< of its row_scores, in their order
  bool broken = false; ///< logits are not numbers; there are no tokens
  /// The rule of the sequence leaves nothing to add to the tokens.
  bool complete = false;
  bool stuck = false; ///< the rule asks for what no token can give
  /// Of a row that ends a pooled prompt: floats, as they are in memory.
  std::vector<std::byte> pooled = {};
  /// It is not known yet which tokens the rule allows: none was chosen. The row is to
  /// be given again after a serve_text_ready of its sequence.
  bool waits = false;
  friend bool operator==(const row_result&, const row_result&) = default;
};
void fields(auto& v, of<row_result> auto& x) {
  v("sequence", x.sequence);
  v("tokens", x.tokens, list_of(serving::guesses_max + 1));
  v("scored", x.scored, list_of(serving::pass_tokens_max));
  v("broken", x.broken);
  v("complete", x.complete);
  v("stuck", x.stuck);
  v("pooled", x.pooled, bytes_of(serving::pooled_bytes_max));
  v("waits", x.waits);
}

/// The last stage has computed a pass.
struct serve_chosen {
  job_header header;
  std::uint64_t number = 0;
  /// Of the rows with a choice, with scores or pooled, in their order.
  std::vector<row_result> rows;
  friend bool operator==(const serve_chosen&, const serve_chosen&) = default;
};
void fields(auto& v, of<serve_chosen> auto& x) {
  v("header", x.header);
  v("number", x.number, at_most(epoch_max));
  v("rows", x.rows, list_of(serving::rows_max));
}

/// The last stage knows now which token of a sequence may come next.
struct serve_text_ready {
  job_header header;
  std::uint64_t sequence = 0; ///< of the pipeline
  friend bool
  operator==(const serve_text_ready&, const serve_text_ready&) = default;
};
void fields(auto& v, of<serve_text_ready> auto& x) {
  v("header", x.header);
  v("sequence", x.sequence);
}

using serve_message =
  std::variant<serve_request, serve_cancel, serve_hold, serve_news,
               pipeline_report, report_wanted, serve_ask, serve_ready,
               serve_pass, serve_chosen, serve_rule, serve_text_ready>;
/// Names of the kinds, in their order; the same as in serve.proto.
inline constexpr std::array<const char*, std::variant_size_v<serve_message>>
  serve_message_names = {
    "serve_request",   "serve_cancel",  "serve_hold", "serve_news",
    "pipeline_report", "report_wanted", "serve_ask",  "serve_ready",
    "serve_pass",      "serve_chosen",  "serve_rule", "serve_text_ready"};

[[nodiscard]] inline const job_header& header(const serve_message& m) {
  return std::visit(
    [](const auto& what) -> const job_header& { return what.header; }, m);
}

/// Whether gateways take it, and not the islands of the job.
[[nodiscard]] inline bool is_for_gateways(const serve_message& m) {
  return std::holds_alternative<serve_news>(m)
         || std::holds_alternative<pipeline_report>(m);
}

} // namespace shoal::core
