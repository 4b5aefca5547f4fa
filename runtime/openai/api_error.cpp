// runtime/openai/api_error.cpp -- errors by status, and their JSON.
#include "runtime/openai/api_error.hpp"

#include "runtime/files/json.hpp"

#include <algorithm>
#include <utility>

namespace shoal::openai {

api_error
invalid_request(std::string message, std::string param, std::string code) {
  return {.status = 400,
          .message = std::move(message),
          .type = "invalid_request_error",
          .param = std::move(param),
          .code = std::move(code)};
}

api_error
refused_request(unsigned status, std::string message, std::string code) {
  api_error error = invalid_request(std::move(message), "", std::move(code));
  error.status = status;
  return error;
}

api_error invalid_api_key(std::string message) {
  return {.status = 401,
          .message = std::move(message),
          .type = "invalid_request_error",
          .param = "",
          .code = "invalid_api_key"};
}

api_error model_not_found(const std::string& model) {
  return {.status = 404,
          .message = model.empty()
                       ? "model is missing: name one of /v1/models"
                       : "the model "
                           + model::shown(nlohmann::json(core::shown(model)))
                           + " is not served here: see /v1/models",
          .type = "invalid_request_error",
          .param = "model",
          .code = "model_not_found"};
}

api_error rate_limited(std::string message, unsigned retry_after_s) {
  return {.status = 429,
          .message = std::move(message),
          .type = "rate_limit_error",
          .param = "",
          .code = "rate_limit_exceeded",
          .retry_after_s = retry_after_s};
}

api_error server_error(std::string message) {
  return {.status = 500,
          .message = std::move(message),
          .type = "server_error",
          .param = "",
          .code = "internal_error"};
}

api_error unavailable(std::string message, unsigned retry_after_s) {
  return {.status = 503,
          .message = std::move(message),
          .type = "server_error",
          .param = "",
          .code = "unavailable",
          .retry_after_s = retry_after_s};
}

void rename_fields(api_error& error, std::span<const field_name> names) {
  for (const auto& [ours, theirs] : names) {
    const std::string_view behind =
      std::string_view(error.param)
        .substr(std::min(ours.size(), error.param.size()));
    if (!error.param.starts_with(ours)
        || (!behind.empty() && behind[0] != '.' && behind[0] != '['))
      continue;
    error.param.replace(0, ours.size(), theirs);
    if (error.message.starts_with(ours))
      error.message.replace(0, ours.size(), theirs);
    return;
  }
}

std::string error_json(const api_error& error) {
  using json = nlohmann::ordered_json;
  const auto or_null = [](const std::string& text) {
    return text.empty() ? json(nullptr) : json(text);
  };
  return model::json_text(json{{"error",
                                {{"message", error.message},
                                 {"type", error.type},
                                 {"param", or_null(error.param)},
                                 {"code", or_null(error.code)}}}});
}

} // namespace shoal::openai
