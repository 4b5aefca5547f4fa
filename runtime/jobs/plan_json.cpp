// runtime/jobs/plan_json.cpp -- tables of wishes and of idle members.
#include "runtime/jobs/plan_json.hpp"

#include "runtime/core/planning/plan_reasons.hpp"
#include "runtime/core/text/hex.hpp"
#include "runtime/core/view.hpp"
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

std::string name_of(const core::view& v, const core::member_id& id) {
  const core::member* m = core::find_member(v, id.peer);
  return m && !m->name.empty() ? m->name : core::short_name(id.peer);
}

struct stage_of {
  const core::view& in;
  const core::stage_place& is;
};

const json_table<stage_of>& stage_table() {
  using s = const stage_of&;
  static const json_table<stage_of> table{
    {"peer", "text", "", "name of the peer that computes this stage",
     [](s v) { return json_value(name_of(v.in, v.is.lead())); }},
    {"id", "text", "", "its id, 64 hexadecimal digits",
     [](s v) { return json_value(core::to_hex(v.is.lead().peer)); }},
    {"first_layer", "whole number", "", "counted from 0",
     [](s v) { return json_value(v.is.first_block); }},
    {"last_layer", "whole number", "", "included",
     [](s v) { return json_value(std::int64_t{v.is.last_block} - 1); }}};
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
  for (const core::idle_member& idle : core::idle_members(v, a))
    all.push_back({name_of(v, idle.who), idle.why});
  return written_each(idle_table(), all);
}

std::vector<field_text> idle_fields() {
  return texts_of(idle_table());
}

json_value places_json(const core::view& v, const core::assignment& a) {
  json_value out = json_value::array();
  for (const core::island_place& at : a.islands)
    for (const core::replica_place& r : at.replicas) {
      json_value& stages = out.emplace_back(json_value::array());
      for (const core::stage_place& s : r.stages)
        stages.push_back(written<stage_of>(stage_table(), {v, s}));
    }
  return out;
}

std::vector<field_text> places_fields() {
  return texts_of(stage_table());
}

} // namespace shoal::runtime
