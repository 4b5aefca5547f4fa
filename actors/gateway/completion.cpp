// actors/gateway/completion.cpp -- tokens in, text out.
#include "actors/gateway/completion.hpp"

#include "runtime/core/text/utf8.hpp"
#include "runtime/files/bytes_hash.hpp"
#include "runtime/openai/rules/call_rule.hpp" // special_marks

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace shoal::actors {

namespace {

void append(openai::logprobs& to, openai::logprobs more) {
  const auto move_all = [](auto& all, auto& behind) {
    all.insert(all.end(), std::move_iterator(behind.begin()),
               std::move_iterator(behind.end()));
  };
  move_all(to.tokens, more.tokens);
  move_all(to.token_logprobs, more.token_logprobs);
  move_all(to.top_logprobs, more.top_logprobs);
  move_all(to.text_offset, more.text_offset);
}

/// A call that has begun goes on.
void append(std::vector<openai::tool_call>& to,
            std::vector<openai::tool_call> more) {
  for (openai::tool_call& c : more)
    if (!to.empty() && to.back().index == c.index)
      to.back().arguments += c.arguments;
    else
      to.push_back(std::move(c));
}

void append(openai::answer_parser::piece& to,
            openai::answer_parser::piece more) {
  to.reasoning += more.reasoning;
  to.content += more.content;
  append(to.calls, std::move(more.calls));
}

/// The seed of an answer's ids of calls: a chat has many turns with one seed, and no
/// id twice.
std::uint64_t seed_of_ids(const completion_prompt& p, std::uint64_t seed) {
  return runtime::hash_of(std::as_bytes(std::span(p.ids)), seed);
}

} // namespace

completion::completion(std::shared_ptr<runtime::http_exchange> exchange,
                       text_request asked, openai::completion_head head,
                       std::shared_ptr<const model::tokenizer> by)
  : exchange_(std::move(exchange)), request_(std::move(asked.options)),
    writer_(std::move(asked.writer)), head_(std::move(head)), chat_(asked.chat),
    format_(asked.format), ruled_(asked.rule != nullptr), seed_(asked.how.seed),
    by_(std::move(by)), prompts_(std::move(asked.prompts)),
    resumes_(asked.after.has_value()),
    skip_(asked.after ? asked.after->number : 0),
    bill_(exchange_->request().account) {
  writer_->set_head(head_);
  make_choices();
}

/// Of special tokens those that mark a chat's calls and thoughts; all, if asked for.
model::token_text::special_text completion::shown_specials() const {
  if (!by_ || !by_->file())
    return {};
  std::map<core::token_id, std::string> marks;
  if (chat_)
    for (const char* mark : openai::special_marks)
      if (const auto id = by_->file()->id_of(mark))
        marks.emplace(*id, mark);
  return [by = by_, all = !request_.skip_special, marks](core::token_id id) {
    if (all && by->file()->is_special(id))
      return by->file()->decode({&id, 1}, false);
    const auto at = marks.find(id);
    return at == marks.end() ? std::string() : at->second;
  };
}

void completion::make_choices() {
  used_ = {};
  choices_.clear();
  const auto specials = shown_specials();
  for (const completion_prompt& p : prompts_) {
    used_.prompt_tokens += p.ids.size();
    model::token_text text(by_.get(), request_.stop, request_.min_tokens);
    text.show(specials, !request_.skip_special);
    std::optional<model::token_places> places;
    if (request_.logprobs)
      places.emplace(by_.get(), request_.echo ? openai::characters(p.text) : 0);
    if (!ruled_) { // else its rule judges its first token as a text's first
      text.after(p.ids);
      if (places)
        places->after(p.ids);
    }
    for (std::uint32_t i = 0; i < request_.generated(); ++i) {
      choice& c = choices_.emplace_back(text);
      if (places)
        c.places.emplace(*places);
      if (chat_)
        c.parser.emplace(format_, seed_of_ids(p, seed_ + i));
      if (request_.echo)
        c.all = p.text;
    }
  }
  left_ = choices_.size();
}

/// A stop string that has just occurred, if the text is to have it.
std::string completion::stop_text(const choice& c, bool stopped_before) const {
  return request_.include_stop && !stopped_before ? c.text.stopped_by()
                                                  : std::string();
}

std::string completion::next_text(choice& c, core::token_id id) {
  const bool stopped = c.text.stopped();
  const std::string out = c.text.push(id);
  return out + stop_text(c, stopped);
}

bool completion::begin() {
  if (!request_.stream)
    return true;
  if (!exchange_->begin_stream(200,
                               {{"Content-Type", std::string(openai::sse_type)},
                                {"Cache-Control", "no-cache"}})) {
    if (exchange_->has_refused_stream()) {
      status_ = 429;
      bill_.give_back_prompt(used_.prompt_tokens);
    }
    return false;
  }
  return true;
}

void completion::keep_alive() {
  if (!request_.stream)
    return;
  sent_ = true;
  (void)exchange_->write(openai::sse_keep_alive);
}

/// What the first tokens have before them. @returns false: the client is gone
bool completion::tell_beginning() {
  if (!request_.stream || std::exchange(told_beginning_, true))
    return true;
  const bool tells = request_.echo || request_.return_token_ids || chat_;
  if (!tells || resumes_ || wants_scores())
    return true;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    openai::completion_choice told;
    told.index = std::uint32_t(i);
    told.text = choices_[i].all;
    told.begins = true;
    if (request_.return_token_ids) {
      told.prompt_token_ids = prompt_of(i);
      told.token_ids.emplace();
    }
    if (event(told) == runtime::http_write::gone)
      return false;
  }
  return true;
}

bool completion::begin_again(const openai::completion_head& head) {
  if (!can_begin_again())
    return false;
  make_choices();
  head_ = head;
  writer_->set_head(head_);
  return true;
}

void completion::count_event() {
  if (choices_.size() > 1)
    ++events_;
  else
    events_ = choices_.front().tokens;
}

runtime::http_write completion::event(const openai::completion_choice& news) {
  count_event();
  const std::string bytes = writer_->event(news, used_, last_event());
  told_ = told_ || !bytes.empty();
  sent_ = sent_ || told_;
  sent_events_ = sent_events_ || !bytes.empty();
  return exchange_->write(bytes);
}

/// With the most probable tokens it stands in any case, as in OpenAI's API.
void completion::add_token(openai::logprobs& to, model::token_places& places,
                           const core::served_token& t,
                           bool special_is_text) const {
  const auto listed = [this, first = places.first()](core::token_id id) {
    return openai::listed_token{by_ ? by_->piece(id, first) : std::string(),
                                id};
  };
  to.tokens.push_back(listed(t.token));
  to.token_logprobs.emplace_back(float(t.logprob));
  openai::logprobs::top top;
  for (const core::token_chance& o : t.top)
    top.emplace_back(listed(o.token), float(o.logprob));
  if (!t.top.empty()
      && std::ranges::find(t.top, t.token, &core::token_chance::token)
           == t.top.end())
    top.emplace_back(to.tokens.back(), float(t.logprob));
  to.top_logprobs.emplace_back(std::move(top));
  to.text_offset.push_back(places.push(t.token, special_is_text));
}

/// Puts the prompt before what is told of a choice: its probabilities, and in a
/// stream its text.
void completion::add_prompt(std::size_t index, openai::completion_choice& to,
                            const std::vector<core::served_token>& scored) {
  const auto& ids = prompt_of(index);
  openai::logprobs all;
  model::token_places places(by_.get());
  std::string_view rest = prompts_[index / request_.generated()].text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool known = i > 0 && i <= scored.size();
    // A special token is part of the prompt's text, or was put around it.
    const std::size_t at = places.count();
    add_token(all, places,
              known ? scored[i - 1] : core::served_token{ids[i], 0, {}},
              by_ && rest.starts_with(by_->piece(ids[i])));
    for (std::size_t n = places.count() - at; n > 0 && !rest.empty(); --n)
      rest.remove_prefix(
        std::max<std::size_t>(core::first_character(rest).bytes, 1));
    if (known)
      continue;
    all.token_logprobs.back().reset(); // nothing is before it
    all.top_logprobs.back().reset();
  }
  append(all, *std::exchange(to.logprobs, std::nullopt));
  to.logprobs = std::move(all);
  if (!request_.stream)
    return;
  to.text.insert(0, choices_[index].all);
  if (request_.return_token_ids)
    to.prompt_token_ids = ids;
}

completion::outcome
completion::take(std::size_t index,
                 const std::vector<core::served_token>& tokens,
                 core::stream_end end,
                 const std::vector<core::served_token>& scored) {
  choice& c = choices_[index];
  if (c.over)
    return outcome::choice_over;
  if (!tell_beginning())
    return outcome::gone;
  std::string text;
  openai::answer_parser::piece parsed;
  const auto parse = [&](const std::string& more, bool told) {
    if (!c.parser)
      return;
    if (auto piece = c.parser->push(more); told)
      append(parsed, std::move(piece));
  };
  openai::logprobs shown;
  bool shows = false;
  std::vector<core::token_id> ids;
  const bool only_prompt = request_.max_tokens == 0;
  const auto has_its_call = [&] {
    return !request_.parallel_calls && c.parser && c.parser->first_call_over();
  };
  for (std::size_t i = 0; i < tokens.size() && !c.text.stopped() && !only_prompt
                          && !has_its_call();
       ++i) {
    ++used_.completion_tokens;
    const bool has_it = ++c.tokens <= skip_;
    c.logprob += tokens[i].logprob;
    const bool ends_it =
      end == core::stream_end::stop && i + 1 == tokens.size();
    if (!has_it)
      ids.push_back(tokens[i].token);
    if (ends_it) { // it has no text, but counts and has a probability
      if (c.places && !has_it)
        add_token(shown, *c.places, tokens[i], false);
      break;
    }
    const std::string piece = next_text(c, tokens[i].token);
    parse(piece, !has_it);
    used_.reasoning_tokens += c.parser && c.parser->thinking() ? 1 : 0;
    if (c.places && !has_it)
      add_token(shown, *c.places, tokens[i], !request_.skip_special);
    else if (c.places)
      c.places->push(tokens[i].token, !request_.skip_special);
    if (has_it)
      continue;
    text += piece;
    shows = true;
  }
  bill_.up_to(used_.completion_tokens);
  if (end != core::stream_end::none) {
    const bool stopped = c.text.stopped();
    std::string rest = c.text.finish();
    rest += stop_text(c, stopped);
    parse(rest, true);
    text += rest;
  }
  if (only_prompt)
    c.finish = openai::finish_reason::length;
  else if (c.text.stopped() || has_its_call() || end == core::stream_end::stop
           || end == core::stream_end::complete)
    c.finish = openai::finish_reason::stop;
  else if (end == core::stream_end::length)
    c.finish = openai::finish_reason::length;
  c.over = c.finish != openai::finish_reason::none;
  if (c.over && c.parser) {
    append(parsed, c.parser->finish());
    if (c.parser->called() && c.finish == openai::finish_reason::stop)
      c.finish = openai::finish_reason::tool_calls;
  }
  left_ -= c.over ? 1 : 0;
  if (!request_.parallel_calls)
    std::erase_if(parsed.calls,
                  [](const openai::tool_call& c) { return c.index > 0; });

  openai::completion_choice told;
  told.index = std::uint32_t(index);
  if (request_.logprobs)
    told.logprobs = std::move(shown);
  if (c.parser) {
    text = std::move(parsed.content);
    told.reasoning = std::move(parsed.reasoning);
    told.calls = std::move(parsed.calls);
  }
  if (request_.stream)
    told.text = std::move(text);
  else {
    c.all += text;
    c.reasoning += told.reasoning;
    append(c.calls, std::move(told.calls));
  }
  const bool echoes = wants_scores() && !std::exchange(c.echoed, true);
  if (echoes)
    add_prompt(index, told, scored);
  runtime::http_write wrote = runtime::http_write::ok;
  if (request_.stream) {
    told.finish = c.finish;
    told.stopped_by = c.text.stopped_by();
    if (request_.return_token_ids)
      told.token_ids = std::move(ids);
    if (!told.text.empty() || c.over || shows || echoes)
      wrote = event(told);
  } else {
    if (request_.return_token_ids)
      c.ids.insert(c.ids.end(), ids.begin(), ids.end());
    if (told.logprobs)
      append(c.logprobs, std::move(*told.logprobs));
  }
  if (wrote == runtime::http_write::gone)
    return outcome::gone;
  if (left_ == 0) {
    complete();
    return outcome::over;
  }
  if (c.over)
    return outcome::choice_over;
  return wrote == runtime::http_write::pause ? outcome::pause
                                             : outcome::goes_on;
}

completion::outcome
completion::take_embedding(std::size_t index, std::vector<float> values) {
  choice& c = choices_[index];
  if (std::exchange(c.over, true))
    return outcome::choice_over;
  c.embedding = std::move(values);
  if (--left_ > 0)
    return outcome::goes_on;
  complete();
  return outcome::over;
}

void completion::finish_at_once() {
  (void)tell_beginning();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    openai::completion_choice told;
    told.index = std::uint32_t(i);
    told.finish = choices_[i].finish = openai::finish_reason::length;
    if (request_.stream)
      (void)event(told);
  }
  left_ = 0;
  complete();
}

/// Choices that are told: of each prompt the n whose tokens are most probable on
/// average.
std::vector<std::size_t> completion::best_choices() const {
  const std::size_t each = request_.generated();
  const auto mean = [&](std::size_t i) {
    const choice& c = choices_[i];
    return c.logprob / double(std::max<std::uint64_t>(c.tokens, 1));
  };
  std::vector<std::size_t> out;
  for (std::size_t first = 0; first < choices_.size(); first += each) {
    std::vector<std::size_t> of_prompt(each);
    std::iota(of_prompt.begin(), of_prompt.end(), first);
    if (each > request_.n)
      std::ranges::stable_sort(of_prompt, std::greater(), mean);
    out.insert(out.end(), of_prompt.begin(), of_prompt.begin() + request_.n);
  }
  return out;
}

void completion::complete() {
  if (request_.stream) {
    count_event();
    (void)exchange_->write(writer_->end(used_, last_event()));
    exchange_->end();
    return;
  }
  std::vector<openai::completion_choice> all;
  for (const std::size_t i : best_choices()) {
    openai::completion_choice& told = all.emplace_back();
    told.index = std::uint32_t(all.size() - 1);
    told.text = std::move(choices_[i].all);
    told.reasoning = std::move(choices_[i].reasoning);
    told.calls = std::move(choices_[i].calls);
    told.finish = choices_[i].finish;
    told.stopped_by = choices_[i].text.stopped_by();
    told.embedding = std::move(choices_[i].embedding);
    if (request_.logprobs)
      told.logprobs = std::move(choices_[i].logprobs);
    if (request_.return_token_ids) {
      told.prompt_token_ids = prompt_of(i);
      told.token_ids = std::move(choices_[i].ids);
    }
  }
  exchange_->respond_json(writer_->whole(std::move(all), used_));
}

void completion::fail(const openai::api_error& why) {
  status_ = why.status;
  if (openai::is_for_want_of_room(why) && left_ == choices_.size())
    bill_.give_back_prompt(used_.prompt_tokens);
  if (!sent_) {
    exchange_->respond(why);
    return;
  }
  (void)exchange_->write(writer_->error(why));
  exchange_->end();
}

} // namespace shoal::actors
