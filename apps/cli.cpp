// apps/cli.cpp -- flags, environment and configuration file, in this order.
//
// Every flag of a subcommand is also the variable SHOAL_<FLAG> and the key
// <flag> in the subcommand's table of the configuration file (--config FILE,
// by default shoal/shoal.toml below the user's configuration directory).
// The flags of a run file's keys are made from the table in run_config.hpp.
#include "apps/commands.hpp"
#include "apps/pipeline_meter.hpp"
#include "apps/reduce_meter.hpp"
#include "apps/shown_stream.hpp"
#include "apps/toml_file.hpp"
#include "runtime/run_config.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>

namespace shoal::apps {
namespace {

/// A wrong flag, variable or key; the text says which.
struct usage_error {
  std::string text;
};

std::string variable_of(const std::string& flag) {
  std::string name = "SHOAL_";
  for (char c : flag)
    name += c == '-' || c == '.' ? '_' : char(std::toupper(c));
  return name;
}

void add_values(CLI::Option& option, const std::vector<std::string>& values,
                const std::string& source) {
  try {
    for (const std::string& value : values)
      option.add_result(value);
    option.run_callback();
  } catch (const CLI::Error& e) {
    throw usage_error{source + ": " + e.what()};
  }
}

/// Variables first, then the file, for what the command line left out.
void fill_in(CLI::App& command, const toml_table& file,
             const std::string& file_name) {
  for (const auto& [key, values] : file.values(command.get_name())) {
    const std::string flag = "--" + key;
    if (command.get_option_no_throw(flag) == nullptr || key == "config")
      throw usage_error{file_name + ": [" + command.get_name()
                        + "] has no key '" + key + "'"};
  }
  for (CLI::Option* option : command.get_options()) {
    const auto names = option->get_lnames();
    if (names.empty() || option->count() > 0 || names[0] == "help")
      continue;
    const std::string variable = variable_of(names[0]);
    if (const char* value = std::getenv(variable.c_str()); value && *value) {
      add_values(*option, {value}, variable);
      continue;
    }
    for (const auto& [key, values] : file.values(command.get_name()))
      if (key == names[0])
        add_values(*option, values, file_name + ": " + key);
  }
}

void add_address(CLI::App& c, node_address& at) {
  c.add_option("--name", at.name, "the node's name: its own data directory");
  c.add_option("--data-dir", at.data_dir, "the node's data directory");
  c.add_option("--cluster-key", at.cluster_key,
               "file with the key that all peers share");
}

/// For commands that only ask: they may ask a node elsewhere.
void add_node_to_ask(CLI::App& c, node_address& at) {
  add_address(c, at);
  c.add_option("--peer", at.peers,
               "host:port of nodes to ask instead of the local one")
    ->delimiter(',');
}

/// One flag for each key of a run file; the values are read as text here and
/// checked by the run file's own parser.
void add_run(CLI::App& c, run_options& o, const char* names = "RUN") {
  c.add_option(names, o.run_file, "run file (TOML)");
  c.add_option("--data", o.data,
               "files, folders or globs of text, or of .jsonl with \"text\"; "
               "also as .gz or .zst")
    ->type_name("PATH");
  auto add = [&](const std::string& key, const std::string& help,
                 const std::string& group) {
    c.add_option_function<std::string>(
       "--" + key, [&o, key](const std::string& v) { o.overrides[key] = v; },
       help)
      ->group(group)
      ->type_name("");
  };
  for (const runtime::run_key& k : runtime::keys())
    add(std::string(k.section) + "." + std::string(k.name), std::string(k.help),
        "[" + std::string(k.section) + "]");
  add("model.path", "start from this Hugging Face directory", "[model]");
  for (std::string_view k : model::known_keys())
    add("model." + std::string(k), "as in config.json", "[model]");
}

/// Short names of what decides a run's vocabulary.
void add_tokenizer(CLI::App& c, run_options& o) {
  auto add = [&](const char* name, const char* key, const char* type,
                 const char* help) {
    c.add_option_function<std::string>(
       name, [&o, key](const std::string& v) { o.overrides[key] = v; }, help)
      ->type_name(type);
  };
  add("--tokenizer", "data.tokenizer", "KIND",
      "bpe: train one on --data, saved as tokenizer.json in --out; bytes: one "
      "token for each byte; model: the one of model.path; default: model if "
      "there is one, else bytes");
  add("--vocab-size", "model.vocab_size", "N",
      "tokens of the vocabulary; default: 4096 with --tokenizer bpe, 256 with "
      "bytes");
}

struct command_set {
  node_options node;
  status_options status;
  recover_options recover;
  jobs_options jobs;
  cancel_options cancel;
  attach_options attach;
  leave_options leave;
  train_options train;
  plan_options plan;
  init_options init;
  generate_command generate;
  eval_command eval;
  audit_options audit;
  doctor_options doctor;
  key_options key;
  bench_options bench;
  chaos_options chaos;
  invite_options invite;
  revoke_options revoke;
};

using runner = std::function<int()>;
using runners = std::map<CLI::App*, runner>;

void add_chaos(CLI::App& app, chaos_options& o, runners& run) {
  CLI::App* c = app.add_subcommand(
    "chaos", "train on a throw-away shoal of processes on this machine while "
             "killing, stopping, slowing and cutting peers; say what it cost");
  add_run(*c, o.run, "RUN,--run");
  c->add_option("--peers", o.peers, "how many; default 4")
    ->check(CLI::Range(2, chaos_peers_max));
  c->add_option("--seed", o.seed, "the same seed does the same in this order");
  CLI::Option* steps =
    c->add_option("--steps", o.steps, "train so many; overrides the run file")
      ->check(CLI::PositiveNumber);
  c->add_option("--minutes", o.minutes,
                "about how long it takes; default 2, or as the run file says")
    ->check(CLI::Range(0.5, 10000.0))
    ->excludes(steps);
  c->add_option("--every", o.every,
                "seconds from one fault to the next; longer if the shoal is "
                "not whole again; default 10")
    ->check(CLI::Range(0.0, 86400.0));
  c->add_option("--calm", o.calm,
                "seconds that it first trains undisturbed, to know what it "
                "could do; default 10")
    ->check(CLI::Range(0.0, 86400.0));
  c->add_option("--only", o.only,
                "of kill, stop, slow, cut; default: all that can be done here")
    ->delimiter(',')
    ->check(CLI::IsMember({"kill", "stop", "slow", "cut"}));
  c->add_option("--fabric", o.fabric,
                "what carries tensors: auto, tls, shm; default tls with cuts "
                "(shared memory passes them), else auto")
    ->check(CLI::IsMember({"auto", "tls", "shm"}));
  c->add_flag("--json", o.json, "one JSON line per event on stdout");
  run[c] = [&o] { return run_chaos(o); };
}

void add_node(CLI::App& app, command_set& set, runners& run) {
  CLI::App* c = app.add_subcommand("node", "run a peer until it is told to "
                                           "leave (Ctrl-C, SIGTERM)");
  node_options& o = set.node;
  add_address(*c, o.at);
  c->add_option("--listen", o.listen,
                "ADDR:PORT or [IPv6 ADDR]:PORT; port 0: any free one. Without "
                "a cluster key only loopback");
  c->add_option("--join", o.join,
                "host:port or [IPv6 address]:port of peers to contact, also "
                "later when they are not connected; a name stands for all of "
                "its addresses; [fe80::1%eth0]:port names the interface")
    ->delimiter(',');
  c->add_option("--hosts", o.hosts,
                "file of hosts to contact, one host or host:port a line; read "
                "again");
  c->add_flag("--slurm", o.slurm,
              "contact the nodes of this Slurm job (SLURM_JOB_NODELIST)");
  CLI::Option* token = c->add_option(
    "--join-token", o.join_token,
    "what `shoal invite` printed: brings the cluster key, once. Other users of "
    "this machine can see it in `ps`: better by a file, or SHOAL_JOIN_TOKEN");
  c->add_option("--join-token-file", o.join_token_file,
                "a file whose first line is the join token; - reads stdin")
    ->excludes(token);
  c->add_option("--cluster", o.cluster, "shoals of other names are ignored");
  CLI::Option* witness =
    c->add_flag("--witness", o.witness, "vote, but take no work");
  c->add_flag("--non-voting", o.non_voting,
              "take work, but no vote: for machines that come and go")
    ->excludes(witness);
  c->add_flag("--no-discovery", o.no_discovery,
              "do not use multicast (IPv4 and IPv6)");
  c->add_flag("--no-shared-memory", o.no_shared_memory,
              "move tensors by TLS between peers of one host, too");
  c->add_option(
     "--fabric.force", o.force_fabric,
     "auto, or tensors only by tls, shm (shared memory), rdma or ucx-tcp, and "
     "by TLS where that cannot be")
    ->check(CLI::IsMember({"auto", "tls", "shm", "rdma", "ucx-tcp"}));
  c->add_flag("--fabric.ucx_tcp", o.ucx_tcp,
              "tensors by UCX-TCP, not encrypted, where there is neither "
              "shared memory nor RDMA. Twice as fast as TLS, but UCX 1.13 may "
              "end the process when a peer goes while it connects");
  c->add_option("--fabric.exclude", o.exclude_fabrics,
                "of shm, rdma and ucx-tcp, which not to use")
    ->delimiter(',')
    ->check(CLI::IsMember({"shm", "rdma", "ucx-tcp"}));
  c->add_option("--fabric.trusted_networks", o.trusted_networks,
                "where RDMA and UCX-TCP (which does not encrypt) may be used, "
                "such as 10.1.0.0/16: whoever is in such a network can read "
                "and write this process's memory")
    ->delimiter(',');
  c->add_option("--threads", o.threads, "for computation; 0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_option("--plugin", o.plugins,
                "shared library with roles of your own; may be repeated");
  c->add_option("--memory", o.memory, "that jobs may use, such as 8G");
  c->add_option("--trace", o.trace,
                "file for what this node does when, to be looked at with "
                "ui.perfetto.dev");
  c->add_flag("--json", o.json, "one JSON line per event on stdout");
  run[c] = [&o] { return run_node(o); };

  c = app.add_subcommand("status", "show the shoal as the local node sees it");
  add_node_to_ask(*c, set.status.at);
  c->add_flag("--links", set.status.links,
              "what carries tensors to each peer, why, how fast, how much");
  c->add_flag("--json", set.status.json, "as JSON");
  run[c] = [&set] { return run_status(set.status); };

  c = app.add_subcommand("recover",
                         "go on without peers that will not come back");
  c->add_option("JOB", set.recover.job,
                "let this job go on without the checkpoint that it waits for "
                "(id, the beginning of one, or name)");
  add_node_to_ask(*c, set.recover.at);
  c->add_flag("--force", set.recover.force,
              "make a new shoal of this node alone; it keeps the jobs");
  run[c] = [&set] { return run_recover(set.recover); };

  c = app.add_subcommand("doctor", "check what shoal needs on this machine");
  add_address(*c, set.doctor.at);
  c->add_flag("--clean", set.doctor.clean,
              "remove what nodes that were killed have left");
  c->add_flag("--json", set.doctor.json, "as JSON");
  run[c] = [&set] { return run_doctor(set.doctor); };

  c = app.add_subcommand("bench", "measure what this machine can do");
  c->add_option("WHAT", set.bench.what,
                "link: how fast each fabric moves bytes here; allreduce: how "
                "fast processes of this machine sum an array of floats; "
                "pipeline: what part of a step its stages idle, by schedule; "
                "memory: what memory and processor can do; gemm, prefill, "
                "decode, train: what is done, and per cent of that (of prefill "
                "and gemm: of the instruction that multiplies such weights)")
    ->required()
    ->check(CLI::IsMember({"link", "allreduce", "pipeline", "memory", "gemm",
                           "prefill", "decode", "train"}));
  c->add_option("--shape", set.bench.shape,
                "of prefill, decode and train: tiny1b, gpt2-124m, llama-30m")
    ->check(CLI::IsMember({"tiny1b", "gpt2-124m", "llama-30m"}));
  c->add_option("--model", set.bench.model,
                "of prefill and decode: a Hugging Face directory, read as "
                "generate reads it: what need not be made smaller stays mapped "
                "where the file has it, in pages of the system's cache. "
                "Default: random weights of --shape in large pages of our own")
    ->check(CLI::ExistingDirectory);
  c->add_option("--type", set.bench.types,
                "weights of gemm, prefill and decode: f32, bf16, q8, q4 "
                "(default with --model: as stored); factors of train: f32, "
                "bf16; several: one after another")
    ->delimiter(',')
    ->check(CLI::IsMember({"f32", "bf16", "q8", "q4"}));
  c->add_option("--prompt", set.bench.prompt, "tokens, of gemm and prefill")
    ->check(CLI::Range(1, 2048));
  c->add_option("--tokens", set.bench.tokens, "of decode, in one run")
    ->check(CLI::Range(1, 2048));
  c->add_option("--threads", set.bench.threads, "of those; 0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_option("--processes", set.bench.processes,
                "of allreduce; several: one after another")
    ->check(CLI::Range(2, reduce_processes_max));
  c->add_option("--mib", set.bench.mebibytes, "sizes of allreduce's array")
    ->check(CLI::Range(1, 65536));
  c->add_option("--stages", set.bench.stages, "of pipeline, a core each")
    ->check(CLI::Range(2, pipeline_stages_max));
  c->add_option("--runs", set.bench.runs, "medians of so many are shown")
    ->check(CLI::Range(1, 1000));
  c->add_flag("--json", set.bench.json, "as JSON");
  run[c] = [&set] { return run_bench(set.bench); };
  add_chaos(app, set.chaos, run);
  c = app.add_subcommand("invite", "print a token by which one peer may join");
  add_node_to_ask(*c, set.invite.at);
  c->add_option("--expires", set.invite.expires,
                "how long it may be used: 90s, 30m, 12h, 7d");
  run[c] = [&set] { return run_invite(set.invite); };

  c = app.add_subcommand("revoke", "remove a peer for good and replace the "
                                   "cluster key");
  add_node_to_ask(*c, set.revoke.at);
  c->add_option("PEER", set.revoke.peer, "its name, or first digits of its id")
    ->required();
  run[c] = [&set] { return run_revoke(set.revoke); };

  c = app.add_subcommand("key", "make a cluster key, or tell which one a file "
                                "holds");
  c->add_option("ACTION", set.key.action,
                "new: make FILE (0600); show: print its fingerprint")
    ->required()
    ->check(CLI::IsMember({"new", "show"}));
  c->add_option("FILE", set.key.file,
                "new: cluster.key; show: your own key, if left out");
  run[c] = [&set] { return run_key(set.key); };
}

void add_jobs(CLI::App& app, command_set& set, runners& run) {
  CLI::App* c = app.add_subcommand("jobs", "list what runs, waits and ended");
  add_node_to_ask(*c, set.jobs.at);
  c->add_flag("--json", set.jobs.json, "as JSON");
  run[c] = [&set] { return run_jobs(set.jobs); };

  c = app.add_subcommand("cancel", "end a job after the step under way, with "
                                   "a checkpoint, and wait for that");
  add_node_to_ask(*c, set.cancel.at);
  c->add_option("JOB", set.cancel.job, "id, the beginning of one, or name")
    ->required();
  c->add_flag("--now", set.cancel.now, "at once, without a checkpoint");
  run[c] = [&set] { return run_cancel(set.cancel); };

  c = app.add_subcommand("attach", "watch a job that runs or has ended, and "
                                   "fetch what it made");
  add_node_to_ask(*c, set.attach.at);
  c->add_option("JOB", set.attach.job, "id, the beginning of one, or name")
    ->required();
  c->add_option("--out", set.attach.out,
                "folder for the model, checkpoints, metrics; without it only "
                "watch");
  c->add_flag("--json", set.attach.json, "one JSON line per event on stdout");
  run[c] = [&set] { return run_attach(set.attach); };

  c = app.add_subcommand("leave", "make a node hand over its work, leave the "
                                  "shoal and end");
  add_node_to_ask(*c, set.leave.at);
  c->add_option("MEMBER", set.leave.member,
                "name or id of another peer; default: the node that is asked");
  c->add_flag("--now", set.leave.now,
              "end jobs that nobody else can go on with without a checkpoint");
  run[c] = [&set] { return run_leave(set.leave); };
}

void add_train(CLI::App& app, command_set& set, runners& run) {
  train_options& o = set.train;
  CLI::App* c = app.add_subcommand(
    "train", "train a model on the local node's shoal, or here when no node "
             "runs");
  add_node_to_ask(*c, o.at);
  add_run(*c, o.run);
  add_tokenizer(*c, o.run);
  c->add_option("--out", o.out, "folder for the model, checkpoints, metrics");
  c->add_flag("--resume", o.resume,
              "go on from the newest checkpoint in --out");
  c->add_flag("--detach", o.detach,
              "submit and return; `shoal attach` fetches what it makes");
  c->add_option_function<std::string>(
     "--priority",
     [&o](const std::string& v) { o.run.overrides["job.priority"] = v; },
     "jobs of higher priority take what they need first; default 0")
    ->type_name("N");
  c->add_flag("--json", o.json, "one JSON line per event on stdout");
  c->add_flag("--bigram", o.bigram,
              "print the held-out loss of a byte-bigram model, too");
  c->add_option("--join", o.join, "peers, when no local node runs")
    ->delimiter(',');
  c->add_option("--threads", o.threads, "when no local node runs; 0: all")
    ->check(CLI::Range(0, 1024));
  run[c] = [&o] { return run_train(o); };

  c = app.add_subcommand("plan", "show what would run where, without running");
  add_node_to_ask(*c, set.plan.at);
  add_run(*c, set.plan.run);
  add_tokenizer(*c, set.plan.run);
  c->add_option("--view", set.plan.view,
                "plan for the shoal that this file (TOML) describes")
    ->check(CLI::ExistingFile);
  c->add_flag("--json", set.plan.json, "as JSON");
  run[c] = [&set] { return run_plan(set.plan); };

  c = app.add_subcommand("init", "write a model with random weights");
  add_run(*c, set.init.run);
  c->add_option("--out", set.init.out, "Hugging Face directory to make")
    ->required();
  run[c] = [&set] { return run_init(set.init); };
}

void add_model(CLI::App& app, command_set& set, runners& run) {
  generate_command& g = set.generate;
  CLI::App* c = app.add_subcommand("generate", "continue a prompt");
  c->add_option("MODEL_DIR", g.model, "Hugging Face directory")->required();
  c->add_option("--prompt", g.prompt, "text");
  c->add_option("--prompt-ids", g.prompt_ids, "token ids, such as 5,6,7");
  c->add_option("--max-tokens", g.max_tokens,
                "new tokens at most; default: as generation_config.json says, "
                "else 128")
    ->check(CLI::Range(1, 1 << 24));
  c->add_option("--temperature", g.temperature,
                "0: always the likeliest; default: as that file, else 0.8");
  c->add_option("--top-k", g.top_k,
                "sample among so many; 0: all; default: as that file, else 0")
    ->check(CLI::Range(0, 1 << 24));
  c->add_option("--top-p", g.top_p,
                "sample among this much probability; default: as that file, "
                "else 1");
  c->add_option("--min-p", g.min_p,
                "sample among those of this share of the likeliest's "
                "probability; default: as that file, else 0");
  c->add_option("--repetition-penalty", g.repetition_penalty,
                "above 1: rather not what was there; default: as that file, "
                "else 1");
  c->add_option("--seed", g.seed, "the same seed gives the same text");
  c->add_option("--stop", g.stop, "text to stop before");
  c->add_option("--quantize", g.quantize,
                "make weights smaller at load: bf16, q8 (8.5 bits each), q4 "
                "(4.5); default: as the files have them")
    ->check(CLI::IsMember({"bf16", "q8", "q4"}));
  c->add_option("--threads", g.threads, "0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_flag("--json", g.json, "one JSON line per token on stdout");
  run[c] = [&g] { return run_generate(g); };

  eval_command& e = set.eval;
  c = app.add_subcommand("eval", "mean loss of a model over text");
  c->add_option("MODEL_DIR", e.model, "Hugging Face directory")->required();
  c->add_option(
     "--data", e.data,
     "text, or .jsonl with \"text\" or \"input_ids\"; also as .gz or "
     ".zst")
    ->required();
  c->add_option("--window", e.window,
                "tokens that are read together: longer texts are cut; default: "
                "training.seq_len of the run that made the model, else "
                "max_position_embeddings, at most 2048")
    ->check(CLI::Range(2, 1 << 24));
  c->add_option("--quantize", e.quantize,
                "what generation with such weights would give: bf16, q8, q4; "
                "default: as training computes it, in floats")
    ->check(CLI::IsMember({"bf16", "q8", "q4"}));
  c->add_option("--threads", e.threads, "0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_flag("--json", e.json, "as JSON");
  run[c] = [&e] { return run_eval(e); };

  audit_options& a = set.audit;
  c = app.add_subcommand(
    "audit", "prove from a run's metrics that each sample was used once");
  c->add_option("OUT_DIR", a.out, "where `shoal train` has written to")
    ->required();
  c->add_option("--data", a.data,
                "the text that it trained on; default: as its run.toml says");
  c->add_flag("--json", a.json, "as JSON");
  run[c] = [&a] { return run_audit(a); };
}

std::filesystem::path default_config() {
  if (const char* xdg = std::getenv("XDG_CONFIG_HOME"); xdg && *xdg)
    return std::filesystem::path(xdg) / "shoal" / "shoal.toml";
  if (const char* home = std::getenv("HOME"); home && *home)
    return std::filesystem::path(home) / ".config" / "shoal" / "shoal.toml";
  return {};
}

int run_chosen(CLI::App& app, const runners& run,
               const std::filesystem::path& config) {
  std::filesystem::path file = config;
  if (file.empty())
    if (const char* named = std::getenv("SHOAL_CONFIG"); named && *named)
      file = named;
  std::error_code error;
  toml_table table;
  if (!file.empty())
    table = toml_table::read(file);
  else if (file = default_config(); std::filesystem::exists(file, error))
    table = toml_table::read(file);
  for (CLI::App* command : app.get_subcommands()) {
    fill_in(*command, table, file.string());
    return run.at(command)();
  }
  return exit_usage;
}

} // namespace

int run_cli(int argc, char** argv) {
  const shown_stream errors(std::cerr);
  CLI::App app{"shoal -- equal peers that train language models together.\n"
               "Start one `shoal node` on each machine; they find each other. "
               "Then `shoal train`."};
  app.name("shoal");
  app.require_subcommand(1);
  app.set_version_flag("--version", "shoal " SHOAL_VERSION);
  std::filesystem::path config;
  app
    .add_option("--config", config,
                "configuration file; a table for each subcommand")
    ->check(CLI::ExistingFile);
  command_set set;
  runners run;
  add_node(app, set, run);
  add_jobs(app, set, run);
  add_train(app, set, run);
  add_model(app, set, run);
  try {
    app.parse(argc, argv);
    return run_chosen(app, run, config);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    app.exit(e);
    return exit_usage;
  } catch (const usage_error& e) {
    std::cerr << "shoal: " << e.text << "\n";
    return exit_usage;
  } catch (const toml_error& e) {
    std::cerr << "shoal: " << e.text << "\n";
    return exit_usage;
  } catch (const std::exception& e) {
    const auto* s = dynamic_cast<const std::system_error*>(&e);
    std::cerr << "shoal: " << e.what()
              << (s && s->code() == std::errc::resource_unavailable_try_again
                    ? ": the system allows no more threads; raise the limit on "
                      "this user's processes (ulimit -u)"
                    : "")
              << "\n";
    return exit_failed;
  }
}

} // namespace shoal::apps
