// actors/gateway/gateway_door.cpp -- paths, and the gateway behind them.
#include "actors/gateway/gateway_door.hpp"

#include "actors/gateway/gateway.hpp"
#include "runtime/files/json.hpp"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>

#include <mutex>

namespace shoal::actors {

class gateway_door {
public:
  gateway_door(const std::string& version, bool vllm_metrics)
    : routes(std::make_shared<runtime::http_routes>()) {
    using exchange = std::shared_ptr<runtime::http_exchange>;
    const auto ask = [this](http_question what) {
      return [this, what](exchange x) { pass(std::move(x), what); };
    };
    routes->add("POST", "/v1/completions", ask(http_question::completion),
                "application/json");
    routes->add("POST", "/v1/chat/completions", ask(http_question::chat),
                "application/json");
    routes->add("POST", "/v1/responses", ask(http_question::responses),
                "application/json");
    routes->add("POST", "/v1/messages", ask(http_question::messages),
                "application/json");
    routes->add("POST", "/v1/messages/count_tokens",
                ask(http_question::count_tokens), "application/json");
    routes->add("POST", "/v1/embeddings", ask(http_question::embeddings),
                "application/json");
    for (const char* before : {"", "/v1"}) {
      const std::string path = before;
      routes->add("POST", path + "/tokenize", ask(http_question::tokenize),
                  "application/json");
      routes->add("POST", path + "/detokenize", ask(http_question::detokenize),
                  "application/json");
    }
    routes->add("POST", "/apply-template", ask(http_question::apply_template),
                "application/json");
    routes->add("GET", "/v1/models", ask(http_question::models));
    routes->add("GET", "/v1/models/*", ask(http_question::model));
    routes->add("GET", "/ready", ask(http_question::ready));
    routes->add("GET", "/metrics",
                ask(vllm_metrics ? http_question::metrics_of_vllm
                                 : http_question::metrics));
    routes->add("GET", "/health", [](const exchange& x) {
      x->respond_json("{\"status\":\"ok\"}");
    });
    routes->add("GET", "/version", [version](const exchange& x) {
      x->respond_json(model::json_text(nlohmann::json{{"version", version}}));
    });
  }

  void open(const caf::actor& gateway) {
    std::lock_guard lock(mutex_);
    gateway_ = gateway.address();
  }

  const std::shared_ptr<runtime::http_routes> routes;
  std::shared_ptr<const runtime::key_accounts> accounts;

private:
  void pass(std::shared_ptr<runtime::http_exchange> x, http_question what) {
    caf::actor to;
    {
      std::lock_guard lock(mutex_);
      to = caf::actor_cast<caf::actor>(gateway_);
    }
    if (to)
      caf::anon_send(to, http_ask{std::move(x), what, accounts});
    else
      x->respond(openai::unavailable("the node is starting", 1));
  }

  std::mutex mutex_;
  caf::actor_addr gateway_;
};

std::shared_ptr<gateway_door>
make_gateway_door(const std::string& version, bool vllm_metrics) {
  return std::make_shared<gateway_door>(version, vllm_metrics);
}

runtime::http_routes& routes_of(const std::shared_ptr<gateway_door>& door) {
  return *door->routes;
}

void count_refusals(const std::shared_ptr<gateway_door>& door,
                    std::shared_ptr<const runtime::key_accounts> of) {
  door->accounts = std::move(of);
}

std::shared_ptr<runtime::http_handler>
handler_of(const std::shared_ptr<gateway_door>& door) {
  return {door, door->routes.get()};
}

void open_gateway(runtime::role_table& roles,
                  const std::shared_ptr<gateway_door>& door) {
  roles["gateway"] = [door](caf::actor_system& system, runtime::context& node) {
    caf::actor gateway = spawn_gateway(system, node);
    door->open(gateway);
    return gateway;
  };
}

std::vector<std::string> open_paths() {
  return {"/health", "/ready", "/version"};
}

} // namespace shoal::actors
