// apps/model/cmd_pull.cpp -- pull: downloads a model of the hub into the cache.
#include "apps/common/commands.hpp"
#include "apps/common/json_documents.hpp"
#include "apps/common/report.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/slow_work.hpp"
#include "runtime/core/text/amounts.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/files/json_table.hpp"
#include "runtime/hub/pull.hpp"

#include <cstdlib>
#include <iostream>

namespace shoal::apps {
namespace {

using json = nlohmann::ordered_json;

struct pulled_model {
  const hub::hub_name& name;
  const hub::pulled& found;
};

const runtime::json_table<pulled_model>& pull_table() {
  using p = const pulled_model&;
  static const runtime::json_table<pulled_model> table{
    {"repository", "text", "", "ORG/NAME",
     [](p v) { return json(v.name.repository); }},
    {"revision", "text", "", "that was asked for",
     [](p v) { return json(v.name.revision); }},
    {"commit", "text", "", "of the revision",
     [](p v) { return json(v.found.commit); }},
    {"path", "text", "", "of the folder, or of the file in GGUF",
     [](p v) { return json(v.found.path.string()); }},
    {"files", "whole number", "", "of the model; 0: HF_HUB_OFFLINE is set",
     [](p v) { return json(v.found.files); }},
    {"bytes", "whole number", "bytes", "of these files",
     [](p v) { return json(v.found.bytes); }},
    {"downloaded_bytes", "whole number", "bytes",
     "of the files that were not in the cache",
     [](p v) { return json(v.found.fetched_bytes); }}};
  return table;
}

} // namespace

std::vector<runtime::field_text> pull_fields() {
  return runtime::texts_of(pull_table());
}

int run_pull(const pull_options& o) {
  const auto name = hub::parse_name(o.model);
  if (!name)
    return fail(name.message(), exit_usage);
  const auto settings = hub::read_settings(std::getenv);
  if (!settings)
    return fail(settings.message());
  signals interrupts;
  const auto found =
    hub::pull(*settings, {*name},
              shown_work([&interrupts] { return !interrupts.seen(); }));
  if (!found && interrupts.seen())
    return fail("interrupted: what has come so far is kept, and the same "
                "command goes on from there",
                exit_interrupted);
  if (!found)
    return fail(found.message());
  if (o.json) {
    std::cout << model::json_text(
      runtime::written<pulled_model>(pull_table(), {*name, *found}))
              << "\n";
    return exit_done;
  }
  // The path alone on stdout: `shoal serve $(shoal pull ORG/NAME)`.
  std::cout << core::shown(found->path.string()) << std::endl;
  std::cerr << "shoal: " << name->repository << ", commit "
            << found->commit.substr(0, 12)
            << (found->listed
                  ? ": " + core::count_text(found->files, "file") + ", "
                      + core::size_text(found->bytes) + " ("
                      + core::size_text(found->fetched_bytes) + " downloaded)"
                  : ": as the cache has it (HF_HUB_OFFLINE is set)")
            << "\n";
  return exit_done;
}

} // namespace shoal::apps
