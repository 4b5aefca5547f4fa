// tests/runtime/wire/fields_test.cpp -- structs, fields() and the .proto files
// have the same fields.
#include "runtime/core/cluster/events.hpp"
#include "runtime/core/serving/serve_messages.hpp"
#include "runtime/core/training/job_messages.hpp"
#include "runtime/wire/client_messages.hpp"
#include "runtime/wire/cluster.pb.h"
#include "runtime/wire/job.pb.h"
#include "runtime/wire/node.pb.h"
#include "runtime/wire/serve.pb.h"

#include <boost/test/unit_test.hpp>

#include <set>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(fields_of_structs)

namespace {

namespace cl = core::cluster;
using names = std::set<std::string>;

/// Names of a struct's fields, as fields() shows them.
class field_names : public core::visitor {
public:
  names all;
  template <class T, class Limit = core::any_value>
  void operator()(const char* name, const T&, Limit = {}) {
    BOOST_TEST(all.insert(name).second, name << " is named twice");
  }
};

template <class T>
names named() {
  field_names out;
  const T x{};
  fields(out, x);
  return out.all;
}

/// Those of a message; of a oneof the name of it, not of its kinds.
template <class Wire>
names declared() {
  names out;
  for (int i = 0; i < Wire::descriptor()->field_count(); ++i) {
    const auto* field = Wire::descriptor()->field(i);
    const auto* kinds = field->real_containing_oneof();
    out.insert(kinds == nullptr ? field->name() : kinds->name());
  }
  return out;
}

/// The kinds of a message's oneof.
template <class Wire>
names declared_kinds() {
  names out;
  const auto* kinds = Wire::descriptor()->oneof_decl(0);
  for (int i = 0; i < kinds->field_count(); ++i)
    out.insert(kinds->field(i)->name());
  return out;
}

/// A member of any type.
struct anything {
  template <class T>
  operator T() const;
};

/// How many members an aggregate has.
template <class T, class... Members>
constexpr std::size_t members() {
  if constexpr (requires { T{Members{}..., anything{}}; })
    return members<T, Members..., anything>();
  else
    return sizeof...(Members);
}

void expect_same(const names& in_cpp, const names& in_proto) {
  for (const std::string& name : in_cpp)
    BOOST_TEST(in_proto.contains(name), name << " is not in the .proto file");
  for (const std::string& name : in_proto)
    BOOST_TEST(in_cpp.contains(name), name << " is only in the .proto file");
}

/// @param extra members that fields() shows in parts: names beyond one each
/// @param unsent members that fields() does not show
template <class T, class Wire>
void compare(std::size_t extra = 0, std::size_t unsent = 0) {
  BOOST_TEST_CONTEXT(Wire::descriptor()->name()) {
    const names of_struct = named<T>();
    expect_same(of_struct, declared<Wire>());
    BOOST_TEST(of_struct.size() + unsent == members<T>() + extra,
               "fields() shows " << of_struct.size() << " of "
                                 << members<T>() + extra - unsent);
  }
}

/// Kinds of a variant are those of a message's oneof.
template <class Wire, std::size_t N>
void compare_kinds(const std::array<const char*, N>& kinds) {
  expect_same(names(kinds.begin(), kinds.end()), declared_kinds<Wire>());
}

} // namespace

BOOST_AUTO_TEST_CASE(views_name_all_their_fields) {
  compare<core::member_id, wire::MemberId>();
  compare<core::device_profile, wire::DeviceProfile>();
  compare<core::network_profile, wire::NetworkProfile>();
  compare<core::member, wire::Member>();
  compare<core::seat, wire::Seat>();
  compare<core::shard_place, wire::ShardPlace>();
  compare<core::stage_place, wire::StagePlace>();
  compare<core::replica_place, wire::ReplicaPlace>();
  compare<core::holder_place, wire::HolderPlace>();
  compare<core::assignment, wire::Assignment>();
  compare<core::island_place, wire::IslandPlace>();
  compare<core::island_mark, wire::IslandMark>();
  compare<core::model_version, wire::ModelVersion>();
  compare<core::job_entry, wire::JobEntry>();
  compare<core::invitation, wire::Invitation>();
  compare<core::superseded_shoal, wire::SupersededShoal>();
  compare<core::stalled_peer, wire::StalledPeer>();
  compare<core::cut_pair, wire::CutPair>();
  compare<core::view, wire::View>();
}

BOOST_AUTO_TEST_CASE(clusters_messages_name_all_their_fields) {
  compare<cl::ballot, wire::Ballot>();
  compare<cl::hello, wire::Hello>();
  compare<cl::join_request, wire::JoinRequest>();
  compare<cl::join_answer, wire::JoinAnswer>();
  compare<cl::heartbeat, wire::Heartbeat>();
  compare<cl::heartbeat_ack, wire::HeartbeatAck>();
  compare<cl::alert_note, wire::AlertNote>();
  compare<cl::gossip, wire::Gossip>();
  compare<cl::prepare, wire::Prepare>();
  compare<cl::promise, wire::Promise>();
  compare<cl::accept, wire::Accept>();
  compare<cl::accepted, wire::Accepted>();
  compare<cl::refused, wire::Refused>();
  compare<cl::decided, wire::Decided>();
  compare<cl::view_request, wire::ViewRequest>();
  compare<cl::change, wire::Change>();
  compare<cl::change_request, wire::ChangeRequest>();
  compare<cl::key_offer, wire::KeyOffer>();
  compare<cl::key_held, wire::KeyHeld>();
  compare<cl::key_request, wire::KeyRequest>();
  compare_kinds<wire::ClusterMessage>(cl::message_names);
}

BOOST_AUTO_TEST_CASE(records_name_all_their_fields) {
  compare<cl::view_record, wire::ViewRecord>();
  compare<cl::vote_record, wire::VoteRecord>();
  compare<cl::key_record, wire::KeyRecord>();
  compare_kinds<wire::Record>(cl::record_names);
}

BOOST_AUTO_TEST_CASE(jobs_messages_name_all_their_fields) {
  compare<core::job_header, wire::JobHeader>();
  compare<core::state_version, wire::StateVersion>();
  compare<core::unit_square, wire::UnitSquare>();
  compare<core::unit_digest, wire::UnitDigest>();
  compare<core::vote, wire::Vote>();
  compare<core::step_record, wire::StepRecord>();
  compare<core::held_unit, wire::HeldUnit>();
  compare<core::checkpoint_ref, wire::CheckpointRef>();
  compare<core::part_range, wire::PartRange>();
  compare<core::stored_checkpoint, wire::StoredCheckpoint>();
  compare<core::seal, wire::Seal>();
  compare<core::have_blobs, wire::HaveBlobs>();
  compare<core::progress, wire::Progress>(2); // the three times of step_time
  compare<core::eval_result, wire::EvalResult>();
  compare<core::checkpoint_published, wire::CheckpointPublished>();
  compare<core::have_checkpoint, wire::HaveCheckpoint>();
  compare<core::written_shard, wire::WrittenShard>();
  compare<core::shards_written, wire::ShardsWritten>();
  compare<core::stall_report, wire::StallReport>();
  compare<core::arrival_wanted, wire::ArrivalWanted>();
  compare<core::arrival_begun, wire::ArrivalBegun>();
  compare<core::arrival_complete, wire::ArrivalComplete>();
  compare<core::records_wanted, wire::RecordsWanted>();
  compare<core::restorable, wire::Restorable>();
  compare<core::remark, wire::Remark>();
  compare<core::stop_waiting, wire::StopWaiting>();
  compare_kinds<wire::JobMessage>(core::job_message_names);
  // A copy is sent as the first two fields of a HeldUnit.
  const names held = named<core::held_unit>();
  const names copied = named<core::unit_copy>();
  BOOST_TEST(std::ranges::includes(held, copied));
  BOOST_TEST(copied.size() == members<core::unit_copy>());
}

BOOST_AUTO_TEST_CASE(messages_of_served_models_name_all_their_fields) {
  compare<core::token_bias, wire::TokenBias>();
  compare<core::sampling_wish, wire::SamplingWish>();
  compare<core::serve_request, wire::ServeRequest>();
  compare<core::text_rule, wire::TextRule>();
  compare<core::token_word, wire::TokenWord>();
  compare<core::token_filter, wire::TokenFilter>();
  compare<core::serve_rule, wire::ServeRule>();
  compare<core::serve_text_ready, wire::ServeTextReady>();
  compare<core::serve_cancel, wire::ServeCancel>();
  compare<core::serve_hold, wire::ServeHold>();
  compare<core::token_chance, wire::TokenChance>();
  compare<core::served_token, wire::ServedToken>();
  compare<core::stream_news, wire::StreamNews>();
  compare<core::serve_news, wire::ServeNews>();
  compare<core::pipeline_report, wire::PipelineReport>();
  compare<core::report_wanted, wire::ReportWanted>();
  compare<core::serve_ask, wire::ServeAsk>();
  compare<core::serve_ready, wire::ServeReady>();
  compare<core::token_count, wire::TokenCount>();
  compare<core::row_choice, wire::RowChoice>();
  compare<core::row_pooling, wire::RowPooling>();
  compare<core::serve_row, wire::ServeRow>();
  compare<core::serve_pass, wire::ServePass>();
  compare<core::row_scores, wire::RowScores>();
  compare<core::row_result, wire::RowResult>();
  compare<core::serve_chosen, wire::ServeChosen>();
  compare_kinds<wire::ServeMessage>(core::serve_message_names);
}

BOOST_AUTO_TEST_CASE(clients_messages_name_all_their_fields) {
  compare<ask_status, wire::AskStatus>();
  compare<put_begin, wire::PutBegin>();
  compare<put_chunk, wire::PutChunk>();
  compare<put_commit, wire::PutCommit>();
  compare<get_blob, wire::GetBlob>();
  compare<submit_job, wire::SubmitJob>();
  compare<ask_events, wire::AskEvents>();
  compare<stop_job, wire::StopJob>();
  compare<recover_force, wire::RecoverForce>();
  compare<ask_job, wire::AskJob>();
  compare<wait_no_longer, wire::WaitNoLonger>();
  compare<offer_checkpoint, wire::OfferCheckpoint>();
  compare<leave_shoal, wire::LeaveShoal>();
  compare<make_invite, wire::MakeInvite>();
  compare<use_invite, wire::UseInvite>(0, 1); // the TLS proof of the sender
  compare<revoke, wire::Revoke>();
  compare<remove_job, wire::RemoveJob>();
  compare<ask_lines, wire::AskLines>();
  compare<take_back, wire::TakeBack>();
  compare<client_request, wire::ClientRequest>();
  compare_kinds<wire::ClientRequest>(client_request_names);
  compare<job_event, wire::JobEvent>();
  compare<client_reply, wire::ClientReply>();
}

BOOST_AUTO_TEST_CASE(nodes_messages_name_all_their_fields) {
  compare<link_credit, wire::LinkCredit>(2); // the three numbers of its tag
  compare<blob_request, wire::BlobRequest>();
  compare<blob_chunk, wire::BlobChunk>();
  compare<paired_address, wire::PairedAddress>();
  compare<link_probe, wire::LinkProbe>();
  compare<role_message, wire::RoleMessage>();
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
