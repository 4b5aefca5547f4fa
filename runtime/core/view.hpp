// runtime/core/view.hpp -- the one small thing that all peers agree on.
//
// View = epoch, members with the measurements of them, jobs, and each job's
// assignment in the view before. Views of one shoal form a single chain; two
// peers never act on different views of one epoch. make_plan
// (planning/plan.hpp) turns a view into what runs where.
//
// Invariants
// V-1: members are sorted by peer id and each peer occurs once.
// V-2: jobs are sorted by id.
// V-3: an assignment names only members of the view that it was made from.
// V-4: cuts are sorted, each occurs once, and both ends are members.
//
// Below each struct stand its fields as messages and canonical bytes contain
// them (fields.hpp).
//
// Threads: plain data.
#pragma once

#include "runtime/core/assignment.hpp"
#include "runtime/core/ids.hpp"
#include "runtime/core/job_entry.hpp"
#include "runtime/core/limits.hpp"
#include "runtime/core/planner_version.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::core {

/// The abilities of a peer, measured at start and quantised, so that noise does
/// not cause new views.
struct device_profile {
  std::string kind = "cpu";            ///< "cpu" now; later "cuda"
  std::string name;                    ///< the processor's name, for display
  std::uint32_t threads = 1;           ///< usable by the peer
  std::uint64_t mflops = 0;            ///< measured fp32 matrix speed, MFLOP/s
  std::uint64_t memory_bytes = 0;      ///< usable by jobs
  std::uint32_t host_threads = 0;      ///< cores of its host; 0: unknown
  std::uint64_t stream_mbps = 0;       ///< memory bandwidth, measured, MB/s; 0:
                                       ///< none
  std::uint64_t host_memory_bytes = 0; ///< total of its host or container; 0:
                                       ///< unknown
  /// No user chose memory_bytes: peers of one host with this flag have that
  /// amount only once, for all of them (planning/host_memory.hpp).
  bool memory_is_share = false;
  /// Room on the peer's disk for the files of served models, those that are there
  /// included (planning/file_keepers.hpp); 0: unknown.
  std::uint64_t disk_bytes = 0;
  friend bool
  operator==(const device_profile&, const device_profile&) = default;
};

/// Its editions are those of `member`.
void fields(auto& v, of<device_profile> auto& x) {
  v("kind", x.kind, text_of(limits::name_bytes_max));
  v("name", x.name, text_of(limits::name_bytes_max));
  v("threads", x.threads, at_most(limits::threads_max));
  v("mflops", x.mflops, at_most(limits::mflops_max));
  v("memory_bytes", x.memory_bytes, at_most(limits::bytes_max));
  v.edition(1, presence::if_set);
  v("host_threads", x.host_threads, at_most(limits::threads_max));
  v("stream_mbps", x.stream_mbps, at_most(limits::mflops_max));
  v.edition(2, presence::if_set);
  v("host_memory_bytes", x.host_memory_bytes, at_most(limits::bytes_max));
  v("memory_is_share", x.memory_is_share);
  v.edition(3, presence::if_set); // only for the member
  v.edition(4, presence::if_set);
  v("disk_bytes", x.disk_bytes, at_most(limits::bytes_max));
}

/// A network that a member is in, as measured at its end and quantised. The
/// speed between two members is that of the worse end of their best common
/// network.
struct network_profile {
  std::string name; ///< equal where members reach each other; "host": within
  nanoseconds latency = 0; ///< one way, of a small message
  std::uint64_t bytes_per_s = 0;
  friend bool
  operator==(const network_profile&, const network_profile&) = default;
};
void fields(auto& v, of<network_profile> auto& x) {
  v("name", x.name, text_of(limits::name_bytes_max));
  v("latency", x.latency, at_most(limits::latency_max));
  v("bytes_per_s", x.bytes_per_s, at_most(limits::bytes_max));
}
/// Limit of the networks that a member lists.
inline constexpr std::size_t networks_max = 4;
/// Limit of its roles: more than the plug-ins of one node have, few enough that
/// a view of many members stays small.
inline constexpr std::size_t member_roles_max = 32;

enum class member_state : std::uint8_t {
  active = 1,
  leaving = 2, ///< gets no work, still holds state until others have it
  joining = 3, ///< admitted, not in contact yet: no vote, no work
};

struct member {
  member_id id;
  std::string name;                   ///< for display
  std::vector<std::string> addresses; ///< "host:port" for tls
  std::string host; ///< boot id: peers that share cores and memory
  device_profile device;
  std::vector<network_profile> networks; ///< empty: not measured
  std::uint64_t instance = 0;            ///< identifies one start of the
                                         ///< process
  bool voter = true;                     ///< false only while joining
  bool witness = false;                  ///< votes, gets no work
  member_state state = member_state::active;
  std::vector<std::string> roles; ///< names of roles that run files may place
                                  ///< here
  friend bool operator==(const member&, const member&) = default;
};
void fields(auto& v, of<member> auto& x) {
  v("id", x.id);
  v("instance", x.instance);
  v("name", x.name, text_of(limits::name_bytes_max));
  v("addresses", x.addresses,
    list_of(limits::addresses_max, text_of(limits::address_bytes_max)));
  v("host", x.host, text_of(limits::name_bytes_max));
  v("device", x.device);
  v("voter", x.voter);
  v("witness", x.witness);
  v("state", x.state, up_to(member_state::joining));
  v.edition(1, presence::if_set); // measurements, also of the device
  v("networks", x.networks, list_of(networks_max));
  v.edition(2, presence::if_set); // only for the device
  v.edition(3, presence::if_set);
  v("roles", x.roles,
    list_of(member_roles_max, text_of(limits::role_name_bytes_max)));
}

/// Two members that cannot reach each other, though a quorum reaches both: no
/// plan may need a link between them.
struct cut_pair {
  member_id low; ///< the lower peer id
  member_id high;
  friend auto operator<=>(const cut_pair&, const cut_pair&) = default;
};
void fields(auto& v, of<cut_pair> auto& x) {
  v("low", x.low);
  v("high", x.high);
}

/// A token that was handed out: the first peer that proves possession of its
/// key may have the cluster key, once.
struct invitation {
  cluster_key key{};          ///< of the token, not of the cluster
  std::int64_t expires_s = 0; ///< Unix time
  peer_id used_by{};          ///< zero: not used yet
  friend bool operator==(const invitation&, const invitation&) = default;
};
void fields(auto& v, of<invitation> auto& x) {
  v("key", x.key);
  v("expires_s", x.expires_s);
  v("used_by", x.used_by);
}

/// A peer that was expelled because it stalled a job although it answered. It
/// returns after a pause that grows with `times`.
struct stalled_peer {
  peer_id peer{};
  std::uint32_t times = 0; ///< in quick succession
  epoch since = 0;         ///< the view that expelled it last
  friend bool operator==(const stalled_peer&, const stalled_peer&) = default;
};
void fields(auto& v, of<stalled_peer> auto& x) {
  v("peer", x.peer);
  v("times", x.times, at_most(cluster::stall_times_max));
  v("since", x.since, at_most(epoch_max));
}

/// A shoal that had no quorum when `recover --force` created another one, which
/// goes on with its jobs.
struct superseded_shoal {
  shoal_id shoal{};
  epoch number = 0; ///< its last view, as known to the peer that was forced
  friend bool
  operator==(const superseded_shoal&, const superseded_shoal&) = default;
};
void fields(auto& v, of<superseded_shoal> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
}

struct view {
  shoal_id shoal{};
  epoch number = 0;
  std::string cluster;
  std::vector<member> members;
  std::vector<job_entry> jobs;
  std::vector<assignment> previous; ///< assignments of the previous view
  /// The version of the peers that agreed on it.
  std::uint32_t planner_version = core::planner_version;
  /// Set in a shoal's last view: its members join this shoal instead.
  std::optional<shoal_id> dissolved_into;
  std::vector<std::string> dissolved_addresses; ///< addresses of that shoal
  std::vector<cut_pair> cuts;
  /// The cluster key in use; zero: the one with which the peers were started.
  core::key_digest key{};
  std::vector<peer_id> revoked; ///< never admitted again; newest last
  /// Former members, newest last: they may come back with a replaced key.
  std::vector<peer_id> lapsed;
  std::vector<invitation> invites;   ///< oldest first
  std::vector<stalled_peer> stalled; ///< members or not; latest last
  /// Shoals whose peers join this one when they return; latest last.
  std::vector<superseded_shoal> superseded;
  /// Jobs that have ended and are no longer listed, newest last: a late
  /// submission of one of them is ignored.
  std::vector<job_id> removed;
  /// Numbers of views in which the shoal was as good as gone: the next one was
  /// proposed by a process that had returned, and no process that was there
  /// before has proposed any since. Ascending.
  std::vector<epoch> outages;
  friend bool operator==(const view&, const view&) = default;
};

/// Whether V-1, V-2 and V-4 hold.
bool is_in_order(const view& v);

void fields(auto& v, of<view> auto& x) {
  v("shoal", x.shoal);
  v("number", x.number, at_most(epoch_max));
  v("cluster", x.cluster, text_of(limits::name_bytes_max));
  v("members", x.members, list_of(cluster::members_max));
  v("jobs", x.jobs, list_of(cluster::jobs_max));
  v("previous", x.previous, list_of(cluster::jobs_max));
  v("planner_version", x.planner_version);
  v("dissolved_into", x.dissolved_into);
  v("dissolved_addresses", x.dissolved_addresses,
    list_of(limits::addresses_max, text_of(limits::address_bytes_max)));
  v.edition(1, presence::if_set);
  v("cuts", x.cuts, list_of(cluster::cuts_max));
  v.edition(2, presence::if_set_or_later);
  v("key", x.key, or_absent());
  v("revoked", x.revoked, list_of(cluster::revoked_max));
  v("lapsed", x.lapsed, list_of(cluster::lapsed_max));
  v("invites", x.invites, list_of(cluster::invites_max));
  v.edition(3, presence::if_set_or_later);
  v("stalled", x.stalled, list_of(cluster::stalled_max));
  v.edition(4, presence::if_set_or_later);
  v("superseded", x.superseded, list_of(cluster::superseded_max));
  v.edition(5, presence::if_set_or_later);
  v("removed", x.removed, list_of(cluster::jobs_removed_max));
  v.edition(6, presence::if_set_or_later);
  v("outages", x.outages, list_of(cluster::outages_max, at_most(epoch_max)));
  v.must(runtime::errc::corrupt, [&] { return is_in_order(x); });
}

/// @returns the member with this peer id, or nullptr.
const member* find_member(const view& v, const peer_id& id);
const job_entry* find_job(const view& v, job_id id);
/// False for a job of which the view knows nothing: it may be a later one.
bool has_ended(const view& v, job_id id);

/// Whether the view lists these two, in either order, as cut from each other.
bool is_cut(const view& v, const peer_id& a, const peer_id& b);
bool is_revoked(const view& v, const peer_id& id);

/// Whether the member's vote counts: it is a voter and has taken its seat.
bool votes(const member& m);

/// Whether `agreeing` (peers; duplicates and strangers are ignored) is a
/// quorum of the voters of `v`: more than half, or exactly half with the
/// voter of the lowest id among them.
bool is_quorum(const view& v, const std::vector<peer_id>& agreeing);

} // namespace shoal::core
