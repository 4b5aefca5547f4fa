// tests/runtime/store/store_test.cpp -- blobs keep their bytes and names.
#include "runtime/core/errc.hpp"
#include "runtime/files/sha256.hpp"
#include "runtime/store/parts.hpp"
#include "runtime/store/spare_store.hpp"
#include "tests/support/folder.hpp"

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

BOOST_AUTO_TEST_SUITE(blob_store)

using namespace shoal::runtime;
using shoal::core::blob_digest;
using shoal::core::to_hex;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

blob_digest put(store& s, const std::string& text) {
  auto w = s.write();
  blob_digest digest{};
  BOOST_REQUIRE(!w->append(bytes_of(text)));
  BOOST_REQUIRE(!w->commit(digest, std::nullopt));
  return digest;
}

/// What a writer leaves that was not told to commit.
void begin(store& s, const std::string& all, std::size_t bytes) {
  BOOST_TEST(
    !s.write_of(sha256(bytes_of(all)))->append(bytes_of(all).first(bytes)));
}

std::string text_of(const blob& b) {
  const auto bytes = b.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::filesystem::path
file_of(const std::filesystem::path& folder, const blob_digest& digest) {
  const auto name = to_hex(digest);
  return folder / name.substr(0, 2) / name.substr(2);
}

/// A limit on the length of files stands in for a full disk.
class full_disk {
public:
  full_disk() : before_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit small{4096, old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }
  ~full_disk() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, before_);
  }

private:
  void (*before_)(int);
  rlimit old_{};
};

} // namespace

// FIPS 180-2, appendix B.
BOOST_AUTO_TEST_CASE(digests_are_sha_256) {
  BOOST_TEST(
    to_hex(sha256(bytes_of("abc")))
    == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  BOOST_TEST(
    to_hex(sha256({}))
    == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

BOOST_AUTO_TEST_CASE(bytes_moved_by_the_disk_are_counted) {
  shoal::test::folder f;
  const std::string text(std::size_t{9} << 20, 'x'); // more than one block
  blob_digest digest;
  {
    auto s = store::open(f.path);
    BOOST_TEST(s->activity().bytes == 0u);
    BOOST_TEST(s->activity().bytes_per_s == 0u);
    digest = put(*s, text);
    BOOST_TEST(s->activity().bytes >= text.size());
    BOOST_TEST(s->activity().bytes_per_s > 0u);
  }
  auto s = store::open(f.path);
  std::error_code error;
  BOOST_REQUIRE(s->read(digest, error));
  const auto once = s->activity();
  BOOST_TEST(once.bytes == text.size());
  BOOST_TEST(once.bytes_per_s > 0u);
  BOOST_TEST(once.moved_at > 0);
  BOOST_TEST(once.piece_bytes == 0u); // it is done
  BOOST_REQUIRE(s->read(digest, error));
  BOOST_TEST(s->activity().bytes == once.bytes); // no longer from the disk
}

BOOST_AUTO_TEST_CASE(a_store_takes_no_more_than_was_chosen) {
  shoal::test::folder f;
  const std::string text(400, 'x'), more(300, 'y');
  {
    auto s = open_store(f.path, {}, 1000);
    BOOST_TEST(s->room().to_fill() == 1000u);
    BOOST_TEST(s->used_bytes() == 0u);
    const blob_digest first = put(*s, text);
    BOOST_TEST(s->used_bytes() == 400u);
    put(*s, text); // the same once more
    BOOST_TEST(s->used_bytes() == 400u);
    begin(*s, more, 200);
    BOOST_TEST(s->used_bytes() == 600u);
    BOOST_TEST(s->room().to_fill() == 400u);
    {
      auto writer = s->write();
      BOOST_TEST(!writer->append(bytes_of(text)));
      BOOST_TEST(
        (writer->append(bytes_of("z")) == std::errc::no_space_on_device));
      BOOST_TEST(s->room().to_fill() == 0u);
    }
    BOOST_TEST(s->room().to_fill() == 400u); // what was refused is gone
    auto writer = s->go_on(sha256(bytes_of(more)));
    BOOST_TEST_REQUIRE(writer);
    BOOST_TEST(!writer->append(bytes_of(more).subspan(200)));
    blob_digest none{};
    BOOST_TEST(!writer->commit(none, sha256(bytes_of(more))));
    BOOST_TEST(s->used_bytes() == 700u);
    BOOST_TEST(!s->remove(first));
    BOOST_TEST(s->used_bytes() == 300u);
  }
  const auto s = open_store(f.path, {}, 1000); // as it was left
  BOOST_TEST(s->used_bytes() == 300u);
}

// Each counts what it has written, and nobody else takes that off.
BOOST_AUTO_TEST_CASE(two_writers_of_a_blob_are_counted_once) {
  shoal::test::folder f;
  const std::string text(400, 'x');
  const blob_digest digest = sha256(bytes_of(text));
  auto s = open_store(f.path, {}, 10'000);
  put(*s, std::string(50, 'y'));
  for (const bool ends : {false, true}) {
    blob_digest none{};
    {
      auto slow = s->write_of(digest);
      BOOST_TEST(!slow->append(bytes_of(text).first(300)));
      put(*s, text);
      BOOST_TEST(s->used_bytes() == 750u);
      BOOST_TEST(!slow->append(bytes_of(text).subspan(ends ? 300 : 100)));
      BOOST_TEST(bool(slow->commit(none, digest)) == !ends);
    }
    BOOST_TEST(s->used_bytes() == 450u);
    BOOST_TEST(!s->remove(digest));
    BOOST_TEST(s->used_bytes() == 50u);
  }
}

BOOST_AUTO_TEST_CASE(a_disk_that_has_refused_has_no_room_for_a_while) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const blob_digest there = put(*s, "there");
  BOOST_TEST(s->room().free_bytes > 0u);
  {
    const full_disk full;
    BOOST_TEST(bool(s->write()->append(bytes_of(std::string(8192, 'x')))));
  }
  BOOST_TEST(s->room().free_bytes == 0u);
  BOOST_TEST(!s->remove(there));
  BOOST_TEST(s->room().free_bytes > 0u); // room was made
}

BOOST_AUTO_TEST_CASE(what_only_passes_takes_no_disk) {
  shoal::test::folder f;
  auto s = open_store(f.path, {}, 1000);
  const std::string text(5000, 'x');
  const blob_digest digest = sha256(bytes_of(text));
  s->stay_in_memory(digest);
  blob_digest none{};
  {
    auto writer = s->write_of(digest);
    BOOST_TEST(!writer->append(bytes_of(text)));
    BOOST_TEST(!writer->commit(none, digest));
  }
  BOOST_TEST(s->in_memory(digest));
  BOOST_TEST(s->used_bytes() == 0u);
  s->settle(); // it does not belong on the disk
  BOOST_TEST(s->in_memory(digest));
  std::error_code error;
  const auto held = s->read(digest, error);
  BOOST_TEST_REQUIRE(held);
  BOOST_TEST(!s->remove(digest));
  BOOST_TEST(!s->contains(digest));
  BOOST_TEST(text_of(*held) == text); // for those that have loaded it
}

/// Its own disk is full: the blob that it refuses fails, those that follow do
/// not.
BOOST_AUTO_TEST_CASE(a_spare_folder_takes_what_a_full_disk_refuses) {
  shoal::test::folder f;
  const auto spare = f.path / "elsewhere" / "spare";
  auto s = open_store(f.path / "own", spare);
  const blob_digest before = put(*s, "written before");
  BOOST_TEST(!std::filesystem::exists(spare));
  {
    const full_disk full;
    blob_digest none;
    auto writer = s->write();
    const std::string text(8192, 'x');
    BOOST_TEST(bool(writer->append(bytes_of(text))));
    BOOST_TEST(bool(writer->commit(none, std::nullopt)));
  }
  const blob_digest after = put(*s, "written after");
  BOOST_TEST(std::filesystem::exists(file_of(spare, after)));
  BOOST_TEST(s->contains(before));
  BOOST_TEST(s->contains(after));
  BOOST_TEST(s->list().size() == 2u);
  std::error_code error;
  const auto found = s->read(after, error);
  BOOST_REQUIRE(found);
  BOOST_TEST(text_of(*found) == "written after");
  for (const blob_digest& digest : {before, after})
    BOOST_TEST(!s->remove(digest));
  BOOST_TEST(s->list().empty());
  BOOST_TEST(!std::filesystem::exists(file_of(spare, after)));
}

BOOST_AUTO_TEST_CASE(a_blob_survives_a_restart) {
  shoal::test::folder f;
  blob_digest digest, empty;
  {
    auto s = store::open(f.path);
    digest = put(*s, "some text");
    empty = put(*s, "");
    BOOST_TEST(s->size(digest) == 9u);
  }
  auto s = store::open(f.path);
  BOOST_TEST(s->contains(digest));
  BOOST_TEST(s->list().size() == 2u);
  std::error_code error;
  const auto b = s->read(digest, error);
  BOOST_REQUIRE(b);
  BOOST_TEST(text_of(*b) == "some text");
  BOOST_REQUIRE(s->read(empty, error));
  BOOST_TEST(!s->remove(digest));
  BOOST_TEST(!s->contains(digest));
  BOOST_TEST(text_of(*b) == "some text"); // mapped still
  BOOST_TEST((s->remove(digest) == errc::not_found));
  BOOST_TEST(!s->read(digest, error));
  BOOST_TEST((error == errc::not_found));
}

BOOST_AUTO_TEST_CASE(pieces_hash_as_the_whole) {
  const std::string text = "abc";
  const std::span<const std::byte> parts[] = {
    bytes_of(text).first(1), {}, bytes_of(text).subspan(1)};
  BOOST_TEST(bool(sha256_joined(parts) == sha256(bytes_of(text))));
}

BOOST_AUTO_TEST_CASE(damage_after_reading_is_found_on_demand) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const auto digest = put(*s, "some text");
  BOOST_TEST(!s->verify(digest));
  BOOST_TEST(!s->set_aside(digest));
  std::ofstream(file_of(f.path, digest)) << "same size";
  BOOST_TEST((s->verify(digest) == errc::corrupt));
  BOOST_TEST(s->set_aside(digest));
  BOOST_TEST(!s->contains(digest));
  BOOST_TEST((s->verify(digest) == errc::not_found));
  put(*s, "some text"); // anew
  BOOST_TEST(!s->set_aside(digest));
  BOOST_TEST(!s->verify(digest));
}

BOOST_AUTO_TEST_CASE(an_uncommitted_blob_leaves_nothing) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const auto count = [&] {
    std::size_t files = 0;
    for (const auto& e : std::filesystem::recursive_directory_iterator(f.path))
      files += e.is_regular_file();
    return files;
  };
  {
    auto w = s->write();
    BOOST_TEST(!w->append(bytes_of("half")));
    BOOST_TEST(count() == 1u);
  }
  BOOST_TEST(count() == 0u);
  {
    auto w = s->write();
    blob_digest digest;
    BOOST_TEST(!w->append(bytes_of("other")));
    BOOST_TEST(
      (w->commit(digest, sha256(bytes_of("expected"))) == errc::corrupt));
    BOOST_TEST(!!w->commit(digest, std::nullopt)); // used up
  }
  BOOST_TEST(count() == 0u);
  std::ofstream(f.path / "tmp" / "left-by-a-crash") << "x";
  s = nullptr;
  s = store::open(f.path);
  BOOST_TEST(count() == 0u);
}

BOOST_AUTO_TEST_CASE(an_unfinished_blob_is_continued) {
  shoal::test::folder f;
  const std::string text(std::size_t{9} << 20, 'x'); // more than one block
  const auto digest = sha256(bytes_of(text));
  const std::size_t half = text.size() / 2;
  begin(*store::open(f.path), text, half);
  auto s = store::open(f.path);
  BOOST_TEST(s->begun(digest) == half);
  BOOST_TEST(!s->contains(digest));
  BOOST_TEST(s->list().empty());
  auto w = s->go_on(digest);
  BOOST_REQUIRE(w);
  BOOST_TEST(w->written() == half);
  BOOST_TEST(!s->go_on(digest)); // one at a time
  blob_digest made;
  BOOST_TEST(!w->append(bytes_of(text).subspan(half)));
  BOOST_TEST(!w->commit(made, digest));
  BOOST_TEST((made == digest));
  w = nullptr;
  std::error_code error;
  BOOST_TEST(text_of(*s->read(digest, error)) == text);
  BOOST_TEST(s->begun(digest) == 0u);
  BOOST_TEST(!s->go_on(digest));
}

BOOST_AUTO_TEST_CASE(an_unfinished_blob_can_begin_again) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const std::string text = "some text";
  const auto digest = sha256(bytes_of(text));
  blob_digest made;
  begin(*s, text, 4);
  {
    auto other = s->go_on(digest);
    auto w = s->write_of(digest); // beside it
    BOOST_TEST(w->written() == 0u);
    BOOST_TEST(!w->append(bytes_of("some")));
  }
  BOOST_TEST(s->begun(digest) == 4u);
  auto w = s->write_of(digest);
  BOOST_TEST(!w->append(bytes_of(text)));
  BOOST_TEST(!w->commit(made, digest));
  std::error_code error;
  BOOST_TEST(text_of(*s->read(digest, error)) == text);
}

BOOST_AUTO_TEST_CASE(nothing_stays_of_what_is_wrong_removed_or_refused) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const std::string text(10000, 'x');
  const auto digest = sha256(bytes_of(text));
  blob_digest made;
  {
    auto w = s->write_of(digest);
    BOOST_TEST(!w->append(bytes_of("other")));
    BOOST_TEST((w->commit(made, digest) == errc::corrupt));
  }
  BOOST_TEST(s->begun(digest) == 0u);
  begin(*s, text, 10);
  BOOST_TEST((s->remove(digest) == errc::not_found));
  BOOST_TEST(s->begun(digest) == 0u);
  const full_disk full;
  {
    auto w = s->write_of(digest);
    BOOST_TEST(!!w->append(bytes_of(text)));
  }
  BOOST_TEST(s->begun(digest) == 0u);
}

BOOST_AUTO_TEST_CASE(an_unfinished_blob_does_not_stay_for_ever) {
  shoal::test::folder f;
  const std::string old = "old text", text = "some text";
  begin(*store::open(f.path), old, 3);
  const auto file = f.path / "parts" / to_hex(sha256(bytes_of(old)));
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file)
                                           - part_files::age_max);
  auto s = store::open(f.path);
  BOOST_TEST(s->begun(sha256(bytes_of(old))) == 0u);
  for (std::size_t n = 0; n < part_files::files_max + 10; ++n)
    begin(*s, std::to_string(n) + text, 3);
  std::size_t left = 0;
  for (const auto& e : std::filesystem::directory_iterator(f.path / "parts"))
    left += e.is_regular_file();
  BOOST_TEST(left == part_files::files_max + 1); // and the last that was begun
}

BOOST_AUTO_TEST_CASE(a_corrupt_blob_is_set_aside) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const auto digest = put(*s, "some text");
  s = nullptr;
  std::ofstream(file_of(f.path, digest)) << "some tezt";
  s = store::open(f.path);
  std::error_code error;
  BOOST_TEST(!s->read(digest, error));
  BOOST_TEST((error == errc::corrupt));
  BOOST_TEST(!s->contains(digest));
  BOOST_TEST(std::filesystem::exists(f.path / "corrupt" / to_hex(digest)));
  BOOST_TEST((put(*s, "some text") == digest));
  BOOST_TEST(!!s->read(digest, error));
}

BOOST_AUTO_TEST_CASE(with_a_full_disk_needed_blobs_are_held_in_memory) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const std::string text(10000, 'x');
  const auto digest = sha256(bytes_of(text));
  blob_digest made;
  std::error_code error;
  s->may_stay_in_memory(digest);
  {
    const full_disk full;
    auto w = s->write_of(digest);
    for (std::size_t at = 0; at < text.size(); at += 1000) // also what fitted
      BOOST_TEST(!w->append(bytes_of(text.substr(at, 1000))));
    BOOST_TEST(!w->commit(made, digest));
    s->settle(); // not yet
    BOOST_TEST(s->in_memory(digest));
  }
  BOOST_TEST(s->contains(digest));
  BOOST_TEST(s->size(digest) == text.size());
  BOOST_TEST(s->list() == std::vector{digest});
  const auto held = s->read(digest, error);
  BOOST_TEST(text_of(*held) == text);
  BOOST_TEST(!std::filesystem::exists(file_of(f.path, digest)));
  s->settle();
  BOOST_TEST(!s->in_memory(digest));
  BOOST_TEST(std::filesystem::exists(file_of(f.path, digest)));
  BOOST_TEST(text_of(*s->read(digest, error)) == text);
  BOOST_TEST(text_of(*held) == text); // as long as a reader holds it
}

BOOST_AUTO_TEST_CASE(a_removed_blob_is_not_in_memory_either) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const std::string text(10000, 'x');
  const auto digest = sha256(bytes_of(text));
  s->may_stay_in_memory(digest);
  blob_digest made;
  {
    const full_disk full;
    auto w = s->write_of(digest);
    BOOST_TEST(!w->append(bytes_of(text)));
    BOOST_TEST(!w->commit(made, digest));
  }
  BOOST_TEST(!s->remove(digest));
  BOOST_TEST(!s->contains(digest));
  s->settle();
  BOOST_TEST(!s->contains(digest));
  BOOST_TEST((s->remove(digest) == errc::not_found));
  const full_disk full; // nor is it needed any more
  BOOST_TEST(!!s->write_of(digest)->append(bytes_of(text)));
}

BOOST_AUTO_TEST_CASE(memory_is_for_what_is_needed_and_not_corrupt) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const std::string text(10000, 'x'), other(10000, 'y');
  const auto digest = sha256(bytes_of(text));
  s->may_stay_in_memory(digest);
  const full_disk full;
  blob_digest made;
  auto w = s->write_of(digest);
  BOOST_TEST(!w->append(bytes_of(other)));
  BOOST_TEST((w->commit(made, digest) == errc::corrupt));
  BOOST_TEST(!s->contains(digest));
  w = s->write_of(sha256(bytes_of(other)));
  BOOST_TEST((w->append(bytes_of(other)) == std::errc::file_too_large));
}

BOOST_AUTO_TEST_CASE(what_was_to_pass_is_written_once_it_is_kept) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const std::string text(5000, 'x');
  const blob_digest digest = sha256(bytes_of(text));
  s->stay_in_memory(digest);
  blob_digest none{};
  auto writer = s->write_of(digest);
  BOOST_TEST(!writer->append(bytes_of(text)));
  BOOST_TEST(!writer->commit(none, digest));
  s->belongs_on_disk(digest);
  s->let_go(digest); // too late
  BOOST_TEST(s->in_memory(digest));
  s->settle();
  BOOST_TEST(!s->in_memory(digest));
  BOOST_TEST(std::filesystem::exists(file_of(f.path, digest)));
}

BOOST_AUTO_TEST_CASE(only_what_passes_is_let_go) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const std::string needed(5000, 'x'), passing(5000, 'y');
  blob_digest none{};
  s->may_stay_in_memory(sha256(bytes_of(needed)));
  s->stay_in_memory(sha256(bytes_of(passing)));
  {
    const full_disk full;
    for (const std::string& text : {needed, passing}) {
      auto writer = s->write_of(sha256(bytes_of(text)));
      BOOST_TEST(!writer->append(bytes_of(text)));
      BOOST_TEST(!writer->commit(none, sha256(bytes_of(text))));
    }
  }
  for (const std::string& text : {needed, passing})
    s->let_go(sha256(bytes_of(text)));
  BOOST_TEST(s->list() == std::vector{sha256(bytes_of(needed))});
  s->let_go(put(*s, "on the disk"));
  BOOST_TEST(s->list().size() == 2u);
}

bool none_ended(shoal::core::job_id) {
  return false;
}

// Two peers that see different keepers of a blob could both remove it.
BOOST_AUTO_TEST_CASE(a_pledged_blob_stays) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const blob_digest pledged = put(*s, "pledged"), other = put(*s, "other");
  BOOST_TEST(s->pledge(pledged, 1));
  BOOST_TEST(!s->pledge(sha256(bytes_of("not here")), 1));
  BOOST_TEST((s->remove_unless_pledged(pledged, none_ended)
              == std::errc::device_or_resource_busy));
  BOOST_TEST(!s->remove_unless_pledged(other, none_ended));
  BOOST_TEST(s->list() == std::vector{pledged});
  s->stay_in_memory(other);
  auto writer = s->write_of(other);
  blob_digest none{};
  BOOST_TEST(!writer->append(bytes_of("other")));
  BOOST_TEST(!writer->commit(none, other));
  BOOST_TEST(!s->pledge(other, 1)); // that is not on the disk
}

/// It held the files of the next job on the uploading node for a minute.
BOOST_AUTO_TEST_CASE(a_pledge_ends_with_its_blob) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  const blob_digest blob = put(*s, "of a job that ends");
  BOOST_TEST(s->pledge(blob, 1));
  BOOST_TEST(!s->remove(blob));
  BOOST_TEST((put(*s, "of a job that ends") == blob));
  BOOST_TEST(!s->remove_unless_pledged(blob, none_ended));
}

BOOST_AUTO_TEST_CASE(files_under_way_are_told_from_those_that_are_whole) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  put(*s, "whole");
  BOOST_TEST(s->unfinished_bytes() == 0u);
  const auto writer = s->write();
  BOOST_TEST(!writer->append(bytes_of("under way")));
  BOOST_TEST(s->unfinished_bytes() == 9u);
  BOOST_TEST(s->used_bytes() == 14u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_an_error_code) {
  shoal::test::folder f;
  auto s = store::open(f.path);
  std::unique_ptr<blob_writer> w;
  std::error_code error;
  {
    const full_disk full;
    w = s->write();
    error = w->append(bytes_of(std::string(10000, 'x')));
  }
  BOOST_TEST((error == std::errc::file_too_large));
  blob_digest digest;
  BOOST_TEST((w->commit(digest, std::nullopt) == std::errc::file_too_large));
}

BOOST_AUTO_TEST_SUITE_END()
