// runtime/node/status/status_serving.cpp -- the tables of resources and of served
// models.
#include "runtime/node/status/status_serving.hpp"

#include <algorithm>

namespace shoal::runtime {

using json = json_value;

namespace {

const json_table<node_resources>& resource_table() {
  using r = const node_resources&;
  static const json_table<node_resources> table{
    {"cpu_seconds", "number", "s", "processor time of all of its threads",
     [](r v) { return json(v.cpu_seconds); }},
    {"resident_bytes", "whole number", "bytes", "memory of the process",
     [](r v) { return json(v.resident_bytes); }},
    {"store_bytes", "whole number", "bytes", "in its store of files",
     [](r v) { return json(v.store_bytes); }},
    {"store_room_bytes", "whole number", "bytes",
     "that the store may still take",
     [](r v) { return json(v.store_room_bytes); }}};
  return table;
}

const json_table<core::served_pipeline>& pipeline_table() {
  using p = const core::served_pipeline&;
  static const json_table<core::served_pipeline> table{
    {"pipeline", "whole number", "", "its number, from 0",
     [](p v) { return json(v.pipeline); }},
    {"ready", "true or false", "", "whether all stages have their weights",
     [](p v) { return json(v.ready); }},
    {"streams", "whole number", "", "streams of all nodes' clients",
     [](p v) { return json(v.streams); }},
    {"running", "whole number", "", "of these, those with pages of the cache",
     [](p v) { return json(v.running); }},
    {"waiting", "whole number", "", "of these, those that wait for pages",
     [](p v) { return json(v.streams - std::min(v.streams, v.running)); }},
    {"pages", "whole number", "", "pages of the cache in use",
     [](p v) { return json(v.pages); }},
    {"pages_max", "whole number", "", "pages of the cache; 0: not known",
     [](p v) { return json(v.pages_max); }},
    {"waiting_tokens", "whole number", "tokens",
     "of prompts, still to be computed",
     [](p v) { return json(v.waiting_tokens); }}};
  return table;
}

const json_table<core::served_load>& serving_table() {
  using m = const core::served_load&;
  static const json_table<core::served_load> table{
    {"job", "text", "", "id of the job: 16 hexadecimal digits",
     [](m v) { return json(core::job_text(v.job)); }},
    {"name", "text", "", "of the model", [](m v) { return json(v.name); }},
    {"streams", "whole number", "", "streams of this node's clients",
     [](m v) { return json(v.streams); }},
    {"generated_tokens", "whole number", "tokens",
     "for this node's clients, since it started",
     [](m v) { return json(v.generated_tokens); }},
    {"pipelines", "list of objects", "", "as each has reported last",
     [](m v) { return written_each(pipeline_table(), v.pipelines); },
     texts_of(pipeline_table())}};
  return table;
}

} // namespace

json_value resources_json(const node_resources& has) {
  return written(resource_table(), has);
}

std::vector<field_text> resource_fields() {
  return texts_of(resource_table());
}

json_value serving_json(const std::vector<core::served_load>& models) {
  return written_each(serving_table(), models);
}

std::vector<field_text> serving_fields() {
  return texts_of(serving_table());
}

} // namespace shoal::runtime
