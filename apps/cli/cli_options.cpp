// apps/cli/cli_options.cpp -- every option of every command, with its help.
//
// The flags of a run file's keys are made from the table in run_config.hpp.
#include "apps/bench/pipeline_meter.hpp"
#include "apps/bench/reduce_meter.hpp"
#include "apps/cli/cli_words.hpp"
#include "apps/cli/command_set.hpp"
#include "apps/cli/completion.hpp"
#include "apps/cli/reference.hpp"
#include "runtime/jobs/run_config.hpp"
#include "runtime/wire/client_messages.hpp" // reply_lines_max

#include <cstdlib>
#include <iterator>
#include <variant>

namespace shoal::apps {

namespace {

/// Of an option that has a default: an unset variable of a script would take it.
std::string given(const std::string& value) {
  return value.empty() ? "is empty: leave it out for its default"
                       : std::string();
}

} // namespace

void add_address(CLI::App& c, node_address& at) {
  c.add_option("--name", at.name,
               "name of the node; each name has its own data directory "
               "(default: this host's name, in the directory 'default')")
    ->check(given);
  c.add_option("--data-dir", at.data_dir,
               "the node's data directory "
               "(default: ~/.local/share/shoal/NAME)")
    ->type_name("DIR")
    ->check(given);
  c.add_option(
     "--cluster-key", at.cluster_key,
     "file with the key that all peers share "
     "(default: the one that the node keeps from an invite, else your "
     "own, ~/.config/shoal/cluster.key, with which a node serves this machine "
     "only)")
    ->type_name("FILE")
    ->check(given);
}

void add_node_to_ask(CLI::App& c, node_address& at) {
  add_address(c, at);
  c.add_option("--peer", at.peers,
               "host[:port] of nodes to ask over the network, port 18372 if "
               "left out (default: the local node)")
    ->delimiter(',')
    ->check(wrong_peer);
}

namespace {

/// For commands that cannot be undone.
constexpr char no_question[] = "do not ask first; needed where no terminal is";

/// The value of --watch; without a value the default time.
double watch_seconds(const std::string& text) {
  constexpr double usual = 2, least = 0.1, most = 3600;
  if (text.empty() || text == "true" || text == "{}")
    return usual;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end != 0 || !(seconds >= least && seconds <= most))
    throw CLI::ValidationError("--watch", "'" + text
                                            + "' is not a number of seconds "
                                              "from 0.1 to 3600");
  return seconds;
}

/// The help's placeholder for a value of the key.
const char* type_of(const runtime::run_key& key) {
  constexpr const char* types[] = {"TEXT",       "X",        "N",
                                   "true|false", "TEXT,...", "N,..."};
  static_assert(std::size(types)
                == std::variant_size_v<runtime::run_key::place>);
  return types[key.where.index()];
}

/// One flag for each key of a run file; the values are read as text here and
/// checked by the run file's own parser.
void add_run(CLI::App& c, run_options& o, const char* names = "RUN") {
  c.add_option(names, o.run_file,
               "run file (TOML; default: the defaults of all keys below)")
    ->type_name("FILE");
  CLI::Option* data =
    c.add_option("--data", o.data,
                 "files, folders or globs of text, or of .jsonl with \"text\" "
                 "or \"input_ids\"; also as .gz or .zst (default: data.paths)")
      ->type_name("PATH");
  auto add = [&](const std::string& section, std::string_view name,
                 const std::string& help, const std::string& usual,
                 const std::string& type) {
    const std::string key = section + "." + std::string(name);
    const bool bare = !help.empty() && usual.empty()
                      && help.find("default") == std::string::npos;
    c.add_option_function<std::string>(
       "--" + key, [&o, key](const std::string& v) { o.overrides[key] = v; },
       bare ? help + " (default: none)" : help)
      ->group("[" + section + "]")
      ->type_name(type)
      ->default_str(usual);
  };
  for (const runtime::run_key& k : runtime::keys())
    add(std::string(k.section), k.name, std::string(k.help),
        runtime::default_text(k), type_of(k));
  add("model", "path",
      "start from this Hugging Face directory, or ORG/NAME of the Hugging Face "
      "hub (default: random weights)",
      "", "DIR");
  for (std::string_view k : model::known_keys())
    add("model", k, "", runtime::model_default_text(k), "VALUE");
  data->excludes(c.get_option("--data.paths"));
}

/// Short names of the options that determine a run's vocabulary.
void add_tokenizer(CLI::App& c, run_options& o) {
  auto add = [&](const char* name, const char* key, const char* type,
                 const char* help) {
    c.add_option_function<std::string>(
       name, [&o, key](const std::string& v) { o.overrides[key] = v; }, help)
      ->type_name(type)
      ->excludes(c.get_option("--" + std::string(key)));
  };
  add("--tokenizer", "data.tokenizer", "KIND",
      "bpe: train one on --data, saved as tokenizer.json in --out; bytes: one "
      "token for each byte; model: the one of model.path; default: model if "
      "there is one, else bytes");
  add("--vocab-size", "model.vocab_size", "N",
      "tokens of the vocabulary; default: 4096 with --tokenizer bpe, 256 with "
      "bytes");
}

void add_chaos(CLI::App& app, chaos_options& o, runners& run) {
  CLI::App* c = app.add_subcommand(
    "chaos", "train on a throw-away shoal of processes on this machine while "
             "killing, stopping, slowing and cutting peers; say what it cost");
  add_run(*c, o.run, "RUN,--run");
  c->add_option("--peers", o.peers, "number of peers")
    ->check(CLI::Range(2, chaos_peers_max));
  c->add_option("--seed", o.seed, "the same seed gives the same faults");
  CLI::Option* steps = c->add_option("--steps", o.steps,
                                     "optimizer steps to train "
                                     "(default: as the run file says)")
                         ->check(CLI::PositiveNumber);
  c->add_option("--minutes", o.minutes,
                "about how long it takes, in minutes "
                "(default: 2, or as the run file says)")
    ->type_name("MINUTES")
    ->check(CLI::Range(0.5, 10000.0))
    ->excludes(steps);
  c->add_option("--every", o.every,
                "seconds from one fault to the next; longer if the shoal is "
                "not whole again")
    ->type_name("SECONDS")
    ->check(CLI::Range(0.0, 86400.0));
  c->add_option("--calm", o.calm,
                "seconds that it first trains undisturbed, to know what it "
                "could do")
    ->type_name("SECONDS")
    ->check(CLI::Range(0.0, 86400.0));
  c->add_option("--only", o.only,
                "kinds of faults (default: all that can be done here)")
    ->delimiter(',')
    ->check(CLI::IsMember({"kill", "stop", "slow", "cut"}));
  c->add_option("--fabric", o.fabric,
                "what carries tensors (default: tls with cuts, since shared "
                "memory passes them, else auto)")
    ->check(CLI::IsMember({"auto", "tls", "shm"}));
  c->add_flag("--json", o.json, "one JSON line per event on stdout");
  run[c] = [&o] { return run_chaos(o); };
}

void add_status(CLI::App& app, command_set& set, runners& run) {
  CLI::App* c =
    app.add_subcommand("status", "show the shoal as the local node sees it");
  add_node_to_ask(*c, set.status.at);
  c->add_flag("--links", set.status.links,
              "show what carries tensors to each peer, why, how fast, how "
              "much");
  c->add_flag("--traffic", set.status.traffic,
              "show who sends how much to whom in the whole shoal, and for "
              "which job; asks each peer twice, 2 seconds apart")
    ->excludes("--links");
  c->add_flag("--json", set.status.json, "as JSON");
  c->add_option_function<std::string>(
     "--watch",
     [&set](const std::string& seconds) {
       set.status.watch_s = watch_seconds(seconds);
     },
     "show it again every SECONDS until Ctrl-C (0.1 to "
     "3600; default: once, or every 2 seconds if no number follows)")
    ->type_name("[SECONDS]")
    ->expected(0, 1);
  run[c] = [&set] { return run_status(set.status); };

  c = app.add_subcommand(
    "top",
    "watch the shoal live in a terminal: peers, links, traffic, jobs, models");
  add_node_to_ask(*c, set.top.at);
  c->add_option("--interval", set.top.interval_s,
                "seconds between two refreshes")
    ->type_name("SECONDS")
    ->check(CLI::Range(0.1, 3600.0));
  run[c] = [&set] { return run_top(set.top); };

  c = app.add_subcommand("logs", "show the last lines that a node has said");
  add_node_to_ask(*c, set.logs.at);
  c->add_option("PEER", set.logs.peer,
                "name or id of another peer, which is asked through the shoal "
                "(default: the node that is asked)")
    ->type_name("PEER");
  c->add_option("--lines", set.logs.lines, "how many lines, the last ones")
    ->check(CLI::Range(1u, runtime::reply_lines_max));
  c->add_flag("--follow", set.logs.follow, "go on with new lines until Ctrl-C");
  c->add_flag("--json", set.logs.json, "one JSON line per line on stdout");
  run[c] = [&set] { return run_logs(set.logs); };
}

} // namespace

void add_node(CLI::App& app, command_set& set, runners& run) {
  CLI::App* c = app.add_subcommand("node", "run a peer until it is told to "
                                           "leave (Ctrl-C, SIGTERM)");
  node_options& o = set.node;
  add_address(*c, o.at);
  c->add_option("--listen", o.listen,
                "ADDR:PORT or [IPv6 ADDR]:PORT to listen at, TCP; port 0: any "
                "free one (default: port 18372 of every address, or any free "
                "one if that is taken; without a cluster key any free port of "
                "loopback)");
  c->add_option("--join", o.join,
                "host[:port] or [IPv6 address][:port] of peers to contact, "
                "port 18372 if left out; also later when they are not "
                "connected. A name stands for all of its addresses; "
                "[fe80::1%eth0] names the interface "
                "(default: peers are found by multicast, UDP port 18372)")
    ->delimiter(',');
  c->add_option("--hosts", o.hosts,
                "file of hosts to contact, one host[:port] a line; read again "
                "when it changes (default: none)")
    ->type_name("FILE");
  c->add_flag("--slurm", o.slurm,
              "contact the nodes of this Slurm job (SLURM_JOB_NODELIST)");
  CLI::Option* token = c->add_option(
    "--join-token", o.join_token,
    "prefer --join-token-file: every user of this machine can see this one "
    "in `ps`. What `shoal invite` printed: brings the cluster key and the "
    "cluster's name, once; goes with no --cluster-key (default: none)");
  c->add_option("--join-token-file", o.join_token_file,
                "a file of mode 0600 whose first line is the join token, as "
                "`shoal invite --out FILE` writes it; - reads stdin "
                "(default: none)")
    ->type_name("FILE")
    ->excludes(token);
  c->add_option("--cluster", o.cluster,
                "name of the shoal; others on the network are ignored "
                "(default: as the join token says, else shoal)");
  CLI::Option* witness = c->add_flag("--witness", o.witness,
                                     "only help form a quorum; do not train");
  c->add_flag("--non-voting", o.non_voting,
              "train, but do not count for the quorum (laptops, spot "
              "machines)")
    ->excludes(witness);
  c->add_flag("--no-discovery", o.no_discovery,
              "do not look for peers by multicast (IPv4 and IPv6)");
  c->add_flag("--no-shared-memory", o.no_shared_memory,
              "move tensors by TLS between peers of one host as well");
  c->add_option(
     "--fabric.force", o.force_fabric,
     "move tensors only by this fabric (shm: shared memory), and by TLS "
     "where it cannot be used; auto: the best that works")
    ->check(CLI::IsMember({"auto", "tls", "shm", "rdma", "ucx-tcp"}));
  c->add_flag("--fabric.ucx_tcp", o.ucx_tcp,
              "tensors by UCX-TCP, not encrypted, where there is neither "
              "shared memory nor RDMA. Twice as fast as TLS, but UCX 1.13 may "
              "end the process when a peer goes while it connects");
  c->add_option("--fabric.exclude", o.exclude_fabrics,
                "fabrics not to use (default: none)")
    ->delimiter(',')
    ->check(CLI::IsMember({"shm", "rdma", "ucx-tcp"}));
  c->add_option("--fabric.trusted_networks", o.trusted_networks,
                "where RDMA and UCX-TCP (which does not encrypt) may be used, "
                "such as 10.1.0.0/16. Every machine in such a network can read "
                "and write this process's memory (default: none)")
    ->delimiter(',');
  add_http(*c, o.http);
  c->add_option("--threads", o.threads, "threads for computation; 0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_option("--plugin", o.plugins,
                "shared library with roles of your own; repeatable "
                "(default: none)")
    ->type_name("FILE");
  c->add_option("--memory", o.memory,
                "memory that jobs may use, such as 8GiB or 50% (default: half "
                "of what is free, shared with this machine's other nodes)")
    ->check(given);
  c->add_option(
    "--disk", o.disk,
    "disk space for texts, checkpoints and files of models, such as "
    "200GiB (default: what is free, less 5 % or 1 GiB)");
  c->add_option("--trace", o.trace,
                "file that records what this node does when, for "
                "ui.perfetto.dev (default: none)")
    ->type_name("FILE");
  c->add_flag("--json", o.json, "one JSON line per event on stdout");
  run[c] = [&o] { return run_node(o); };

  add_status(app, set, run);

  c = app.add_subcommand("recover",
                         "go on without peers that will not come back");
  c->add_option(
     "JOB", set.recover.job,
     "job that is to go on without the checkpoint that it waits "
     "for: id, its first digits (4 or more), or name (default: none)")
    ->type_name("JOB");
  add_node_to_ask(*c, set.recover.at);
  c->add_flag("--force", set.recover.force,
              "make a new shoal of this node alone; it keeps the jobs, and the "
              "others join it when they come back. If they still run, out of "
              "reach, a job then runs twice until you cancel one");
  c->add_flag("--yes", set.recover.yes,
              std::string("with --force: ") + no_question);
  run[c] = [&set] { return run_recover(set.recover); };

  c = app.add_subcommand("doctor", "check what shoal needs on this machine");
  add_address(*c, set.doctor.at);
  c->add_flag("--clean", set.doctor.clean,
              "remove what nodes that were killed have left");
  c->add_flag("--json", set.doctor.json, "as JSON");
  run[c] = [&set, &app] {
    set.doctor.unknown_variables = unknown_variables(app);
    return run_doctor(set.doctor);
  };

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
                "model of prefill, decode and train: tiny1b (1,100 million "
                "parameters; train takes 16.4 GiB and minutes), gpt2-124m, "
                "llama-30m")
    ->check(CLI::IsMember({"tiny1b", "gpt2-124m", "llama-30m"}));
  c->add_option("--model", set.bench.model,
                "of prefill and decode: a Hugging Face directory, read as "
                "generate reads it: weights that need no conversion stay "
                "mapped from the file "
                "(default: random weights of --shape, in large pages)")
    ->type_name("DIR")
    ->check(CLI::ExistingDirectory);
  c->add_option("--type", set.bench.types,
                "weights of gemm, prefill and decode, or factors of train "
                "(f32, bf16); several: one after another (default: bf16,q8,q4; "
                "with --model as stored; for train f32,bf16)")
    ->delimiter(',')
    ->check(CLI::IsMember({"f32", "bf16", "q8", "q4"}));
  c->add_option("--prompt", set.bench.prompt,
                "prompt length of gemm and prefill, in tokens")
    ->type_name("TOKENS")
    ->check(CLI::Range(1, 2048));
  c->add_option("--tokens", set.bench.tokens,
                "tokens that decode generates in a run")
    ->type_name("TOKENS")
    ->check(CLI::Range(1, 2048));
  c->add_option("--threads", set.bench.threads, "threads to use; 0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_option("--processes", set.bench.processes,
                "processes of allreduce; several: one after another")
    ->check(CLI::Range(2, reduce_processes_max));
  c->add_option("--mib", set.bench.mebibytes,
                "sizes of allreduce's array, in MiB")
    ->type_name("MIB")
    ->check(CLI::Range(1, 65536));
  c->add_option("--stages", set.bench.stages, "stages of pipeline, a core each")
    ->check(CLI::Range(2, pipeline_stages_max));
  c->add_option("--runs", set.bench.runs, "number of runs; the median is shown")
    ->check(CLI::Range(1, 1000));
  c->add_flag("--json", set.bench.json, "as JSON");
  run[c] = [&set] { return run_bench(set.bench); };
  add_chaos(app, set.chaos, run);
  c = app.add_subcommand("invite", "print a token by which one peer may join");
  add_node_to_ask(*c, set.invite.at);
  c->add_option("--expires", set.invite.expires,
                "how long it may be used, up to 31d: 90s, 30m, 12h, 7d");
  c->add_option("--out", set.invite.out,
                "file for the token (mode 0600), which is a secret until it is "
                "used (default: print it)")
    ->type_name("FILE");
  c->add_flag("--overwrite", set.invite.overwrite, "replace --out if it exists")
    ->needs(c->get_option("--out"));
  run[c] = [&set] { return run_invite(set.invite); };

  c = app.add_subcommand("revoke", "remove a peer for good and replace the "
                                   "cluster key");
  add_node_to_ask(*c, set.revoke.at);
  c->add_option("PEER", set.revoke.peer, "name, or the first digits of the id")
    ->type_name("PEER")
    ->required();
  c->add_flag("--yes", set.revoke.yes, no_question);
  run[c] = [&set] { return run_revoke(set.revoke); };

  c = app.add_subcommand("key", "create a cluster key, or print a key file's "
                                "fingerprint");
  c->add_option("ACTION", set.key.action,
                "new: create FILE (mode 0600); show: print its fingerprint")
    ->required()
    ->check(CLI::IsMember({"new", "show"}));
  c->add_option("FILE", set.key.file,
                "the key file (default: cluster.key for new, your own key for "
                "show)")
    ->type_name("FILE");
  run[c] = [&set] { return run_key(set.key); };
}

void add_jobs(CLI::App& app, command_set& set, runners& run) {
  CLI::App* c =
    app.add_subcommand("jobs", "list the jobs that run, wait or have ended");
  add_node_to_ask(*c, set.jobs.at);
  c->add_option("--rm", set.jobs.remove,
                "take these jobs, which have ended, off the list; the nodes "
                "then delete the checkpoints that they keep of them. Ids, "
                "first digits of ids (4 or more), or names (default: none)")
    ->type_name("JOB");
  c->add_flag("--yes", set.jobs.yes, std::string("with --rm: ") + no_question);
  c->add_flag("--json", set.jobs.json, "as JSON");
  run[c] = [&set] { return run_jobs(set.jobs); };

  c = app.add_subcommand("cancel", "end a job after the step under way, with "
                                   "a checkpoint, and wait for that");
  add_node_to_ask(*c, set.cancel.at);
  c->add_option("JOB", set.cancel.job,
                "id, its first digits (4 or more), or name")
    ->type_name("JOB")
    ->required();
  c->add_flag("--now", set.cancel.now, "at once, without a checkpoint");
  run[c] = [&set] { return run_cancel(set.cancel); };

  c = app.add_subcommand("attach", "watch a job that runs or has ended, and "
                                   "fetch what it made");
  add_node_to_ask(*c, set.attach.at);
  c->add_option("JOB", set.attach.job,
                "id, its first digits (4 or more), or name")
    ->type_name("JOB")
    ->required();
  c->add_option("--out", set.attach.out,
                "folder for the model, checkpoints and metrics of this job "
                "alone (default: none, only watch)")
    ->type_name("DIR");
  c->add_flag("--overwrite", set.attach.overwrite,
              "if --out holds another run or model, move it to DIR.old-N first")
    ->needs(c->get_option("--out"));
  c->add_flag("--json", set.attach.json, "one JSON line per event on stdout");
  run[c] = [&set] { return run_attach(set.attach); };

  c = app.add_subcommand("leave", "make a node hand over its work, leave the "
                                  "shoal and end");
  add_node_to_ask(*c, set.leave.at);
  c->add_option("MEMBER", set.leave.member,
                "name or id of another peer (default: the node that is asked)")
    ->type_name("PEER");
  c->add_flag("--now", set.leave.now,
              "end jobs that run on no other peer at once, without a "
              "checkpoint");
  run[c] = [&set] { return run_leave(set.leave); };
}

void add_train(CLI::App& app, command_set& set, runners& run) {
  train_options& o = set.train;
  CLI::App* c = app.add_subcommand(
    "train", "train a model on the local node's shoal, or here when no node "
             "runs");
  add_node_to_ask(*c, o.at);
  add_run(*c, o.run);
  c->add_flag("--example", o.example,
              "print a run file to start from, with comments, and end: `shoal "
              "train --example > run.toml`");
  add_tokenizer(*c, o.run);
  CLI::Option* out = c->add_option("--out", o.out,
                                   "folder for the model, checkpoints and "
                                   "metrics of this run alone")
                       ->type_name("DIR");
  c->parse_complete_callback([&o, out] { o.out_named = out->count() > 0; });
  c->add_flag(
    "--overwrite", o.overwrite,
    "if --out holds another run or model, move it to DIR.old-N first");
  c->add_flag("--resume", o.resume,
              "continue the run in --out (or in RUN, if that is a folder) from "
              "its newest checkpoint; model, text, seed and batch must be as "
              "before, and are unless a run file or flags say otherwise");
  c->add_flag("--yes", o.yes,
              std::string("with --resume, where no node answers and the run's "
                          "job may go on elsewhere: ")
                + no_question);
  c->add_flag("--detach", o.detach,
              "submit and return; it goes with no --out, and `shoal attach "
              "JOB --out DIR` fetches what it makes, which peers keep until 8 "
              "other runs have ended after it");
  c->add_option_function<std::string>(
     "--priority",
     [&o](const std::string& v) { o.run.overrides["job.priority"] = v; },
     "-100 to 100: jobs of higher priority choose peers and take memory "
     "first, also from jobs that run, which then wait; jobs on one peer still "
     "take turns on its processor")
    ->type_name("N")
    ->default_str("0")
    ->excludes(c->get_option("--job.priority"));
  c->add_flag("--json", o.json, "one JSON line per event on stdout");
  c->add_flag("--bigram", o.bigram,
              "print the held-out loss of a byte-bigram model, too");
  c->add_option("--join", o.join,
                "host[:port] of peers to train with when no local node runs "
                "(default: none, train alone)")
    ->delimiter(',');
  c->add_option("--threads", o.threads,
                "threads for computation when no local node runs; 0: all cores")
    ->check(CLI::Range(0, 1024));
  run[c] = [&o] { return run_train(o); };

  c = app.add_subcommand("plan", "show what would run where, without running");
  add_node_to_ask(*c, set.plan.at);
  add_run(*c, set.plan.run);
  add_tokenizer(*c, set.plan.run);
  c->add_option("--view", set.plan.view,
                "plan for the shoal that this file (TOML) describes; the text "
                "is not looked at (default: the shoal of the local node)")
    ->type_name("FILE")
    ->check(CLI::ExistingFile)
    ->excludes(c->get_option("--name"))
    ->excludes(c->get_option("--data-dir"))
    ->excludes(c->get_option("--peer"))
    ->excludes(c->get_option("--cluster-key"));
  CLI::Option* serve =
    c->add_option(
       "--serve", set.plan.serve.model,
       "plan for serving this model: a Hugging Face directory or ORG/NAME of "
       "the Hugging Face hub, whose "
       "weights may be missing, a GGUF file, a config.json, or a run file with "
       "[model] (default: none)")
      ->type_name("MODEL");
  add_served(*c, set.plan.serve, serve);
  c->add_flag("--json", set.plan.json, "as JSON");
  run[c] = [&set] { return run_plan(set.plan); };

  c = app.add_subcommand("init", "write a model with random weights");
  add_run(*c, set.init.run);
  c->remove_option(c->get_option("--data")); // it reads no text
  c->add_option("--out", set.init.out, "Hugging Face directory to make")
    ->type_name("DIR")
    ->required();
  c->add_flag("--overwrite", set.init.overwrite,
              "if --out holds a run or a model, move it to DIR.old-N first");
  run[c] = [&set] { return run_init(set.init); };
}

void add_reference(CLI::App& app, command_set& set, runners& run) {
  CLI::App* c = app.add_subcommand(
    "reference",
    "print all commands, options, keys, JSON fields and metrics, in Markdown");
  c->add_flag("--man", set.man, "as a man page instead");
  run[c] = [&app, &set] { return run_reference(app, set.man); };

  c = app.add_subcommand(
    "completion", "print what makes a shell complete shoal's command lines");
  c->add_option("WHAT", set.completion.what,
                "bash, zsh, fish: the script for that shell; jobs, peers, "
                "models: names that the local node knows, one a line, for "
                "which the scripts ask")
    ->required()
    ->check(CLI::IsMember({"bash", "zsh", "fish", "jobs", "peers", "models"}));
  run[c] = [&app, &set] { return run_completion(app, set.completion); };
}

} // namespace shoal::apps
