// apps/manage/management_description.cpp -- the paths of management.hpp in
// /openapi.json.
#include "actors/gateway/description/api_document.hpp"
#include "actors/gateway/description/field_schema.hpp"
#include "apps/manage/management.hpp"
#include "apps/manage/management_bodies.hpp"
#include "apps/manage/model_loads.hpp"
#include "apps/remote/shoal_traffic.hpp"
#include "runtime/node/status/status.hpp"

namespace shoal::apps {

namespace {

constexpr const char* answer_schemas = R"json({
"Jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
"JobWithRun": {"type": "object", "required": ["id", "name"], "properties": {
  "id": {"type": "string"},
  "name": {"type": "string"},
  "run": {"description": "its resolved run file"}}},
"ModelLoads": {"type": "object", "required": ["allowed", "loads"],
  "properties": {
    "allowed": {"type": "boolean", "description": "whether clients may load models"},
    "loads": {"type": "array",
              "items": {"$ref": "#/components/schemas/ModelLoad"}}}},
"SubmittedJob": {"type": "object", "required": ["id", "name"], "properties": {
  "id": {"type": "string"}, "name": {"type": "string"}}},
"EndingJob": {"type": "object", "required": ["id", "ending"], "properties": {
  "id": {"type": "string"}, "ending": {"const": true}}},
"LoadedModel": {"type": "object", "required": ["success", "id", "model"],
  "properties": {
    "success": {"const": true},
    "id": {"type": "string", "description": "of its job"},
    "model": {"type": "string", "description": "its name in requests"},
    "notice": {"type": "string"}}},
"EndingLoad": {"type": "object", "required": ["id", "ending"], "properties": {
  "id": {"type": "string"}, "ending": {"const": true}}},
"UnloadedModel": {"type": "object", "required": ["success", "id"],
  "properties": {
    "success": {"const": true},
    "id": {"type": "string", "description": "of its job"}}}
})json";

void describe_looks(actors::api_document& to) {
  to.add({.method = "GET",
          .path = "/shoal/status",
          .tag = "Shoal",
          .summary = "what `shoal status --json` prints",
          .body = "",
          .answer = "ShoalStatus",
          .errors = {429}});
  to.add({.method = "GET",
          .path = "/shoal/traffic",
          .tag = "Shoal",
          .summary = "what `shoal status --traffic --json` prints",
          .body = "",
          .answer = "Traffic",
          .errors = {429}});
  to.add({.method = "GET",
          .path = "/models/loads",
          .tag = "Models",
          .summary = "how far the models are that clients load here",
          .body = "",
          .answer = "ModelLoads"});
  to.add({.method = "GET",
          .path = "/shoal/jobs",
          .tag = "Shoal",
          .summary = "what `shoal jobs --json` prints",
          .body = "",
          .answer = "Jobs",
          .errors = {429}});
  to.add({.method = "GET",
          .path = "/shoal/jobs/{job}",
          .tag = "Shoal",
          .summary = "one job, by id or name, with its resolved run",
          .body = "",
          .answer = "JobWithRun",
          .errors = {429, 500}});
  to.add(
    {.method = "GET",
     .path = "/shoal/jobs/{job}/events",
     .tag = "Shoal",
     .summary = "the events of a job, until it ends",
     .body = "",
     .answer = "",
     .other_type = "text/event-stream",
     .other_meaning = "each event's data is a line of `shoal attach --json`",
     .errors = {429, 500}});
}

void describe_changes(actors::api_document& to) {
  to.add({.method = "POST",
          .path = "/shoal/jobs",
          .tag = "Shoal",
          .summary = "submits a run; needs --http-jobs",
          .body = "TrainRequest",
          .answer = "SubmittedJob",
          .status = 201,
          .errors = {500}});
  to.add({.method = "POST",
          .path = "/shoal/jobs/{job}/cancel",
          .tag = "Shoal",
          .summary = "ends a job; needs --http-jobs",
          .body = "CancelRequest",
          .body_optional = true,
          .answer = "EndingJob",
          .status = 202,
          .errors = {409, 500}});
  to.add({.method = "POST",
          .path = "/models/load",
          .tag = "Models",
          .summary = "serves a model; needs --http-jobs",
          .body = "LoadRequest",
          .answer = "LoadedModel",
          .errors = {409, 500}});
  to.add({.method = "DELETE",
          .path = "/models/loads/{load}",
          .tag = "Models",
          .summary = "cancels a load that is not submitted yet, or forgets one "
                     "that has failed; needs --http-jobs",
          .body = "",
          .answer = "EndingLoad",
          .status = 202,
          .errors = {404, 429}});
  to.add({.method = "POST",
          .path = "/models/unload",
          .tag = "Models",
          .summary = "ends a model; needs --http-jobs",
          .body = "UnloadRequest",
          .answer = "UnloadedModel",
          .errors = {404, 500}});
}

} // namespace

void management::describe(actors::api_document& to) const {
  to.add_schemas(answer_schemas);
  to.add_schema("ShoalStatus", actors::schema_of(runtime::status_fields()));
  to.add_schema("Job", actors::schema_of(runtime::job_fields()));
  to.add_schema("Traffic", actors::schema_of(traffic_fields()));
  to.add_schema("ModelLoad", actors::schema_of(model_load_texts()));
  to.add_schema("TrainRequest", train_request_schema());
  to.add_schema("CancelRequest", cancel_request_schema());
  to.add_schema("LoadRequest", load_request_schema());
  to.add_schema("UnloadRequest", unload_request_schema());
  describe_looks(to);
  describe_changes(to);
}

} // namespace shoal::apps
