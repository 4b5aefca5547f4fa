// apps/common/http_front.cpp -- listens, with keys if there are some.
#include "apps/common/http_front.hpp"

#include "actors/gateway/gateway_door.hpp"
#include "apps/common/http_description.hpp"
#include "apps/common/version.hpp"
#include "apps/page/page.hpp"
#include "runtime/core/setup_error.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/host/ip_address.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/http/keys/key_account.hpp"

#include <algorithm>
#include <string_view>

namespace shoal::apps {

static constexpr char usual_listen[] = "127.0.0.1:8000";

/// "https://a.example:8443" or "*": nothing that no browser sends.
static bool is_origin(std::string_view text) {
  if (text == "*")
    return true;
  const auto scheme = text.find("://");
  if (scheme == text.npos || scheme == 0)
    return false;
  const std::string_view host = text.substr(scheme + 3);
  return !host.empty() && std::ranges::none_of(text, [](unsigned char c) {
    return c <= ' ' || c >= 0x7f || (c >= 'A' && c <= 'Z');
  }) && host.find_first_of("/?#@") == host.npos;
}

http_front::http_front(const http_options& o,
                       const std::function<void(const std::string&)>& say,
                       std::shared_ptr<http_extension> more)
  : door_(
    actors::make_gateway_door(program_version(), o.metrics_compat == "vllm")),
    more_(std::move(more)) {
  if (o.listen == "off")
    return;
  runtime::http_config c;
  c.listen = o.listen.empty() ? usual_listen : o.listen;
  c.next_free_port = o.listen.empty();
  c.open_paths = actors::open_paths();
  for (std::string& path : page_paths())
    c.open_paths.push_back(std::move(path));
  add_page(actors::routes_of(door_));
  for (const std::string& origin : o.cors)
    if (!is_origin(origin))
      throw runtime::usage_error(
        "--http-cors: " + core::shown(origin)
        + ": must be an origin as browsers send it, such as "
          "https://chat.example.org or http://127.0.0.1:3000, or *");
  if (o.jobs && o.api_keys.empty()
      && std::ranges::find(o.cors, "*") != o.cors.end())
    throw runtime::usage_error(
      "--http-cors '*' with --http-jobs needs --api-keys: every page that "
      "somebody on this machine opens could start jobs; or name the origins");
  c.cors_origins = o.cors;
  c.own_pages_only = {"/shoal/", "/models/"};
  if (more_)
    more_->add_to(actors::routes_of(door_));
  const std::string description =
    model::json_text(describe_api(program_version(), more_.get())
                       .whole(!o.api_keys.empty(), actors::open_paths()));
  actors::routes_of(door_).add(
    "GET", "/openapi.json",
    [description](const std::shared_ptr<runtime::http_exchange>& x) {
      x->respond_json(description);
    });
  c.log = [say](const std::string& line) { say("[http] " + line); };
  if (!o.api_keys.empty()) {
    auto keys = runtime::api_keys::load(o.api_keys);
    if (!keys)
      throw runtime::usage_error("--api-keys: " + keys.message());
    c.keys = std::make_shared<const runtime::api_keys>(*std::move(keys));
    c.accounts =
      std::make_shared<runtime::key_accounts>(std::chrono::steady_clock::now);
    actors::count_refusals(door_, c.accounts);
  }
  try {
    server_ =
      std::make_unique<runtime::http_server>(c, actors::handler_of(door_));
  } catch (const runtime::usage_error&) {
    throw;
  } catch (const runtime::setup_error& e) {
    if (!o.listen.empty())
      throw;
    say("[http] no endpoint for clients of models: " + std::string(e.what()));
    return;
  }
  endpoint_ = server_->endpoint();
}

http_front::~http_front() {
  if (more_)
    more_->end();
}

void http_front::open(runtime::role_table& roles) {
  actors::open_gateway(roles, door_);
}

bool http_front::has_all_addresses() const {
  const auto host = runtime::parse_ip(runtime::host_of(endpoint_));
  return host && runtime::is_any(host->address);
}

std::string http_front::url() const {
  if (!has_all_addresses())
    return "http://" + endpoint_ + "/";
  return (endpoint_.starts_with('[') ? "http://[::1]" : "http://127.0.0.1")
         + endpoint_.substr(endpoint_.rfind(':')) + "/";
}

void http_front::drain(std::chrono::milliseconds grace) {
  if (more_)
    more_->end();
  if (server_)
    server_->stop(grace);
}

} // namespace shoal::apps
