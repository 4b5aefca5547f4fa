// runtime/node/status/status_discovery.cpp -- the tables of what discovery has met.
#include "runtime/node/status/status_discovery.hpp"

#include "runtime/core/text/hex.hpp"

#include <algorithm>

namespace shoal::runtime {

using json = json_value;

namespace {

const json_table<status_input>& beacons_table() {
  using s = const status_input&;
  static const json_table<status_input> table{
    {"dialled", "whole number", "", "of a peer that was then contacted",
     [](s v) { return json(v.beacons.dialled); }},
    {"connected", "whole number", "", "of a peer that is connected already",
     [](s v) { return json(v.beacons.connected); }},
    {"crowded", "whole number", "", "not looked at: more than the limit",
     [](s v) { return json(v.beacons.crowded); }},
    {"strange", "whole number", "", "malformed, or of another cluster or key",
     [](s v) { return json(v.beacons.strange); }},
    {"strange_last_minute", "whole number", "", "of these, in the last 60 s",
     [](s v) { return json(v.beacons.strange_lately.last_minute(v.unix_ms)); }},
    {"strange_age_ms", "whole number, optional", "ms",
     "since the last of these",
     [](s v) {
       const std::int64_t age = v.beacons.strange_lately.age_ms(v.unix_ms);
       return v.beacons.strange == 0 ? left_out()
                                     : json(std::max<std::int64_t>(age, 0));
     }},
    {"old", "whole number", "", "repeated or overtaken",
     [](s v) { return json(v.beacons.old); }},
    {"elsewhere", "whole number", "", "from another address than they name",
     [](s v) { return json(v.beacons.elsewhere); }},
    {"paused", "whole number", "", "of a peer that was contacted just before",
     [](s v) { return json(v.beacons.paused); }}};
  return table;
}

const json_table<apart_node>& apart_table() {
  using a = const apart_node&;
  static const json_table<apart_node> table{
    {"address", "text", "", "where it is, or its host",
     [](a v) { return json(v.address); }},
    {"why", "text", "", "why it is apart, and what to do",
     [](a v) { return json(v.why); }},
    {"since_unix_ms", "whole number", "ms", "Unix time of the first time",
     [](a v) { return json(std::uint64_t(v.since_ms)); }},
    {"latest_unix_ms", "whole number", "ms", "Unix time of the last time",
     [](a v) { return json(std::uint64_t(v.latest_ms)); }}};
  return table;
}

const char* word_for(departure how) {
  switch (how) {
  case departure::left:
    return "left";
  case departure::revoked:
    return "revoked";
  case departure::stayed:
    return "elsewhere";
  case departure::lost:
    break;
  }
  return "lost";
}

const json_table<former_member>& former_table() {
  using f = const former_member&;
  static const json_table<former_member> table{
    {"id", "text", "", "", [](f v) { return json(core::to_hex(v.peer)); }},
    {"name", "text", "", "", [](f v) { return json(v.name); }},
    {"how", "text", "",
     "`lost` (out of reach, or it held up a job), `left`, `revoked`, or "
     "`elsewhere` (in the shoal that this node has left for another)",
     [](f v) { return json(word_for(v.how)); }},
    {"unix_ms", "whole number", "ms", "Unix time at which it was gone",
     [](f v) { return json(std::uint64_t(v.unix_ms)); }}};
  return table;
}

} // namespace

json_value beacons_json(const status_input& in) {
  return written(beacons_table(), in);
}

std::vector<field_text> beacon_fields() {
  return texts_of(beacons_table());
}

json_value apart_json(const status_input& in) {
  return written_each(apart_table(), in.apart);
}

std::vector<field_text> apart_fields() {
  return texts_of(apart_table());
}

json_value former_json(const status_input& in) {
  return written_each(former_table(), in.former);
}

std::vector<field_text> former_fields() {
  return texts_of(former_table());
}

} // namespace shoal::runtime
