// apps/cli/command_set.hpp -- the options of all commands, with their
// functions.
#pragma once

#include "apps/chat/chat_options.hpp"
#include "apps/common/commands.hpp"
#include "apps/top/top_options.hpp"

#include <CLI/CLI.hpp>

#include <functional>
#include <map>
#include <string>

namespace shoal::apps {

struct command_set {
  node_options node;
  status_options status;
  top_options top;
  logs_options logs;
  recover_options recover;
  jobs_options jobs;
  cancel_options cancel;
  attach_options attach;
  leave_options leave;
  train_options train;
  serve_options serve;
  chat_options chat;
  api_key_options api_key;
  plan_options plan;
  init_options init;
  generate_command generate;
  eval_command eval;
  pull_options pull;
  audit_options audit;
  doctor_options doctor;
  key_options key;
  bench_options bench;
  chaos_options chaos;
  invite_options invite;
  revoke_options revoke;
  completion_options completion;
  bool man = false; ///< for `reference`
};

using runner = std::function<int()>;
using runners = std::map<CLI::App*, runner>;

// Options that several commands have.

void add_address(CLI::App& c, node_address& at);
/// For commands that only ask: they may use a node elsewhere.
void add_node_to_ask(CLI::App& c, node_address& at);
/// The HTTP endpoint of a node in this process.
/// @param where stands before each help text
void add_http(CLI::App& c, http_options& o, const std::string& where = {});
/// How a model is to be served: pipelines, types, context. They need the option
/// `only_with`, unless it is null.
void add_served(CLI::App& c, serve_options& o, CLI::Option* only_with);

// One group of commands each: declares their options, which fill `set`.

void add_node(CLI::App& app, command_set& set, runners& run);
void add_jobs(CLI::App& app, command_set& set, runners& run);
void add_train(CLI::App& app, command_set& set, runners& run);
void add_reference(CLI::App& app, command_set& set, runners& run);
void add_model(CLI::App& app, command_set& set, runners& run);
void add_serve(CLI::App& app, command_set& set, runners& run);

} // namespace shoal::apps
