# tests/apps/serve_chat_test.py -- chats with a served model: as its template says,
# and as the openai package, the client that most programs use, reads them.
import json
import signal

from serving import Serving
from support import main

# Lines of a role and a text; a tool's description; thoughts if they are wanted.
TEMPLATE = """\
{%- if messages[0].role == 'nobody' %}{{ raise_exception('nobody speaks') }}{% endif -%}
{% for t in tools or [] %}{{ t.function.name }}:{{ t.function.parameters | tojson }}
{% endfor -%}
{% for m in messages %}{{ m.role[0] }}>{{ m.content }}
{% endfor -%}
{% if add_generation_prompt %}a>{% if thinking %}hm {% endif %}{% endif %}"""

ASK = [{"role": "system", "content": "short"},
       {"role": "user", "content": "The cod of file 3"}]
TEXT = "s>short\nu>The cod of file 3\na>"
TOOLS = [{"type": "function", "function": {
    "name": "look", "parameters": {"type": "object", "properties": {}}}}]
CHAT = "/v1/chat/completions"


class Chat(Serving):
    def setUp(self):
        super().setUp()
        self.say("m", {"chat_template": TEMPLATE})

    def say(self, model, changes):
        """Changes tokenizer_config.json."""
        path = self.folder / model / "tokenizer_config.json"
        config = json.loads(path.read_text()) | changes
        path.write_text(json.dumps(config))

    def begin(self):
        return self.serve("--as", "tiny", "--http", "127.0.0.1:0")

    def ask(self, at, **more):
        return at.post({"model": "tiny", "messages": ASK, "max_tokens": 12,
                        "temperature": 0, **more}, CHAT)

    def events(self, at, body, headers=None, most=None):
        """Events of a stream with their ids, at most this many; and whether it
        was complete."""
        connection = at.connect()
        connection.request("POST", CHAT, json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json",
                            **(headers or {})})
        answer, out, last = connection.getresponse(), [], None
        self.assertEqual(answer.status, 200)
        for line in answer:
            line = line.decode().rstrip("\n")
            if line.startswith("id: "):
                last = int(line[4:])
            elif line == "data: [DONE]":
                connection.close()
                return out, True
            elif line.startswith("data: "):
                out.append((last, json.loads(line[6:])))
                if len(out) == most:
                    break
        answer.close()
        connection.close()
        return out, False

    @staticmethod
    def said(events):
        return "".join(e["choices"][0]["delta"].get("content", "")
                       for _, e in events if e["choices"])

    def test_a_chat_is_a_completion_of_what_the_template_writes(self):
        process, at = self.begin()
        status, shown = at.post({"messages": ASK}, "/apply-template")
        self.assertEqual((status, shown), (200, {"prompt": TEXT}))
        status, told = at.post({"model": "tiny", "messages": ASK}, "/tokenize")
        self.assertEqual(told["tokens"], list(TEXT.encode()))
        self.assertEqual(told["count"], len(TEXT))
        self.assertEqual(told["max_model_len"], 256)
        status, told = at.post({"prompt": "añ", "return_token_strs": True},
                               "/v1/tokenize")
        self.assertEqual(told["tokens"], list("añ".encode()))
        self.assertEqual(told["token_strs"], ["a", "bytes:\\xc3", "bytes:\\xb1"])
        status, told = at.post({"content": "añ", "with_pieces": True},
                               "/tokenize")
        self.assertEqual(told["tokens"], [{"id": 97, "piece": "a"},
                                          {"id": 195, "piece": [195]},
                                          {"id": 177, "piece": [177]}])
        self.assertEqual(at.post({"tokens": list("añ".encode())},
                                 "/detokenize")[1]["prompt"], "añ")
        body = {"model": "tiny", "prompt": TEXT, "max_tokens": 12,
                "temperature": 0}
        expected = at.post(body)[1]["choices"][0]["text"]
        status, answer = self.ask(at)
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["object"], "chat.completion")
        self.assertTrue(answer["id"].startswith("chatcmpl-"))
        choice = answer["choices"][0]
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertEqual(choice["message"]["content"], expected)
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(answer["usage"], {
            "prompt_tokens": len(TEXT), "completion_tokens": 12,
            "total_tokens": len(TEXT) + 12})
        # By parts, by another role's name, by another field.
        parts = [{**ASK[0], "role": "developer"}, {"role": "user", "content": [
            {"type": "text", "text": "The cod of file 3"}]}]
        same = self.ask(at, messages=parts, max_tokens=None,
                        max_completion_tokens=12)[1]
        self.assertEqual(same["choices"], answer["choices"])
        # Without a number the context is the end.
        whole = self.ask(at, max_tokens=None)[1]
        self.assertEqual(whole["usage"]["total_tokens"], 256)
        # What the client adds for the template.
        for more, text in (
                ({"chat_template_kwargs": {"thinking": True}}, TEXT + "hm "),
                ({"tools": TOOLS}, 'look:{"type": "object", "properties": {}}\n'
                 + TEXT),
                ({"add_generation_prompt": False}, TEXT[:-2]),
                ({"continue_final_message": True,
                  "messages": ASK + [{"role": "assistant", "content": "yes "}]},
                 TEXT + "yes")):
            body = {"model": "tiny", "messages": ASK, **more}
            self.assertEqual(at.post(body, "/apply-template")[1]["prompt"], text)
            self.assertEqual(self.ask(at, **more)[1]["usage"]["prompt_tokens"],
                             len(text))
        hidden = self.ask(at, tools=TOOLS, tool_choice="none")[1]
        self.assertEqual(hidden["usage"]["prompt_tokens"], len(TEXT))
        self.streams(at, expected)
        self.probabilities(at)
        self.choices_change_with_what_was_chosen(at)
        self.mistakes(at)
        process.wait_line(lambda line: "/v1/chat/completions" in line
                          and " + 12 tokens" in line and "200" in line)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def streams(self, at, expected):
        body = {"model": "tiny", "messages": ASK, "max_tokens": 12,
                "temperature": 0}
        events, done = self.events(at, body)
        self.assertTrue(done)
        self.assertEqual(self.said(events), expected)
        first, last = events[0][1], events[-1][1]
        self.assertEqual(first["object"], "chat.completion.chunk")
        self.assertEqual(first["choices"][0]["delta"],
                         {"role": "assistant", "content": ""})
        self.assertEqual(last["choices"][0]["finish_reason"], "length")
        self.assertTrue(all("role" not in e["choices"][0]["delta"]
                            for _, e in events[1:]))
        events, _ = self.events(at, {**body, "stream_options":
                                     {"include_usage": True}})
        self.assertEqual(events[-1][1]["choices"], [])
        self.assertEqual(events[-1][1]["usage"]["completion_tokens"], 12)
        self.assertTrue(all(e["usage"] is None for _, e in events[:-1]))
        # Sampled, cut off, and gone on with.
        body = {"model": "tiny", "messages": ASK, "max_tokens": 40,
                "temperature": 1.2, "frequency_penalty": 0.5, "seed": 5}
        key = {"Idempotency-Key": "one chat"}
        whole, done = self.events(at, body)  # computed apart: it has no key
        self.assertTrue(done)
        begin, done = self.events(at, body, key, most=4)
        self.assertFalse(done)
        rest, done = self.events(
            at, body, {**key, "Last-Event-ID": str(begin[-1][0])})
        self.assertTrue(done)
        self.assertEqual(self.said(begin) + self.said(rest), self.said(whole))
        self.assertNotIn("role", rest[0][1]["choices"][0]["delta"])
        # Several at once: each begins with its role.
        events, _ = self.events(at, {**body, "n": 3, "seed": 5})
        roles = [e["choices"][0]["index"] for _, e in events
                 if "role" in e["choices"][0]["delta"]]
        self.assertEqual(roles, [0, 1, 2])

    def probabilities(self, at):
        body = {"model": "tiny", "prompt": TEXT, "max_tokens": 12,
                "temperature": 0, "logprobs": 5}
        chosen = at.post(body)[1]["choices"][0]["logprobs"]
        answer = self.ask(at, logprobs=True, top_logprobs=7)[1]
        content = answer["choices"][0]["logprobs"]["content"]
        self.assertEqual([c["token"] for c in content], chosen["tokens"])
        self.assertEqual([c["logprob"] for c in content],
                         chosen["token_logprobs"])
        for c, top in zip(content, chosen["top_logprobs"]):
            self.assertEqual(len(c["top_logprobs"]), 7)
            self.assertEqual({t["token"]: t["logprob"]
                              for t in c["top_logprobs"][:5]}, top)
            if not c["token"].startswith("bytes:"):
                self.assertEqual(bytes(c["bytes"]).decode(), c["token"])
            else:
                self.assertEqual(f"bytes:\\x{c['bytes'][0]:02x}", c["token"])
        plain = self.ask(at, logprobs=True)[1]["choices"][0]["logprobs"]
        self.assertEqual([c["top_logprobs"] for c in plain["content"]],
                         [[]] * 12)

    def choices_change_with_what_was_chosen(self, at):
        """Biases above all logits: what is chosen is known."""
        def text(**more):
            return self.ask(at, max_tokens=6, **more)[1]["choices"][0][
                "message"]["content"]

        bias = {str(ord("A")): 100, str(ord("B")): 99}
        self.assertEqual(text(logit_bias=bias), "AAAAAA")
        self.assertEqual(text(logit_bias=bias, temperature=0.01, seed=1),
                         "AAAAAA")
        self.assertEqual(text(logit_bias=bias, presence_penalty=2), "ABAAAA")
        self.assertEqual(text(logit_bias=bias, frequency_penalty=2), "ABABAB")
        # The same of a completion; a token of the prompt does not count.
        body = {"model": "tiny", "prompt": "AAAA", "max_tokens": 6,
                "temperature": 0, "logit_bias": bias, "frequency_penalty": 2}
        self.assertEqual(at.post(body)[1]["choices"][0]["text"], "ABABAB")
        self.assertEqual(text(logit_bias=bias, stop_token_ids=[ord("A")]), "")
        self.assertEqual(text(logit_bias=bias, frequency_penalty=2, stop="BA"),
                         "A")

    def mistakes(self, at):
        def wrong(status, param, **more):
            told, answer = self.ask(at, **more)
            self.assertEqual((told, answer["error"]["param"]), (status, param),
                             answer)
            return answer["error"]["message"]

        wrong(404, "model", model="other")
        wrong(400, "messages", messages=[])
        wrong(400, "messages", messages="hello")
        wrong(400, "messages[0]", messages=["hello"])
        wrong(400, "messages[0].role", messages=[{"content": "x"}])
        wrong(400, "messages[1].content", messages=[ASK[0], {
            "role": "user", "content": 7}])
        wrong(400, "messages[0].content[0].type", messages=[{
            "role": "user", "content": [{"type": "image_url"}]}])
        wrong(400, "tools[0]", tools=[{"type": "else"}])
        wrong(400, "tool_choice", tools=TOOLS, tool_choice="required")
        wrong(400, "tool_choice", tool_choice="required")
        wrong(400, "tool_choice", tools=TOOLS, tool_choice={
            "type": "function", "function": {"name": "listen"}})
        wrong(400, "min_tokens", min_tokens=13)
        wrong(400, "bad_words", bad_words=["a" * 33])
        wrong(400, "allowed_token_ids", allowed_token_ids=[256])
        wrong(400, "response_format.type", response_format={"type": "xml"})
        wrong(400, "chat_template", chat_template="x")
        wrong(400, "top_logprobs", top_logprobs=2)
        wrong(400, "top_logprobs", logprobs=True, top_logprobs=21)
        wrong(400, "logprobs", logprobs=3)
        wrong(400, "frequency_penalty", frequency_penalty=3)
        wrong(400, "logit_bias", logit_bias={"x": 1})
        wrong(400, "logit_bias", logit_bias={"256": 1})
        wrong(400, "logit_bias", logit_bias={"1": 101})
        wrong(400, "max_tokens", max_tokens=0)
        wrong(400, "max_tokens", max_tokens=250)
        wrong(400, "messages", messages=[{"role": "user",
                                          "content": "x" * 300}])
        self.assertIn("nobody speaks", wrong(
            400, "messages", messages=[{"role": "nobody", "content": ""}]))
        self.assertEqual(self.ask(at, no_such_field=1)[0], 200)
        self.assertEqual(at.post({"tokens": [256]}, "/detokenize")[0], 400)
        self.assertEqual(at.post({}, "/tokenize")[0], 400)

    def test_defaults_are_the_models_own(self):
        (self.folder / "m" / "generation_config.json").write_text(json.dumps(
            {"do_sample": False, "max_new_tokens": 5, "eos_token_id": [65]}))
        process, at = self.begin()
        answers = [at.post({"model": "tiny", "messages": ASK}, CHAT)[1]
                   for _ in range(2)]
        self.assertEqual(answers[0]["usage"]["completion_tokens"], 5)
        self.assertEqual(answers[0]["choices"], answers[1]["choices"])
        for more, text, why in (({}, "", "stop"),
                                ({"ignore_eos": True}, "AAAAA", "length")):
            choice = at.post({"model": "tiny", "messages": ASK,
                              "logit_bias": {"65": 100}, **more},
                             CHAT)[1]["choices"][0]
            self.assertEqual((choice["message"]["content"],
                              choice["finish_reason"]), (text, why))
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_templates_of_other_forms(self):
        # By name, one of them for tools; and in a file, which wins.
        self.say("m", {"chat_template": [
            {"name": "default", "template": "plain {{ messages[0].content }}"},
            {"name": "tool_use", "template": "tools {{ tools | length }}"}]})
        process, at = self.begin()
        for more, text in (({}, "plain short"), ({"tools": TOOLS}, "tools 1")):
            self.assertEqual(at.post({"messages": ASK, **more},
                                     "/apply-template")[1]["prompt"], text)
        self.assertEqual(process.end(signal.SIGINT), 130)
        # By its mention, calls are written as Llama 3 does.
        (self.folder / "m" / "chat_template.jinja").write_text(
            'file {{ n }}{# "parameters" #}')
        process, at = self.begin()
        # JSON that was asked for was taken for a call, and was lost.
        form = {"type": "object", "required": ["name"], "properties": {
            "name": {"enum": ["cod", "herring"]}}}
        status, answer = at.post({
            "model": "tiny", "messages": ASK, "tools": TOOLS, "seed": 1,
            "max_tokens": 40, "chat_template_kwargs": {"n": 3},
            "response_format": {"type": "json_schema", "json_schema": {
                "name": "fish", "schema": form}}}, CHAT)
        self.assertEqual(status, 200, answer)
        choice = answer["choices"][0]
        self.assertEqual(choice["finish_reason"], "stop", choice)
        self.assertNotIn("tool_calls", choice["message"])
        self.assertIn(json.loads(choice["message"]["content"])["name"],
                      ["cod", "herring"])
        self.assertEqual(at.post(
            {"messages": ASK, "chat_template_kwargs": {"n": 3}},
            "/apply-template")[1]["prompt"], "file 3")
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_without_a_template_there_is_no_chat(self):
        for template, said in ((None, "no chat template"),
                               ("{% if %}", "chat template is broken: "
                                "tokenizer_config.json: chat_template: "
                                "line 1")):
            self.say("m", {"chat_template": template})
            process, at = self.begin()
            status, answer = self.ask(at)
            self.assertEqual(status, 400)
            self.assertEqual(answer["error"]["code"], "no_chat_template")
            self.assertIn(said, answer["error"]["message"])
            self.assertEqual(at.post({"model": "tiny", "prompt": "x",
                                      "max_tokens": 2})[0], 200)
            self.assertEqual(process.end(signal.SIGINT), 130)

    def test_the_openai_package_reads_it(self):
        openai = self.package("openai")
        process, at = self.begin()
        client = self.openai_client(at)
        body = {"model": "tiny", "messages": ASK, "max_tokens": 8,
                "temperature": 0}
        whole = client.chat.completions.create(**body)
        text = whole.choices[0].message.content
        self.assertEqual(len(whole.choices), 1)
        self.assertEqual(whole.usage.completion_tokens, 8)
        streamed, usage = "", None
        for chunk in client.chat.completions.create(
                **body, stream=True, stream_options={"include_usage": True},
                logprobs=True, top_logprobs=3, extra_body={"top_k": 5}):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                streamed += choice.delta.content or ""
        self.assertEqual(streamed, text)
        self.assertEqual(usage.completion_tokens, 8)
        with client.chat.completions.stream(**body) as stream:
            self.assertEqual("".join(e.delta for e in stream
                                     if e.type == "content.delta"), text)
        several = client.chat.completions.create(
            **{**body, "temperature": 1.5}, n=3, seed=7, stop=["zz"], user="me",
            frequency_penalty=0.1, presence_penalty=0.1, logit_bias={"65": -1})
        self.assertEqual(len(several.choices), 3)
        scored = client.chat.completions.create(**body, logprobs=True,
                                                top_logprobs=2)
        self.assertEqual(len(scored.choices[0].logprobs.content), 8)
        with self.assertRaises(openai.BadRequestError) as raised:
            client.chat.completions.create(**{**body, "messages": []})
        self.assertEqual(raised.exception.param, "messages")
        with self.assertRaises(openai.NotFoundError):
            client.chat.completions.create(**{**body, "model": "other"})
        self.assertEqual(process.end(signal.SIGINT), 130)


if __name__ == "__main__":
    main()
