// actors/job/parts/job_text.cpp -- finds, reads and keeps the text of a job.
#include "actors/job/parts/job_text.hpp"

#include "actors/training/data_source.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/observe/timeline.hpp"
#include "runtime/store/store.hpp"
#include "runtime/work/device_queue.hpp"

#include <algorithm>

namespace shoal::actors {

namespace {

/// A larger text is not kept in memory by peers that may only need it later.
constexpr std::uint64_t warm_text_bytes_max = std::uint64_t{256} << 20;

/// Ticks between two attempts to write data that is only in memory.
constexpr unsigned settle_ticks = 50;

/// Ticks between two looks into the store for data that the job lacks.
constexpr unsigned look_ticks = 5;

} // namespace

/// A client may re-upload data whose only copy was on a node that died.
void job_text::tick() {
  if (++ticks_ % settle_ticks == 0 && here_.blobs->in_memory(here_.entry.data))
    here_.disk->submit(
      [blobs = here_.blobs](kernels::backend&) { blobs->settle(); }, {});
  if (ticks_ % look_ticks == 0 && !here_.core->has_blobs()
      && here_.blobs->contains(here_.entry.data))
    to_.text_found();
}

void job_text::load() {
  if (!here_.is_data_source())
    return;
  if (text_) {
    to_.text_loaded(text_);
    return;
  }
  if (loading_)
    return;
  if (!here_.blobs->contains(here_.entry.data)) {
    if (here_.core->has_blobs()) // it was here, and was set aside as damaged
      fetch();
    return;
  }
  read();
}

/// A keeper that computes may be the next data source. If it has loaded the
/// text, no peer waits for reading, hashing and parsing when the former data
/// source has died.
void job_text::warm() {
  if (text_ || loading_ || warmed_ || !here_.plan)
    return;
  const core::island_place& place = here_.plan->where;
  const auto is_here = [this](const core::member_id& m) {
    return m.peer == here_.self;
  };
  if (std::ranges::none_of(place.keepers, is_here)
      || stages_on(place, here_.self).empty()
      || !here_.blobs->contains(here_.entry.data)
      || here_.blobs->size(here_.entry.data) > warm_text_bytes_max)
    return;
  warmed_ = true; // only once, whatever the result
  read();
}

void job_text::read() {
  loading_ = true;
  struct loaded_text {
    text_ptr text;
    std::string wrong;
    bool damaged = false; ///< the store has set it aside
  };
  auto result = std::make_shared<loaded_text>();
  here_.disk->submit(
    [world = here_.world, blobs = here_.blobs, trace = here_.trace,
     digest = here_.entry.data, result](kernels::backend&) {
      const runtime::timeline_span span(*trace, runtime::timeline::queue::disk,
                                        "read the text");
      std::error_code error;
      auto blob = blobs->read(digest, error);
      if (!blob) {
        result->wrong = "the text cannot be read: " + error.message();
        result->damaged = !blobs->contains(digest);
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
    [this, post = here_.post, result] {
      post([this, result] {
        loading_ = false;
        text_ = result->text;
        if (text_ || !here_.is_data_source())
          load();
        else if (result->damaged)
          fetch();
        else
          to_.text_unusable(result->wrong);
      });
    });
}

/// Other peers have the text, too.
void job_text::fetch() {
  loading_ = true;
  to_.text_damaged();
}

void job_text::fetched() {
  loading_ = false;
  load();
}

} // namespace shoal::actors
