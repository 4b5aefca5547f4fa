// apps/manage/model_loads.hpp -- how far the models are that clients of this endpoint
// load: waiting, being downloaded, checked or uploaded, or failed.
//
//   loads.begin() -> model_load: at() ... -> submitted(), or failed(), and then its end
//
// A load that has submitted its job is forgotten: the job shows how it goes on. One
// that a client cancels ends as soon as its work asks goes_on(), and leaves nothing:
// if its job was just being submitted, submitted() says that it has to end, too.
//
// Threads: any; a model_load one at a time.
// Limits:  failures_max failures are remembered, the newest ones.
#pragma once

#include "apps/common/commands.hpp" // serve_options
#include "runtime/files/field_text.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::apps {

class model_loads;

/// A load under way, or one that waits for its turn.
class model_load {
public:
  ~model_load();
  model_load(const model_load&) = delete;
  model_load& operator=(const model_load&) = delete;

  /// As a model::watch is told.
  std::uint64_t id() const noexcept { return id_; }
  void at(std::string_view activity, std::uint64_t done, std::uint64_t all);
  void notice(const std::string& text);
  /// It is remembered with this reason, unless it was cancelled.
  void failed(const std::string& why);
  /// A client has cancelled it.
  [[nodiscard]] bool cancelled() const;
  /// Its job is submitted: it is forgotten. @returns false if it was cancelled before
  [[nodiscard]] bool submitted();
  /// Nothing more is done for it.
  void ended();

private:
  friend class model_loads;
  model_load(std::shared_ptr<model_loads> all, std::uint64_t id)
    : all_(std::move(all)), id_(id) {}
  const std::shared_ptr<model_loads> all_;
  const std::uint64_t id_;
};

class model_loads : public std::enable_shared_from_this<model_loads> {
public:
  static constexpr std::size_t failures_max = 8;
  /// Where ids begin: below that, so that all fit into a number of JavaScript.
  static constexpr std::uint64_t first_ids_max = std::uint64_t{1} << 52;

  /// Ids begin at a random one: none of an earlier process names a load of this one.
  model_loads();
  std::shared_ptr<model_load> begin(const serve_options& o);
  /// Ends a load, or forgets one that has failed. @returns false: there is none
  bool cancel(std::string_view id);
  /// The answer to GET /models/loads. @param allowed  whether models may be loaded
  /// here
  [[nodiscard]] std::string answer(bool allowed) const;

private:
  friend class model_load;
  friend struct model_load_fields;
  struct entry {
    std::uint64_t id = 0;
    std::string model, name;
    std::string activity; ///< "": it waits for its turn
    std::uint64_t done = 0, all = 0;
    std::string notice, error;
    bool cancelled = false;
  };
  template <class Change>
  void change(std::uint64_t id, Change with);
  bool is_cancelled(std::uint64_t id) const;
  bool forget_submitted(std::uint64_t id);
  void end(std::uint64_t id);

  mutable std::mutex mutex_; ///< guards what follows
  std::list<entry> entries_; ///< in the order in which they were begun
  std::uint64_t last_;       ///< id
};

/// Fields of each load, for the description of the API.
std::vector<runtime::field_text> model_load_texts();

} // namespace shoal::apps
