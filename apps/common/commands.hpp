// apps/common/commands.hpp -- the program's commands, one function each.
//
// cli.cpp turns the command line, the environment and the configuration file
// into these structs. Each run_* does the work and returns one of the exit
// codes; if it is not exit_done, a line on stderr says what to do.
#pragma once

#include "apps/common/http_front.hpp"
#include "apps/common/named_model.hpp"
#include "apps/terminal/exit_codes.hpp"
#include "runtime/http/keys/api_keys.hpp" // key_limits

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shoal::apps {

/// The local node, and the credentials for other nodes.
struct node_address {
  std::string name;                  ///< selects a folder below the default
                                     ///< data directory
  std::filesystem::path data_dir;    ///< overrides name
  std::filesystem::path cluster_key; ///< empty: the user's own key
  std::vector<std::string> peers;    ///< asks these nodes instead, by TLS
};
std::filesystem::path data_dir_of(const node_address& at);
/// Whether the user asks for that node and no other.
inline bool names_a_node(const node_address& at) {
  return !at.name.empty() || !at.data_dir.empty() || !at.peers.empty();
}

struct node_options {
  node_address at;
  std::string listen;
  http_options http;
  std::vector<std::string> join;
  std::optional<std::string> cluster; ///< if left out, from the token
  std::filesystem::path hosts;
  bool slurm = false;
  std::string join_token;
  std::filesystem::path join_token_file; ///< "-": stdin
  bool witness = false;
  bool non_voting = false;
  bool no_discovery = false;
  bool no_shared_memory = false;
  std::string force_fabric = "auto";
  bool ucx_tcp = false;
  std::vector<std::string> exclude_fabrics;
  std::vector<std::string> trusted_networks;
  int threads = 0;
  std::string memory; ///< memory_size.hpp; empty: half of the free memory
  std::string disk;   ///< memory_size.hpp; empty: all but a reserve
  std::vector<std::filesystem::path> plugins;
  std::filesystem::path trace;
  bool json = false;
};
int run_node(node_options o);

struct status_options {
  node_address at;
  bool links = false;
  bool traffic = false; ///< of all pairs: asks each peer
  bool json = false;
  double watch_s = 0; ///< seconds between two pages; 0: only one page
};
int run_status(const status_options& o);

struct logs_options {
  node_address at;
  std::string peer; ///< name or id; empty: the asked node
  std::uint32_t lines = 50;
  bool follow = false;
  bool json = false;
};
int run_logs(const logs_options& o);

struct jobs_options {
  node_address at;
  std::vector<std::string> remove; ///< ids, prefixes of ids, or names
  bool yes = false;                ///< do not ask
  bool json = false;
};
int run_jobs(const jobs_options& o);

struct cancel_options {
  node_address at;
  std::string job; ///< id, prefix of one, or name
  bool now = false;
};
int run_cancel(const cancel_options& o);

struct attach_options {
  node_address at;
  std::string job;
  std::filesystem::path out; ///< empty: only watches
  bool overwrite = false;    ///< moves aside the content of --out
  bool json = false;
};
int run_attach(const attach_options& o);

struct leave_options {
  node_address at;
  std::string member; ///< name or id; empty: the asked node
  bool now = false;
};
int run_leave(const leave_options& o);

struct recover_options {
  node_address at;
  std::string job; ///< id, prefix of one, or name
  bool force = false;
  bool yes = false; ///< do not ask
};
int run_recover(const recover_options& o);

/// A run file with overrides.
struct run_options {
  std::filesystem::path run_file; ///< may be empty: all defaults
  /// The text of a run file that is not on this machine; `run_file` is then its
  /// name in messages.
  std::optional<std::string> run_text;
  /// "section.key" -> value, as text; from flags.
  std::map<std::string, std::string> overrides;
  /// "section.key" -> the variable, or key of the configuration file, that has set it.
  std::map<std::string, std::string> sources;
  std::vector<std::string> data; ///< replaces data.paths
  download_terms download;       ///< of a model.path on the hub
};

struct train_options {
  node_address at;
  run_options run;
  std::filesystem::path out = "outputs";
  bool out_named = false; ///< on the command line
  bool resume = false;
  bool overwrite = false; ///< moves aside the content of --out
  bool detach = false;
  bool yes = false;     ///< to go on alone, where the job may go on elsewhere
  bool example = false; ///< only prints a run file to start from
  bool json = false;
  std::vector<std::string> join; ///< of the embedded node
  int threads = 0;               ///< of the embedded node
  bool bigram = false;           ///< also prints a byte-bigram model's loss
};
int run_train(const train_options& o);

struct serve_options {
  node_address at;
  std::filesystem::path model;
  std::string name; ///< empty: that of the folder or job
  /// Pipelines that serve the model side by side; 0: as many as the load asks for.
  std::uint32_t pipelines = 1;
  std::uint64_t grow_after = 20;    ///< s, if the load decides
  std::uint64_t shrink_after = 300; ///< s, the same
  std::int32_t stages = -1;         ///< of each; -1: the planner decides
  std::string quantize;             ///< "bf16", "q8", "q4"; empty: as stored
  std::string kv_type;            ///< empty: f32 if the weights are, else bf16
  std::uint64_t context = 0;      ///< tokens; 0: the model's positions
  std::uint64_t cache_tokens = 0; ///< 0: usual_cache_tokens()
  std::optional<std::uint64_t> speculate; ///< nothing: speculate_usual
  std::string pooling; ///< "last", "mean"; empty: as the model's folder says
  bool detach = false;
  bool json = false;
  std::vector<std::string> join; ///< of the node in this process
  int threads = 0;               ///< the same
  http_options http;             ///< the same
};
int run_serve(const serve_options& o);

struct api_key_options {
  std::string name;           ///< of the client
  std::filesystem::path file; ///< gets the hash
  runtime::key_limits limits;
};
int run_api_key(const api_key_options& o);

struct plan_options {
  node_address at;
  run_options run;
  serve_options
    serve; ///< with a model: it is to be served, and nothing trained
  std::filesystem::path view; ///< a described shoal; empty: the real one
  bool json = false;
};
int run_plan(const plan_options& o);

struct init_options {
  run_options run;
  std::filesystem::path out;
  bool overwrite = false;
};
int run_init(const init_options& o);

struct generate_command {
  std::filesystem::path model;
  std::optional<std::string> prompt;
  std::string prompt_ids; ///< "5,6,7"
  // If left out: from generation_config.json, else 128, 0.8, 0, 1, 0, 1.
  std::optional<std::int64_t> max_tokens;
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::uint64_t seed = 0;
  std::vector<std::string> stop;
  // What the text keeps to: at most one of them.
  std::string json_schema;          ///< a file
  std::string grammar;              ///< a file, in GBNF
  std::optional<std::string> regex; ///< the pattern itself
  std::string quantize;             ///< "bf16", "q8", "q4"; empty: as stored
  std::string kv_type; ///< "f32", "bf16", "q8"; empty: as the weights suggest
  int threads = 0;
  bool json = false;
};
int run_generate(const generate_command& o);

struct eval_command {
  std::filesystem::path model;
  std::vector<std::string> data;
  /// Tokens; if left out: as in training, else 2048 or the number of the
  /// model's positions if that is less.
  std::optional<std::uint64_t> window;
  std::optional<std::uint64_t> limit;  ///< documents; left out: all
  std::optional<std::uint64_t> chunks; ///< windows; left out: all
  std::string quantize; ///< as above; empty: floats, as in training
  int threads = 0;
  bool json = false;
};
int run_eval(const eval_command& o);

struct pull_options {
  std::string model; ///< ORG/NAME[@REVISION], or with :FILE.gguf
  bool json = false;
};
int run_pull(const pull_options& o);

struct audit_options {
  std::filesystem::path out;     ///< folder of train or attach: metrics.jsonl,
                                 ///< run.json
  std::vector<std::string> data; ///< replaces data.paths
  bool json = false;
};
/// 0: each sample was used exactly once; 1: not so, or not proven.
int run_audit(const audit_options& o);

struct key_options {
  std::string action; ///< "new" or "show"
  std::filesystem::path file;
};
int run_key(const key_options& o);

struct bench_options {
  std::string what; ///< "link", "allreduce", "pipeline", "gemm", ...
  int runs = 5;
  std::vector<int> processes = {2, 4}; ///< for allreduce
  std::vector<int> mebibytes = {64, 256};
  int stages = 2;                 ///< for pipeline
  std::string shape = "tiny1b";   ///< for prefill, decode, train
  std::string model;              ///< for prefill and decode, instead of shape
  std::vector<std::string> types; ///< empty: all but f32; for train both
  int prompt = 512;               ///< tokens, for gemm and prefill
  int tokens = 16;                ///< new tokens in a run, for decode
  int threads = 0;
  bool json = false;
};
int run_bench(const bench_options& o);

inline constexpr int chaos_peers_max = 64;
struct chaos_options {
  run_options run;
  int peers = 4;
  std::uint64_t seed = 1;
  double minutes = 0; ///< 0: from steps, the run file, or two minutes
  std::int64_t steps = 0;
  double every = 10;             ///< seconds between faults, at least
  double calm = 10;              ///< seconds of the undisturbed run, at least
  std::vector<std::string> only; ///< kinds of faults; empty: all possible
  std::string fabric;            ///< empty: tls with cuts, else auto
  bool json = false;
};
int run_chaos(const chaos_options& o);

struct invite_options {
  node_address at;
  std::string expires = "1h";
  std::filesystem::path out; ///< empty: prints the token
  bool overwrite = false;    ///< replaces the file `out`
};
int run_invite(const invite_options& o);

struct revoke_options {
  node_address at;
  std::string peer;
  bool yes = false; ///< do not ask
};
int run_revoke(const revoke_options& o);

struct doctor_options {
  node_address at;
  std::vector<std::string> unknown_variables; ///< SHOAL_... variables without a
                                              ///< meaning
  bool clean = false; ///< removes what dead nodes have left behind
  bool json = false;
};
int run_doctor(const doctor_options& o);

struct completion_options {
  std::string what; ///< "bash", "zsh", "fish"; "jobs", "peers", "models"
};

/// Parses all input and runs one of the above.
int run_cli(int argc, char** argv);

} // namespace shoal::apps
