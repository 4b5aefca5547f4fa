// runtime/jobs/plan_json.cpp -- tables of wishes and of idle members.
#include "runtime/jobs/plan_json.hpp"

#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/jobs/unheld_roles.hpp"

#include <string>

namespace shoal::runtime {
namespace {

const json_table<core::unheld_wish>& unheld_table() {
  using w = const core::unheld_wish&;
  static const json_table<core::unheld_wish> table{
    {"key", "text", "", "of the run file, such as fault_tolerance.copies",
     [](w wish) { return json_value(wish.key); }},
    {"wanted", "text", "", "what the run file asks for",
     [](w wish) { return json_value(wish.wanted); }},
    {"got", "text", "", "what the plan has instead",
     [](w wish) { return json_value(wish.got); }},
    {"why", "text", "", "the reason",
     [](w wish) { return json_value(wish.why); }}};
  return table;
}

struct idle_peer {
  std::string name;
  std::string why;
};

const json_table<idle_peer>& idle_table() {
  static const json_table<idle_peer> table{
    {"peer", "text", "", "name of a peer that computes nothing for the job",
     [](const idle_peer& p) { return json_value(p.name); }},
    {"why", "text", "", "the reason",
     [](const idle_peer& p) { return json_value(p.why); }}};
  return table;
}

} // namespace

json_value unheld_json(const core::view& v, const core::assignment& a) {
  return written_each(unheld_table(), unheld_of(v, a));
}

std::vector<field_text> unheld_fields() {
  return texts_of(unheld_table());
}

json_value idle_json(const core::view& v, const core::assignment& a) {
  std::vector<idle_peer> all;
  for (const core::idle_member& idle : core::idle_members(v, a)) {
    const core::member* m = core::find_member(v, idle.who.peer);
    all.push_back(
      {m && !m->name.empty() ? m->name : core::short_name(idle.who.peer),
       idle.why});
  }
  return written_each(idle_table(), all);
}

std::vector<field_text> idle_fields() {
  return texts_of(idle_table());
}

} // namespace shoal::runtime
