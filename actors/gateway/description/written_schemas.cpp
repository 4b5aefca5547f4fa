// actors/gateway/description/written_schemas.cpp -- as JSON.
#include "actors/gateway/description/written_schemas.hpp"

namespace shoal::actors {

std::string_view request_part_schemas() {
  return R"json({
"Message": {"type": "object", "required": ["role"], "properties": {
  "role": {"type": "string", "maxLength": 512, "examples": ["user"]},
  "content": {"anyOf": [{"type": ["string", "null"]},
    {"type": "array", "items": {"anyOf": [{"type": "string"},
      {"type": "object", "required": ["type", "text"], "properties": {
        "type": {"const": "text"}, "text": {"type": "string"}}}]}}]},
  "tool_calls": {"type": ["array", "null"], "maxItems": 128, "items": {
    "type": "object", "required": ["function"], "properties": {
      "function": {"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"},
        "arguments": {"type": ["string", "object", "null"]}}}}}}}},
"Tool": {"type": "object", "required": ["type", "function"], "properties": {
  "type": {"const": "function"},
  "function": {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string"},
    "description": {},
    "parameters": {"description": "a JSON schema of the arguments"},
    "strict": {"description": "true: calls keep to the schema"}}}}},
"Prompts": {"anyOf": [{"type": "string"},
  {"type": "array", "minItems": 1, "items": {"type": "string"}},
  {"$ref": "#/components/schemas/TokenIds"},
  {"type": "array", "minItems": 1,
   "items": {"$ref": "#/components/schemas/TokenIds"}}]},
"TokenIds": {"type": "array", "minItems": 1, "maxItems": 1048576, "items": {
  "type": "integer", "minimum": 0, "maximum": 2147483647}},
"Schema": {"type": ["object", "boolean", "string", "null"],
  "description": "a JSON schema, or its text"},
"StructuredOutputs": {"type": ["object", "null"], "properties": {
  "json": {"$ref": "#/components/schemas/Schema"},
  "json_object": {"type": ["boolean", "null"]},
  "regex": {"type": ["string", "null"]},
  "choice": {"type": ["array", "null"], "minItems": 1,
    "items": {"type": "string"}},
  "grammar": {"type": ["string", "null"]},
  "structural_tag": {"type": "null"}}},
"ResponseFormat": {"anyOf": [{"type": "null"},
  {"type": "object", "required": ["type"], "properties": {
    "type": {"const": "text"}}},
  {"type": "object", "required": ["type"], "properties": {
    "type": {"const": "json_object"},
    "schema": {"$ref": "#/components/schemas/Schema"}}},
  {"type": "object", "required": ["type", "json_schema"], "properties": {
    "type": {"const": "json_schema"},
    "json_schema": {"type": "object", "required": ["schema"], "properties": {
      "schema": {"type": ["object", "boolean", "string"]}}}}}]},
"InputItem": {"type": "object", "properties": {
  "type": {"enum": ["message", "function_call", "function_call_output",
    "reasoning"]}}},
"Block": {"type": "object", "required": ["type"], "properties": {
  "type": {"enum": ["text", "thinking", "redacted_thinking", "tool_use",
    "tool_result"]}}},
"BlockMessage": {"type": "object", "required": ["role", "content"],
  "properties": {
    "role": {"enum": ["user", "assistant", "system"]},
    "content": {"anyOf": [{"type": "string"}, {"type": "array",
      "items": {"$ref": "#/components/schemas/Block"}}]}}}
})json";
}

std::string_view answer_schemas() {
  return R"json({
"Error": {"type": "object", "required": ["error"], "properties": {
  "error": {"type": "object", "required": ["message", "type", "param", "code"],
    "properties": {
      "message": {"type": "string"},
      "type": {"enum": ["invalid_request_error", "rate_limit_error",
        "server_error"]},
      "param": {"type": ["string", "null"],
        "description": "the field that is wrong"},
      "code": {"type": ["string", "null"], "description": "for programs"}}}}},
"MessagesError": {"type": "object", "required": ["type", "error"],
  "properties": {
    "type": {"const": "error"},
    "error": {"type": "object", "required": ["type", "message"], "properties": {
      "type": {"enum": ["invalid_request_error", "authentication_error",
        "permission_error", "not_found_error", "request_too_large",
        "rate_limit_error", "overloaded_error", "api_error"]},
      "message": {"type": "string"},
      "param": {"type": "string"}}}}},
"Status": {"type": "object", "required": ["status"], "properties": {
  "status": {"enum": ["ok", "ready"]}}},
"Version": {"type": "object", "required": ["version"], "properties": {
  "version": {"type": "string"}}},
"OpenApi": {"type": "object", "required": ["openapi", "info", "paths"]},
"Model": {"type": "object", "required": ["id", "object", "created", "owned_by"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "model"},
    "created": {"type": "integer"},
    "owned_by": {"type": "string"},
    "max_model_len": {"type": "integer",
      "description": "most tokens of a prompt and its answer"},
    "step": {"type": "integer",
      "description": "of a training job whose checkpoints are served"},
    "ready": {"type": "boolean",
      "description": "a pipeline has all weights; until then requests wait"}}},
"Models": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}},
"Usage": {"type": "object",
  "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
  "properties": {
    "prompt_tokens": {"type": "integer"},
    "completion_tokens": {"type": "integer"},
    "total_tokens": {"type": "integer"},
    "completion_tokens_details": {"type": "object", "properties": {
      "reasoning_tokens": {"type": "integer"}}}}},
"FinishReason": {"enum": ["stop", "length", "tool_calls", null]},
"GivenIds": {"type": "array", "items": {"type": "integer"},
  "description": "if return_token_ids is true"},
"Completion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "text_completion"},
    "created": {"type": "integer"},
    "model": {"type": "string"},
    "system_fingerprint": {"type": "string"},
    "choices": {"type": "array", "items": {"type": "object",
      "required": ["index", "text", "logprobs", "finish_reason"],
      "properties": {
        "index": {"type": "integer"},
        "text": {"type": "string"},
        "logprobs": {"type": ["object", "null"], "properties": {
          "tokens": {"type": "array", "items": {"type": "string"}},
          "token_logprobs": {"type": "array",
            "items": {"type": ["number", "null"]}},
          "top_logprobs": {"type": "array",
            "items": {"type": ["object", "null"]}},
          "text_offset": {"type": "array", "items": {"type": "integer"}}}},
        "finish_reason": {"$ref": "#/components/schemas/FinishReason"},
        "prompt_token_ids": {"$ref": "#/components/schemas/GivenIds"},
        "token_ids": {"$ref": "#/components/schemas/GivenIds"}}}},
    "usage": {"$ref": "#/components/schemas/Usage"}}},
"TokenChance": {"type": "object", "required": ["token", "logprob", "bytes"],
  "properties": {
    "token": {"type": "string"},
    "logprob": {"type": "number"},
    "bytes": {"type": ["array", "null"], "items": {"type": "integer"}},
    "top_logprobs": {"type": "array",
      "items": {"$ref": "#/components/schemas/TokenChance"}}}},
"ChatCompletion": {"type": "object",
  "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "chat.completion"},
    "created": {"type": "integer"},
    "model": {"type": "string"},
    "system_fingerprint": {"type": "string"},
    "choices": {"type": "array", "items": {"type": "object",
      "required": ["index", "message", "logprobs", "finish_reason"],
      "properties": {
        "index": {"type": "integer"},
        "message": {"type": "object", "required": ["role", "content"],
          "properties": {
            "role": {"const": "assistant"},
            "content": {"type": ["string", "null"]},
            "reasoning_content": {"type": "string"},
            "reasoning": {"type": "string"},
            "refusal": {"type": "null"},
            "tool_calls": {"type": "array", "items": {"type": "object",
              "required": ["id", "type", "function"], "properties": {
                "id": {"type": "string"},
                "type": {"const": "function"},
                "function": {"type": "object",
                  "required": ["name", "arguments"], "properties": {
                    "name": {"type": "string"},
                    "arguments": {"type": "string"}}}}}}}},
        "logprobs": {"type": ["object", "null"], "properties": {
          "content": {"type": "array",
            "items": {"$ref": "#/components/schemas/TokenChance"}}}},
        "finish_reason": {"$ref": "#/components/schemas/FinishReason"},
        "token_ids": {"$ref": "#/components/schemas/GivenIds"}}}},
    "prompt_token_ids": {"$ref": "#/components/schemas/GivenIds"},
    "usage": {"$ref": "#/components/schemas/Usage"}}},
"Response": {"type": "object",
  "required": ["id", "object", "created_at", "status", "model", "output",
    "error", "incomplete_details", "usage"],
  "properties": {
    "id": {"type": "string"},
    "object": {"const": "response"},
    "created_at": {"type": "integer"},
    "status": {"enum": ["completed", "incomplete", "failed", "in_progress"]},
    "model": {"type": "string"},
    "error": {"type": ["object", "null"]},
    "incomplete_details": {"type": ["object", "null"], "properties": {
      "reason": {"const": "max_output_tokens"}}},
    "output": {"type": "array", "items": {"type": "object",
      "required": ["id", "type", "status"], "properties": {
        "id": {"type": "string"},
        "type": {"enum": ["message", "reasoning", "function_call"]},
        "status": {"enum": ["completed", "incomplete", "in_progress"]},
        "role": {"const": "assistant"},
        "content": {"type": "array", "items": {"type": "object",
          "required": ["type", "text"], "properties": {
            "type": {"enum": ["output_text", "reasoning_text"]},
            "text": {"type": "string"}}}},
        "call_id": {"type": "string"},
        "name": {"type": "string"},
        "arguments": {"type": "string"}}}},
    "usage": {"type": ["object", "null"],
      "required": ["input_tokens", "output_tokens", "total_tokens"],
      "properties": {
        "input_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"},
        "total_tokens": {"type": "integer"}}}}},
"MessagesAnswer": {"type": "object",
  "required": ["id", "type", "role", "model", "content", "stop_reason",
    "stop_sequence", "usage"],
  "properties": {
    "id": {"type": "string"},
    "type": {"const": "message"},
    "role": {"const": "assistant"},
    "model": {"type": "string"},
    "content": {"type": "array", "items": {"type": "object",
      "required": ["type"], "properties": {
        "type": {"enum": ["text", "thinking", "tool_use"]},
        "text": {"type": "string"},
        "thinking": {"type": "string"},
        "signature": {"type": "string"},
        "id": {"type": "string"},
        "name": {"type": "string"},
        "input": {"type": "object"}}}},
    "stop_reason": {"enum": ["end_turn", "max_tokens", "stop_sequence",
      "tool_use", null]},
    "stop_sequence": {"type": ["string", "null"]},
    "usage": {"type": "object", "required": ["input_tokens", "output_tokens"],
      "properties": {
        "input_tokens": {"type": "integer"},
        "output_tokens": {"type": "integer"},
        "cache_creation_input_tokens": {"type": "integer"},
        "cache_read_input_tokens": {"type": "integer"}}}}},
"TokenCount": {"type": "object", "required": ["input_tokens"], "properties": {
  "input_tokens": {"type": "integer"}}},
"Embeddings": {"type": "object", "required": ["object", "data", "model",
  "usage"], "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "items": {"type": "object",
      "required": ["object", "index", "embedding"], "properties": {
        "object": {"const": "embedding"},
        "index": {"type": "integer"},
        "embedding": {"anyOf": [{"type": "array", "items": {"type": "number"}},
          {"type": "string", "description": "base64 of 32-bit floats"}]}}}},
    "model": {"type": "string"},
    "id": {"type": "string"},
    "created": {"type": "integer"},
    "usage": {"type": "object", "required": ["prompt_tokens", "total_tokens"],
      "properties": {
        "prompt_tokens": {"type": "integer"},
        "total_tokens": {"type": "integer"}}}}},
"Tokens": {"type": "object", "required": ["count", "max_model_len", "tokens",
  "token_strs"], "properties": {
    "count": {"type": "integer"},
    "max_model_len": {"type": "integer"},
    "tokens": {"type": "array", "items": {"oneOf": [{"type": "integer"},
      {"type": "object", "required": ["id", "piece"], "properties": {
        "id": {"type": "integer"},
        "piece": {"type": ["string", "array"], "items": {"type": "integer"},
          "description": "a list of bytes if it is a part of a character"}}}]}},
    "token_strs": {"type": ["array", "null"], "items": {"type": "string"}}}},
"Text": {"type": "object", "required": ["prompt"], "properties": {
  "prompt": {"type": "string"},
  "content": {"type": "string", "description": "the same"}}}
})json";
}

} // namespace shoal::actors
