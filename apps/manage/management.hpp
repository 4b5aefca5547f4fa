// apps/manage/management.hpp -- a node and its shoal over HTTP.
//
//   GET  /shoal/status               as `shoal status --json`
//   GET  /shoal/jobs                 as `shoal jobs --json`
//   GET  /shoal/jobs/ID              one of them, with its run
//   GET  /shoal/jobs/ID/events       its events, as server-sent events
//   GET  /shoal/traffic              who sends how much to whom, as `shoal status
//                                    --traffic --json` has it
//   GET  /models/loads               loads of models that are not submitted yet
//   POST /shoal/jobs                 submits a run
//   POST /shoal/jobs/ID/cancel
//   POST /models/load                serves a model
//   DELETE /models/loads/ID          cancels that
//   POST /models/unload
//
// The server's thread only hands a request over: one thread asks the node, one its
// peers, and each submission (which may take long: it may wait for room on the peers'
// disks) and each stream of events has one of its own. Their numbers are bounded; what
// does not fit is answered with 429.
//
// Safety: what changes something, or reads files by a path that a client names,
// needs `changes`: on loopback without keys, each user of the machine is a client.
// A web page of another origin is refused by the server (own_pages_only), and a
// body must be application/json, which no page may send across origins unasked.
//
// Threads: any.
#pragma once

#include "apps/common/http_front.hpp"

#include <filesystem>
#include <memory>

namespace shoal::apps {

class management final : public http_extension {
public:
  explicit management(bool changes);
  ~management() override; ///< end()

  void add_to(runtime::http_routes& routes) override;
  void describe(actors::api_document& to) const override;
  /// The node answers commands at this folder. Before, clients are asked to come
  /// again.
  void open(const std::filesystem::path& data_dir);
  void end() override;

private:
  class impl;
  std::shared_ptr<impl> impl_;
};

} // namespace shoal::apps
