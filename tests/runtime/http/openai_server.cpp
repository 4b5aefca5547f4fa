// tests/runtime/http/openai_server.cpp -- a server without a model, for
// openai_client_test.py.
//
//   openai_server FILE_OF_KEYS
//
// It prints its address, and ends when its input does. A completion's tokens are
// the bytes of its prompt. The prompt "cut" is cut off after one event, "error"
// gets an event with an error, "busy" is answered with 429 and then by its text.
#include "runtime/http/http_routes.hpp"
#include "runtime/http/http_server.hpp"
#include "runtime/openai/completion_request.hpp"
#include "runtime/openai/completion_response.hpp"

#include <iostream>
#include <string>

using namespace shoal;
using namespace shoal::runtime;
using openai::completion_request;

namespace {

const openai::model_card card{"echo/one", 1700000000, "shoal", 4096};

openai::completion_head head_of(const completion_request& r) {
  return {"cmpl-" + std::to_string(r.prompts.size()), 1700000000, card.id, {}};
}

std::string text_of(const openai::prompt& p) {
  if (const auto* const text = std::get_if<std::string>(&p))
    return *text;
  std::string text;
  for (const openai::token_id id : std::get<1>(p))
    text += static_cast<char>(id);
  return text;
}

openai::completion_choice
choice(const completion_request& r, std::uint32_t index) {
  openai::completion_choice c;
  c.index = index;
  c.text = text_of(r.prompts[index / r.n]);
  c.finish = c.text.size() > r.max_tokens ? openai::finish_reason::length
                                          : openai::finish_reason::stop;
  c.text.resize(std::min<std::size_t>(c.text.size(), r.max_tokens));
  if (!r.logprobs)
    return c;
  openai::logprobs l;
  for (std::size_t i = 0; i < c.text.size(); ++i) {
    l.tokens.push_back({c.text.substr(i, 1)});
    l.token_logprobs.push_back(i == 0 ? std::nullopt : std::optional(-0.5f));
    l.top_logprobs.push_back(openai::logprobs::top{
      {{c.text.substr(i, 1)}, -0.5f}, {{"other"}, -1.5f}});
    l.text_offset.push_back(i);
  }
  c.logprobs = std::move(l);
  return c;
}

void stream(http_exchange& e, const completion_request& r) {
  e.begin_stream(200, {{"Content-Type", std::string(openai::sse_type)},
                       {"Cache-Control", "no-cache"}});
  const auto head = head_of(r);
  const std::string text = text_of(r.prompts[0]);
  std::uint64_t id = 0;
  e.write(openai::sse_keep_alive);
  for (std::size_t i = 0; i < text.size(); ++i) {
    openai::completion_choice c;
    c.text = text.substr(i, 1);
    if (i + 1 == text.size())
      c.finish = openai::finish_reason::stop;
    e.write(openai::sse_event(openai::chunk_json(head, {c}, r.include_usage),
                              {id++, {}}));
    if (text == "cut")
      return; // the exchange goes without end()
    if (text == "error") {
      e.write(openai::sse_event(
        openai::error_json(openai::server_error("a stage was lost"))));
      break;
    }
  }
  if (r.include_usage)
    e.write(openai::sse_event(
      openai::usage_chunk_json(head, {1, text.size(), std::nullopt}),
      {id++, {}}));
  e.write(openai::sse_done);
  e.end();
}

void complete(http_exchange& e) {
  const auto parsed = openai::parse_completion(e.request().body);
  if (const auto* const error = std::get_if<openai::api_error>(&parsed)) {
    e.respond(*error);
    return;
  }
  const auto& r = std::get<completion_request>(parsed);
  if (r.model != card.id) {
    e.respond(openai::model_not_found(r.model));
    return;
  }
  static bool busy = true;
  if (text_of(r.prompts[0]) == "busy" && std::exchange(busy, false)) {
    e.respond(openai::rate_limited("come again", 1));
    return;
  }
  if (r.stream)
    return stream(e, r);
  std::vector<openai::completion_choice> choices;
  for (std::uint32_t i = 0; i < r.prompts.size() * r.n; ++i)
    choices.push_back(choice(r, i));
  e.respond_json(openai::completion_json(
    head_of(r), choices, {3, 4, std::optional<std::uint64_t>(2)}));
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  auto routes = std::make_shared<http_routes>();
  routes->add("GET", "/v1/models", [](const auto& e) {
    e->respond_json(openai::models_json({card}));
  });
  routes->add("GET", "/v1/models/*", [](const auto& e) {
    const auto id = percent_decoded(e->request().path.substr(11));
    if (id == card.id)
      e->respond_json(openai::model_json(card));
    else
      e->respond(openai::model_not_found(id.value_or("")));
  });
  routes->add(
    "POST", "/v1/completions", [](const auto& e) { complete(*e); },
    "application/json");
  auto keys = api_keys::load(argv[1]);
  if (!keys) {
    std::cerr << keys.message() << "\n";
    return 1;
  }
  http_config config;
  config.listen = "127.0.0.1:0";
  config.keys = std::make_shared<const api_keys>(*keys);
  http_server server(config, routes);
  std::cout << server.endpoint() << std::endl;
  while (std::cin.get() != std::char_traits<char>::eof()) {
  }
}
