# tests/apps/serve_apis_test.py -- APIs beside chats and completions, as they are
# sent, and as their own packages read them. One served model for all of it.
import json
import signal

from serve_chat_test import ASK, TEMPLATE, TEXT
from serving import Serving
from support import DEADLINE_S, main

RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
INPUT = [{"role": "developer", "content": "short"},
         {"role": "user", "content": [
             {"type": "input_text", "text": "The cod of file 3"}]}]
TOOLS = [{"type": "function", "name": "look", "strict": True,
          "parameters": {"type": "object", "properties": {}}}]


SCHEMA = {"type": "object", "properties": {}}
TALK = [{"role": "user", "content": [
    {"type": "text", "text": "The cod of file 3"}]}]


class Apis(Serving):
    def setUp(self):
        super().setUp()
        path = self.folder / "m" / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text())
                                   | {"chat_template": TEMPLATE}))

    def test_apis(self):
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        self.at = at
        self.expected = at.post({"model": "tiny", "messages": ASK,
                                 "max_tokens": 12, "temperature": 0},
                                "/v1/chat/completions")[1][
                                    "choices"][0]["message"]["content"]
        for check in (self.responses, self.responses_conversations,
                      self.responses_streams, self.responses_mistakes,
                      self.responses_package, self.messages,
                      self.messages_conversations, self.messages_streams,
                      self.messages_mistakes, self.messages_package,
                      self.their_streams_cannot_be_continued,
                      self.fields_of_other_servers):
            with self.subTest(check.__name__):
                check()
        self.assertEqual(process.end(signal.SIGINT), 130)

    def ask(self, **more):
        return self.at.post({"model": "tiny", "input": INPUT, "temperature": 0,
                             "max_output_tokens": 12, **more}, RESPONSES)

    def responses(self):
        status, answer = self.ask(
            metadata={"a": "b"}, tools=TOOLS, store=True, no_such_field=1,
            tool_choice="none", include=["message.output_text.logprobs"])
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["object"], "response")
        self.assertTrue(answer["id"].startswith("resp_"))
        self.assertEqual(answer["status"], "incomplete")
        self.assertEqual(answer["incomplete_details"],
                         {"reason": "max_output_tokens"})
        message, = answer["output"]
        self.assertEqual((message["type"], message["role"], message["status"]),
                         ("message", "assistant", "incomplete"))
        part, = message["content"]
        self.assertEqual((part["type"], part["text"]),
                         ("output_text", self.expected))
        self.assertEqual(len(part["logprobs"]), 12)
        self.assertEqual(answer["usage"], {
            "input_tokens": len(TEXT), "output_tokens": 12,
            "total_tokens": len(TEXT) + 12,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0}})
        self.assertEqual((answer["metadata"], answer["tools"],
                          answer["tool_choice"], answer["store"]),
                         ({"a": "b"}, TOOLS, "none", False))
        # The model's own end.
        bias = {"logit_bias": {"65": 100}, "stop_token_ids": [65]}
        ended = self.ask(**bias)[1]
        self.assertEqual((ended["status"], ended["incomplete_details"]),
                         ("completed", None))
        self.assertEqual(ended["output"][0]["content"][0]["text"], "")

    def responses_conversations(self):
        """What the template is shown of items: counted in tokens."""
        def tokens(expected, **more):
            answer = self.ask(**more)[1]
            self.assertEqual(answer["usage"]["input_tokens"], len(expected),
                             answer)
        tokens("u>hello\na>", input="hello")
        tokens("s>be brief\nu>hello\na>", input="hello",
               instructions="be brief")
        tokens("u>hello\na>hm ", input="hello",
               chat_template_kwargs={"thinking": True})
        call = {"type": "function_call", "call_id": "c1", "name": "look",
                "arguments": "{}"}
        tokens("u>hello\na>so\nt>found\na>", input=[
            {"role": "user", "content": "hello"},
            {"type": "reasoning", "id": "r", "summary": [], "content": [
                {"type": "reasoning_text", "text": "hm"}]},
            {"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": "so", "annotations": []}]},
            call,
            {"type": "function_call_output", "call_id": "c1",
             "output": "found"}])

    def named_events(self, path, body):
        """Events of a stream, whose names are their types."""
        connection = self.at.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        events = []
        for block in answer.read().decode().split("\n\n")[:-1]:
            name, data = block.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            self.assertEqual(name, "event: " + events[-1]["type"])
        connection.close()
        return events

    def responses_streams(self):
        events = self.named_events(RESPONSES, {
            "model": "tiny", "input": INPUT, "temperature": 0,
            "max_output_tokens": 12})
        self.assertEqual([e["sequence_number"] for e in events],
                         list(range(len(events))))
        names = [e["type"].removeprefix("response.") for e in events]
        self.assertEqual([n for n in names if n != "output_text.delta"], [
            "created", "in_progress", "output_item.added",
            "content_part.added", "output_text.done", "content_part.done",
            "output_item.done", "incomplete"])
        self.assertEqual("".join(e["delta"] for e in events if "delta" in e),
                         self.expected)
        self.assertEqual(events[0]["response"]["output"], [])
        self.assertEqual(events[-1]["response"]["usage"]["output_tokens"], 12)
        self.assertEqual(events[-1]["response"]["output"],
                         [events[-2]["item"]])

    def responses_mistakes(self):
        for param, more in (
                ("previous_response_id", {"previous_response_id": "resp_1"}),
                ("conversation", {"conversation": "c"}),
                ("background", {"background": True}),
                ("truncation", {"truncation": "auto"}),
                ("input", {"input": None}), ("input", {"input": []}),
                ("input", {"input": 3}), ("input[0]", {"input": ["x"]}),
                ("input[0].content", {"input": [{"role": "user"}]}),
                ("input[0].content[0].type", {"input": [
                    {"role": "user", "content": [{"type": "input_image"}]}]}),
                ("input[0].type", {"input": [{"type": "item_reference"}]}),
                ("input", {"input": "x" * 300}),
                ("input", {"input": [{"role": "nobody", "content": ""}]}),
                ("instructions", {"instructions": 3}),
                ("max_output_tokens", {"max_output_tokens": "x"}),
                ("max_output_tokens", {"max_output_tokens": 250}),
                ("tools[0].type", {"tools": [{"type": "web_search"}]}),
                ("tools[0].name", {"tools": [{"type": "function"}]}),
                ("tool_choice", {"tools": TOOLS, "tool_choice": {"type": "x"}}),
                ("text.format", {"text": {"format": 1}}),
                ("reasoning.effort", {"reasoning": {"effort": 1}}),
                ("include", {"include": [1]}),
                ("metadata", {"metadata": {"a": 1}}),
                ("temperature", {"temperature": 3}),
                ("stream", {"stream": 1})):
            status, answer = self.ask(**more)
            self.assertEqual((status, answer["error"].get("param")),
                             (400, param), answer)
        self.assertEqual(self.ask(model="other")[0], 404)

    def responses_package(self):
        openai, client = self.package("openai"), self.openai_client(self.at)
        body = {"model": "tiny", "input": INPUT, "temperature": 0,
                "max_output_tokens": 12}
        whole = client.responses.create(**body, tools=TOOLS,
                                        tool_choice="none")
        self.assertEqual(whole.output_text, self.expected)
        self.assertEqual(whole.usage.output_tokens, 12)
        with client.responses.stream(**body) as stream:
            text = "".join(e.delta for e in stream
                           if e.type == "response.output_text.delta")
        self.assertEqual(text, self.expected)
        last = list(client.responses.create(**body, stream=True))[-1]
        self.assertEqual(last.response.output_text, self.expected)
        # A whole conversation, by what was answered.
        again = client.responses.create(**{**body, "max_output_tokens": 4,
            "input": INPUT + whole.output + [
                {"role": "user", "content": "And?"}]})
        self.assertEqual(again.usage.input_tokens,
                         len((TEXT + self.expected + "\nu>And?\na>").encode()))
        with self.assertRaises(openai.BadRequestError) as raised:
            client.responses.create(**body, previous_response_id="resp_1")
        self.assertEqual(raised.exception.param, "previous_response_id")

    def say(self, path=MESSAGES, **more):
        return self.at.post({"model": "tiny", "messages": TALK,
                             "system": "short", "temperature": 0,
                             "max_tokens": 12, **more}, path)

    def messages(self):
        status, answer = self.say(tools=[{"name": "f", "input_schema": SCHEMA}],
                                  tool_choice={"type": "none"},
                                  no_such_field=1)
        self.assertEqual(status, 200, answer)
        self.assertTrue(answer.pop("id").startswith("msg_"))
        self.assertEqual(answer, {
            "type": "message", "role": "assistant", "model": "tiny",
            "content": [{"type": "text", "text": self.expected}],
            "stop_reason": "max_tokens", "stop_sequence": None,
            "usage": {"input_tokens": len(TEXT), "output_tokens": 12,
                      "cache_creation_input_tokens": 0,
                      "cache_read_input_tokens": 0}})
        bias = {"logit_bias": {"65": 100, "66": 99}, "frequency_penalty": 2}
        answer = self.say(**bias, stop_sequences=["x", "BA"])[1]
        self.assertEqual(answer["content"], [{"type": "text", "text": "A"}])
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]),
                         ("stop_sequence", "BA"))
        answer = self.say(**bias, stop_token_ids=[66])[1]
        self.assertEqual((answer["stop_reason"], answer["stop_sequence"]),
                         ("end_turn", None))

    def messages_conversations(self):
        """What the template is shown, counted in tokens."""
        def tokens(expected, **more):
            body = {"max_tokens": None, "system": None, **more}
            answer = self.say(MESSAGES + "/count_tokens", **body)
            self.assertEqual(answer, (200, {"input_tokens": len(expected)}))
            body["max_tokens"] = 1
            self.assertEqual(self.say(**body)[1]["usage"]["input_tokens"],
                             len(expected))
        tokens("u>The cod of file 3\na>")
        tokens(TEXT, system=[{"type": "text", "text": "short"}])
        tokens('f:{"type": "object", "properties": {}}\n' + TEXT,
               tools=[{"name": "f", "input_schema": SCHEMA}], system="short")
        tokens(TEXT + "yes", system="short",
               messages=TALK + [{"role": "assistant", "content": "yes"}])
        tokens("u>hello\na>so\nt>found\nu>well?\na>", messages=[
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1",
                 "content": "found"}, {"type": "text", "text": "well?"}]}])

    def messages_streams(self):
        events = self.named_events(MESSAGES, {
            "model": "tiny", "messages": TALK, "system": "short",
            "max_tokens": 12, "temperature": 0})
        self.assertEqual([e["type"] for e in events
                          if e["type"] != "content_block_delta"], [
            "message_start", "content_block_start", "content_block_stop",
            "message_delta", "message_stop"])
        self.assertEqual("".join(e["delta"]["text"] for e in events
                                 if e["type"] == "content_block_delta"),
                         self.expected)
        self.assertEqual(events[0]["message"]["usage"]["input_tokens"],
                         len(TEXT))
        self.assertEqual(events[-2]["delta"]["stop_reason"], "max_tokens")
        self.assertEqual(events[-2]["usage"]["output_tokens"], 12)

    def messages_mistakes(self):
        for param, more in (
                ("messages", {"messages": []}),
                ("messages[0].content[0].type", {"messages": [
                    {"role": "user", "content": [{"type": "image"}]}]}),
                ("messages", {"messages": [
                    {"role": "user", "content": "x" * 300}]}),
                ("max_tokens", {"max_tokens": None}),
                ("max_tokens", {"max_tokens": 250}),
                ("stop_sequences", {"stop_sequences": [1]}),
                ("tools[0].type", {"tools": [{"type": "bash_20250124"}]}),
                ("temperature", {"temperature": "hot"})):
            status, answer = self.say(**more)
            self.assertEqual((status, answer["type"]), (400, "error"))
            self.assertEqual((answer["error"]["type"],
                              answer["error"].get("param")),
                             ("invalid_request_error", param), answer)
        status, answer = self.say(model="other")
        self.assertEqual((status, answer["error"]["type"]),
                         (404, "not_found_error"))
        # Also where no handler has been asked.
        connection = self.at.connect()
        connection.request("GET", MESSAGES)
        answer = connection.getresponse()
        self.assertEqual((answer.status, json.load(answer)["type"]),
                         (405, "error"))
        connection.close()

    def messages_package(self):
        anthropic = self.package("anthropic")
        client = anthropic.Anthropic(api_key="none", timeout=DEADLINE_S,
                                     base_url=f"http://{self.at.address}")
        self.addCleanup(client.close)
        body = {"model": "tiny", "messages": TALK, "system": "short",
                "max_tokens": 12, "extra_body": {"temperature": 0}}
        whole = client.messages.create(**body)
        self.assertEqual(whole.content[0].text, self.expected)
        self.assertEqual(whole.usage.output_tokens, 12)
        with client.messages.stream(**body) as stream:
            self.assertEqual("".join(stream.text_stream), self.expected)
            self.assertEqual(stream.get_final_message().content[0].text,
                             self.expected)
        counted = client.messages.count_tokens(
            model="tiny", messages=TALK, system="short")
        self.assertEqual(counted.input_tokens, len(TEXT))
        with self.assertRaises(anthropic.BadRequestError) as raised:
            client.messages.create(**{**body, "messages": []})
        self.assertIn("messages is an empty list", str(raised.exception))
        with self.assertRaises(anthropic.NotFoundError):
            client.messages.create(**{**body, "model": "other"})

    def their_streams_cannot_be_continued(self):
        for path, more in ((RESPONSES, {"input": "hello"}),
                           (MESSAGES, {"messages": TALK, "max_tokens": 3})):
            connection = self.at.connect()
            connection.request("POST", path, json.dumps(
                {"model": "tiny", "stream": True, **more}),
                {"Content-Type": "application/json", "Last-Event-ID": "1",
                 "Idempotency-Key": "one"})
            answer = connection.getresponse()
            self.assertEqual((answer.status,
                              json.load(answer)["error"]["param"]),
                             (400, "Last-Event-ID"))
            connection.close()

    def fields_of_other_servers(self):
        """Of completions and chats, beside OpenAI's."""
        def complete(**more):
            status, answer = self.at.post({
                "model": "tiny", "prompt": "The cod", "max_tokens": 6, **more})
            self.assertEqual(status, 200, answer)
            return answer
        # The same prompt by its end, with what is echoed of it.
        whole = complete(prompt="cod", temperature=0, echo=True)
        cut = complete(truncate_prompt_tokens=3, temperature=0, echo=True)
        self.assertEqual(cut["choices"], whole["choices"])
        self.assertEqual(cut["usage"]["prompt_tokens"], 3)
        fits = complete(prompt="x" * 400, truncate_prompt_tokens=-1)
        self.assertEqual(fits["usage"]["prompt_tokens"], 250)
        fits = complete(prompt="x" * 400, truncate_prompt_tokens=-1,
                        max_tokens=0, echo=True)
        self.assertEqual(fits["usage"]["prompt_tokens"], 256)
        fits = self.at.post({"model": "tiny", "max_tokens": 6, "messages": [
            {"role": "user", "content": "x" * 400}],
            "truncate_prompt_tokens": 99}, "/v1/chat/completions")[1]
        self.assertEqual(fits["usage"]["prompt_tokens"], 99)
        # It took the whole context, and left the answer no room.
        status, fits = self.at.post({"model": "tiny", "messages": [
            {"role": "user", "content": "x" * 400}],
            "truncate_prompt_tokens": -1}, "/v1/chat/completions")
        self.assertEqual((status, fits["usage"]["prompt_tokens"]), (200, 192))
        # Of several answers that of the most probable tokens: one by one they
        # are those of n.
        body = {"temperature": 2, "seed": 3, "logprobs": 0}
        all_of = complete(**body, n=4)["choices"]
        best = complete(**body, n=2, best_of=4)
        self.assertEqual(best["usage"]["completion_tokens"], 24)
        texts = sorted(all_of, key=lambda c: -sum(
            c["logprobs"]["token_logprobs"]))
        self.assertEqual([c["text"] for c in best["choices"]],
                         [c["text"] for c in texts[:2]])
        bias = {"logit_bias": {"65": 100, "66": 99}, "frequency_penalty": 2,
                "temperature": 0, "stop": "BA"}
        for told, text in ((False, "A"), (True, "ABA")):
            self.assertEqual(complete(**bias, include_stop_str_in_output=told)[
                "choices"][0]["text"], text)


if __name__ == "__main__":
    main()
