// tests/transport/tls/frame_test.cpp -- the frame parser, without a socket.
#include "transport/tls/frame.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>

namespace shoal::transport::tls {
BOOST_AUTO_TEST_SUITE(frame)

namespace {

/// Records its calls, and posts memory for all that is announced.
class scribe final : public frame_sink {
public:
  void on_control(std::span<const std::byte> message) override {
    text += "control " + std::to_string(message.size()) + "\n";
  }
  void on_bulk_header(std::uint64_t transfer, bulk_tag tag,
                      std::uint64_t bytes) override {
    text += "header " + std::to_string(transfer) + " plan "
            + std::to_string(tag.plan) + " link " + std::to_string(tag.link)
            + " sequence " + std::to_string(tag.sequence) + " bytes "
            + std::to_string(bytes) + "\n";
    if (posts)
      memory[transfer].resize(bytes);
  }
  std::span<std::byte>
  bulk_room(std::uint64_t transfer, std::size_t bytes) override {
    if (!memory.contains(transfer))
      return {};
    return std::span(memory[transfer]).subspan(fill[transfer], bytes);
  }
  void on_bulk_bytes(std::uint64_t transfer, std::size_t bytes) override {
    fill[transfer] += bytes;
  }
  void on_bulk_end(std::uint64_t transfer, std::uint64_t checksum) override {
    text +=
      "end " + std::to_string(transfer) + " " + std::to_string(checksum) + "\n";
  }
  void on_bulk_abort(std::uint64_t transfer) override {
    text += "abort " + std::to_string(transfer) + "\n";
  }
  bool on_bulk_ack(std::uint64_t transfer, verdict v) override {
    text += "ack " + std::to_string(transfer) + " "
            + std::to_string(static_cast<int>(v)) + "\n";
    return transfer != 666;
  }
  void on_streams(std::uint32_t count) override {
    text += "streams " + std::to_string(count) + "\n";
  }

  bool posts = true;
  std::string text;
  std::map<std::uint64_t, std::vector<std::byte>> memory;
  std::map<std::uint64_t, std::size_t> fill;
};

/// @returns the reason why the stream ended, or an empty text.
std::string
feed(frame_sink& sink, const buffer& bytes, std::size_t piece = SIZE_MAX,
     stream_kind kind = stream_kind::bulk) {
  frame_reader reader(sink, kind);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto room = reader.room();
    const auto n = std::min({room.size(), bytes.size() - at, piece});
    std::memcpy(room.data(), bytes.data() + at, n);
    at += n;
    if (const auto* wrong = reader.commit(n))
      return wrong;
  }
  return {};
}

void append_bytes(buffer& out, std::size_t count, int first) {
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(static_cast<std::byte>(first + static_cast<int>(i)));
}

buffer conversation() {
  buffer b;
  append_bulk_header(b, 0, {1, 2, 3}, 10);
  append_chunk_head(b, 0, 6);
  append_bytes(b, 6, 0);
  append_bulk_header(b, 1, {4, 5, 6}, 4);
  append_chunk_head(b, 1, 4);
  append_bytes(b, 4, 100);
  append_chunk_head(b, 0, 4);
  append_bytes(b, 4, 6);
  append_bulk_end(b, 0, 77);
  append_bulk_ack(b, 9, verdict::corrupt);
  append_bulk_abort(b, 1);
  append_bulk_header(b, 5, {0, 0, 0}, 0);
  append_bulk_end(b, 5, 88);
  return b;
}

BOOST_AUTO_TEST_CASE(frames_are_read_however_the_bytes_are_cut) {
  const char* const expected = "header 0 plan 1 link 2 sequence 3 bytes 10\n"
                               "header 1 plan 4 link 5 sequence 6 bytes 4\n"
                               "end 0 77\n"
                               "ack 9 3\n"
                               "abort 1\n"
                               "header 5 plan 0 link 0 sequence 0 bytes 0\n"
                               "end 5 88\n";
  for (const std::size_t piece : {1u, 2u, 3u, 7u, 8u, 1000u}) {
    scribe s;
    BOOST_TEST(feed(s, conversation(), piece) == "");
    BOOST_TEST(s.text == expected);
    for (std::size_t i = 0; i < 10; ++i)
      BOOST_TEST((s.memory[0][i] == static_cast<std::byte>(i)));
    BOOST_TEST((s.memory[1][3] == std::byte{103}));
  }
}

BOOST_AUTO_TEST_CASE(messages_are_read_however_they_are_cut) {
  buffer b;
  append_control(b, std::vector<std::byte>(3));
  append_control(b, {});
  append_streams(b, 4);
  for (const std::size_t piece : {1u, 2u, 7u, 1000u}) {
    scribe s;
    BOOST_TEST(feed(s, b, piece, stream_kind::control) == "");
    BOOST_TEST(s.text == "control 3\ncontrol 0\nstreams 4\n");
  }
}

BOOST_AUTO_TEST_CASE(a_stream_takes_frames_of_its_own_kind_only) {
  scribe s;
  buffer b;
  append_control(b, {});
  BOOST_TEST(feed(s, b) == "control on a bulk stream");
  BOOST_TEST(feed(s, conversation(), 100, stream_kind::control)
             == "bulk on the control stream");
  BOOST_TEST(s.text == "");
}

BOOST_AUTO_TEST_CASE(chunks_without_a_receive_are_skipped) {
  scribe posted, ignored;
  ignored.posts = false;
  BOOST_TEST(feed(posted, conversation()) == "");
  BOOST_TEST(feed(ignored, conversation()) == "");
  BOOST_TEST(posted.text == ignored.text);
  BOOST_TEST(ignored.fill.empty());
}

BOOST_AUTO_TEST_CASE(a_chunk_goes_straight_into_its_region) {
  scribe s;
  frame_reader reader(s, stream_kind::bulk);
  buffer b;
  append_bulk_header(b, 0, {}, 100);
  append_chunk_head(b, 0, 100);
  for (std::size_t at = 0; at < b.size();) {
    const auto room = reader.room();
    const auto n = std::min(room.size(), b.size() - at);
    std::memcpy(room.data(), b.data() + at, n);
    BOOST_REQUIRE(!reader.commit(n));
    at += n;
  }
  BOOST_TEST(reader.room().data() == s.memory[0].data());
  BOOST_TEST(reader.room().size() == 100u);
}

BOOST_AUTO_TEST_CASE(malformed_frames_end_the_stream_with_a_reason) {
  const auto head = [](std::uint32_t length, std::uint32_t type) {
    buffer b(8);
    std::memcpy(b.data(), &length, 4);
    std::memcpy(b.data() + 4, &type, 4);
    return b;
  };
  const auto reason = [](const buffer& b,
                         stream_kind kind = stream_kind::bulk) {
    scribe s;
    return feed(s, b, SIZE_MAX, kind);
  };
  BOOST_TEST(reason(head(0, 0)) == "unknown frame type");
  BOOST_TEST(reason(head(0, 8)) == "unknown frame type");
  BOOST_TEST(reason(head(0, 0x101)) == "unknown frame type");
  constexpr auto control = stream_kind::control;
  BOOST_TEST(reason(head(control_bytes_max + 1, 1), control)
             == "control message over the limit");
  BOOST_TEST(reason(head(control_bytes_max, 1), control) == "");
  BOOST_TEST(reason(head(5, 7), control) == "wrong frame length");
  for (std::uint32_t type : {2u, 4u, 5u, 6u})
    for (std::uint32_t length : {0u, 7u, 33u, 0xffffffffu})
      BOOST_TEST(reason(head(length, type)) == "wrong frame length");
  BOOST_TEST(reason(head(8, 3)) == "wrong frame length");
  BOOST_TEST(reason(head(9 + chunk_bytes_max, 3)) == "wrong frame length");
  buffer b;
  append_bulk_header(b, 3, {}, 1);
  append_bulk_header(b, 3, {}, 1);
  BOOST_TEST(reason(b) == "transfer number used twice");
  b.clear();
  append_bulk_header(b, 3, {}, bulk_bytes_max + 1);
  BOOST_TEST(reason(b) == "impossible transfer size");
  b.clear();
  append_bulk_ack(b, 666, verdict::ok);
  BOOST_TEST(reason(b) == "acknowledged what was not sent");
  b.clear();
  append_bulk_ack(b, 1, static_cast<verdict>(5));
  BOOST_TEST(reason(b) == "unknown verdict");
  b.clear();
  append_bulk_abort(b, 0);
  BOOST_TEST(reason(b) == "abort of a transfer that is not open");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace
} // namespace shoal::transport::tls
