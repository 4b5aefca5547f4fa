"""What Prometheus reads from nodes: equal to what clients have counted, of the form
that promtool demands, and scraped by a real Prometheus with the rules and the board
of tools/deploy."""
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import urllib.parse

from serving import PROMPTS, Endpoint, Serving
from support import main

DEPLOY = pathlib.Path(__file__).parents[2] / "tools" / "deploy"


def values(page):
    """By name and labels."""
    out = {}
    for line in page.splitlines():
        if line and line[0] != "#":
            name, value = line.rsplit(" ", 1)
            out[name] = float(value)
    return out


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Metrics(Serving):
    def test_counters_are_what_clients_have_counted(self):
        _, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0",
                           "--metrics-compat", "vllm")
        prompts = generated = 0
        for prompt in PROMPTS:
            for ask in (at.post, self.streamed(at)):
                usage = ask({"model": "tiny", "prompt": prompt,
                             "max_tokens": 7, "temperature": 0})[1]["usage"]
                prompts += usage["prompt_tokens"]
                generated += usage["completion_tokens"]
        refused = at.post({"model": "tiny", "prompt": "x", "max_tokens": 10**6})
        self.assertEqual(refused[0], 400)
        page = at.get("/metrics")[1]
        self.promtool(page)
        is_ = values(page)
        requests = 2 * len(PROMPTS)
        tiny = 'model_name="tiny"'
        for name, expected in {
                "shoal_requests_total": requests + 1,
                f'shoal_answers_total{{{tiny},status="200"}}': requests,
                f'shoal_answers_total{{{tiny},status="400"}}': 1,
                f"shoal_prompt_tokens_total{{{tiny}}}": prompts,
                f"vllm:prompt_tokens_total{{{tiny}}}": prompts,
                "shoal_generated_tokens_total": generated,
                f"shoal_time_to_first_token_seconds_count{{{tiny}}}": requests,
                f"shoal_time_per_output_token_seconds_count{{{tiny}}}": requests,
                f"shoal_request_seconds_count{{{tiny}}}": requests,
                f'shoal_pipeline_ready{{{tiny},pipeline="0"}}': 1,
                "shoal_quorum": 1}.items():
            self.assertEqual(is_.get(name), expected, name)
        self.assertGreater(is_["process_resident_memory_bytes"], 1e6)
        self.a_prometheus_scrapes(at, requests + 1)

    def streamed(self, at):
        """Posts, but reads the answer as a stream."""
        def ask(body):
            connection = at.connect()
            connection.request(
                "POST", "/v1/completions",
                json.dumps({**body, "stream": True,
                            "stream_options": {"include_usage": True}}),
                {"Content-Type": "application/json"})
            answer = connection.getresponse()
            usage = [json.loads(line[6:])["usage"] for line in answer
                     if line.startswith(b"data: {") and b'"usage":{' in line]
            connection.close()
            return answer.status, {"usage": usage[-1]}
        return ask

    def promtool(self, page):
        """The names of vLLM have a colon, which promtool keeps for rules."""
        said = subprocess.run(["promtool", "check", "metrics"], input=page,
                              text=True, capture_output=True).stderr
        self.assertEqual([line for line in said.splitlines()
                          if not line.startswith("vllm:")], [])

    def a_prometheus_scrapes(self, at, requests):
        folder = self.folder / "prometheus"
        shutil.copytree(DEPLOY / "prometheus", folder)
        config = folder / "shoal.yml"
        config.write_text(config.read_text().replace("15s", "200ms")
                          .replace("127.0.0.1:8000", at.address))
        own = f"127.0.0.1:{free_port()}"
        server = subprocess.Popen(
            ["prometheus", f"--config.file={config}",
             f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={own}"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (server.kill(), server.wait(),
                                 server.stderr.close()))
        log = []
        for line in server.stderr:
            log.append(line)
            if "ready to receive" in line:
                break
        else:
            self.fail("".join(log))
        api = Endpoint(own)

        def query(text):
            answer = json.loads(api.get(
                "/api/v1/query?query=" + urllib.parse.quote(text))[1])
            self.assertEqual(answer["status"], "success", (text, answer))
            return [float(r["value"][1]) for r in answer["data"]["result"]]
        for _ in range(600): # it looks for targets 5 s after it has begun
            self.succeed("--version") # takes some time
            if query("shoal_requests_total") == [requests]:
                break
        else:
            self.fail("Prometheus has not scraped the node")
        self.assertEqual(query('up{job="shoal"}'), [1])
        # What the board asks for exists, or begins with what no job here does.
        for text in self.asked_by_board():
            query(text)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(30), 0)

    def asked_by_board(self):
        board = json.loads((DEPLOY / "grafana" / "shoal.json").read_text())
        asked = [t["expr"].replace("$__rate_interval", "1m")
                 .replace("$model", ".*")
                 for p in board["panels"] for t in p.get("targets", [])]
        self.assertGreater(len(asked), 20)
        return asked

    def test_rules_and_board_ask_for_what_there_is(self):
        listed = set(re.findall(r"^\| `(shoal_\w+|process_\w+)` \|",
                                self.succeed("reference"), re.M))
        rules = DEPLOY / "prometheus" / "shoal-rules.yml"
        subprocess.run(["promtool", "check", "rules", rules], check=True,
                       capture_output=True)
        asked = set(re.findall(r"\b((?:shoal|process)_\w+)", " ".join(
            self.asked_by_board()
            + re.findall(r"expr: (.*)", rules.read_text()))))
        asked = {re.sub("_bucket$", "", name) for name in asked}
        self.assertGreater(len(asked), 15)
        self.assertEqual(asked - listed, set())


if __name__ == "__main__":
    main()
