# tests/apps/manage_test.py -- a node and its shoal over HTTP: what commands say of
# them, jobs and models that come and go, and who may not ask for that.
import json
import re
import signal
import socket
import threading
import urllib.request

from serving import Endpoint, Serving
from support import DEADLINE_S, main

JSON = {"Content-Type": "application/json"}

# As in apps/manage/management.cpp.
SUBMISSIONS_MAX = 8


class Manage(Serving):
    def node(self, *flags):
        process = self.start("node", "--name", "a", "--threads", 1,
                             "--no-discovery", "--http", "127.0.0.1:0", *flags)
        process.wait_line(lambda line: line.startswith("ready:"))
        status = json.loads(self.succeed("status", "--json", "--name", "a"))
        self.at = Endpoint(status["http"])
        return process

    def ask(self, method, path, body=None, headers=None):
        connection = self.at.connect()
        connection.request(method, path,
                           body if body is None or isinstance(body, str)
                           else json.dumps(body), JSON | (headers or {}))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text else None

    def refused(self, status, param, method, path, body=None, headers=None):
        """The code of an error."""
        got, answer = self.ask(method, path, body, headers)
        self.assertEqual((got, answer["error"]["param"]), (status, param),
                         answer)
        return answer["error"]["code"]

    def events_of(self, job):
        connection = self.at.connect()
        connection.request("GET", f"/shoal/jobs/{job}/events")
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.getheader("Content-Type"), "text/event-stream")
        lines = answer.read().decode().split("\n")  # until the job ends
        connection.close()
        self.assertEqual(
            [line for line in lines if line.startswith("id: ")],
            [f"id: {i + 1}" for i in
             range(sum(line.startswith("data: ") for line in lines))])
        return [json.loads(line[6:]) for line in lines
                if line.startswith("data: ")]

    # A new user had to guess that `shoal status` names it.
    def test_a_node_says_where_its_web_page_is(self):
        started = ("node", "--threads", 1, "--no-discovery", "--http")
        self.succeed("apikey", "ann", "--file", "keys")
        for name, listen, also in (("one", "127.0.0.1:0", False),
                                   ("all", "0.0.0.0:0", True)):
            node = self.start(*started, listen, "--name", name,
                              *(["--api-keys", "keys"] if also else []))
            line = node.wait_line(lambda line: line.startswith("web page: "))
            url, api = re.findall(r"http://127\.0\.0\.1:\d+/\w*", line)
            self.assertEqual(api, url + "v1")
            self.assertEqual("other addresses" in line, also, line)
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as page:
                self.assertIn(b"<title>Shoal", page.read())
            self.assertEqual(node.end(signal.SIGTERM), 0)
        node = self.start(*started, "127.0.0.1:0", "--json")
        event = json.loads(node.wait_line(
            lambda line: json.loads(line)["event"] == "http"))
        self.assert_documented("node", event)
        self.assertIn(event["url"], event["text"])
        self.assertEqual(node.end(signal.SIGTERM), 0)
        node = self.start(*started, "off")
        node.wait_line(lambda line: line.startswith("ready:"))
        self.assertEqual(node.end(signal.SIGTERM), 0)
        self.assertNotIn("http", "\n".join(node.said()))

    def test_a_node_that_only_shows(self):
        process = self.node()
        self.assertEqual(self.ask("GET", "/shoal/status")[1].keys(), json.loads(
            self.succeed("status", "--json", "--name", "a")).keys())
        self.assertEqual(self.ask("GET", "/shoal/jobs"), (200, []))
        for path in ("/shoal/jobs/no", "/shoal/jobs/no/events"):
            self.assertEqual(self.refused(404, None, "GET", path),
                             "job_not_found")
        for path in ("/shoal/jobs", "/shoal/jobs/no/cancel", "/models/load",
                     "/models/unload"):
            self.assertEqual(self.refused(403, None, "POST", path, {}),
                             "changes_are_off")
        self.assertEqual(self.refused(403, None, "DELETE", "/models/loads/1"),
                         "changes_are_off")
        self.assertEqual(process.end(signal.SIGINT), 0)

    def test_pages_of_other_servers(self):
        self.refuse(2, "node", "--http-cors", "https://a.example/x",
                    names=["--http-cors"])
        self.refuse(2, "node", "--http-cors", "*", "--http-jobs",
                    names=["--http-cors", "--api-keys"])
        process = self.node("--http-jobs", "--http-cors", "https://a.example")
        for origin, allowed in [("https://a.example", True),
                                ("https://b.example", False)]:
            status, headers = self.preflight("/models/unload", origin)
            self.assertEqual((status == 204, headers.get(
                "Access-Control-Allow-Origin")),
                (allowed, origin if allowed else None))
            self.refused(404 if allowed else 403, "model" if allowed else None,
                         "POST", "/models/unload", {"model": "no"},
                         {"Origin": origin})
        self.assertEqual(process.end(signal.SIGINT), 0)

    def preflight(self, path, origin):
        connection = self.at.connect()
        connection.request("OPTIONS", path, None, {
            "Origin": origin, "Access-Control-Request-Method": "POST"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders())

    def test_a_submission_holds_up_no_other(self):
        """Loads that wait for a hub that does not answer, as others wait for room
        on disks."""
        with socket.create_server(("127.0.0.1", 0)) as hub:
            self.env |= {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT":
                         f"http://127.0.0.1:{hub.getsockname()[1]}"}
            process = self.node("--http-jobs")
            waiting, asked = [], []
            for i in range(SUBMISSIONS_MAX - 1):
                waiting.append(self.at.connect())
                waiting[-1].request("POST", "/models/load", json.dumps(
                    {"model": f"org/name{i}"}), JSON)
                asked.append(hub.accept()[0])  # it has begun
            self.check_load()
            self.submit(1)
            # The one place left is free once the answer is there.
            for _ in range(50):
                self.refused(400, "model", "POST", "/models/load",
                             {"model": "/x"})
            waiting.append(self.at.connect())
            waiting[-1].request("POST", "/models/load", json.dumps(
                {"model": "org/last"}), JSON)
            asked.append(hub.accept()[0])
            self.assertEqual(self.refused(
                429, None, "POST", "/models/load", {"model": "/x"}),
                "rate_limit_exceeded")
            self.assertEqual(self.ask("GET", "/shoal/jobs")[0], 200)
            # Nor do they hold up the node's end.
            self.assertEqual(process.end(signal.SIGINT), 0)
            for connection in waiting + asked:
                connection.close()

    def loads(self):
        status, answer = self.ask("GET", "/models/loads")
        self.assertEqual((status, answer["allowed"]), (200, True))
        return answer["loads"]

    def test_a_load_can_be_cancelled(self):
        """While it waits for a hub that does not answer."""
        with socket.create_server(("127.0.0.1", 0)) as hub:
            self.env |= {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT":
                         f"http://127.0.0.1:{hub.getsockname()[1]}"}
            process = self.node("--http-jobs")
            waiting, asked = {}, []
            for name in ("org/one", "org/two"):
                waiting[name] = self.at.connect()
                waiting[name].request("POST", "/models/load", json.dumps(
                    {"model": name}), JSON)
                asked.append(hub.accept()[0])  # it has begun
            ids = {load["model"]: load["id"] for load in self.loads()}
            self.assertEqual(ids.keys(), waiting.keys())
            path = f"/models/loads/{ids['org/one']}"
            self.assertEqual(self.refused(
                403, None, "DELETE", path, None,
                {"Origin": "http://evil.example"}), "origin_not_allowed")
            self.assertEqual(self.ask("DELETE", path), (
                202, {"id": ids["org/one"], "ending": True}))
            answer = waiting["org/one"].getresponse()
            error = json.loads(answer.read())["error"]
            self.assertEqual((answer.status, error["code"], error["param"]),
                             (409, "load_cancelled", "model"))
            self.assertIn("org/one", error["message"])
            # It has left nothing, and the other one goes on.
            other, = self.loads()
            self.assertEqual((other["model"], other["state"]),
                             ("org/two", "working"))
            for gone in (path, "/models/loads/no", "/models/loads/%ff"):
                self.assertEqual(self.refused(404, None, "DELETE", gone),
                                 "load_not_found")
            self.refused(405, None, "DELETE", "/models/loads")
            # One that has failed is forgotten.
            self.refused(400, "model", "POST", "/models/load",
                         {"model": "/no/such"})
            failed = self.loads()[1]
            self.assertEqual(failed["state"], "failed")
            self.assertEqual(self.ask(
                "DELETE", f"/models/loads/{failed['id']}")[0], 202)
            left, = self.loads()
            self.assertEqual((left["id"], left["model"]),
                             (other["id"], "org/two"))
            self.assertEqual(self.ask(
                "DELETE", f"/models/loads/{other['id']}")[0], 202)
            self.assertEqual(waiting["org/two"].getresponse().status, 409)
            self.assertEqual(self.loads(), [])
            self.assertEqual(self.ask("GET", "/shoal/jobs"), (200, []))
            self.assertEqual(process.end(signal.SIGINT), 0)
            for connection in [*waiting.values(), *asked]:
                connection.close()

    def at_once(self, *requests):
        """Answers to requests (path, body) that are sent side by side."""
        answers, begin = [None] * len(requests), threading.Barrier(len(requests))

        def one(i, path, body):
            begin.wait(DEADLINE_S)
            answers[i] = self.ask("POST", path, body)
        threads = [threading.Thread(target=one, args=(i, *request))
                   for i, request in enumerate(requests)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        return answers

    def test_submissions_side_by_side_take_no_name_twice(self):
        process = self.node("--http-jobs")
        answers = self.at_once(*[("/models/load", {
            "model": str(self.folder / "m"), "as": "tiny"})] * 4)
        self.assertEqual(sorted(status for status, _ in answers),
                         [200, 409, 409, 409], answers)
        for status, answer in answers:
            if status == 409:
                self.assertIn('"tiny" is running', answer["error"]["message"])
        self.assertEqual(self.ask("POST", "/models/unload",
                                  {"model": "tiny"})[0], 200)
        answers = self.at_once(*[("/shoal/jobs", {
            "kind": "train", "run": self.run_text(100000), "name": "fish"})] * 4)
        self.assertEqual([status for status, _ in answers], [201] * 4, answers)
        names = {answer["name"] for _, answer in answers}
        self.assertEqual(len(names), 4, answers)
        self.assertIn("fish", names)
        running = [job["name"] for job in self.ask("GET", "/shoal/jobs")[1]
                   if job["state"] == "running" and job["kind"] == "train"]
        self.assertEqual(sorted(running), sorted(names))
        for _, answer in answers:
            self.assertEqual(self.ask(
                "POST", f"/shoal/jobs/{answer['id']}/cancel",
                {"now": True})[0], 202)
        self.assertEqual(process.end(signal.SIGINT), 0)

    def check_load(self):
        status, loaded = self.ask("POST", "/models/load",
                                  {"model": str(self.folder / "m")})
        self.assertEqual((status, loaded["model"]), (200, "m"), loaded)

    def test_jobs_and_models(self):
        process = self.node("--http-jobs")
        for check in (self.mistakes, self.pages_of_others, self.a_run,
                      self.a_run_that_is_cancelled, self.a_model):
            with self.subTest(check.__name__):
                check()
        self.assertEqual(process.end(signal.SIGINT), 0)

    def mistakes(self):
        for param, body in [("kind", {}), ("run", {"kind": "train"}),
                            ("kind", {"kind": "serve", "run": "x"}),
                            ("steps", {"kind": "train", "run": "x",
                                       "steps": 1}),
                            ("run", {"kind": "train", "run": "[oh"}),
                            ("run", {"kind": "train", "run": "[job]\n"}),
                            ("run", {"kind": "train", "run": "[no]\nkey=1"}),
                            ("run", {"kind": "train",
                                     "run": "[data]\npaths=['x.txt']"}),
                            ("run", {"kind": "train",
                                     "run": "[data]\npaths=['/no/such']"})]:
            self.refused(400, param, "POST", "/shoal/jobs", body)
        self.refused(400, None, "POST", "/shoal/jobs", "[1")
        for param, body in [("model", {}), ("model", {"model": "a/b/c"}),
                            ("model", {"model": "/no/such"}),
                            ("kv_type", {"model": "/m", "kv_type": "q9"}),
                            ("replicas", {"model": "/m", "replicas": 65}),
                            ("context", {"model": "/m", "context": -1})]:
            self.refused(400, param, "POST", "/models/load", body)
        self.refused(409, "model", "POST", "/models/load", {"model": "no"})
        self.refused(404, "model", "POST", "/models/unload", {"model": "no"})
        self.refused(404, None, "POST", "/shoal/jobs/x/no", {})
        self.assertEqual(self.refused(
            415, None, "POST", "/shoal/jobs", "{}",
            {"Content-Type": "text/plain"}), "unsupported_media_type")

    def pages_of_others(self):
        for origin in ("http://evil.example", "null",
                       "http://127.0.0.1:1", f"http://{self.at.address}.x"):
            self.assertEqual(self.refused(
                403, None, "POST", "/models/unload", {"model": "no"},
                {"Origin": origin}), "origin_not_allowed")
        self.refused(404, "model", "POST", "/models/unload", {"model": "no"},
                     {"Origin": f"http://{self.at.address}"})
        self.assertEqual(self.refused(
            403, None, "GET", "/shoal/status", None,
            {"Host": "evil.example"}), "host_not_allowed")

    def run_text(self, steps):
        text = self.write_text_files()
        return (f"[model]\nmodel_type='llama'\nhidden_size=32\n"
               "intermediate_size=64\nnum_hidden_layers=2\n"
               "num_attention_heads=2\nnum_key_value_heads=2\n"
               "vocab_size=256\n"
               f"[data]\npaths=[{json.dumps(str(self.folder / text))}]\n"
               f"[training]\nsteps={steps}\nseq_len=16\nlocal_batch_size=1\n"
               "[checkpoint]\ninterval=5\n")

    def submit(self, steps, **more):
        run = self.run_text(steps)
        status, job = self.ask("POST", "/shoal/jobs",
                               {"kind": "train", "run": run, **more})
        self.assertEqual(status, 201, job)
        return job

    def a_run(self):
        job = self.submit(10, name="by-http")
        self.assertEqual(job["name"], "by-http")
        events = self.events_of(job["id"])
        self.assertEqual([e["step"] for e in events if e["event"] == "step"],
                         list(range(1, 11)))
        self.assertTrue(all(e["loss"] > 0 for e in events
                            if e["event"] == "step"))
        self.assertEqual(events[-1]["event"], "done")
        self.assertEqual(self.events_of("by-http"), events)  # all of them again
        attached = self.events(self.succeed("attach", job["id"], "--json",
                                            "--name", "a"))
        known = [e for e in attached if e["event"] == "step"]
        self.assertEqual([e for e in events if e["event"] == "step"], known)
        status, one = self.ask("GET", f"/shoal/jobs/{job['id']}")
        self.assertEqual((status, one["id"], one["state"]),
                         (200, job["id"], "done"))
        self.assertEqual(one["run"]["training"]["steps"], 10)
        self.assertEqual([j["id"] for j in self.ask("GET", "/shoal/jobs")[1]],
                         [job["id"]])
        self.assertEqual(self.refused(
            409, None, "POST", f"/shoal/jobs/{job['id']}/cancel", {}),
            "job_has_ended")

    def a_run_that_is_cancelled(self):
        job = self.submit(100000)
        other = self.submit(100000)
        self.assertNotEqual(job["name"], other["name"])
        for one in (job, other):
            status, answer = self.ask(
                "POST", f"/shoal/jobs/{one['id']}/cancel", {"now": True})
            self.assertEqual((status, answer["id"]), (202, one["id"]))
        for one in (job, other):
            self.assertEqual(self.events_of(one["id"])[-1]["state"],
                             "cancelled")

    def a_model(self):
        status, loaded = self.ask("POST", "/models/load", {
            "model": str(self.folder / "m"), "as": "tiny", "kv_type": "f32"})
        self.assertEqual((status, loaded["success"], loaded["model"]),
                         (200, True, "tiny"))
        for event in self.first_events(loaded["id"]):
            if event.get("text", "").startswith("ready"):
                break
        status, models = self.ask("GET", "/v1/models")
        self.assertEqual([m["id"] for m in models["data"]], ["tiny"])
        status, answer = self.at.post({"model": "tiny", "prompt": "x",
                                       "max_tokens": 2})
        self.assertEqual(status, 200, answer)
        self.refused(409, "model", "POST", "/models/load", {
            "model": str(self.folder / "m"), "as": "tiny"})
        status, answer = self.ask("POST", "/models/unload", {"model": "tiny"})
        self.assertEqual((status, answer["success"]), (200, True))
        self.assertEqual(self.events_of(loaded["id"])[-1]["event"], "done")

    def first_events(self, job):
        connection = self.at.connect()
        connection.request("GET", f"/shoal/jobs/{job}/events")
        with connection.getresponse() as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])


if __name__ == "__main__":
    main()
