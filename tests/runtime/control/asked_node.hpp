// tests/runtime/control/asked_node.hpp -- a node of tests, as control sees it.
//
// It has a journal and a store, if the test gives one; all else that clients
// ask is counted and not done.
//
// Threads: as control_handler.
#pragma once

#include "runtime/control/control.hpp"
#include "runtime/core/assert.hpp"
#include "runtime/jobs/job_journal.hpp"
#include "runtime/store/store.hpp"

#include <atomic>
#include <vector>

namespace shoal::tests {

class asked_node : public runtime::control_handler {
public:
  explicit asked_node(runtime::job_journal& journal,
                      runtime::store* blobs = nullptr)
    : journal_(journal), blobs_(blobs) {}

  runtime::store& blobs() override {
    SHOAL_ASSERT(blobs_ != nullptr);
    return *blobs_;
  }
  runtime::job_journal& journal() override { return journal_; }
  std::string status() const override {
    ++asked;
    return status_text;
  }
  std::string describe(core::job_id) const override { return {}; }
  std::string lines(const runtime::ask_lines&, std::uint64_t&) const override {
    return {};
  }
  runtime::meant_peer find(const std::string&) const override { return {}; }
  void leave(bool) override { ++asked; }
  void submit(std::uint64_t token, core::job_entry) override { begin(token); }
  void remove_job(std::uint64_t token, core::job_id) override { begin(token); }
  void recover(std::uint64_t token) override { begin(token); }
  void invite(std::uint64_t token, const runtime::make_invite&) override {
    begin(token);
  }
  void redeem(std::uint64_t token, const runtime::use_invite&) override {
    begin(token);
  }
  void revoke_peer(std::uint64_t token, const runtime::revoke&) override {
    begin(token);
  }
  void hand_on(std::uint64_t token, const core::peer_id&,
               runtime::client_request&&) override {
    begin(token);
  }
  std::optional<std::string> given_up(std::uint64_t token) override {
    if (answers_now)
      return std::nullopt;
    abandoned.push_back(token);
    return late_text;
  }
  runtime::not_done stop_job(core::job_id job, bool) override {
    if (refusal.code == runtime::reply_code::ok)
      stopped.push_back(job);
    return refusal;
  }
  runtime::not_done wait_no_longer(core::job_id) override { return refusal; }
  runtime::not_done offer(const runtime::offer_checkpoint&) override {
    return refusal;
  }
  void left_behind(std::vector<core::blob_digest> blobs) override {
    left.insert(left.end(), blobs.begin(), blobs.end());
  }
  void fetch(const core::blob_digest&,
             std::function<void(std::error_code)>) override {
    ++asked;
  }
  void send(const core::peer_id&, const runtime::client_reply&) override {}

  mutable std::atomic<std::uint64_t> asked{0};
  std::string status_text;
  runtime::not_done refusal;
  std::string late_text;
  bool answers_now = false; ///< what is given up is answered already
  std::vector<core::job_id> stopped;
  std::vector<core::blob_digest> left;  ///< by clients without a job
  std::vector<std::uint64_t> abandoned; ///< tokens whose clients have given up
  std::vector<std::uint64_t> tokens; ///< of requests that wait for a view or a
                                     ///< peer

private:
  void begin(std::uint64_t token) { tokens.push_back(token); }

  runtime::job_journal& journal_;
  runtime::store* blobs_;
};

} // namespace shoal::tests
