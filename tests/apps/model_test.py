# tests/apps/model_test.py -- init, eval and generate on one machine.
import json
import math

from support import World, main


class Model(World):
    def setUp(self):
        super().setUp()
        self.succeed("init", self.tiny_run(), "--out", "m")

    def eval(self, *data):
        return json.loads(self.succeed("eval", "m", "--json", *(
            a for d in data for a in ("--data", d))))

    def generate(self, *arguments):
        lines = self.succeed("generate", "m", "--json", *arguments)
        events = self.events(lines)
        self.assertEqual(events[-1]["event"], "done")
        self.assert_documented("generate", *events)
        return events

    def test_init_writes_a_hugging_face_directory(self):
        config = json.loads((self.folder / "m/config.json").read_text())
        self.assertEqual(config["model_type"], "llama")
        self.assertEqual(config["hidden_size"], 32)
        self.assertEqual(config["vocab_size"], 256)
        self.assertTrue((self.folder / "m/model.safetensors").exists())

    def test_init_makes_the_same_bytes_from_the_same_seed(self):
        self.succeed("init", self.tiny_run(), "--out", "n")
        self.assertEqual((self.folder / "m/model.safetensors").read_bytes(),
                         (self.folder / "n/model.safetensors").read_bytes())

    def test_a_random_model_knows_nothing(self):
        e = self.eval(self.write_text_files())
        self.assertAlmostEqual(e["loss"], math.log(256), delta=0.5)
        self.assertAlmostEqual(e["perplexity"], math.exp(e["loss"]),
                               delta=1e-6 * e["perplexity"])

    def test_each_line_is_its_own_sequence_and_ids_are_taken_as_they_are(self):
        text = self.write("a.jsonl", json.dumps({"text": "abc"}) + "\n"
                          + json.dumps({"text": "de"}) + "\n")
        ids = self.write("b.jsonl", json.dumps({"input_ids": [97, 98, 99]})
                         + "\n" + json.dumps({"input_ids": [100, 101]}) + "\n")
        one, two = self.eval(text), self.eval(ids)
        self.assertEqual(one["tokens"], 3)
        self.assertEqual(one, two)
        # Bytes are tokens here.
        self.assertAlmostEqual(one["bits_per_byte"], one["loss"] / math.log(2))
        done = self.run_shoal("eval", "m", "--data", text)
        self.assertIn(f"{one['bits_per_byte']:.4f} bits per byte", done.stdout)
        self.assertIn("windows of at most 256 that do not overlap", done.stdout)
        self.assertIn("windows of 256 tokens, as many as", done.stderr)

    def test_windows_are_as_long_as_said(self):
        data = self.write("a.jsonl", json.dumps({"text": "abcdefgh" * 40}))

        def eval_by(*flags):
            return json.loads(self.succeed("eval", "m", "--json", "--data",
                                           data, *flags))
        for packed in (), ("--quantize", "q8"):
            usual = eval_by(*packed)  # 320 tokens; the model has 256 positions
            self.assertEqual((usual["window"], usual["stride"]), (256, 256))
            self.assertEqual(usual["tokens"], 320 - 2)
            self.assertEqual(usual, eval_by("--window", "256", *packed))
            short = eval_by("--window", "10", *packed)
            self.assertEqual(short["tokens"], 320 - 32)
            self.assertNotEqual(short["loss"], usual["loss"])
        self.refuse(1, "eval", "m", "--data", data, "--window", "257",
                    names=["--window", "max_position_embeddings", "256"])
        self.refuse(2, "eval", "m", "--data", data, "--window", "1",
                    names=["--window"])

    # The losses of training and of eval were of other windows.
    def test_an_unsaid_window_is_that_of_training(self):
        self.train("out")  # by sequences of 32, of 256 positions
        config = json.loads((self.folder / "out/config.json").read_text())
        self.assertEqual(config["max_position_embeddings"], 256)
        for packed in (), ("--quantize", "q8"):
            done = self.run_shoal("eval", "out", "--data", "text", "--json",
                                  *packed)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["window"], 32)
            self.assertIn("windows of 32 tokens, as in training", done.stderr)
            done = self.run_shoal("eval", "out", "--data", "text", "--json",
                                  "--window", 64, *packed)
            self.assertEqual(json.loads(done.stdout)["window"], 64)
            self.assertNotIn("in training", done.stderr)
        config["shoal_train_seq_len"] = 0
        self.write("out/config.json", json.dumps(config))
        self.refuse(1, "eval", "out", "--data", "text",
                    names=["config.json", "shoal_train_seq_len"])

    def test_an_unsaid_window_has_2048_tokens_at_most(self):
        self.succeed("init", self.tiny_run(), "--out", "long",
                     "--model.max_position_embeddings", "4096")
        data = self.write("a.jsonl", json.dumps({"text": "abc" * 1000}))
        e = json.loads(self.succeed("eval", "long", "--json", "--data", data))
        self.assertEqual(e["window"], 2048)
        self.assertEqual(e["tokens"], 3000 - 2)
        self.assertIn("2048", self.succeed("eval", "--help"))

    def test_greedy_text_is_the_same_each_time(self):
        arguments = ["--prompt", "The ", "--max-tokens", "20",
                     "--temperature", "0"]
        first, second = self.generate(*arguments), self.generate(*arguments)
        self.assertEqual(first[-1]["ids"], second[-1]["ids"])
        self.assertEqual(first[-1]["logprobs"], second[-1]["logprobs"])
        self.assertEqual(first[-1]["tokens"], 20)
        self.assertEqual(first[-1]["prompt_tokens"], 4)
        tokens = [e["id"] for e in first if e["event"] == "token"]
        self.assertEqual(tokens, first[-1]["ids"])
        threads = self.generate(*arguments, "--threads", "2")
        self.assertEqual(threads[-1]["logprobs"], first[-1]["logprobs"])

    def test_prompts_as_text_and_as_ids_are_one(self):
        rest = ["--max-tokens", "8", "--temperature", "0"]
        self.assertEqual(
            self.generate("--prompt", "ab", *rest)[-1]["ids"],
            self.generate("--prompt-ids", "97,98", *rest)[-1]["ids"])

    def test_seeds_give_the_same_sample_again_and_differ(self):
        def sample(seed):
            return self.generate("--prompt", "a", "--max-tokens", "24",
                                 "--seed", seed)[-1]["ids"]
        self.assertEqual(sample("1"), sample("1"))
        self.assertNotEqual(sample("1"), sample("2"))

    def test_without_json_the_text_is_on_stdout_and_figures_are_not(self):
        done = self.run_shoal("generate", "m", "--prompt", "abc",
                              "--max-tokens", "4")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stdout.startswith("abc"))
        self.assertIn("tokens/s", done.stderr)

    def test_smaller_weights_give_nearly_the_same_losses(self):
        data = self.write_text_files()
        exact = self.eval(data)
        for kind, most in ("bf16", 0.01), ("q8", 0.02), ("q4", 0.1):
            packed = json.loads(self.succeed(
                "eval", "m", "--json", "--data", data, "--quantize", kind))
            self.assertEqual(packed["tokens"], exact["tokens"])
            self.assertNotEqual(packed["loss"], exact["loss"])
            self.assertAlmostEqual(packed["loss"], exact["loss"], delta=most)
            if kind == "bf16":
                self.assertEqual(packed["bits_per_weight"], 16)
        self.assertEqual(exact["bits_per_weight"], 32)

    def test_text_comes_from_smaller_weights_too(self):
        for kind in "bf16", "q8", "q4":
            one = self.generate("--prompt", "The ", "--max-tokens", "12",
                                "--temperature", "0", "--quantize", kind,
                                "--threads", "1")[-1]
            two = self.generate("--prompt", "The ", "--max-tokens", "12",
                                "--temperature", "0", "--quantize", kind,
                                "--threads", "2")[-1]
            self.assertEqual(one["tokens"], 12)
            self.assertEqual(one["logprobs"], two["logprobs"])

    def test_the_cache_has_the_type_that_is_asked_for(self):
        def logprobs(*flags):
            return self.generate("--prompt", "The ", "--max-tokens", "12",
                                 "--temperature", "0", *flags)[-1]["logprobs"]
        exact = logprobs("--kv-type", "f32")
        self.assertEqual(logprobs(), exact)
        for kind in "bf16", "q8":
            smaller = logprobs("--kv-type", kind)
            self.assertNotEqual(smaller, exact)
            self.assertAlmostEqual(smaller[0], exact[0], delta=0.05)
        self.assertEqual(logprobs("--quantize", "q8"),
                         logprobs("--quantize", "q8", "--kv-type", "bf16"))

    def test_the_makers_sampling_applies_unless_flags_say_otherwise(self):
        path = self.folder / "m/generation_config.json"

        def ids(said, *flags):
            path.write_text(json.dumps(said))
            return self.generate("--prompt", "The ", *flags)[-1]["ids"]
        greedy = ids({}, "--temperature", "0", "--max-tokens", "16")
        self.assertEqual(
            ids({"do_sample": False, "max_new_tokens": 16}), greedy)
        self.assertEqual(
            ids({"do_sample": True, "top_k": 1, "max_new_tokens": 16}), greedy)
        self.assertEqual(ids({"min_p": 1.0, "max_new_tokens": 16}), greedy)
        self.assertEqual(
            ids({"do_sample": True, "temperature": 2.0, "max_new_tokens": 5},
                "--temperature", "0", "--max-tokens", "16"), greedy)
        self.assertEqual(
            ids({"do_sample": False, "max_new_tokens": 16,
                 "eos_token_id": [greedy[3]]}),
            greedy[:greedy.index(greedy[3]) + 1])
        punished = ids({"do_sample": False, "max_new_tokens": 60,
                        "repetition_penalty": 1000.0})
        self.assertEqual(len(set(punished)), 60)
        self.assertNotEqual(
            ids({"do_sample": False, "max_new_tokens": 60}), punished)

    def test_each_flag_of_sampling_changes_what_it_should(self):
        def ids(*flags):
            return self.generate("--prompt", "The ", "--max-tokens", "60",
                                 "--seed", "3", *flags)[-1]["ids"]
        greedy = ids("--temperature", "0")
        hot = ids("--temperature", "2")  # among 256 that are nearly alike
        self.assertNotEqual(hot, greedy)
        # The narrowest of each leaves the likeliest token alone.
        for flag in ["--top-k", "1"], ["--top-p", "0.0001"], ["--min-p", "1"]:
            self.assertEqual(ids("--temperature", "2", *flag), greedy, flag)
        # The widest changes nothing.
        for flag in (["--top-k", "0"], ["--top-p", "1"], ["--min-p", "0"],
                     ["--repetition-penalty", "1"]):
            self.assertEqual(ids("--temperature", "2", *flag), hot, flag)
        # Between them something else comes out.
        for flag in ["--top-k", "3"], ["--top-p", "0.3"], ["--min-p", "0.9"]:
            self.assertNotIn(ids("--temperature", "2", *flag), (greedy, hot),
                             flag)
        punished = ids("--temperature", "0", "--repetition-penalty", "1000")
        self.assertEqual(len(set(punished)), 60)
        self.assertLess(len(set(greedy)), 60)

    def test_flags_come_before_what_the_maker_says(self):
        (self.folder / "m/generation_config.json").write_text(json.dumps(
            {"temperature": 2.0, "top_k": 1, "top_p": 0.0001, "min_p": 1.0,
             "repetition_penalty": 1000.0, "max_new_tokens": 40}))

        def ids(*flags):
            return self.generate("--prompt", "The ", "--seed", "3",
                                 *flags)[-1]["ids"]
        wide = ["--top-k", "0", "--top-p", "1", "--min-p", "0",
                "--repetition-penalty", "1"]
        said, free = ids(), ids(*wide)
        self.assertEqual(len(set(said)), 40)
        for i in 0, 2, 4:  # what is left of the file decides again
            self.assertNotEqual(ids(*wide[:i], *wide[i + 2:]), free)
        self.assertLess(len(set(free)), 40)

    def test_text_keeps_to_a_schema_a_pattern_or_a_grammar(self):
        schema = self.write("s.json", json.dumps({
            "type": "object", "additionalProperties": False,
            "properties": {"n": {"type": "integer", "minimum": 5,
                                 "maximum": 12},
                           "kind": {"enum": ["a", "b"]}},
            "required": ["n", "kind"]}))
        for seed in range(4):
            end = self.generate("--prompt", "x", "--json-schema", schema,
                                "--seed", seed)[-1]
            value = json.loads(end["text"])
            self.assertEqual(set(value), {"n", "kind"}, end)
            self.assertTrue(5 <= value["n"] <= 12, end)
            self.assertIn(value["kind"], ("a", "b"))
            self.assertEqual(end["finish_reason"], "stop")
        end = self.generate("--prompt", "x", "--regex", "[0-9]{3}-é+!")[-1]
        self.assertRegex(end["text"], r"\A[0-9]{3}-é+!\Z")
        grammar = self.write("g", 'root ::= "<" root? ">"')
        end = self.generate("--prompt", "x", "--grammar", grammar,
                            "--temperature", "2")[-1]
        depth = end["text"].count("<")
        self.assertTrue(("<" * depth + ">" * depth).startswith(end["text"]))
        # What stays unfinished is only cut.
        end = self.generate("--prompt", "x", "--grammar",
                            self.write("h", 'root ::= "abcdef"'),
                            "--max-tokens", "4")[-1]
        self.assertEqual((end["text"], end["finish_reason"]),
                         ("abcd", "length"))
        for flags, why in (
                (("--regex", "a("), "--regex: character 2: expected )"),
                (("--grammar", self.write("bad", "root = x")),
                 "bad: line 1: expected ::="),
                (("--json-schema", self.write("t.json", '{"not": {}}')),
                 "t.json: schema /not: this keyword is not understood"),
                (("--json-schema", "none.json"), "none.json: cannot open")):
            done = self.run_shoal("generate", "m", "--prompt", "x", *flags)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(why, done.stderr)

    def test_a_bad_generation_config_is_named(self):
        path = self.folder / "m/generation_config.json"
        for said, key in ({"top_p": 2}, "top_p"), ({"min_p": "x"}, "min_p"), (
                {"eos_token_id": [-1]}, "eos_token_id"), (
                {"do_sample": 1}, "do_sample"):
            path.write_text(json.dumps(said))
            done = self.run_shoal("generate", "m", "--prompt", "a")
            self.assertEqual(done.returncode, 1)
            self.assertIn("generation_config.json: " + key, done.stderr)
            served = self.run_shoal("serve", "m")  # else it would answer otherwise
            self.assertEqual(served.returncode, 1)
            self.assertIn("generation_config.json: " + key, served.stderr)
        path.write_text("{}")
        done = self.run_shoal("generate", "m", "--prompt", "a", "--min-p", "2")
        self.assertEqual(done.returncode, 2)
        self.assertIn("min_p", done.stderr)

    def test_types_that_there_are_not_are_refused(self):
        done = self.run_shoal("generate", "m", "--prompt", "a",
                              "--quantize", "q3")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--quantize", done.stderr)
        done = self.run_shoal("generate", "m", "--prompt", "a",
                              "--kv-type", "q4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--kv-type", done.stderr)


if __name__ == "__main__":
    main()
