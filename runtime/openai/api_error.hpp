// runtime/openai/api_error.hpp -- an error as clients of OpenAI's API expect it.
//
//   {"error": {"message": "...", "type": "...", "param": "...", "code": "..."}}
//
// The status decides which exception a client raises, `code` is for programs,
// and `message` is what a user reads: it says what is wrong with which thing.
//
// Threads: any. Errors: none.
// Source:  https://platform.openai.com/docs/guides/error-codes
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shoal::openai {

struct api_error {
  unsigned status = 400;
  std::string message;
  std::string type;  ///< "invalid_request_error", "server_error", ...
  std::string param; ///< the field of the request that is wrong; "": none
  std::string code;  ///< "model_not_found", ...; "": none
  /// Seconds after which another try makes sense (Retry-After); 0: not said;
  unsigned retry_after_s = 0;
  /// for this one none ever does (x-should-retry).
  static constexpr unsigned never = ~0u;
};

/// 400: `param` is wrong.
api_error invalid_request(std::string message, std::string param = "",
                          std::string code = "");
/// As invalid_request(), of no field, with another status of 4xx or 5xx.
api_error
refused_request(unsigned status, std::string message, std::string code);
/// 401: there is no key, or an unknown one.
api_error invalid_api_key(std::string message);
/// 404, "model_not_found".
api_error model_not_found(const std::string& model);
/// 429: too much at once; the client should try again.
api_error rate_limited(std::string message, unsigned retry_after_s);
/// 500: a fault of this side.
api_error server_error(std::string message);
/// 503: not now: no model is loaded yet, or the server stops.
api_error unavailable(std::string message, unsigned retry_after_s);

/// Whether nothing is wrong with the request: at another time, or elsewhere, it
/// would be answered.
inline bool is_for_want_of_room(const api_error& error) {
  return error.status == 429 || error.status == 503;
}

/// A field that has another name in another API.
struct field_name {
  std::string_view ours, theirs; ///< "messages", "input"
};
/// Says `theirs` where the error is about `ours`.
void rename_fields(api_error& error, std::span<const field_name> names);

/// The body of the answer.
std::string error_json(const api_error& error);

} // namespace shoal::openai
