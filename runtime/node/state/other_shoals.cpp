// runtime/node/state/other_shoals.cpp -- other shoals, as their peers report them.
#include "runtime/node/state/other_shoals.hpp"

#include "runtime/core/text/hex.hpp"

#include <algorithm>

namespace shoal::runtime {

namespace {

using json = json_value;

/// A shoal of the same cluster, as reported by its connected peers.
struct other_shoal {
  core::shoal_id id{};
  std::vector<std::string> peers;
  std::uint32_t members = 0;
  std::uint32_t running = 0;
  const char* gives_way = ""; ///< "this", "other", or "": not known
};

const json_table<other_shoal>& other_shoal_table() {
  using o = const other_shoal&;
  static const json_table<other_shoal> table{
    {"id", "text", "", "of the shoal, in hexadecimal digits",
     [](o v) { return json(core::to_hex(v.id)); }},
    {"peers", "list of texts", "", "names of those that are connected",
     [](o v) { return json(v.peers); }},
    {"members", "whole number", "", "peers in it",
     [](o v) { return json(v.members); }},
    {"running", "whole number", "", "jobs that it runs",
     [](o v) { return json(v.running); }},
    {"gives_way", "text, optional", "",
     "after `recover --force` the one that joins the one made by force, once "
     "it "
     "runs no job: `this` shoal or the `other`",
     [](o v) { return *v.gives_way ? json(v.gives_way) : left_out(); }}};
  return table;
}

const char* gives_way(const core::view& ours, const shoal_of_peer& theirs) {
  if (std::ranges::count(theirs.superseded, ours.shoal) > 0)
    return "this";
  return std::ranges::count(ours.superseded, theirs.shoal,
                            &core::superseded_shoal::shoal)
             > 0
           ? "other"
           : "";
}

} // namespace

/// A member is never listed as a stranger: one that has just returned will
/// report the same shoal as all others a moment later.
json_value
other_shoals_json(const core::view* ours,
                  const std::map<core::peer_id, shoal_of_peer>& strangers) {
  std::map<core::shoal_id, other_shoal> all;
  for (const auto& [peer, said] : strangers) {
    if (!ours || said.shoal == ours->shoal
        || core::find_member(*ours, peer) != nullptr)
      continue;
    other_shoal& o = all[said.shoal];
    o.id = said.shoal;
    o.peers.push_back(said.name);
    o.members = std::max(o.members, said.members);
    o.running = std::max(o.running, said.running);
    o.gives_way = gives_way(*ours, said);
  }
  json out = json::array();
  for (const auto& [id, o] : all)
    out.push_back(written(other_shoal_table(), o));
  return out;
}

std::vector<field_text> other_shoal_fields() {
  return texts_of(other_shoal_table());
}

} // namespace shoal::runtime
