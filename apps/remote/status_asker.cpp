// apps/remote/status_asker.cpp -- one request, and a connection for it.
#include "apps/remote/status_asker.hpp"

#include <utility>

namespace shoal::apps {

static runtime::client_config
within(runtime::client_config node, std::chrono::milliseconds answer_max) {
  node.timeout = answer_max;
  return node;
}

status_asker::status_asker(runtime::client_config node,
                           std::chrono::milliseconds answer_max)
  : client_(within(std::move(node), answer_max)) {
}

model::result<std::string> status_asker::text_of(const std::string& member) {
  if (!connected_ && client_.connect())
    return model::failure{client_.text()};
  client_.ask_of(member);
  std::string text;
  connected_ = !client_.status(text);
  if (!connected_)
    return model::failure{client_.text()};
  return text;
}

model::result<status_json> status_asker::ask(const std::string& member) {
  const auto text = text_of(member);
  return text ? parse_status(*text) : text.why();
}

} // namespace shoal::apps
