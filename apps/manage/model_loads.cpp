// apps/manage/model_loads.cpp -- a list under a lock.
#include "apps/manage/model_loads.hpp"

#include "actors/gateway/gateway_answers.hpp" // random_number
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"

#include <algorithm>
#include <utility>

namespace shoal::apps {

using json = runtime::json_value;

namespace {

constexpr std::size_t text_bytes_max = 1024;

} // namespace

/// Has access to entries.
struct model_load_fields {
  using entry = model_loads::entry;
  static const runtime::json_table<entry>& table() {
    using e = const entry&;
    static const runtime::json_table<entry> rows{
      {"id", "text", "", "by which it is cancelled",
       [](e v) { return json(std::to_string(v.id)); }},
      {"model", "text", "", "what the request named",
       [](e v) { return json(v.model); }},
      {"as", "text", "", "its name for clients; \"\": that of the folder",
       [](e v) { return json(v.name); }},
      {"state", "text", "",
       "`waiting` for its turn, `working`, `ending` since it was cancelled, or "
       "`failed`",
       [](e v) {
         return json(!v.error.empty()     ? "failed"
                     : v.cancelled        ? "ending"
                     : v.activity.empty() ? "waiting"
                                          : "working");
       }},
      {"activity", "text", "", "what is being done now, in words",
       [](e v) { return json(v.activity); }},
      {"done", "whole number", "", "of `all`; bytes, if `all` is 0",
       [](e v) { return json(v.done); }},
      {"all", "whole number", "", "0: not known",
       [](e v) { return json(v.all); }},
      {"notice", "text, optional", "", "the last one",
       [](e v) {
         return v.notice.empty() ? runtime::left_out() : json(v.notice);
       }},
      {"error", "text, optional", "", "why it has failed", [](e v) {
         return v.error.empty() ? runtime::left_out() : json(v.error);
       }}};
    return rows;
  }
};

model_load::~model_load() {
  ended();
}

void model_load::ended() {
  all_->end(id_);
}

void model_load::at(std::string_view activity, std::uint64_t done,
                    std::uint64_t all) {
  all_->change(id_, [&](model_loads::entry& e) {
    e.activity = activity;
    e.done = all == 0 ? done : std::min(done, all);
    e.all = all;
  });
}

void model_load::notice(const std::string& text) {
  all_->change(id_, [&](model_loads::entry& e) {
    e.notice = core::shown(text, text_bytes_max);
  });
}

void model_load::failed(const std::string& why) {
  all_->change(id_, [&](model_loads::entry& e) {
    if (!e.cancelled)
      e.error = core::shown(why, text_bytes_max);
  });
}

bool model_load::cancelled() const {
  return all_->is_cancelled(id_);
}

bool model_load::submitted() {
  return all_->forget_submitted(id_);
}

model_loads::model_loads() : last_(actors::random_number() % first_ids_max) {
}

std::shared_ptr<model_load> model_loads::begin(const serve_options& o) {
  std::lock_guard lock(mutex_);
  entry& e = entries_.emplace_back();
  e.id = ++last_;
  e.model = core::shown(o.model.string(), text_bytes_max);
  e.name = core::shown(o.name, text_bytes_max);
  return std::shared_ptr<model_load>(new model_load(shared_from_this(), e.id));
}

template <class Change>
void model_loads::change(std::uint64_t id, Change with) {
  std::lock_guard lock(mutex_);
  for (entry& e : entries_)
    if (e.id == id)
      with(e);
}

bool model_loads::cancel(std::string_view id) {
  std::lock_guard lock(mutex_);
  const auto at = std::ranges::find_if(
    entries_, [&](const entry& e) { return std::to_string(e.id) == id; });
  if (at == entries_.end())
    return false;
  at->cancelled = true;
  if (!at->error.empty())
    entries_.erase(at);
  return true;
}

bool model_loads::is_cancelled(std::uint64_t id) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(
    entries_, [&](const entry& e) { return e.id == id && e.cancelled; });
}

bool model_loads::forget_submitted(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  return std::erase_if(
           entries_, [&](const entry& e) { return e.id == id && !e.cancelled; })
         > 0;
}

void model_loads::end(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  std::erase_if(entries_,
                [&](const entry& e) { return e.id == id && e.error.empty(); });
  auto failures = std::size_t(std::ranges::count_if(
    entries_, [](const entry& e) { return !e.error.empty(); }));
  std::erase_if(entries_, [&](const entry& e) {
    return !e.error.empty() && failures > failures_max && failures-- > 0;
  });
}

std::string model_loads::answer(bool allowed) const {
  std::lock_guard lock(mutex_);
  json out{{"allowed", allowed}};
  out["loads"] = runtime::written_each(model_load_fields::table(), entries_);
  return model::json_text(out);
}

std::vector<runtime::field_text> model_load_texts() {
  return runtime::texts_of(model_load_fields::table());
}

} // namespace shoal::apps
