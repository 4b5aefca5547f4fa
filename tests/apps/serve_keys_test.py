# tests/apps/serve_keys_test.py -- limits of API keys, as their clients meet them:
# headers, refusals and metrics, by plain HTTP and by OpenAI's package.
import datetime
import json
import math
import signal

from serving import Serving
from support import main


class Keys(Serving):
    def begin(self, *lines):
        """A node with a model and these keys: name and options of `apikey`."""
        self.keys = {name: self.succeed("apikey", name, "--file", "keys",
                                        *options).strip()
                     for name, *options in lines}
        process, self.at = self.serve("--as", "tiny", "--api-keys",
                                      "keys", "--http", "127.0.0.1:0")
        return process

    def ask(self, name, method="POST", path="/v1/completions", body=None):
        """Status, headers and body of an answer."""
        connection = self.at.connect()
        connection.request(
            method, path, json.dumps(body) if body else None,
            {"Authorization": f"Bearer {self.keys[name]}",
             "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertNotIn(self.keys[name], text)
        return answer.status, {k.lower(): v for k, v in answer.getheaders()
                               }, text

    def say(self, name, prompt="The cod", tokens=5, **more):
        return self.ask(name, body={"model": "tiny", "prompt": prompt,
                                    "max_tokens": tokens, **more})

    # A new user was told of http://0.0.0.0:8000/v1.
    def test_the_address_that_is_named_is_one_that_clients_can_use(self):
        self.succeed("apikey", "ann", "--file", "keys")
        process, at = self.serve("--api-keys", "keys", "--http", "0.0.0.0:0")
        self.assertFalse(at.address.startswith("0.0.0.0"), at.address)
        self.assertEqual(at.get("/health")[0], 200)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_limits(self):
        process = self.begin(
            ["ann", "--requests-per-minute", 3], ["bob"],
            ["eve", "--tokens-per-minute", 300],
            ["sam", "--requests-per-minute", 1])
        for check in (self.requests, self.tokens, self.package_of_openai,
                      self.metrics):
            with self.subTest(check.__name__):
                check()
        self.assertEqual(process.end(signal.SIGINT), 130)
        # The names of keys may be told, keys never.
        for line in process.said():
            for key in self.keys.values():
                self.assertNotIn(key, line)

    def requests(self):
        for left in (2, 1, 0):
            status, headers, text = self.say("ann")
            self.assertEqual(status, 200, text)
            self.assertEqual(
                (headers["x-ratelimit-limit-requests"],
                 headers["x-ratelimit-remaining-requests"]),
                ("3", str(left)))
            self.assertNotIn("x-ratelimit-limit-tokens", headers)
        status, headers, text = self.say("ann")
        self.assertEqual((status, json.loads(text)["error"]["type"]),
                         (429, "rate_limit_error"))
        self.assertIn(int(headers["retry-after"]), range(1, 21))
        status, headers, text = self.ask("ann", path="/v1/messages", body={
            "model": "tiny", "max_tokens": 1,
            "messages": [{"role": "user", "content": "a"}]})
        answer = json.loads(text)
        self.assertEqual((status, answer["type"], answer["error"]["type"]),
                         (429, "error", "rate_limit_error"))
        begin = "anthropic-ratelimit-requests-"
        self.assertEqual((headers[begin + "limit"],
                          headers[begin + "remaining"]), ("3", "0"))
        reset = datetime.datetime.strptime(
            headers[begin + "reset"], "%Y-%m-%dT%H:%M:%S%z")
        after = reset - datetime.datetime.now(datetime.timezone.utc)
        self.assertIn(math.ceil(after.total_seconds()), range(1, 62))
        self.assertNotIn("anthropic-ratelimit-tokens-limit", headers)
        # Looking is not counted, and others have limits of their own, or none.
        status, headers, _ = self.ask("ann", "GET", "/v1/models")
        self.assertEqual((status, headers["x-ratelimit-remaining-requests"]),
                         (200, "0"))
        status, headers, _ = self.say("bob")
        self.assertEqual(status, 200)
        self.assertFalse([h for h in headers if h.startswith("x-ratelimit")])

    def tokens(self):
        status, headers, _ = self.say("eve", "a" * 40)
        self.assertEqual((status, headers["x-ratelimit-limit-tokens"]),
                         (200, "300"))
        # 40 + 5 are gone; a few have come back since.
        self.assertIn(int(headers["x-ratelimit-remaining-tokens"]),
                      range(255, 300))
        # An answer is never cut off: 150 are there, 200 are used.
        status, _, text = self.say("eve", "b" * 40, 200, ignore_eos=True)
        self.assertEqual(json.loads(text)["usage"]["total_tokens"], 240, text)
        for path, body in (
                ("/v1/completions", {"prompt": "c" * 240, "max_tokens": 1}),
                ("/v1/embeddings", {"input": ["c" * 200, "d" * 40]})):
            status, headers, text = self.ask("eve", path=path,
                                             body={"model": "tiny", **body})
            self.assertEqual((status, json.loads(text)["error"]["code"]),
                             (429, "rate_limit_exceeded"), text)
            self.assertIn(int(headers["retry-after"]), range(1, 61))
            self.assertNotIn("x-should-retry", headers)
        # Another try of that one would be in vain.
        status, headers, _ = self.ask("eve", path="/v1/embeddings", body={
            "model": "tiny", "input": ["e" * 200, "e" * 200]})
        self.assertEqual((status, headers.get("x-should-retry"),
                          headers.get("retry-after")), (429, "false", None))

    def package_of_openai(self):
        openai = self.package("openai")
        client = self.openai_client(self.at, self.keys["sam"], max_retries=0)
        raw = client.completions.with_raw_response.create(
            model="tiny", prompt="a", max_tokens=1)
        self.assertEqual(raw.headers["x-ratelimit-remaining-requests"], "0")
        with self.assertRaises(openai.RateLimitError) as raised:
            client.completions.create(model="tiny", prompt="a", max_tokens=1)
        self.assertEqual(raised.exception.code, "rate_limit_exceeded")
        self.assertIn(int(raised.exception.response.headers["retry-after"]),
                      range(1, 61))

    def metrics(self):
        text = self.ask("bob", "GET", "/metrics")[2]
        for name, limit, least in (("ann", "requests", 2),
                                   ("eve", "tokens", 3)):
            begin = (f'shoal_key_refused_requests_total{{key_name="{name}",'
                     f'limit="{limit}"}} ')
            found = [line for line in text.split("\n")
                     if line.startswith(begin)]
            self.assertEqual(found, [f"{begin}{least}"])
        self.assertNotIn('key_name="bob"', text)
        for line in (self.folder / "keys").read_text("ascii").splitlines():
            self.assertNotIn(line.split()[1], text)  # its hash
        for key in self.keys.values():
            self.assertNotIn(key, text)

    def test_a_wrong_limit_is_named(self):
        self.succeed("apikey", "ann", "--file", "keys")
        before = (self.folder / "keys").read_text()
        self.refuse(1, "apikey", "ann", "--file", "keys",
                    names=["keys has a key named 'ann'"])
        self.assertEqual((self.folder / "keys").read_text(), before)
        # An editor may leave the last line open: two keys were spoilt then.
        file = self.folder / "keys"
        file.write_bytes(file.read_bytes().rstrip(b"\n"))
        self.succeed("apikey", "bea", "--file", "keys")
        self.succeed("apikey", "cid", "--file", "keys")
        self.assertEqual(len(file.read_text().splitlines()), 3)
        with open(self.folder / "keys", "a", encoding="ascii") as keys:
            keys.write(f"bob {'0' * 64} tokens_per_minute=many\n")
        wrong = self.refuse(2, "serve", "m", "--api-keys", "keys",
                            names=["--api-keys", "keys: line 4",
                                   "tokens_per_minute=N"])
        self.assertNotIn("many", wrong)
        wrong = self.refuse(2, "apikey", "sk-shoal-77", "--file", "keys",
                            names=["NAME", "begins as a key does"])
        self.assertNotIn("77", wrong)
        self.refuse(2, "apikey", "eve", "--file", "keys",
                    "--requests-per-minute", 0,
                    names=["--requests-per-minute"])


if __name__ == "__main__":
    main()
