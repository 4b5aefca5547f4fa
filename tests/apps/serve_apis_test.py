# tests/apps/serve_apis_test.py -- APIs beside chats and completions, as they are
# sent, and as their own packages read them. One served model for all of it.
import importlib.util
import json
import signal

from serve_chat_test import ASK, TEMPLATE, TEXT
from serving import Serving
from support import DEADLINE_S, main

PATH = "/v1/responses"
INPUT = [{"role": "developer", "content": "short"},
         {"role": "user", "content": [
             {"type": "input_text", "text": "The cod of file 3"}]}]
TOOLS = [{"type": "function", "name": "look", "strict": True,
          "parameters": {"type": "object", "properties": {}}}]


class Responses(Serving):
    def setUp(self):
        super().setUp()
        path = self.folder / "m" / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text())
                                   | {"chat_template": TEMPLATE}))

    def test_responses(self):
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        self.at = at
        self.expected = at.post({"model": "tiny", "messages": ASK,
                                 "max_tokens": 12, "temperature": 0},
                                "/v1/chat/completions")[1][
                                    "choices"][0]["message"]["content"]
        for check in (self.whole, self.conversations, self.streams,
                      self.mistakes, self.package):
            with self.subTest(check.__name__):
                check()
        self.assertEqual(process.end(signal.SIGINT), 130)

    def ask(self, **more):
        return self.at.post({"model": "tiny", "input": INPUT, "temperature": 0,
                             "max_output_tokens": 12, **more}, PATH)

    def whole(self):
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

    def conversations(self):
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

    def streams(self):
        connection = self.at.connect()
        connection.request("POST", PATH, json.dumps(
            {"model": "tiny", "input": INPUT, "temperature": 0,
             "max_output_tokens": 12, "stream": True}),
            {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        events = []
        for block in answer.read().decode().split("\n\n")[:-1]:
            name, data = block.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            self.assertEqual(name, "event: " + events[-1]["type"])
        connection.close()
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

    def mistakes(self):
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

    def package(self):
        if not importlib.util.find_spec("openai"):
            self.skipTest("openai is not installed")
        import openai
        client = openai.OpenAI(api_key="none", timeout=DEADLINE_S,
                               base_url=f"http://{self.at.address}/v1")
        self.addCleanup(client.close)
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


if __name__ == "__main__":
    main()
