# tests/runtime/http/openai_client_test.py -- answers as the openai package, the
# client that most programs use, reads them.
#
#   openai_client_test.py OPENAI_SERVER
#
# Needs the package (pip install openai); skipped without it.
import hashlib
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

KEY = "sk-shoal-" + "5" * 64
SERVER = None


@unittest.skipUnless(importlib.util.find_spec("openai"),
                     "openai is not installed")
class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="shoal-test-")
        keys = pathlib.Path(cls.folder.name) / "keys"
        keys.write_text(f"me {hashlib.sha256(KEY.encode()).hexdigest()}\n")
        cls.server = subprocess.Popen([SERVER, keys], text=True,
                                      stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
        cls.url = f"http://{cls.server.stdout.readline().strip()}/v1"

    @classmethod
    def tearDownClass(cls):
        cls.server.communicate()
        assert cls.server.returncode == 0
        cls.folder.cleanup()

    def client(self, key=KEY, retries=0):
        import openai
        client = openai.OpenAI(api_key=key, base_url=self.url,
                               max_retries=retries)
        self.addCleanup(client.close)
        return client

    def complete(self, prompt, **options):
        return self.client().completions.create(model="echo/one",
                                                prompt=prompt, **options)

    def fails(self, error, **options):
        import openai
        options = {"model": "echo/one", "prompt": "x"} | options
        with self.assertRaises(getattr(openai, error)) as raised:
            self.client().completions.create(**options)
        return raised.exception

    def test_a_completion(self):
        done = self.complete("hello", max_tokens=3, temperature=0.5, top_p=0.9,
                             seed=-1, stop=["x"], user="me",
                             extra_body={"top_k": 5, "min_p": 0.1,
                                         "repetition_penalty": 1.1})
        self.assertEqual(done.id, "cmpl-1")
        self.assertEqual(done.object, "text_completion")
        self.assertEqual(done.model, "echo/one")
        self.assertEqual(done.created, 1700000000)
        choice, = done.choices
        self.assertEqual(choice.text, "hel")
        self.assertEqual(choice.finish_reason, "length")
        self.assertIsNone(choice.logprobs)
        self.assertEqual(done.usage.total_tokens, 7)
        self.assertEqual(done.usage.prompt_tokens_details.cached_tokens, 2)

    def test_prompts_in_all_forms(self):
        for prompt, texts in (("ab", ["ab"]), (["a", "b"], ["a", "b"]),
                              ([97, 98], ["ab"]), ([[97], [98]], ["a", "b"])):
            with self.subTest(prompt=prompt):
                done = self.complete(prompt)
                self.assertEqual([c.text for c in done.choices], texts)
        done = self.complete(["a", "b"], n=2, best_of=2)
        self.assertEqual([(c.index, c.text) for c in done.choices],
                         [(0, "a"), (1, "a"), (2, "b"), (3, "b")])

    def test_logprobs(self):
        logprobs = self.complete("ab", logprobs=2, echo=True).choices[0].logprobs
        self.assertEqual(logprobs.tokens, ["a", "b"])
        self.assertEqual(logprobs.token_logprobs, [None, -0.5])
        self.assertEqual(logprobs.top_logprobs[1], {"b": -0.5, "other": -1.5})
        self.assertEqual(logprobs.text_offset, [0, 1])

    def test_a_stream(self):
        events = list(self.complete("hello", stream=True))
        self.assertEqual([e.choices[0].text for e in events], list("hello"))
        self.assertEqual(events[-1].choices[0].finish_reason, "stop")
        self.assertIsNone(events[0].choices[0].finish_reason)
        self.assertIsNone(events[0].usage)

    def test_a_stream_with_usage(self):
        *events, last = self.complete("abc", stream=True,
                                      stream_options={"include_usage": True})
        self.assertTrue(all(e.usage is None for e in events))
        self.assertEqual(last.choices, [])
        self.assertEqual(last.usage.completion_tokens, 3)

    def test_a_stream_that_is_cut_off_is_not_complete(self):
        with self.assertRaises(Exception) as raised:
            list(self.complete("cut", stream=True))
        cause = raised.exception.__cause__ or raised.exception
        self.assertIn("incomplete chunked read", str(cause))

    def test_an_error_within_a_stream(self):
        import openai
        with self.assertRaisesRegex(openai.APIError, "a stage was lost"):
            list(self.complete("error", stream=True))

    def test_models(self):
        model, = self.client().models.list()
        self.assertEqual((model.id, model.owned_by), ("echo/one", "shoal"))
        self.assertEqual(self.client().models.retrieve("echo/one").id,
                         "echo/one")

    def test_errors_are_the_clients_own(self):
        import openai
        error = self.fails("BadRequestError", temperature=3)
        self.assertEqual((error.status_code, error.param, error.code),
                         (400, "temperature", "invalid_value"))
        self.assertIn("temperature is 3", error.message)
        self.assertEqual(error.type, "invalid_request_error")
        error = self.fails("NotFoundError", model="other")
        self.assertEqual((error.param, error.code),
                         ("model", "model_not_found"))
        with self.assertRaises(openai.NotFoundError):
            self.client().models.retrieve("other")
        with self.assertRaises(openai.NotFoundError):
            self.client().embeddings.create(model="echo/one", input="x")
        with self.assertRaises(openai.AuthenticationError) as raised:
            self.client(key="sk-other").models.list()
        self.assertEqual(raised.exception.code, "invalid_api_key")

    def test_a_busy_server_is_asked_again(self):
        done = self.client(retries=2).completions.create(model="echo/one",
                                                         prompt="busy")
        self.assertEqual(done.choices[0].text, "busy")

    def test_connections_are_kept(self):
        client = self.client()
        for _ in range(20):
            client.models.list()
        pool = client._client._transport._pool
        self.assertEqual(len(pool.connections), 1)


if __name__ == "__main__":
    SERVER = sys.argv.pop(1)
    unittest.main()
