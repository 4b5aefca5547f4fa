// actors/job/job_text.cpp -- the text of a job: finds it, fetches it, and loads
// it on the data source.
#include "actors/job/job_actor.hpp"
#include "actors/training/data_source.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>

namespace shoal::actors {

namespace event = core::job_event;

namespace {

/// A larger text is not kept in memory by peers that may only need it later.
constexpr std::uint64_t warm_text_bytes_max = std::uint64_t{256} << 20;

/// Ticks between two attempts to write data that is only in memory.
constexpr unsigned settle_ticks = 50;

} // namespace

/// A client may re-upload data whose only copy was on a node that died.
void job_actor::look_for_blobs() {
  if (++ticks_ % settle_ticks == 0
      && node().blobs().in_memory(config_.entry.data))
    node().disk().submit(
      [world = world_](kernels::backend&) { world->node->blobs().settle(); },
      {});
  if (ticks_ % 5 == 0 && !core_.has_blobs()
      && node().blobs().contains(config_.entry.data)
      && have_all(node(), job_blobs()))
    feed(event::blobs_held{});
}

void job_actor::load_text() {
  if (!actors_.is_data_source())
    return;
  if (text_) {
    actors_.add_data_source(text_);
    return;
  }
  if (loading_text_)
    return;
  if (!node().blobs().contains(config_.entry.data)) {
    if (core_.has_blobs()) // it was here, and was set aside as damaged
      fetch_text();
    return;
  }
  read_text();
}

/// A keeper that computes may be the next data source. If it has loaded the
/// text, no peer waits for reading, hashing and parsing when the former data
/// source has died.
void job_actor::warm_text() {
  if (text_ || loading_text_ || text_warmed_ || !actors_.active())
    return;
  const auto here = [this](const core::member_id& m) {
    return m.peer == node().self();
  };
  runtime::store& blobs = node().blobs();
  if (actors_.stages().empty()
      || std::ranges::none_of(actors_.plan()->where.keepers, here)
      || !blobs.contains(config_.entry.data)
      || blobs.size(config_.entry.data) > warm_text_bytes_max)
    return;
  text_warmed_ = true; // only once, whatever the result
  read_text();
}

void job_actor::read_text() {
  loading_text_ = true;
  struct loaded_text {
    text_ptr text;
    std::string wrong;
    bool damaged = false; ///< the store has set it aside
  };
  auto result = std::make_shared<loaded_text>();
  node().disk().submit(
    [world = world_, digest = config_.entry.data, result](kernels::backend&) {
      const runtime::timeline_span span(
        world->node->trace(), runtime::timeline::queue::disk, "read the text");
      std::error_code error;
      auto blob = world->node->blobs().read(digest, error);
      if (!blob) {
        result->wrong = "the text cannot be read: " + error.message();
        result->damaged = !world->node->blobs().contains(digest);
        return;
      }
      auto parsed = model::parse_corpus(blob->bytes());
      if (!parsed) {
        result->wrong = parsed.message();
        return;
      }
      if (auto enough = check_corpus(*parsed, world->run); !enough)
        result->wrong = enough.message();
      else
        result->text =
          std::make_shared<const model::corpus>(std::move(*parsed));
    },
    [this, post = poster(), result] {
      post([this, result] {
        loading_text_ = false;
        text_ = result->text;
        if (text_ || !actors_.is_data_source())
          load_text();
        else if (result->damaged)
          fetch_text();
        else
          fail(result->wrong);
      });
    });
}

/// The data source must have them even if its disk refuses: another peer takes
/// its role only when it is gone.
blob_set job_actor::needed_blobs() const {
  blob_set out = job_blobs();
  out.memory_will_do =
    place_ && place_->data_source.peer == config_.node->self();
  return out;
}

/// Other peers have the text, too: fetches it from them.
void job_actor::fetch_text() {
  loading_text_ = true;
  fetch_lasting({needed_blobs(), members(), true, {}, [this] {
                   loading_text_ = false;
                   load_text();
                 }});
}

} // namespace shoal::actors
