// apps/manage/event_stream.hpp -- the events of a job as server-sent events.
//
//   id: 7
//   data: {"event":"step","step":3, ...}      as `shoal attach --json` prints it
//
// First come the events that the node still has, then each as it comes; the stream
// ends after the event `done`. A comment comes where nothing else has for a while,
// so that proxies keep the connection.
//
// Threads: run() blocks until the job or its client has ended, or `ends` says so
//          (it is asked once a second).
#pragma once

#include "runtime/control/client.hpp"
#include "runtime/http/http_exchange.hpp"

#include <functional>
#include <memory>
#include <string>

namespace shoal::apps {

/// Answers the exchange.
void stream_events(runtime::client& client, const std::string& wanted,
                   const std::shared_ptr<runtime::http_exchange>& exchange,
                   const std::function<bool()>& ends);

} // namespace shoal::apps
