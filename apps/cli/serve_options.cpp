// apps/cli/serve_options.cpp -- serving models over HTTP.
#include "apps/cli/command_set.hpp"

namespace shoal::apps {

void add_http(CLI::App& c, http_options& o, const std::string& where) {
  c.add_option(
    "--http", o.listen,
    where
      + "ADDR:PORT at which the node answers clients of models that are "
        "served; off: nowhere (default: port 8000 of loopback, or the "
        "next free one)");
  c.add_option(
     "--api-keys", o.api_keys,
     where
       + "file with the hashes of the keys that clients must have, and the "
         "limits of each, which this node counts by itself; needed for an "
         "address other than loopback (default: none)")
    ->type_name("FILE");
  c.add_option(
     "--http-cors", o.cors,
     where
       + "origins of web pages of other servers that may use the HTTP "
         "address, such as https://chat.example.org; *: all "
         "(default: none)")
    ->type_name("ORIGIN")
    ->delimiter(',');
  c.add_flag(
    "--http-jobs", o.jobs,
    where
      + "clients of the HTTP address may also submit and end jobs, and "
        "load models: that reads files of this machine, as its user");
  c.add_option("--metrics-compat", o.metrics_compat,
               where
                 + "whose names /metrics has besides, for dashboards that "
                   "exist (default: none)")
    ->type_name("vllm")
    ->check(CLI::IsMember({"vllm"}));
}

void add_served(CLI::App& c, serve_options& o, CLI::Option* only_with) {
  std::vector<CLI::Option*> all;
  all.push_back(
    c.add_option_function<std::string>(
       "--replicas",
       [&o](const std::string& v) {
         o.pipelines = v == "auto" ? 0 : std::uint32_t(std::stoul(v));
       },
       "pipelines that serve it side by side, each on peers of its own; auto: "
       "one, and more while requests wait and peers have room for them")
      ->type_name("N")
      ->default_str("1")
      ->check(CLI::Range(1, 64) | CLI::IsMember({"auto"})));
  all.push_back(c.add_option("--stages", o.stages,
                             "peers that share the layers of a pipeline "
                             "(default: as few as its memory needs)")
                  ->check(CLI::Range(1, 64)));
  all.push_back(
    c.add_option("--quantize", o.quantize,
                 "convert weights at load; q8: 8.5 bits each, q4: 4.5 "
                 "(default: as the files have them)")
      ->check(CLI::IsMember({"bf16", "q8", "q4"})));
  all.push_back(c.add_option("--kv-type", o.kv_type,
                             "data type of the KV cache; q8: 8.5 bits a value "
                             "(default: f32 if the weights are f32, else bf16)")
                  ->check(CLI::IsMember({"f32", "bf16", "q8"})));
  all.push_back(c.add_option("--context", o.context,
                             "most tokens of a prompt and its completion "
                             "(default: the model's max_position_embeddings)")
                  ->type_name("TOKENS")
                  ->check(CLI::Range(1, 1 << 17)));
  all.push_back(
    c.add_option("--cache-tokens", o.cache_tokens,
                 "tokens of all requests that the KV cache of a pipeline holds "
                 "(default: 16 contexts, at most 32768, at least one)")
      ->type_name("TOKENS")
      ->check(CLI::Range(16, 1 << 27)));
  if (only_with != nullptr)
    for (CLI::Option* option : all)
      option->needs(only_with);
}

static void add_chat(CLI::App& app, chat_options& o, runners& run) {
  CLI::App* c = app.add_subcommand(
    "chat", "talk with a model that is served, line by line or through pipes");
  c->add_option("MODEL", o.model,
                "name of a model that the local node knows as served; else a "
                "folder, a file or a name on the hub as of `shoal serve`, "
                "which is served until the chat ends (default: the only one "
                "that is served)")
    ->type_name("MODEL");
  CLI::Option* url =
    c->add_option("--url", o.url,
                  "http://HOST:PORT/v1 or https://HOST/v1 of any server with "
                  "OpenAI's API "
                  "(default: the local node's, as `shoal status` shows it)")
      ->type_name("URL");
  c->add_option("--ca", o.ca,
                "certificates of the authorities that an https:// server is "
                "trusted by, in PEM (default: SSL_CERT_FILE, else the "
                "system's)")
    ->type_name("FILE")
    ->needs(url);
  c->add_option("--api-key-env", o.key_variable,
                "name of the variable that has the API key for the server "
                "(default: none is sent)")
    ->type_name("NAME");
  c->add_option("--system", o.settings.system,
                "what the model is told before the first question "
                "(default: nothing)");
  c->add_option("--temperature", o.settings.temperature,
                "randomness of sampling; 0: greedy "
                "(default: as the model has it)")
    ->check(CLI::Range(0.0, 2.0));
  c->add_option("--top-p", o.settings.top_p,
                "nucleus: keep the smallest set of tokens with this "
                "probability mass (default: as the model has it)")
    ->check(CLI::Range(0.0, 1.0));
  c->add_option("--max-tokens", o.settings.max_tokens,
                "most tokens of an answer (default: as the model has it, else "
                "what its context has room for)")
    ->type_name("TOKENS")
    ->check(CLI::Range(1, 1 << 24));
  c->add_option("--seed", o.settings.seed,
                "the same seed gives the same answers (default: none)")
    ->check(CLI::NonNegativeNumber);
  add_address(*c, o.at);
  for (const char* name : {"--name", "--data-dir", "--cluster-key"})
    c->get_option(name)->excludes(url);
  c->add_flag("--json", o.json,
              "one JSON line per piece of the answer on stdout; the question "
              "is what stdin has");
  run[c] = [&o] { return run_chat(o); };
}

void add_serve(CLI::App& app, command_set& set, runners& run) {
  serve_options& o = set.serve;
  CLI::App* c = app.add_subcommand(
    "serve", "serve a model over the shoal: every peer answers OpenAI's API");
  c->add_option("MODEL", o.model,
                "Hugging Face directory, a GGUF file, ORG/NAME of the Hugging "
                "Face hub, or "
                "the folder of a run: of one that "
                "has not ended, its newest checkpoint. Or, where there is no "
                "such folder, a training job of the shoal, by name or id: its "
                "newest checkpoint, then each newer one")
    ->type_name("PATH")
    ->required();
  c->add_option(
    "--as", o.name,
    "name by which clients ask for it (default: that of the folder; of a job, "
    "its name and -served)");
  add_served(*c, o, nullptr);
  c->add_option("--speculate", o.speculate,
                "most tokens that a request guesses ahead where its text "
                "repeats itself, while few generate; 0: none (default: 8)")
    ->type_name("TOKENS")
    ->check(CLI::Range(0, 16));
  c->add_option("--pooling", o.pooling,
                "which hidden state /v1/embeddings answers with: that of the "
                "prompt's last token, or the mean (default: as "
                "1_Pooling/config.json of the model says, else last)")
    ->type_name("last|mean")
    ->check(CLI::IsMember({"last", "mean"}));
  c->add_option("--grow-after", o.grow_after,
                "with --replicas auto: how long requests must have waited for "
                "another pipeline")
    ->type_name("SECONDS")
    ->check(CLI::Range(1, 86400))
    ->needs(c->get_option("--replicas"));
  c->add_option(
     "--shrink-after", o.shrink_after,
     "with --replicas auto: remove a pipeline after one has been idle "
     "for this time")
    ->type_name("SECONDS")
    ->check(CLI::Range(1, 86400))
    ->needs(c->get_option("--replicas"));
  c->add_flag("--detach", o.detach,
              "end when the model is ready; the shoal goes on serving it until "
              "`shoal cancel`, or until its last node leaves in order");
  add_address(*c, o.at);
  c->add_option("--join", o.join,
                "without a local node: host:port of peers of the shoal whose "
                "member this process becomes (default: none)")
    ->delimiter(',');
  add_http(*c, o.http, "without a local node: ");
  c->add_option("--threads", o.threads,
                "without a local node: threads for computation; 0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_flag("--json", o.json, "one JSON line per event on stdout");
  run[c] = [&o] { return run_serve(o); };
  add_chat(app, set.chat, run);

  c = app.add_subcommand(
    "apikey", "make a key for a client of the models that are served");
  c->add_option("NAME", set.api_key.name,
                "of the client, to find its key again in the file")
    ->required();
  c->add_option(
     "--file", set.api_key.file,
     "file that gets the key's hash, for --api-keys of nodes; made if "
     "there is none")
    ->type_name("FILE")
    ->required();
  const auto limit = [c](const char* name, std::uint64_t& into,
                         const char* what) {
    c->add_option(name, into,
                  std::string("most ") + what
                    + " of this key in a minute, at each node by itself; more "
                      "are refused with 429 (default: no limit)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, runtime::key_limit_max));
  };
  limit("--requests-per-minute", set.api_key.limits.requests_per_minute,
        "requests (all but GET and HEAD)");
  limit("--tokens-per-minute", set.api_key.limits.tokens_per_minute,
        "tokens, of prompts and of what is generated,");
  run[c] = [&set] { return run_api_key(set.api_key); };
}

} // namespace shoal::apps
