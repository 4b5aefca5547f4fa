// tests/runtime/control/client_requests_test.cpp -- the disk space that uploads
// may take, and requests that wait.
#include "runtime/control/client_requests.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/store/store.hpp"
#include "tests/runtime/control/asked_node.hpp"
#include "tests/support/scratch.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

namespace {

/// A store whose disk has as much room as the test says.
class small_disk final : public store {
public:
  explicit small_disk(const std::filesystem::path& folder)
    : below_(store::open(folder)) {}

  space room() const override { return has; }
  bool contains(const core::blob_digest& d) const override {
    return below_->contains(d);
  }
  std::uint64_t size(const core::blob_digest& d) const override {
    return below_->size(d);
  }
  std::chrono::seconds age(const core::blob_digest& d) const override {
    return below_->age(d);
  }
  std::unique_ptr<blob_writer> write() override { return below_->write(); }
  std::shared_ptr<const blob>
  read(const core::blob_digest& d, std::error_code& error) override {
    return below_->read(d, error);
  }
  std::error_code verify(const core::blob_digest& d) override {
    return below_->verify(d);
  }
  bool set_aside(const core::blob_digest& d) const override {
    return below_->set_aside(d);
  }
  std::error_code remove(const core::blob_digest& d) override {
    return below_->remove(d);
  }
  void claim(std::uint64_t client, const core::blob_digest& d) override {
    below_->claim(client, d);
  }
  void submitted(std::uint64_t client, core::job_id job) override {
    below_->submitted(client, job);
  }
  void drop_claims(std::uint64_t client) override {
    below_->drop_claims(client);
  }
  bool claimed(const core::blob_digest& d,
               const std::function<bool(core::job_id)>& lists) const override {
    return below_->claimed(d, lists);
  }
  std::vector<core::blob_digest> list() const override {
    return below_->list();
  }

  space has;

private:
  std::unique_ptr<store> below_;
};

struct uploads {
  uploads() { disk.has = {std::uint64_t{1} << 40, std::uint64_t{1} << 42}; }

  client_reply ask(client_key who, decltype(client_request::body) body) {
    client_reply out;
    d.ask(who, {++number, std::move(body)},
          [&](const client_reply& r) { out = r; });
    return out;
  }
  bool begins(client_key who, std::uint64_t bytes, std::uint64_t more = 0) {
    last = ask(who, put_begin{bytes, more});
    return last.code == reply_code::ok;
  }

  core::blob_digest puts(client_key who, std::byte fill) {
    const std::vector<std::byte> four(4, fill);
    BOOST_TEST_REQUIRE(begins(who, 4));
    const std::uint64_t upload = last.value;
    ask(who, put_chunk{upload, 0, four});
    return ask(who, put_commit{upload, sha256(four)}).digest;
  }
  void submits(client_key who, core::job_id job, const std::string& why = {}) {
    ask(who, submit_job{});
    d.answered(node.tokens.back(), {job, why, {}, {}});
    d.work(client_requests::clock::now());
  }

  const test::scratch folder{"shoal-client-requests-test"};
  small_disk disk{folder.path()};
  std::unique_ptr<job_journal> journal = open_job_journal({});
  tests::asked_node node{*journal, &disk};
  client_requests d{node, [] {}};
  std::uint64_t number = 0;
  client_reply last;
};

} // namespace

BOOST_AUTO_TEST_SUITE(client_uploads)

BOOST_FIXTURE_TEST_CASE(one_client_has_a_quota_for_what_it_does_not_finish,
                        uploads) {
  BOOST_TEST(begins(1, control_upload_bytes_max - 10));
  BOOST_TEST(!begins(1, 11));
  BOOST_TEST(last.text.find("control_upload_bytes_max") != std::string::npos,
             last.text);
  BOOST_TEST(begins(1, 10));
  BOOST_TEST(begins(2, 11)); // another client has its own
  d.forget(1);
  BOOST_TEST(begins(1, control_upload_bytes_max));
}

BOOST_FIXTURE_TEST_CASE(a_part_of_the_disk_stays_free, uploads) {
  const std::uint64_t mebi = std::uint64_t{1} << 20;
  disk.has = {100 * mebi, 1000 * mebi, 50 * mebi};
  BOOST_TEST(begins(1, 50 * mebi));
  BOOST_TEST(!begins(1, 50 * mebi + 1));
  BOOST_TEST(last.text.find("50 MiB stay free") != std::string::npos,
             last.text);
  BOOST_TEST((last.code == reply_code::again_later)); // it may get room
  disk.has = {0, 1000 * mebi, 50 * mebi};
  BOOST_TEST(!begins(1, 1));
  disk.has = {}; // not known: the writer finds out
  BOOST_TEST(begins(1, 11));
}

/// Of two models of which the disk has room for one, the second one is refused
/// before anything of it is written.
BOOST_FIXTURE_TEST_CASE(what_an_upload_still_needs_no_other_one_gets, uploads) {
  const std::uint64_t mebi = std::uint64_t{1} << 20;
  disk.has = {150 * mebi, 1000 * mebi, 50 * mebi};
  BOOST_TEST(begins(1, 4, 56 * mebi));
  const std::uint64_t upload = last.value;
  BOOST_TEST(!begins(2, 4, 60 * mebi));
  for (const char* part : {"150 MiB are free", "56 MiB of them are reserved",
                           "needs 60 MiB", "wait until the others have ended"})
    BOOST_TEST(last.text.find(part) != std::string::npos, last.text);
  BOOST_TEST((last.code == reply_code::again_later));
  BOOST_TEST(!begins(2, 50 * mebi));   // also without what comes behind it
  BOOST_TEST(begins(2, 4, 30 * mebi)); // 44 MiB are left
  BOOST_TEST(begins(1, 40 * mebi, 16 * mebi)); // its own room it has
  d.forget(2);
  // What is written is counted by the disk.
  const std::vector<std::byte> four(4, std::byte{1});
  ask(1, put_chunk{upload, 0, four});
  ask(1, put_commit{upload, sha256(four)});
  BOOST_TEST(begins(3, 44 * mebi - 1));
  d.forget(3);
  BOOST_TEST(!begins(3, 44 * mebi + 1));
  // The last one of its uploads.
  BOOST_TEST(begins(1, 4));
  BOOST_TEST(begins(3, 60 * mebi - 4));
  d.forget(1);
  d.forget(3);
  BOOST_TEST(begins(2, 100 * mebi));
}

/// The bytes that come next may be here already: alone, they are tried.
BOOST_FIXTURE_TEST_CASE(a_client_alone_may_announce_more_than_the_disk_has,
                        uploads) {
  disk.has = {100, 1000, 50};
  BOOST_TEST(begins(1, 50, 1000));
  BOOST_TEST(!begins(1, 51));
  BOOST_TEST(last.text.find("reserved") == std::string::npos, last.text);
}

/// It was refused midway as soon as another client had reserved some bytes; and it
/// kept all others out, as long as it went on.
BOOST_FIXTURE_TEST_CASE(who_was_admitted_alone_keeps_the_room_there_was,
                        uploads) {
  disk.has = {100, 1000, 50};
  BOOST_TEST(begins(1, 10, 1000));
  const std::uint64_t first = last.value;
  BOOST_TEST(!begins(2, 1)); // 40 bytes are kept for what is behind
  // Most of it is in the store already, so that nothing is used up.
  const auto ends = [&](std::uint64_t upload, std::size_t bytes, int of) {
    const std::vector<std::byte> all(bytes, std::byte(of));
    ask(1, put_chunk{upload, 0, all});
    ask(1, put_commit{upload, sha256(all)});
  };
  ends(first, 10, 0);
  BOOST_TEST(begins(1, 20, 980));
  ends(last.value, 20, 1);
  BOOST_TEST(begins(1, 10, 970));
  ends(last.value, 10, 2);
  BOOST_TEST(!begins(2, 25, 16));
  BOOST_TEST(begins(2, 25, 15));
  BOOST_TEST(begins(1, 10, 960));
  ends(last.value, 10, 3);
  BOOST_TEST(!begins(1, 11, 949)); // for want of room for the upload itself
  BOOST_TEST(last.text.find("needs 11 B") != std::string::npos, last.text);
  BOOST_TEST(begins(1, 10));
}

BOOST_FIXTURE_TEST_CASE(an_upload_ends_when_others_have_filled_the_disk,
                        uploads) {
  BOOST_TEST_REQUIRE(begins(1, 8));
  const std::uint64_t upload = last.value;
  const std::vector<std::byte> four(4, std::byte{1});
  disk.has = {108, 1000, 100};
  BOOST_TEST((ask(1, put_chunk{upload, 0, four}).code == reply_code::ok));
  disk.has.free_bytes = 103;
  last = ask(1, put_chunk{upload, 4, four});
  BOOST_TEST((last.code == reply_code::refused));
  BOOST_TEST(last.text.find("too little room") != std::string::npos, last.text);
  // Its bytes are gone, too.
  BOOST_TEST((ask(1, put_commit{upload, {}}).code == reply_code::not_found));
  BOOST_TEST(std::filesystem::is_empty(folder.path() / "tmp"));
}

BOOST_FIXTURE_TEST_CASE(an_upload_is_claimed_until_its_job_is_known, uploads) {
  BOOST_TEST_REQUIRE(begins(1, 4));
  const std::uint64_t upload = last.value;
  const std::vector<std::byte> four(4, std::byte{1});
  ask(1, put_chunk{upload, 0, four});
  const core::blob_digest blob =
    ask(1, put_commit{upload, sha256(four)}).digest;
  const auto seven = [](core::job_id job) { return job == 7; };
  BOOST_TEST(disk.claimed(blob, seven));
  ask(1, submit_job{});
  d.answered(node.tokens.back(), {7, "refused", {}, {}});
  d.work(client_requests::clock::now());
  BOOST_TEST(disk.claimed(blob, seven));
  ask(1, submit_job{});
  d.answered(node.tokens.back(), {7, {}, {}, {}});
  d.work(client_requests::clock::now());
  BOOST_TEST(!disk.claimed(blob, seven));
}

/// Of a load that was cancelled, or a command that was ended.
BOOST_FIXTURE_TEST_CASE(a_client_without_a_job_leaves_what_it_has_added,
                        uploads) {
  using blobs = std::vector<core::blob_digest>;
  const auto no_job = [](core::job_id) { return false; };
  puts(1, std::byte{1});
  submits(1, 7);
  puts(1, std::byte{2}); // of that job, too
  d.forget(1);
  puts(2, std::byte{1}); // is here already
  d.forget(2);
  BOOST_TEST((node.left == blobs{}));
  const core::blob_digest three = puts(3, std::byte{3});
  submits(3, 8, "refused");
  BOOST_TEST(disk.claimed(three, no_job));
  d.forget(3);
  BOOST_TEST((node.left == blobs{three}));
  BOOST_TEST(!disk.claimed(three, no_job));
  // A job that was being submitted may run.
  const core::blob_digest four = puts(4, std::byte{4});
  ask(4, submit_job{});
  d.forget(4);
  BOOST_TEST((node.left == blobs{three, four}));
  BOOST_TEST(disk.claimed(four, no_job));
}

BOOST_FIXTURE_TEST_CASE(the_last_client_with_a_blob_leaves_it, uploads) {
  const core::blob_digest blob = puts(1, std::byte{1});
  puts(2, std::byte{1});
  puts(3, std::byte{1});
  submits(3, 7);
  d.forget(1);
  BOOST_TEST(node.left.empty());
  d.forget(2);
  BOOST_TEST(
    (node.left == std::vector{blob})); // job 7 may need it: the view says
}

BOOST_FIXTURE_TEST_CASE(a_checkpoint_that_a_job_has_taken_is_not_left,
                        uploads) {
  const core::blob_digest blob = puts(1, std::byte{1});
  node.refusal = {reply_code::not_found, "no such job runs"};
  ask(1, offer_checkpoint{7, blob, 5});
  node.refusal = {};
  ask(1, offer_checkpoint{7, blob, 5});
  d.forget(1);
  BOOST_TEST(node.left.empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(waiting_clients)

/// What takes a view reaches the node with a token, and is answered by it.
BOOST_FIXTURE_TEST_CASE(requests_that_need_a_view_are_answered_by_their_token,
                        uploads) {
  const std::vector<decltype(client_request::body)> bodies{
    submit_job{}, recover_force{}, make_invite{},
    use_invite{}, revoke{},        remove_job{}};
  std::vector<std::uint64_t> answered;
  for (const auto& body : bodies)
    d.ask(answered.size() + node.tokens.size(), {++number, body},
          [&](const client_reply& r) { answered.push_back(r.value); });
  BOOST_TEST(answered.empty());
  BOOST_TEST_REQUIRE(node.tokens.size() == bodies.size());
  std::vector<std::uint64_t> wanted;
  for (const std::uint64_t token : node.tokens) {
    wanted.push_back(100 + token);
    d.answered(token, {100 + token, {}, {}, {}});
    d.work(client_requests::clock::now());
  }
  BOOST_TEST(answered == wanted, boost::test_tools::per_element());
}

/// The last peer of a run ended before the command had fetched its checkpoint.
BOOST_FIXTURE_TEST_CASE(a_job_that_has_ended_is_followed_until_its_client_goes,
                        uploads) {
  const auto now = [] { return client_requests::clock::now(); };
  const auto event = [&](job_event_kind kind, core::job_id job) {
    job_event e;
    e.kind = kind;
    e.text = "cancelled";
    journal->add(job, e);
  };
  event(job_event_kind::step, 7);
  event(job_event_kind::done, 8);
  ask(1, ask_events{7, 0});
  BOOST_TEST(!d.serves_follower(now())); // its job goes on elsewhere
  event(job_event_kind::done, 7);
  BOOST_TEST(d.serves_follower(now()));
  const auto late = now() + last_fetch_pause_max + std::chrono::seconds(1);
  BOOST_TEST(!d.serves_follower(late));
  d.forget(2); // the connection of a fetch
  BOOST_TEST(d.serves_follower(now()));
  d.forget(1);
  BOOST_TEST(!d.serves_follower(now()));
  // A peer looks for steps.
  d.ask(
    3, {9, ask_events{7, 0}}, [](const client_reply&) {}, true);
  BOOST_TEST(!d.serves_follower(now()));
}

/// Also when its client has gone: nobody would look at the outcome.
BOOST_FIXTURE_TEST_CASE(the_node_learns_that_nobody_waits_any_more, uploads) {
  std::vector<std::string> said;
  const auto reply = [&](const client_reply& r) { said.push_back(r.text); };
  d.ask(1, {1, submit_job{}}, reply);
  d.ask(2, {2, submit_job{}}, reply);
  d.ask(3, {3, submit_job{}}, reply);
  BOOST_TEST_REQUIRE(node.tokens.size() == 3);
  d.answered(node.tokens[0], {7, {}, {}, {}});
  d.work(client_requests::clock::now());
  d.forget(1);
  BOOST_TEST(node.abandoned.empty());
  d.forget(2);
  BOOST_TEST((node.abandoned == std::vector{node.tokens[1]}));
  node.late_text = "no quorum";
  d.work(client_requests::clock::now() + agreement_wait);
  BOOST_TEST((node.abandoned == std::vector{node.tokens[1], node.tokens[2]}));
  BOOST_TEST((said == std::vector<std::string>{"", "no quorum"}));
}

/// The request is answered before what takes it back, and only once.
BOOST_FIXTURE_TEST_CASE(a_request_can_be_taken_back, uploads) {
  std::vector<std::pair<std::uint64_t, std::string>> said;
  const auto reply = [&](const client_reply& r) {
    said.emplace_back(r.number, r.code == reply_code::refused
                                  ? r.text
                                  : std::to_string(r.value));
  };
  using list = decltype(said);
  const auto now_said = [&] { return std::exchange(said, {}); };
  for (const std::uint64_t number : {1, 2, 3})
    d.ask(1, {number, submit_job{}}, reply);
  BOOST_TEST_REQUIRE(node.tokens.size() == 3);
  node.late_text = "withdrawn";
  d.ask(2, {9, take_back{1}}, reply); // of another client
  BOOST_TEST((now_said() == list{{9, "0"}}));
  d.ask(1, {9, take_back{1}}, reply);
  BOOST_TEST((now_said() == list{{1, "withdrawn"}, {9, "0"}}));
  BOOST_TEST((node.abandoned == std::vector{node.tokens[0]}));
  // What was agreed is told, though the client takes it back.
  d.answered(node.tokens[1], {7, {}, {}, {}});
  d.ask(1, {9, take_back{2}}, reply);
  BOOST_TEST((now_said() == list{{2, "7"}, {9, "0"}}));
  node.answers_now = true;
  d.ask(1, {9, take_back{3}}, reply);
  BOOST_TEST((now_said() == list{{9, "0"}}));
  d.answered(node.tokens[2], {8, {}, {}, {}});
  d.work(client_requests::clock::now());
  BOOST_TEST((now_said() == list{{3, "8"}}));
  BOOST_TEST((node.abandoned == std::vector{node.tokens[0]}));
}

BOOST_FIXTURE_TEST_CASE(requests_about_a_job_are_answered_at_once, uploads) {
  BOOST_TEST((ask(1, stop_job{7, true}).code == reply_code::ok));
  for (const reply_code code : {reply_code::not_found, reply_code::refused}) {
    node.refusal = {code, "no such job runs"};
    for (const decltype(client_request::body)& body :
         {decltype(client_request::body)(stop_job{7, true}),
          decltype(client_request::body)(wait_no_longer{7})}) {
      const client_reply r = ask(1, body);
      BOOST_TEST((r.code == code));
      BOOST_TEST(r.text == "no such job runs");
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
