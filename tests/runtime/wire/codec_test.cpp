// tests/runtime/wire/codec_test.cpp -- messages survive, garbage does not.
#include "runtime/core/cluster/local/view_size.hpp"
#include "runtime/core/cluster/membership.hpp" // limits
#include "runtime/wire/codec.hpp"
#include "tests/runtime/wire/random_message.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::runtime {

BOOST_AUTO_TEST_SUITE(codec_of_messages)

namespace cl = core::cluster;

BOOST_AUTO_TEST_CASE(every_message_comes_back_as_it_was) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    tests::random_message random(seed);
    for (std::size_t kind = 0; kind < tests::random_message::kinds; ++kind) {
      BOOST_TEST_CONTEXT("seed " << seed << " kind " << kind) {
        envelope in = random.any(kind);
        auto bytes = codec::encode(in);
        envelope out;
        BOOST_TEST_REQUIRE(!codec::decode(bytes, out));
        BOOST_TEST_REQUIRE(out.index() == in.index());
        // Equal bytes of both stand for equal fields; the encoder is
        // deterministic for one value in one process.
        BOOST_TEST(bool(codec::encode(out) == bytes));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(views_come_back_equal) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    core::view v = tests::random_message(seed).view();
    envelope out;
    BOOST_TEST_REQUIRE(
      !codec::decode(codec::encode(cl::message(cl::decided{v})), out));
    BOOST_TEST(
      bool(std::get<cl::decided>(std::get<cl::message>(out)).value == v));
  }
}

BOOST_AUTO_TEST_CASE(the_bound_of_a_views_bytes_holds) {
  const std::size_t around =
    codec::encode(cl::message(cl::decided{core::view{}})).size();
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    core::view v = tests::random_message(seed).view();
    const std::size_t bytes =
      codec::encode(cl::message(cl::decided{v})).size() - around;
    BOOST_TEST(bytes <= core::bytes_bound(v));
  }
  // No field of any size may be missing from the bound.
  core::view v;
  v.members.resize(1);
  v.jobs.resize(1);
  v.jobs[0].run_json.assign(60000, 'x');
  v.jobs[0].want_blocks.assign(1000, 1U << 31);
  v.previous.resize(1);
  v.previous[0].islands.resize(1);
  v.previous[0].islands[0].replicas.resize(100);
  for (auto& r : v.previous[0].islands[0].replicas)
    r.stages.resize(100);
  BOOST_TEST(codec::encode(cl::message(cl::decided{v})).size()
             <= core::bytes_bound(v) + around);
}

BOOST_AUTO_TEST_CASE(records_come_back_equal) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    cl::record r = tests::random_message(seed).record();
    cl::record out;
    BOOST_TEST_REQUIRE(!codec::decode_record(codec::encode_record(r), out));
    BOOST_TEST(bool(out == r));
  }
}

BOOST_AUTO_TEST_CASE(cut_and_flipped_bytes_never_do_harm) {
  tests::random_message random(7);
  for (std::size_t kind = 0; kind < tests::random_message::kinds; ++kind) {
    auto bytes = codec::encode(random.any(kind));
    envelope out;
    for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 16)
      (void)codec::decode(std::span(bytes).first(size), out);
    for (std::size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 64) {
      auto flipped = bytes;
      flipped[at] ^= std::byte{0x40};
      (void)codec::decode(flipped, out);
    }
  }
}

BOOST_AUTO_TEST_CASE(too_long_a_message_is_refused) {
  std::vector<std::byte> bytes(codec::message_bytes_max + 1);
  envelope out;
  BOOST_TEST(codec::decode(bytes, out) == errc::too_large);
}

BOOST_AUTO_TEST_CASE(an_empty_message_is_refused) {
  envelope out;
  BOOST_TEST(codec::decode({}, out) == errc::unknown);
}

BOOST_AUTO_TEST_CASE(a_view_with_a_peer_twice_is_refused) {
  core::view v;
  v.members.resize(2);
  envelope out;
  BOOST_TEST(codec::decode(codec::encode(cl::message(cl::decided{v})), out)
             == errc::corrupt);
}

BOOST_AUTO_TEST_CASE(more_members_than_the_limit_are_refused) {
  core::view v;
  v.members.resize(cl::members_max + 1);
  envelope out;
  BOOST_TEST(codec::decode(codec::encode(cl::message(cl::decided{v})), out)
             == errc::too_large);
}

BOOST_AUTO_TEST_CASE(shards_are_in_order_and_not_too_many) {
  core::shards_written m;
  m.shards.resize(2); // the same unit twice
  envelope out;
  BOOST_TEST(codec::decode(codec::encode(core::job_message(m)), out)
             == errc::corrupt);
  m.shards[1].unit = 1;
  BOOST_TEST(!codec::decode(codec::encode(core::job_message(m)), out));
  m.shards[1].unit = core::job_units_max;
  BOOST_TEST(bool(codec::decode(codec::encode(core::job_message(m)), out)));
  m.shards.assign(core::job_units_max + 1, {});
  for (std::uint32_t u = 0; u < m.shards.size(); ++u)
    m.shards[u].unit = u;
  BOOST_TEST(codec::decode(codec::encode(core::job_message(m)), out)
             == errc::too_large);
  m.shards.pop_back();
  for (core::written_shard& s : m.shards) { // as long as they get
    s.model.fill(255);
    s.optimizer.fill(255);
    s.model_bytes = s.optimizer_bytes = std::uint64_t{1} << 40;
  }
  const auto bytes = codec::encode(core::job_message(m));
  BOOST_TEST(bytes.size() < codec::message_bytes_max);
  BOOST_TEST(!codec::decode(bytes, out));
}

BOOST_AUTO_TEST_CASE(an_unknown_enumerator_is_refused) {
  cl::change_request request;
  request.what.kind = static_cast<cl::change_kind>(77);
  envelope out;
  BOOST_TEST(codec::decode(codec::encode(cl::message(request)), out)
             == errc::unknown);
}

BOOST_AUTO_TEST_CASE(control_characters_in_a_name_are_refused) {
  cl::hello hello;
  hello.name = "a\x1b[31m";
  envelope out;
  BOOST_TEST(codec::decode(codec::encode(cl::message(hello)), out)
             == errc::corrupt);
}

// A node whose lines are JSON ended at a name that was not UTF-8.
BOOST_AUTO_TEST_CASE(a_name_that_may_not_be_shown_is_refused) {
  for (const char* name :
       {"Jos\xe9", "\xed\xa0\x80", "a\u009b2J", "a\u202ez", "a\nb"}) {
    BOOST_TEST_CONTEXT(name) {
      cl::hello hello;
      hello.name = name;
      envelope out;
      BOOST_TEST(codec::decode(codec::encode(cl::message(hello)), out)
                 == errc::corrupt);
      hello.name.clear();
      hello.version = name;
      BOOST_TEST(codec::decode(codec::encode(cl::message(hello)), out)
                 == errc::corrupt);
      core::view v = tests::random_message(3).view();
      v.members[0].name = name;
      BOOST_TEST(codec::decode(codec::encode(cl::message(cl::decided{v})), out)
                 == errc::corrupt);
    }
  }
  cl::hello hello;
  hello.name = "Jos\u00e9";
  envelope out;
  BOOST_TEST(!codec::decode(codec::encode(cl::message(hello)), out));
}

BOOST_AUTO_TEST_CASE(a_version_of_any_length_is_refused) {
  cl::hello hello;
  hello.version.assign(codec::version_bytes_max, 'v');
  envelope out;
  BOOST_TEST(!codec::decode(codec::encode(cl::message(hello)), out));
  hello.version += 'v';
  BOOST_TEST(codec::decode(codec::encode(cl::message(hello)), out)
             == errc::too_large);
}

BOOST_AUTO_TEST_CASE(a_chunk_beyond_its_blob_is_refused) {
  blob_chunk chunk;
  chunk.total_bytes = 10;
  chunk.offset = 8;
  chunk.bytes.resize(3);
  envelope out;
  BOOST_TEST(codec::decode(codec::encode(chunk), out) == errc::corrupt);
}

// Otherwise a peer that requests the rest of a removed blob would wait in vain.
BOOST_AUTO_TEST_CASE(a_blob_part_that_is_not_found_can_be_reported) {
  blob_chunk chunk;
  chunk.offset = 1'572'864;
  envelope out;
  BOOST_TEST(!codec::decode(codec::encode(chunk), out));
  BOOST_TEST((std::get<blob_chunk>(out) == chunk));
  chunk.bytes.resize(1);
  BOOST_TEST(codec::decode(codec::encode(chunk), out) == errc::corrupt);
}

// Of each field with a limit: the limit passes, one more does not.
BOOST_AUTO_TEST_CASE(a_request_of_a_client_keeps_its_limits) {
  const auto refusal = [](decltype(client_request::body) body) {
    envelope out;
    return codec::decode(codec::encode(client_request{1, std::move(body), {}}),
                         out);
  };
  const auto bytes = [](std::size_t count) {
    return std::vector<std::byte>(count);
  };
  const std::uint64_t most = core::limits::bytes_max;
  BOOST_TEST(!refusal(put_begin{most}));
  BOOST_TEST(refusal(put_begin{most + 1}) == errc::too_large);
  BOOST_TEST(!refusal(put_begin{1, most}));
  BOOST_TEST(refusal(put_begin{1, most + 1}) == errc::too_large);
  BOOST_TEST(!refusal(put_chunk{1, most, bytes(blob_chunk_bytes_max)}));
  BOOST_TEST(refusal(put_chunk{1, most + 1, bytes(1)}) == errc::too_large);
  BOOST_TEST(refusal(put_chunk{1, 0, bytes(blob_chunk_bytes_max + 1)})
             == errc::too_large);
  BOOST_TEST(!refusal(get_blob{{}, most, blob_chunk_bytes_max}));
  BOOST_TEST(refusal(get_blob{{}, most + 1, 1}) == errc::too_large);
  BOOST_TEST(refusal(get_blob{{}, 0, blob_chunk_bytes_max + 1})
             == errc::too_large);
  BOOST_TEST(!refusal(offer_checkpoint{1, {}, core::epoch_max}));
  BOOST_TEST(refusal(offer_checkpoint{1, {}, core::epoch_max + 1})
             == errc::too_large);
  BOOST_TEST(!refusal(ask_lines{1, reply_lines_max}));
  BOOST_TEST(refusal(ask_lines{1, reply_lines_max + 1}) == errc::too_large);
  BOOST_TEST(!refusal(make_invite{invite_seconds_max}));
  BOOST_TEST(refusal(make_invite{invite_seconds_max + 1}) == errc::too_large);
}

BOOST_AUTO_TEST_CASE(an_answer_to_a_client_keeps_its_limits) {
  const auto refusal = [](const client_reply& reply) {
    envelope out;
    return codec::decode(codec::encode(reply), out);
  };
  client_reply reply;
  reply.events.resize(reply_events_max);
  BOOST_TEST(!refusal(reply));
  reply.events.emplace_back();
  BOOST_TEST(refusal(reply) == errc::too_large);
  reply.events.resize(1);
  reply.events[0].kind = job_event_kind::done;
  BOOST_TEST(!refusal(reply));
  for (const int kind : {0, int(job_event_kind::done) + 1}) {
    reply.events[0].kind = static_cast<job_event_kind>(kind);
    BOOST_TEST(refusal(reply) == errc::unknown);
  }
  reply.events.clear();
  for (const int code : {0, int(reply_code::again_later) + 1}) {
    reply.code = static_cast<reply_code>(code);
    BOOST_TEST(refusal(reply) == errc::unknown);
  }
  reply.code = reply_code::ok;
  reply.bytes.resize(blob_chunk_bytes_max);
  BOOST_TEST(!refusal(reply));
  reply.bytes.emplace_back();
  BOOST_TEST(refusal(reply) == errc::too_large);
}

BOOST_AUTO_TEST_CASE(text_for_users_is_cleaned_when_sent) {
  client_reply reply;
  reply.text = "a\x1b"
               "b\nc";
  envelope out;
  BOOST_TEST_REQUIRE(!codec::decode(codec::encode(reply), out));
  BOOST_TEST(std::get<client_reply>(out).text == "a b\nc");
  reply.text = "/data/lat\xe9\u202e: \u009bno such file";
  BOOST_TEST_REQUIRE(!codec::decode(codec::encode(reply), out));
  BOOST_TEST(std::get<client_reply>(out).text
             == "/data/lat\uFFFD :  no such file");
  envelope asked;
  client_request request{1, revoke{"Jos\xe9"}};
  BOOST_TEST_REQUIRE(!codec::decode(codec::encode(request), asked));
}

BOOST_AUTO_TEST_CASE(a_text_is_cut_between_characters_when_sent) {
  job_event event;
  event.text = std::string(event_text_bytes_max - 1, 'a') + "\u00e9";
  client_reply reply;
  reply.events = {event};
  envelope out;
  BOOST_TEST_REQUIRE(!codec::decode(codec::encode(reply), out));
  BOOST_TEST(std::get<client_reply>(out).events[0].text
             == std::string(event_text_bytes_max - 1, 'a'));
}

BOOST_AUTO_TEST_CASE(canonical_bytes_tell_views_apart) {
  tests::random_message random(3);
  core::view v = random.view();
  core::view w = v;
  BOOST_TEST(bool(codec::canonical(v) == codec::canonical(w)));
  ++w.number;
  BOOST_TEST(bool(codec::canonical(v) != codec::canonical(w)));
  BOOST_TEST(bool(codec::name_shoal(v, 1) == codec::name_shoal(v, 1)));
  BOOST_TEST(bool(codec::name_shoal(v, 1) != codec::name_shoal(v, 2)));
  BOOST_TEST(bool(codec::name_shoal(v, 1) != codec::name_shoal(w, 1)));
}

BOOST_AUTO_TEST_CASE(the_name_of_a_known_first_view_never_changes) {
  core::view v;
  v.number = 1;
  v.cluster = "default";
  v.planner_version = 1; // of the version that named it
  v.members.resize(1);
  BOOST_TEST(core::to_hex(codec::name_shoal(v, 42))
             == "9dbbdde4f6432ef1cfbac5cb74f4de59");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::runtime
