// apps/cli/model_options.cpp -- commands on models that have been trained.
#include "apps/cli/command_set.hpp"

namespace shoal::apps {

void add_model(CLI::App& app, command_set& set, runners& run) {
  generate_command& g = set.generate;
  CLI::App* c = app.add_subcommand("generate", "continue a prompt");
  c->add_option(
     "MODEL_DIR", g.model,
     "Hugging Face directory, a GGUF file, ORG/NAME of the Hugging Face hub, "
     "or "
     "the folder of a run: of one that has not ended, its newest checkpoint")
    ->type_name("PATH")
    ->required();
  c->add_option_function<std::string>(
     "--prompt", [&g](const std::string& text) { g.prompt = text; },
     "text to continue (default: none; or --prompt-ids)")
    ->type_name("TEXT");
  c->add_option("--prompt-ids", g.prompt_ids,
                "token ids to continue, such as 5,6,7 (default: none)");
  c->add_option("--max-tokens", g.max_tokens,
                "most tokens to generate "
                "(default: as generation_config.json says, else 128)")
    ->type_name("TOKENS")
    ->check(CLI::Range(1, 1 << 24));
  c->add_option("--temperature", g.temperature,
                "randomness of sampling; 0: greedy "
                "(default: as generation_config.json says, else 0.8)");
  c->add_option("--top-k", g.top_k,
                "keep the k most likely tokens; 0: all "
                "(default: as generation_config.json says, else 0)")
    ->check(CLI::Range(0, 1 << 24));
  c->add_option("--top-p", g.top_p,
                "nucleus: keep the smallest set of tokens with this "
                "probability mass; 1: all "
                "(default: as generation_config.json says, else 1)");
  c->add_option("--min-p", g.min_p,
                "drop tokens below this fraction of the top probability; 0: "
                "none (default: as generation_config.json says, else 0)");
  c->add_option("--repetition-penalty", g.repetition_penalty,
                "penalize tokens that already occurred (> 1); 1: off "
                "(default: as generation_config.json says, else 1)");
  c->add_option("--seed", g.seed, "the same seed gives the same text")
    ->check(CLI::NonNegativeNumber);
  c->add_option("--stop", g.stop,
                "stop before this text; repeatable (default: none)");
  auto* const schema =
    c->add_option("--json-schema", g.json_schema,
                  "write JSON that the schema in this file allows; {} is any "
                  "(default: any text)")
      ->type_name("FILE");
  auto* const regex =
    c->add_option_function<std::string>(
       "--regex", [&g](const std::string& text) { g.regex = text; },
       "write a text that matches this regular expression from start to end "
       "(default: any text)")
      ->type_name("PATTERN")
      ->excludes(schema);
  c->add_option("--grammar", g.grammar,
                "write a text that the grammar (GBNF) in this file allows "
                "(default: any text)")
    ->type_name("FILE")
    ->excludes(schema)
    ->excludes(regex);
  c->add_option("--quantize", g.quantize,
                "convert weights at load; q8: 8.5 bits each, q4: 4.5 "
                "(default: as the files have them)")
    ->check(CLI::IsMember({"bf16", "q8", "q4"}));
  c->add_option("--kv-type", g.kv_type,
                "data type of the KV cache; q8: 8.5 bits a value "
                "(default: f32 if the weights are f32, else bf16)")
    ->check(CLI::IsMember({"f32", "bf16", "q8"}));
  c->add_option("--threads", g.threads, "threads for computation; 0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_flag("--json", g.json, "one JSON line per token on stdout");
  run[c] = [&g] { return run_generate(g); };

  eval_command& e = set.eval;
  c = app.add_subcommand("eval", "mean loss of a model over text");
  c->add_option(
     "MODEL_DIR", e.model,
     "Hugging Face directory, a GGUF file, ORG/NAME of the Hugging Face hub, "
     "or "
     "the folder of a run: of one that has not ended, its newest checkpoint")
    ->type_name("PATH")
    ->required();
  c->add_option(
     "--data", e.data,
     "text, or .jsonl with \"text\" or \"input_ids\"; also as .gz or "
     ".zst")
    ->type_name("PATH")
    ->required();
  c->add_option("--window", e.window,
                "tokens that are read together: longer texts are cut "
                "(default: training.seq_len of the run that made the model, "
                "else max_position_embeddings, at most 2048)")
    ->type_name("TOKENS")
    ->check(CLI::Range(2, 1 << 24));
  c->add_option("--limit", e.limit,
                "evaluate only the first N documents: a file of text is one, "
                "and so is a line of .jsonl (default: all)")
    ->type_name("N")
    ->check(CLI::Range(1, 1 << 30));
  c->add_option("--chunks", e.chunks,
                "evaluate only the first N windows (default: all)")
    ->type_name("N")
    ->check(CLI::Range(1, 1 << 30));
  c->add_option("--quantize", e.quantize,
                "evaluate with weights converted as `generate --quantize` does "
                "(default: in floats, as training computes)")
    ->check(CLI::IsMember({"bf16", "q8", "q4"}));
  c->add_option("--threads", e.threads, "threads for computation; 0: all cores")
    ->check(CLI::Range(0, 1024));
  c->add_flag("--json", e.json, "as JSON");
  run[c] = [&e] { return run_eval(e); };

  pull_options& p = set.pull;
  c = app.add_subcommand("pull",
                         "download a model of the Hugging Face hub into the "
                         "cache that the hub's tools share");
  c->add_option("MODEL", p.model,
                "ORG/NAME, ORG/NAME@REVISION (a branch, a tag or a commit), or "
                "ORG/NAME:FILE.gguf for one file in GGUF")
    ->required();
  c->add_flag("--json", p.json, "as JSON");
  run[c] = [&p] { return run_pull(p); };

  audit_options& a = set.audit;
  c = app.add_subcommand(
    "audit", "prove from a run's metrics that each sample was used once");
  c->add_option("OUT_DIR", a.out, "--out of `shoal train` or `shoal attach`")
    ->type_name("DIR")
    ->required();
  c->add_option("--data", a.data,
                "the text that it trained on "
                "(default: as its run.json says)")
    ->type_name("PATH");
  c->add_flag("--json", a.json, "as JSON");
  run[c] = [&a] { return run_audit(a); };
}

} // namespace shoal::apps
