# tests/apps/serve_rules_test.py -- answers that keep to a schema, a pattern, a choice
# or a grammar.
import json
import signal
import threading

from serving import Serving
from support import DEADLINE_S, TINY_RUN, main

try:
    import jsonschema
except ImportError:
    jsonschema = None

CHAT = "/v1/chat/completions"
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "kind": {"enum": ["cod", "herring"]},
        "size": {"type": "integer", "minimum": 0, "maximum": 99},
        "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2}},
    "required": ["name", "kind", "size", "tags"],
    "additionalProperties": False}
COOK = {"type": "object", "properties": {"minutes": {
    "type": "integer", "minimum": 1, "maximum": 90}},
    "required": ["minutes"], "additionalProperties": False}
# Of these a text is long: a peer can die meanwhile.
LONG_SCHEMA = {"type": "array", "items": SCHEMA, "minItems": 24, "maxItems": 24}
LONG_RUN = TINY_RUN.replace("max_position_embeddings = 256",
                            "max_position_embeddings = 16384")


def format_of(schema):
    return {"type": "json_schema",
            "json_schema": {"name": "fish", "strict": True, "schema": schema}}


class ServeRules(Serving):
    def valid(self, text, schema):
        value = json.loads(text)
        if jsonschema:
            jsonschema.validate(value, schema)
        return value

    def asked(self, prompt, **more):
        return {"model": "tiny", "prompt": prompt, "max_tokens": 800,
                "temperature": 0.9, "seed": 3, **more}

    def test_texts_keep_to_what_was_asked(self):
        self.write("long.toml", LONG_RUN)
        self.succeed("init", "long.toml", "--out", "m", "--overwrite")
        config = self.folder / "m" / "tokenizer_config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {
            "chat_template": "{% if no %}<tool_call>{% endif %}"
            "{% for m in messages %}{{ m.content }}{% endfor %}"}))
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0",
                                 "--speculate", 4)
        self.write("schema.json", json.dumps(SCHEMA))
        for options in ({"temperature": 0.9, "seed": 3},
                        {"temperature": 0.7, "seed": 1, "top_k": 40}):
            body = self.asked("A fish:", response_format=format_of(SCHEMA),
                              **options)
            status, answer = at.post(body)
            self.assertEqual(status, 200, answer)
            choice, = answer["choices"]
            self.valid(choice["text"], SCHEMA)
            self.assertEqual(choice["finish_reason"], "stop")
            self.assertEqual(at.stream(body), (200, {0: choice["text"]}))
            self.assertEqual(choice["text"], self.alone(
                "A fish:", 800, json_schema="schema.json", **options))
        status, answer = at.post(
            {"model": "tiny", "messages": [{"role": "user", "content": "Hm"}],
             "response_format": format_of(SCHEMA), "n": 3, "max_tokens": 800,
             "seed": 1, "logprobs": True, "top_logprobs": 4}, CHAT)
        self.assertEqual(status, 200, answer)
        texts = [c["message"]["content"] for c in answer["choices"]]
        self.assertEqual(len(set(texts)), 3)
        for text in texts:
            self.valid(text, SCHEMA)
        first = answer["choices"][0]["logprobs"]["content"][0]
        self.assertEqual((first["token"], len(first["top_logprobs"])), ("{", 1))
        self.forms(at)
        self.mistakes(at)
        self.calls(at)
        self.tokens(at)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def forms(self, at):
        def text(finish="stop", **more):
            status, answer = at.post(self.asked("x", **more))
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["choices"][0]["finish_reason"], finish)
            return answer["choices"][0]["text"]

        self.assertIn(text(guided_choice=["cod", "herring"]), ("cod", "herring"))
        self.assertRegex(text(guided_regex="[a-c]{3}-[0-9]{2}"),
                         "^[a-c]{3}-[0-9]{2}$")
        self.assertEqual(text(grammar='root ::= "a" ("b" | "b") "c"'), "abc")
        self.assertEqual(text(guided_grammar='root ::= "abc"'), "abc")
        self.valid(text(guided_json=SCHEMA), SCHEMA)
        self.valid(text(json_schema=SCHEMA), SCHEMA)
        self.valid(text(structured_outputs={"json": SCHEMA}), SCHEMA)
        self.assertEqual(text(guided_regex=""), "")
        # What is biased, but not allowed, is not chosen; what is allowed is.
        self.assertEqual(text(guided_regex="[a-c]{4}", temperature=0,
                              logit_bias={str(ord("b")): 50,
                                          str(ord("z")): 100}), "bbbb")
        self.assertEqual(text("length", guided_regex="a*b", max_tokens=5,
                              logit_bias={str(ord("a")): 100}), "aaaaa")
        some = text("length", response_format={"type": "json_object"},
                    max_tokens=60)
        self.assertEqual(some[0], "{")

    def mistakes(self, at):
        def wrong(param, word, **more):
            status, answer = at.post(self.asked("x", **more))
            self.assertEqual(status, 400, answer)
            self.assertEqual(answer["error"]["param"], param)
            self.assertIn(word, answer["error"]["message"])

        wrong("response_format.json_schema.schema", "uniqueItems",
              response_format=format_of({"type": "array", "uniqueItems": True}))
        wrong("guided_json", "not JSON", guided_json="{")
        wrong("guided_regex", "groups", guided_regex="(?=a)b")
        wrong("guided_grammar", "root", guided_grammar='x ::= "a"')
        wrong("grammar", "itself", grammar='root ::= root "a" | "b"')
        wrong("guided_json", "too large", guided_json={
            "type": "object", "properties": {
                f"p{i}": {"type": "string", "maxLength": 9000}
                for i in range(40)}})
        wrong("guided_regex", "10000", guided_regex="a{10001}")
        wrong("guided_regex", "together", guided_json={}, guided_regex="a")
        wrong("response_format.type", "xml", response_format={"type": "xml"})

    def calls(self, at):
        def asked(tools, **more):
            return {"model": "tiny", "messages": [
                {"role": "user", "content": "Catch one."}], "tools": tools,
                "max_tokens": 900, "seed": 2, **more}

        def chats(form):
            return [{"type": "function", **form("cook", COOK)},
                    {"type": "function", **form("catch", SCHEMA)}]

        tools = chats(lambda name, schema: {"function": {
            "name": name, "parameters": schema}})
        named = {"type": "function", "function": {"name": "catch"}}
        body = asked(tools, tool_choice=named)
        status, answer = at.post(body, CHAT)
        self.assertEqual(status, 200, answer)
        choice, = answer["choices"]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        call, = choice["message"]["tool_calls"]
        self.assertEqual(call["function"]["name"], "catch")
        self.valid(call["function"]["arguments"], SCHEMA)
        # In a stream the same, in fragments.
        connection = at.connect()
        connection.request("POST", CHAT, json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json"})
        name, pieces = "", []
        for line in connection.getresponse():
            if line.startswith(b"data: {"):
                for c in json.loads(line[6:])["choices"]:
                    for part in c["delta"].get("tool_calls", []):
                        name += part["function"].get("name") or ""
                        pieces.append(part["function"].get("arguments", ""))
        connection.close()
        self.assertEqual(name, "catch")
        self.assertEqual("".join(pieces), call["function"]["arguments"])
        self.assertGreater(len(pieces), 10)
        status, answer = at.post(asked(
            tools, tool_choice="required", parallel_tool_calls=False), CHAT)
        call, = answer["choices"][0]["message"]["tool_calls"]
        self.valid(call["function"]["arguments"],
                   {"cook": COOK, "catch": SCHEMA}[call["function"]["name"]])
        status, answer = at.post({
            "model": "tiny", "input": "Cook.", "max_output_tokens": 900,
            "seed": 0,
            "tools": chats(lambda name, schema: {
                "name": name, "parameters": schema}),
            "tool_choice": {"type": "function", "name": "cook"}},
            "/v1/responses")
        self.assertEqual(status, 200, answer)
        self.assertEqual(len(answer["output"]), 1, answer["output"])
        call, = answer["output"]
        self.assertEqual((call["type"], call["name"]),
                         ("function_call", "cook"))
        self.valid(call["arguments"], COOK)
        status, answer = at.post({
            "model": "tiny", "max_tokens": 900,
            "messages": [{"role": "user", "content": "Cook."}],
            "tools": [{"name": "cook", "input_schema": COOK}],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
            "/v1/messages")
        self.assertEqual(status, 200, answer)
        call, = answer["content"]
        self.assertEqual((call["type"], call["name"]), ("tool_use", "cook"))
        self.valid(json.dumps(call["input"]), COOK)
        self.assertEqual(answer["stop_reason"], "tool_use")

    def tokens(self, at):
        a, b = ord("a"), ord("b")

        def text(finish, **more):
            body = self.asked("x", **{"max_tokens": 8, "temperature": 0,
                                      "allowed_token_ids": [a, b],
                                      "logit_bias": {str(b): 50}, **more})
            status, answer = at.post(body)
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer["choices"][0]["finish_reason"], finish)
            return answer["choices"][0]["text"]

        self.assertEqual(text("length"), "b" * 8)
        self.assertEqual(text("length", bad_words=["bb"]), "babababa")
        self.assertEqual(text("length", bad_words=["b"]), "a" * 8)
        self.assertEqual(text("stop", stop_token_ids=[b]), "")
        self.assertEqual(text("stop", stop_token_ids=[b], min_tokens=5),
                         "a" * 5)
        self.assertEqual(text("stop", stop="b", min_tokens=5), "b" * 5)

        def answers():
            return sum(float(line.split()[-1]) for line in
                       at.get("/metrics")[1].splitlines()
                       if line.startswith("shoal_answers_total"))
        before = answers()
        for path, body in (("/tokenize", {"prompt": "a"}),
                           ("/detokenize", {"tokens": [a]}),
                           ("/apply-template", {"messages": [
                               {"role": "user", "content": "a"}]})):
            self.assertEqual(at.post(body, path)[0], 200)
        self.assertEqual(answers(), before + 3)

    def test_the_first_call_ends_an_answer_that_may_have_one(self):
        """A model that begins calls, and nothing else, as often as it may: the marks
        of calls are tokens of their own, and the bias of the first one is high."""
        self.write("marks.toml", TINY_RUN.replace(
            "[training]", "vocab_size = 258\n\n[training]").replace(
                "max_position_embeddings = 256",
                "max_position_embeddings = 2048"))
        file = self.folder / "m" / "tokenizer.json"
        tokenizer = json.loads(file.read_text())
        for i, mark in enumerate(("<tool_call>", "</tool_call>"), 256):
            tokenizer["model"]["vocab"][mark] = i
            tokenizer["added_tokens"].append({
                "id": i, "content": mark, "single_word": False, "lstrip": False,
                "rstrip": False, "normalized": False, "special": True})
        config = json.loads(
            (self.folder / "m" / "tokenizer_config.json").read_text())
        config["chat_template"] = (
            "{% for m in messages %}{{ m.content }}{% endfor %}"
            "{# calls are written as <tool_call> #}")
        self.succeed("init", "marks.toml", "--out", "m", "--overwrite")
        file.write_text(json.dumps(tokenizer))
        file.with_name("tokenizer_config.json").write_text(json.dumps(config))
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0",
                                 "--speculate", 4)
        schemas = {"cook": COOK, "catch": SCHEMA}

        def asked(strict=True, **more):
            return {"model": "tiny", "max_tokens": 600, "seed": 4,
                    "logit_bias": {"256": 100}, "tool_choice": "auto",
                    "messages": [{"role": "user", "content": "Catch."}],
                    "tools": [{"type": "function", "function": {
                        "name": name, "parameters": schema, "strict": strict}}
                        for name, schema in schemas.items()], **more}

        def answered(body):
            status, answer = at.post(body, CHAT)
            self.assertEqual(status, 200, answer)
            choice, = answer["choices"]
            return choice["message"], choice["finish_reason"], answer["usage"]

        one, finish, usage = answered(asked(parallel_tool_calls=False))
        self.assertEqual((finish, one["content"]), ("tool_calls", None))
        call, = one["tool_calls"]
        name, arguments = (call["function"]["name"],
                           call["function"]["arguments"])
        self.valid(arguments, schemas[name])
        self.assertLess(usage["completion_tokens"], 300)
        # It goes on with other calls if it may: the first one is the same.
        many, finish, usage = answered(asked())
        self.assertGreater(len(many["tool_calls"]), 1)
        self.assertEqual(many["tool_calls"][0]["function"], call["function"])
        for each in many["tool_calls"][:-1]:
            self.valid(each["function"]["arguments"],
                       schemas[each["function"]["name"]])
        self.assertEqual((finish, usage["completion_tokens"]), ("length", 600))
        # Nothing makes a call of what is not strict.
        none, _, _ = answered(asked(False, parallel_tool_calls=False,
                                    max_tokens=50))
        self.assertNotIn("tool_calls", none)
        self.assertIn("<tool_call>", none["content"])
        self.assertEqual(self.call_in_stream(at, asked(
            parallel_tool_calls=False, stream=True)), [name, arguments])
        # The same in the words of the other APIs.
        body = asked(parallel_tool_calls=False)
        tools = [tool["function"] for tool in body["tools"]]
        status, answer = at.post({
            "model": "tiny", "input": "Catch.", "max_output_tokens": 600,
            "seed": 4, "logit_bias": {"256": 100}, "tool_choice": "auto",
            "parallel_tool_calls": False,
            "tools": [{"type": "function", **tool} for tool in tools]},
            "/v1/responses")
        self.assertEqual(status, 200, answer)
        item, = answer["output"]
        self.assertEqual((item["type"], item["name"], item["arguments"]),
                         ("function_call", name, arguments))
        self.assertIs(answer["parallel_tool_calls"], False)
        status, answer = at.post({
            "model": "tiny", "max_tokens": 600, "messages": body["messages"],
            "seed": 4, "logit_bias": {"256": 100},
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "tools": [{"name": tool["name"], "strict": True,
                       "input_schema": tool["parameters"]} for tool in tools]},
            "/v1/messages")
        self.assertEqual(status, 200, answer)
        item, = answer["content"]
        self.assertEqual((item["type"], item["name"], item["input"]),
                         ("tool_use", name, json.loads(arguments)))
        self.assertEqual(answer["stop_reason"], "tool_use")
        self.assertEqual(process.end(signal.SIGINT), 130)

    def call_in_stream(self, at, body):
        """Name and arguments of the only call of a stream, which ends with it."""
        connection = at.connect()
        connection.request("POST", CHAT, json.dumps(body),
                           {"Content-Type": "application/json"})
        name, arguments, finish = "", "", None
        for line in connection.getresponse():
            if not line.startswith(b"data: {"):
                continue
            choice, = json.loads(line[6:])["choices"]
            self.assertIsNone(finish)
            finish = choice["finish_reason"]
            for part in choice["delta"].get("tool_calls", []):
                self.assertEqual(part["index"], 0)
                name += part["function"].get("name") or ""
                arguments += part["function"].get("arguments", "")
        connection.close()
        self.assertEqual(finish, "tool_calls")
        return [name, arguments]

    def test_a_text_goes_on_where_a_dead_peer_left_it(self):
        """Two stages, of which the last one chooses; a stage dies."""
        names = ("one", "two", "three")
        nodes, at = {}, {}
        for name in names:
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        status = json.loads(self.succeed("status", "--json", "--name", "one"))
        peers = {p["id"]: p["name"] for p in status["peers"]}
        self.write("long.toml", LONG_RUN)
        self.write("schema.json", json.dumps(LONG_SCHEMA))
        self.succeed("init", "long.toml", "--out", "long")
        self.succeed("serve", "long", "--as", "tiny", "--stages", 2, "--detach",
                     "--name", "one")
        job, = json.loads(self.succeed("jobs", "--json", "--name", "one"))
        stages = [peers[stage["id"]] for stage in job["places"][0]]
        outside, = set(names) - set(stages)
        expected = self.alone("Fish:", 15000, model="long", temperature=0.9,
                              seed=5, json_schema="schema.json")
        self.assertEqual(len(self.valid(expected, LONG_SCHEMA)), 24)
        begun, results = threading.Semaphore(0), {}

        def one(i, schema=LONG_SCHEMA):
            told = []

            def each(texts):
                if len(texts.get(0, "")) > 200 and not told:
                    told.append(begun.release())
            body = self.asked("Fish:", seed=5 + i, max_tokens=15000,
                              guided_json=schema)
            results[i] = at[outside].stream(body, each)

        threads = [threading.Thread(target=one, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for _ in threads:
            self.assertTrue(begun.acquire(timeout=DEADLINE_S), results)
        nodes[stages[1]].end(signal.SIGKILL)
        self.assertEqual(results, {}, "ended before the death")
        for thread in threads:
            thread.join(DEADLINE_S)
        self.assertEqual(results.get(0), (200, {0: expected}))
        status, texts = results.get(1)
        self.assertEqual(status, 200, texts)
        self.valid(texts[0], LONG_SCHEMA)
        self.assertNotEqual(texts[0], expected)


if __name__ == "__main__":
    main()
