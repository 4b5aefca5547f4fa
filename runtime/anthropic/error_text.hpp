// runtime/anthropic/error_text.hpp -- an error as clients of Anthropic's API expect
// it.
//
//   {"type": "error", "error": {"type": "...", "message": "...", "param": "..."}}
//
// Its type follows from the status; `param`, which that API does not have, is there
// where a field is wrong.
//
// Threads: any. Errors: none.
// Source:  https://docs.anthropic.com/en/api/errors
#pragma once

#include "runtime/openai/api_error.hpp"

#include <string>

namespace shoal::anthropic {

std::string error_json(const openai::api_error& error);

} // namespace shoal::anthropic
