// tests/actors/offered_room_test.cpp -- which files on a disk count as room for served
// models.
#include "actors/checkpoint/checkpoint_manifest.hpp"
#include "actors/serving/offered_room.hpp"
#include "runtime/core/view.hpp"
#include "support/folder.hpp"
#include "tests/actors/small_store.hpp"
#include "tests/actors/still_context.hpp"

#include <boost/test/unit_test.hpp>

namespace shoal::actors {
namespace offered_room {

namespace {

constexpr std::uint64_t free_bytes = 1'000'000;

struct measured_store final : test::small_store {
  using small_store::small_store;
  space room() const override { return {free_bytes, 2 * free_bytes, 0}; }
};

/// A node whose disk has 1 MB of room beside its files.
struct disk_node : test::still_context {
  const core::peer_id& self() const override { std::abort(); }
  std::filesystem::path data_dir() const override { return home.path; }
  runtime::store& blobs() override { return store; }
  void offer_disk(std::uint64_t bytes, bool) override { offered = bytes; }

  core::blob_digest put(const std::string& text) {
    core::blob_digest out{};
    const auto writer = store.write();
    BOOST_REQUIRE(!writer->append(std::as_bytes(std::span(text))));
    BOOST_REQUIRE(!writer->commit(out, std::nullopt));
    return out;
  }
  /// A model of one file of that size. @returns its manifest
  core::blob_digest put_model(std::size_t bytes) {
    manifest m;
    const std::string text(bytes, char('a' + bytes % 26));
    m.files.push_back({"model.safetensors", put(text), bytes});
    return put(to_json(m));
  }
  core::job_entry& add(core::job_kind kind, const core::blob_digest& origin) {
    core::job_entry& e = view_.jobs.emplace_back();
    e.id = core::job_id(view_.jobs.size());
    e.kind = kind;
    e.state = core::job_state::running;
    e.origin = origin;
    return e;
  }
  /// What is offered beside the free room.
  std::uint64_t counted() {
    offered = 0;
    offer_room(*this, view_, false);
    return offered - free_bytes;
  }

  test::folder home;
  measured_store store{home.path / "blobs"};
  core::view view_;
  std::uint64_t offered = 0;
};

} // namespace

} // namespace offered_room

BOOST_FIXTURE_TEST_SUITE(offered_room, offered_room::disk_node)

BOOST_AUTO_TEST_CASE(files_of_served_models_are_room_each_once) {
  const auto model = put_model(5000);
  BOOST_TEST(counted() == 0u);
  core::job_entry& one = add(core::job_kind::serve, model);
  BOOST_TEST(counted() == 5000u);
  one.state = core::job_state::done; // it is about to be removed
  BOOST_TEST(counted() == 5000u);
  add(core::job_kind::serve, model);
  BOOST_TEST(counted() == 5000u);
  add(core::job_kind::serve, put_model(700));
  BOOST_TEST(counted() == 5700u);
}

BOOST_AUTO_TEST_CASE(files_of_training_jobs_are_none) {
  add(core::job_kind::train, put_model(5000));
  BOOST_TEST(counted() == 0u);
}

/// The model has ended, but a job trains from its files, and so keeps them.
BOOST_AUTO_TEST_CASE(what_a_training_job_keeps_of_an_ended_model_is_no_room) {
  const auto model = put_model(5000);
  add(core::job_kind::serve, model);
  add(core::job_kind::train, model);
  BOOST_TEST(counted() == 5000u); // while it is served, they are at hand
  view_.jobs[0].state = core::job_state::done;
  BOOST_TEST(counted() == 0u);
  view_.jobs[1].state = core::job_state::done;
  BOOST_TEST(counted() == 5000u);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace shoal::actors
