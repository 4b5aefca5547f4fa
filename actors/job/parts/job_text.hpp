// actors/job/parts/job_text.hpp -- the text of a job, on a peer that is or may
// become its data source.
//
// Reads and parses the text on the disk's thread, when this peer is the data
// source; also ahead of that on a keeper that computes. The text stays in
// memory from then on.
//
// Part of a job actor: see job_context.hpp.
//
// Threads:   the owner's.
// Ownership: the text is shared with the data source and does not change.
#pragma once

#include "actors/job/parts/job_context.hpp"

#include <memory>
#include <string>

namespace shoal::model {
struct corpus;
}

namespace shoal::actors {

class job_text {
public:
  using text_ptr = std::shared_ptr<const model::corpus>;

  class events {
  public:
    /// Here it is; this peer is the data source.
    virtual void text_loaded(const text_ptr& text) = 0;
    /// The store has set it aside as damaged: fetch it, then call fetched().
    virtual void text_damaged() = 0;
    /// It cannot be used: the same on all peers.
    virtual void text_unusable(const std::string& why) = 0;
    /// The job lacks some of its data, and the text has come into the store.
    virtual void text_found() = 0;

  protected:
    ~events() = default;
  };

  /// Both arguments outlive this object.
  job_text(const job_context& here, events& to) : here_(here), to_(to) {}

  /// Loads the text if this peer is the data source.
  void load();
  /// Loads it, once, if this peer may be the next data source.
  void warm();
  /// A fetch has brought it into the store.
  void fetched();
  void tick();

  /// Whether it is being read or fetched.
  bool loading() const noexcept { return loading_; }
  /// Whether the data source waits for that.
  bool awaited() const { return loading_ && !text_ && here_.is_data_source(); }

private:
  void read();
  void fetch();

  const job_context& here_;
  events& to_;
  text_ptr text_;
  bool loading_ = false;
  bool warmed_ = false; ///< tried already, only once
  unsigned ticks_ = 0;
};

} // namespace shoal::actors
