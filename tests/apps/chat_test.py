# tests/apps/chat_test.py -- `shoal chat`: through pipes and on a terminal, with a
# model that a node serves, one that the chat serves, and other servers.
import http.server
import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time

from serving import Serving
from support import DEADLINE_S, World, main

TEMPLATE = """\
{%- for m in messages %}{{ m.role[0] }}>{{ m.content }}
{% endfor %}{% if add_generation_prompt %}a>{% endif %}"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]")
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Server(http.server.ThreadingHTTPServer):
    """Another server with OpenAI's API, which says what a test wants."""

    daemon_threads = True

    def __init__(self, models=("other",)):
        super().__init__(("127.0.0.1", 0), Handler)
        self.models = models
        self.answers = []  # for each request: pieces, or (status, error)
        self.requests = []
        self.keys = []
        self.closed = threading.Event()  # a client has left its stream
        self.url = f"http://127.0.0.1:{self.server_port}/v1"
        threading.Thread(target=self.serve_forever, args=(0.01,),
                         daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.server.keys.append(self.headers.get("Authorization"))
        self.reply(200, {"data": [{"id": m, "max_model_len": 50}
                                  for m in self.server.models]})

    def chunk(self, data):
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.requests.append(json.loads(body))
        server.keys.append(self.headers.get("Authorization"))
        answer = server.answers.pop(0)
        if isinstance(answer, tuple):
            self.reply(*answer)
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in answer:
            if piece == "wait":  # until the client is gone
                self.connection.settimeout(DEADLINE_S)
                try:
                    left = self.connection.recv(1) == b""
                except ConnectionError:
                    left = True
                if left:
                    server.closed.set()
                return
            if isinstance(piece, str):
                piece = {"choices": [{"delta": {"content": piece}}]}
            self.chunk(b"data: " + json.dumps(piece).encode() + b"\n\n")
        self.chunk(b"data: [DONE]\n\n")
        self.chunk(b"")


def finish(reason, prompt=3, tokens=2):
    return {"choices": [{"delta": {}, "finish_reason": reason}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": tokens}}


def thought(text):
    return {"choices": [{"delta": {"reasoning_content": text,
                                   "reasoning": text}}]}


class Terminal:
    """A chat on a terminal of its own."""

    def __init__(self, world, *arguments, env=None):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(world.folder)
            os.execve(world.program, [world.program, *map(str, arguments)],
                      {**world.env, "TERM": "xterm", **(env or {})})
        self.raw = ""
        self.at = 0  # what has been waited for

    def wait(self, text):
        """What came up to and with `text`, without what moves the cursor."""
        until = time.monotonic() + DEADLINE_S
        while text not in self.raw[self.at:]:
            ready, _, _ = select.select([self.fd], [], [],
                                        until - time.monotonic())
            try:
                more = os.read(self.fd, 65536) if ready else b""
            except OSError:
                more = b""
            if not more:
                raise AssertionError(f"no {text!r} in {self.raw!r}")
            self.raw += more.decode(errors="replace")
        end = self.raw.index(text, self.at) + len(text)
        came, self.at = self.raw[self.at:end], end
        return came

    def type(self, text):
        os.write(self.fd, text.encode())

    def say(self, line, then=">>> "):
        """Types a line; @returns what comes up to `then`, without the echo."""
        self.type(line + "\n")
        self.wait("\n")
        return ESCAPE.sub("", self.wait(then))

    def end(self, press=None):
        """`press`: done again and again until the chat has ended."""
        pressed = 0
        try:
            while True:
                if press and time.monotonic() - pressed > 0.3:
                    press()
                    pressed = time.monotonic()
                if press and not select.select([self.fd], [], [], 0.1)[0]:
                    continue
                more = os.read(self.fd, 65536)
                if not more:
                    break
                self.raw += more.decode(errors="replace")
        except OSError:
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Pipes(World):
    """Without a terminal."""

    def chat(self, question, *arguments, env=None):
        if isinstance(question, str):
            question = question.encode()
        return subprocess.run(
            [self.program, "chat", *map(str, arguments)], cwd=self.folder,
            env={**self.env, **(env or {})}, input=question,
            capture_output=True, timeout=DEADLINE_S, check=False)

    def refused(self, done, code, *parts):
        self.assertEqual(done.returncode, code, done)
        self.assertEqual(done.stdout, b"")
        for part in parts:
            self.assertIn(part, done.stderr.decode())

    def test_a_pipe_gets_the_answer_and_nothing_else(self):
        with Server() as server:
            server.answers = [[thought("hm"), "Hel", "lo\x1b[31m",
                               finish("stop")]] * 2
            done = self.chat("Hi\nthere\n", "--url", server.url, "--system",
                             "short", "--temperature", 0.5, "--seed", 7)
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (0, b"Hello\x1b[31m\n", b""))
            self.assertEqual(server.requests[0], {
                "model": "other", "stream": True,
                "stream_options": {"include_usage": True},
                "temperature": 0.5, "seed": 7,
                "messages": [{"role": "system", "content": "short"},
                             {"role": "user", "content": "Hi\nthere"}]})
            done = self.chat("Hi", "--url", server.url, "--json")
            events = self.events(done.stdout.decode())
            self.assert_documented("chat", *events)
            self.assertEqual(
                [(e["text"], e["thought"]) for e in events[:-1]],
                [("hm", True), ("Hel", False), ("lo\x1b[31m", False)])
            last = events[-1]
            self.assertEqual((last["text"], last["thoughts"],
                              last["finish_reason"], last["tokens"]),
                             ("Hello\x1b[31m", "hm", "stop", 2))

    def test_a_key_is_sent_from_its_variable_and_from_nowhere_else(self):
        with Server() as server:
            server.answers = [["yes", finish("stop")]]
            done = self.chat("Hi", "--url", server.url, "--api-key-env", "KEY",
                             env={"KEY": "sk-1"})
            self.assertEqual(done.stdout, b"yes\n")
            self.assertEqual(server.keys, ["Bearer sk-1"] * 2)
            self.refused(self.chat("Hi", "--url", server.url, "--api-key-env",
                                   "KEY"), 1, "KEY", "set it")
            self.refused(self.chat("Hi", "--url", server.url, "--api-key-env",
                                   "KEY", env={"KEY": "a\nX-Y: z"}), 1, "KEY")
            self.assertEqual(len(server.keys), 2)
            server.answers = [(401, {"error": {"message": "unknown"}})]
            self.refused(self.chat("Hi", "--url", server.url, "--api-key-env",
                                   "KEY", env={"KEY": "sk-2"}), 1,
                         "does not take the API key in the variable KEY",
                         "unknown")

    def test_errors_say_what_to_do(self):
        self.refused(self.chat("Hi", "swims"), 1, "no node", "--url")
        self.refused(self.chat("Hi", "m", "--url", "ftp://a.org/v1"), 1,
                     "https://")
        with Server(("one", "two")) as server:
            at = ("--url", server.url)
            self.refused(self.chat("Hi", "three", *at), 1, "three", "one, two")
            self.refused(self.chat("Hi", *at), 1, "several", "one, two")
            self.refused(self.chat("\n", "one", *at), 2, "no question")
            self.refused(self.chat(b"\xff", "one", *at), 1, "not UTF-8")
            self.refused(self.chat("Hi", "one", "--url",
                                   "http://127.0.0.1:1/v1"), 1,
                         "127.0.0.1:1", "refused")
            for answer, *parts in (
                    ((401, {"error": {"message": "no key"}}), "--api-key-env",
                     "no key"),
                    ((400, {"error": {"message": "too long",
                                      "code": "context_length_exceeded"}}),
                     "the question does not fit", "too long"),
                    ((400, {"error": {"message": "too much",
                                      "param": "max_tokens",
                                      "code": "context_length_exceeded"}}),
                     "give a smaller --max-tokens", "too much"),
                    ((503, {"error": {"message": "it\x1b[2Jloads"}}), "503",
                     "it [2Jloads"),
                    ((500, "oh"), "500", '"oh"')):
                server.answers = [answer]
                self.refused(self.chat("Hi", "one", *at), 1, *parts)
            server.answers = [["half", {"error": {"message": "lost"}}]]
            done = self.chat("Hi", "one", *at)
            self.assertEqual((done.returncode, done.stdout), (1, b"half\n"))
            self.assertIn("lost", done.stderr.decode())

    def test_ctrl_c_closes_the_request(self):
        with Server() as server:
            server.answers = [["begun", "wait"]]
            child = subprocess.Popen(
                [self.program, "chat", "--url", server.url], env=self.env,
                cwd=self.folder, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE)
            child.stdin.write(b"Hi")
            child.stdin.close()
            self.assertEqual(child.stdout.read(5), b"begun")
            child.send_signal(signal.SIGINT)
            self.assertTrue(server.closed.wait(DEADLINE_S))
            self.assertEqual(child.wait(DEADLINE_S), 130)
            child.stdout.close()


class Dialogue(World):
    """On a terminal."""

    def begin(self, server, *arguments, env=None):
        t = Terminal(self, "chat", "--url", server.url, *arguments, env=env)
        self.assertIn('"other" at http://', t.wait(">>> "))
        return t

    def test_a_dialogue_with_its_words(self):
        with Server() as server:
            t = self.begin(server)
            server.answers = [[thought("hm"), "One\x1b[2J\x07\u009b2J",
                               finish("stop", 9, 14)],
                              ["Two", finish("length", 9, 41)]]
            t.say("/system short", DIM)
            t.wait(">>> ")
            t.say("/set temperature 0.25")
            said = t.say("Hi")
            self.assertIn("One [2J  2J", said)  # no control of the model's
            self.assertRegex(said, r"\[14 tokens(, [0-9.]+ tokens/s)?; the "
                                   r"first after [0-9.]+ [mu]?s\]")
            self.assertIn(f"{DIM}hm{PLAIN}\r\nOne", t.raw)
            self.assertIn("context is full (50 tokens): /clear", t.say("more"))
            self.assertEqual(server.requests[1]["temperature"], 0.25)
            self.assertEqual(
                [m["content"] for m in server.requests[1]["messages"]],
                ["short", "Hi", "One\x1b[2J\x07\u009b2J", "more"])
            # What does not fit is taken back, and may be asked again.
            server.answers = [(400, {"error": {
                "message": "50 tokens", "code": "context_length_exceeded"}}),
                ["Three", finish("stop")], ["Four", finish("stop")]]
            self.assertIn("/clear begins", t.say("third"))
            self.assertIn("forgotten", t.say("/clear"))
            self.assertIn("Three", t.say("/retry"))
            self.assertEqual(
                [m["content"] for m in server.requests[-1]["messages"]],
                ["short", "third"])
            self.assertIn("Four", t.say("/retry"))
            self.assertEqual(server.requests[-1], server.requests[-2])
            self.files(t)
            # A loaded conversation has its own last question.
            server.answers = [["Five", finish("stop")], ["Six", finish("stop")]]
            self.assertIn("Five", t.say("of another one"))
            self.assertIn("forgotten", t.say("/clear"))
            self.assertIn("2 messages", t.say("/load talk.json"))
            self.assertIn("Six", t.say("/retry"))
            self.assertEqual(
                [m["content"] for m in server.requests[-1]["messages"]],
                ["short", "third"])
            self.assertIn("temperature 0.25, top_p unset", t.say("/set"))
            self.assertIn("temperature unset", t.say("/set temperature"))
            self.assertIn("must be 0 to 1", t.say("/set top_p 2"))
            self.assertIn("did you mean 'top_p'", t.say("/set topp 1"))
            self.assertIn("did you mean '/retry'", t.say("/rety"))
            stats = t.say("/stats")
            self.assertIn("6 answers, 63 tokens", stats)
            self.assertIn("of 50", stats)
            self.assertIn("/load FILE", t.say("/help"))
            t.type("/exit\n")
            self.assertEqual(t.end(), 0)
            self.history_is_kept()

    def files(self, t):
        self.assertIn("2 messages", t.say("/save talk.json"))
        path = self.folder / "talk.json"
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(path.read_text()), {
            "model": "other", "messages": [
                {"role": "system", "content": "short"},
                {"role": "user", "content": "third"},
                {"role": "assistant", "content": "Four"}]})
        self.write("notes.txt", "mine")
        self.assertIn("name another file", t.say("/save notes.txt"))
        self.assertEqual((self.folder / "notes.txt").read_text(), "mine")
        self.assertIn("2 messages", t.say("/save talk.json"))  # again
        self.write("bad.json", '{"messages": [{"role": "x", "content": ""}]}')
        self.assertIn("is no saved chat", t.say("/load bad.json"))
        self.assertIn("cannot read none", t.say("/load none"))
        self.assertIn("2 messages", t.say("/load ~/talk.json"))

    def history_is_kept(self):
        path = self.folder / ".local/share/shoal/default/chat_history"
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        with Server() as server:
            server.answers = [["Five", finish("stop")]]
            t = self.begin(server)
            # Up: /exit, then /help.
            self.assertIn("/load FILE", t.say("\x1b[A" * 2))
            self.assertIn("Five", t.say("again"))
            t.type("\x04")
            self.assertEqual(t.end(), 0)
        self.assertEqual(server.requests[0]["messages"],
                         [{"role": "user", "content": "again"}])

    def test_questions_may_have_several_lines(self):
        with Server() as server:
            server.answers = [["A", finish("stop")]] * 4
            t = self.begin(server)
            t.say("one\\", "... ")
            t.say("two")
            t.say('"""three', "... ")
            t.say("", "... ")
            t.say('f\u00fcnf"""')
            t.say("//slash")
            t.say('"""/exit"""')
            t.type("\x04")
            self.assertEqual(t.end(), 0)
            self.assertEqual(
                [r["messages"][-1]["content"] for r in server.requests],
                ["one\ntwo", "three\n\nf\u00fcnf", "/slash", "/exit"])

    def test_ctrl_c_stops_an_answer_and_twice_the_chat(self):
        with Server() as server:
            server.answers = [["begun", "wait"], ["whole", finish("stop")]]
            t = self.begin(server, env={"NO_COLOR": "1"})
            t.type("Hi\n")
            t.wait("begun")
            t.type("\x03")
            self.assertTrue(server.closed.wait(DEADLINE_S))
            self.assertIn("[stopped]", t.wait(">>> "))
            t.type("half a line")
            t.wait("line")
            t.type("\x03")
            self.assertNotIn("again", t.wait(">>> "))
            self.assertIn("whole", t.say("go on"))
            self.assertEqual(
                [m["content"] for m in server.requests[1]["messages"]],
                ["Hi", "begun", "go on"])
            t.type("\x03")
            t.wait("Ctrl-C again")
            t.wait(">>> ")
            t.type("\x03")
            self.assertEqual(t.end(), 0)
            self.assertNotIn(DIM, t.raw)

    def test_sigterm_ends_in_order(self):
        with Server() as server:
            t = self.begin(server)
            os.kill(t.pid, signal.SIGTERM)
            self.assertEqual(t.end(), 130)


class Served(Serving):
    """With models that are served here."""

    def setUp(self):
        super().setUp()
        path = self.folder / "m/tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text())
                                   | {"chat_template": TEMPLATE}))

    chat, refused = Pipes.chat, Pipes.refused

    def expected(self, at, question):
        return at.post({"model": "tiny", "max_tokens": 12, "temperature": 0,
                        "messages": [{"role": "user", "content": question}]},
                       "/v1/chat/completions")[1]["choices"][0]["message"][
                           "content"]

    def test_a_model_of_the_local_node(self):
        nodes, at = {}, {}
        self.begin_node("first", nodes, at)
        flags = ("--name", "first", "--temperature", 0, "--max-tokens", 12)
        self.refused(self.chat("Hi", *flags), 1, "no model is served",
                     "shoal serve")
        self.succeed("serve", "m", "--as", "tiny", "--name", "first",
                     "--detach")
        self.refuse(1, "serve", "tiny", "--name", "first", names=[
            "there is no folder tiny here", "serves a model"])
        self.refuse(1, "serve", "m", "--as", "kept", "--api-keys", "keys",
                    "--name", "first", "--detach", names=["--api-keys", "`shoal node`"])
        self.assertIn("--http, --threads: without effect", self.succeed(
            "serve", "m", "--as", "other", "--http", "off", "--threads", 1,
            "--name", "first", "--detach"))
        self.succeed("cancel", "other", "--name", "first")
        self.succeed("serve", "m", "--name", "first", "--detach")
        self.refused(self.chat("Hi", "./m", *flags), 1, '"m"',
                     "`shoal chat m`", "--as NAME")
        self.succeed("cancel", "m", "--name", "first")
        for model in ("tiny",), ():
            done = self.chat("The cod", *model, *flags)
            self.assertEqual((done.returncode, done.stderr), (0, b""), done)
            self.assertEqual(
                done.stdout.decode().rstrip("\n"),
                self.expected(at["first"], "The cod").rstrip("\n"))
        self.refused(self.chat("Hi", "small", *flags), 1, '"small"', "tiny")
        self.refused(self.chat("x" * 300, *flags), 1,
                     "the question does not fit the model's context")
        # A terminal, and the whole context.
        t = Terminal(self, "chat", "--name", "first")
        t.wait(">>> ")
        self.assertIn("context is full (256 tokens)", t.say("The cod"))
        t.type("\x04")
        self.assertEqual(t.end(), 0)

    def test_a_folder_is_served_while_the_chat_lasts(self):
        process, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        expected = self.expected(at, "The cod")
        process.end(signal.SIGINT)
        done = self.chat("The cod", "m", "--temperature", 0, "--max-tokens", 12)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stdout.decode().rstrip("\n"),
                         expected.rstrip("\n"))
        self.assertEqual(self.processes(), [])
        self.refused(self.chat("Hi", "text"), 1, "no node")
        self.write("text/a", "no model")
        self.refused(self.chat("Hi", "text"), 1, "shoal serve text",
                     "ended with code 1")

    def test_however_often_ctrl_c_comes_no_model_stays_unsaid(self):
        # The third one killed what was to take the model off the shoal.
        self.begin_node("first", {}, {})
        t = Terminal(self, "chat", "m", "--name", "first")
        t.wait(">>> ")
        t.type("\x03")
        t.wait("Ctrl-C again, or Ctrl-D, ends")
        code = t.end(lambda: t.type("\x03"))
        said = "may still be served: `shoal cancel m --name first` ends it"
        if said not in ESCAPE.sub("", t.raw):
            jobs = self.succeed("jobs", "--name", "first", "--json")
            self.assertEqual((code, [j["state"] for j in json.loads(jobs)]),
                             (0, ["cancelled"]), t.raw)


if __name__ == "__main__":
    main()
