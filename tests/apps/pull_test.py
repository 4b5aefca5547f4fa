# tests/apps/pull_test.py -- models by name, from a hub that the test makes.
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess

from hub import GOLDEN, Hub, Repository, SIGNATURE, TOKEN, git_hash, tiny_model
from support import World, main

LARGE = "model.safetensors"
OTHER = "b" * 40


class Pull(World):
    def setUp(self):
        super().setUp()
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.env |= {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.home)}
        self.env.pop("HF_HUB_OFFLINE")

    @property
    def home(self):
        return self.folder / "hf"

    @property
    def cache(self):
        return self.home / "hub" / "models--org--tiny"

    def put(self, name="org/tiny", files=None, **more):
        repository = Repository(files or tiny_model(),
                                **{"large": [LARGE], **more})
        self.hub.repositories[name] = repository
        return repository

    def pull(self, name="org/tiny", **env):
        """@returns the object that --json prints"""
        return json.loads(self.succeed("pull", name, "--json", env=env))

    def assert_secret(self, *texts):
        for text in texts:
            for secret in (TOKEN, SIGNATURE, "secret"):
                self.assertNotIn(secret, text)

    # What other tools of the hub rely on.
    def test_the_cache_is_laid_out_as_the_hubs_tools_have_it(self):
        repository = self.put()
        done = self.run_shoal("pull", "org/tiny")
        self.assertEqual(done.returncode, 0, done.stderr)
        snapshot = self.cache / "snapshots" / ("a" * 40)
        self.assertEqual(done.stdout, f"{snapshot}\n")
        self.assertIn("3 files", done.stderr)
        self.assertEqual((self.cache / "refs/main").read_text(), "a" * 40)
        wanted = {"config.json", "generation_config.json", LARGE}
        self.assertEqual({p.name for p in snapshot.iterdir()}, wanted)
        for name in wanted:
            self.assertEqual(os.readlink(snapshot / name),
                             f"../../blobs/{repository.hash_of(name)}")
            self.assertEqual((snapshot / name).read_bytes(),
                             repository.files[name])
        self.assertEqual({p.name for p in (self.cache / "blobs").iterdir()},
                         {repository.hash_of(name) for name in wanted})
        for name in wanted:
            self.assertTrue((self.home / "hub/.locks/models--org--tiny"
                             / f"{repository.hash_of(name)}.lock").exists())

    def test_a_second_pull_downloads_what_has_changed(self):
        repository = self.put()
        first = self.pull()
        self.assert_documented("pull", first)
        self.assertEqual(first["bytes"], first["downloaded_bytes"])
        self.assertEqual(self.pull()["downloaded_bytes"], 0)
        repository.files["config.json"] += b"\n"
        repository.commits = {"main": OTHER, OTHER: OTHER}
        second = self.pull()
        self.assertEqual(second["commit"], OTHER)
        self.assertEqual(second["downloaded_bytes"],
                         len(repository.files["config.json"]))
        self.assertEqual((self.cache / "refs/main").read_text(), OTHER)
        self.assertEqual(len(self.hub.asked("cdn")), 1)

    def test_commands_take_names_and_need_no_network_for_what_is_there(self):
        self.put()
        for command in (["generate", "org/tiny", "--prompt-ids", "5,6"],
                        ["eval", "org/tiny", "--data",
                         self.write("a.jsonl", '{"input_ids": [5, 6, 7]}')],
                        ["plan", "--serve", "org/tiny"],
                        ["plan", "--model.path", "org/tiny@main",
                         "--training.seq_len", "64"]):
            for env in ({}, {"HF_HUB_OFFLINE": "1"}):
                done = self.run_shoal(*command, env=env)
                self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.hub.asked("cdn")), 1)
        asked = len(self.hub.requests)
        self.pull(HF_HUB_OFFLINE="1")
        self.assertEqual(len(self.hub.requests), asked)

    def test_a_plan_downloads_no_weights(self):
        self.put()
        self.succeed("plan", "--serve", "org/tiny")
        self.assertEqual(self.hub.asked("cdn"), [])
        self.assertFalse((self.cache / "refs").exists())
        self.refuse(1, "generate", "org/tiny", "--prompt-ids", "5",
                    env={"HF_HUB_OFFLINE": "1"}, names=["not in the cache"])

    def test_a_folder_comes_before_a_name(self):
        self.put()
        folder = self.folder / "org/tiny"
        folder.mkdir(parents=True)
        for path in (GOLDEN / "tiny_qwen2").iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        self.succeed("generate", "org/tiny", "--prompt-ids", "5",
                     "--max-tokens", "1")
        self.assertEqual(self.hub.requests, [])

    def test_shards_are_those_of_the_index(self):
        files = tiny_model()
        weights = files.pop(LARGE)
        shards = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
        index = {"metadata": {}, "weight_map": {"a": shards[0],
                                                "b": shards[1]}}
        files |= {shards[0]: weights, shards[1]: weights + b"x",
                  "consolidated.safetensors": weights + b"y",
                  "model.safetensors.index.json": json.dumps(index).encode()}
        self.put(files=files, large=[*shards, "consolidated.safetensors"])
        found = self.pull()
        self.assertEqual({p.name for p in pathlib.Path(found["path"]).iterdir()},
                         {"config.json", "generation_config.json", *shards,
                          "model.safetensors.index.json"})
        files.pop(shards[1])
        self.put(files=files, commit=OTHER)
        self.refuse(1, "pull", "org/tiny", names=[shards[1], "does not have"])

    def test_one_file_in_gguf(self):
        data = (GOLDEN / "gguf/tiny_llama.gguf").read_bytes()
        self.put(files={"Q8/tiny.gguf": data, "README.md": b""},
                 large=["Q8/tiny.gguf"])
        found = self.pull("org/tiny:Q8/tiny.gguf")
        self.assertEqual(os.readlink(found["path"]), "../../../blobs/"
                         + hashlib.sha256(data).hexdigest())
        self.succeed("generate", "org/tiny:Q8/tiny.gguf", "--prompt-ids", "5",
                     "--max-tokens", "1")
        self.refuse(1, "pull", "org/tiny", names=["no config.json",
                                                  "Q8/tiny.gguf"])
        self.refuse(1, "pull", "org/tiny:other.gguf", names=["no file other"])

    def test_what_was_cut_goes_on_from_there(self):
        repository = self.put()
        size = len(repository.files[LARGE])
        repository.faults = {
            LARGE: [("cut", 1000), ("status", 503), ("cut", 2000)],
            "config.json": [("cut", 10)]}
        self.pull()
        ranges = [headers.get("Range") for _, headers in
                  self.hub.asked("cdn")]
        self.assertEqual(ranges, [None, "bytes=1000-", "bytes=1000-",
                                  "bytes=3000-"])
        self.assertEqual((self.cache / "blobs" / repository.hash_of(LARGE))
                         .stat().st_size, size)

    def test_a_server_without_ranges_sends_all_again(self):
        repository = self.put()
        repository.faults = {LARGE: [("cut", 1000), ("no ranges", 0)]}
        self.pull()

    def test_a_silent_server_is_given_up(self):
        repository = self.put()
        repository.faults = {LARGE: [("silent", 1000)]}
        self.pull(HF_HUB_DOWNLOAD_TIMEOUT="1")
        self.assertEqual(self.hub.asked("cdn")[1][1]["Range"], "bytes=1000-")

    def test_ctrl_c_keeps_what_has_come(self):
        repository = self.put()
        repository.faults = {LARGE: [("silent", 5000), ("silent", 2000)]}
        part = self.cache / "blobs" / (repository.hash_of(LARGE)
                                       + ".incomplete")
        for command, code in (["pull", "org/tiny"], 130), (
                ["train", "--model.path", "org/tiny", "--data",
                 self.write_text_files(), "--out", "o"], 130):
            under_way = self.start(*command)
            self.assertTrue(self.hub.silent.acquire(timeout=60))
            # Only then does what was sent count as come.
            self.assertEqual(under_way.end(signal.SIGINT), code,
                             under_way.said())
        self.assertFalse((self.cache / "refs").exists())
        before = part.stat().st_size
        self.assertGreater(before, 0)
        self.pull()
        self.assertEqual(self.hub.asked("cdn")[-1][1]["Range"],
                         f"bytes={before}-")
        self.assertFalse(part.exists())

    def test_two_pulls_do_not_write_one_blob(self):
        repository = self.put()
        repository.faults = {LARGE: [("silent", 1000)]}
        first = self.start("pull", "org/tiny")
        self.assertTrue(self.hub.silent.acquire(timeout=60))
        second = self.start("pull", "org/tiny", "--json")
        # It has asked for the list, and then waits for the other's lock.
        self.assertTrue(self.hub.wait_asked(2, "hub", "/api/"))
        self.assertEqual(len(self.hub.asked("cdn")), 1)
        first.end(signal.SIGKILL)
        line = second.wait_line(lambda line: line.startswith("{"))
        self.assertEqual(json.loads(line)["commit"], "a" * 40)
        self.assertEqual(second.end(), 0)

    def test_wrong_bytes_are_not_kept(self):
        repository = self.put()
        for path in "config.json", LARGE:  # small ones come first
            repository.faults = {path: [("other bytes", 0)]}
            said = self.refuse(1, "pull", "org/tiny", names=[
                path, "another hash", repository.hash_of(path)])
            self.assert_secret(said)
            self.assertFalse(
                list((self.cache / "blobs").glob("*.incomplete")))
        # What was there before is not trusted, either.
        part = self.cache / "blobs" / (repository.hash_of(LARGE)
                                       + ".incomplete")
        part.write_bytes(b"wrong" * 100)
        self.pull()
        part.write_bytes(b"x" * 10_000_000)  # longer than the file
        os.remove(self.cache / "blobs" / repository.hash_of(LARGE))
        self.pull()

    def test_lengths_that_are_lies(self):
        repository = self.put()
        size = len(repository.files[LARGE])
        repository.faults = {LARGE: [("length", 100)]}
        self.refuse(1, "pull", "org/tiny", names=[
            f"should have {size} bytes", "has 100"])
        repository.lies = {LARGE: {"lfs": {
            "sha256": repository.hash_of(LARGE), "size": 100}}}
        self.refuse(1, "pull", "org/tiny", names=["should have 100 bytes"])
        repository.lies[LARGE]["lfs"]["size"] = 1 << 49
        self.refuse(1, "pull", "org/tiny", names=[
            "no room", "512 TiB", "HF_HUB_CACHE"])
        repository.lies[LARGE]["lfs"]["size"] = -1
        self.refuse(1, "pull", "org/tiny", names=["no size or hash", LARGE])

    def test_lists_that_are_none(self):
        repository = self.put()
        for fault, names in ((b"<html>", ["not valid JSON"]),
                             (b"[" * 100, ["nested deeper"]),
                             (b'{"sha": "../../x"}', ["names no commit"]),
                             (b" " * (33 << 20), ["more than 33554432"])):
            repository.listing_faults = [fault]
            self.refuse(1, "pull", "org/tiny", names=names)

    def test_paths_of_the_list_lead_nowhere_else(self):
        self.put(files={**tiny_model(), "../../../../evil/config.json": b"x"})
        self.pull()
        self.pull()
        self.assertFalse(list(self.folder.rglob("evil")))

    def test_names_are_checked(self):
        for name in ("tiny", "org/..", "org/tiny@../../x",
                     "org/tiny:../../x.gguf"):
            self.refuse(2, "pull", name, names=["no name of a model"])
        self.assertEqual(self.hub.requests, [])

    def test_a_token_goes_to_the_hub_alone(self):
        repository = self.put(needs="token")
        repository.faults = {LARGE: [("cut", 100)]}
        self.write("hf/token", TOKEN + "\n")
        done = self.run_shoal("pull", "org/tiny")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_secret(done.stdout, done.stderr)
        for kind, path, headers in self.hub.requests:
            self.assertEqual(headers.get("Authorization"),
                             f"Bearer {TOKEN}" if kind == "hub" else None, path)
        # Nor to the same host under another name.
        self.put("org/away", needs="token", files={
            **tiny_model(), "config.json": b"{}"}).faults = {
                "config.json": [("to", self.hub.url.replace(
                    "127.0.0.1", "localhost") + "/x")]}
        self.hub.requests.clear()
        self.refuse(1, "pull", "org/away", env={"HF_TOKEN": TOKEN})
        self.assertEqual([h for p, h in self.hub.asked(part="/x")
                          if "Authorization" in h], [])
        self.assertEqual(len(self.hub.asked(part="/x")), 1)

    def test_https_is_checked_and_stays_https(self):
        certificate = self.folder / "hub.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
             "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=hub", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
             certificate, "-out", self.folder / "only.pem"],
            check=True, capture_output=True)
        with certificate.open("a") as file:
            file.write((self.folder / "only.pem").read_text())
        hub = Hub(certificate)
        self.addCleanup(hub.close)
        self.env["HF_ENDPOINT"] = hub.url
        repository = Repository(tiny_model())
        hub.repositories["org/tiny"] = repository
        self.refuse(1, "pull", "org/tiny", names=["certificate"])
        self.assertEqual(hub.requests, [])
        self.env["SSL_CERT_FILE"] = str(self.folder / "only.pem")
        self.pull()
        # To the other server, which speaks http.
        repository.large = {LARGE}
        (self.cache / "blobs" / git_hash(repository.files[LARGE])).unlink()
        said = self.refuse(1, "pull", "org/tiny", names=[LARGE, "http"])
        self.assert_secret(said)
        self.assertEqual(hub.asked("cdn"), [])

    def test_refusals_say_what_to_do(self):
        self.put("org/closed", needs="token")
        self.put("org/gated", needs="gate")
        self.put()
        url = self.hub.url
        for name, env, names in (
                ("org/closed", {}, ["401", "HF_TOKEN"]),
                ("org/gated", {}, ["gated", f"{url}/org/gated", "HF_TOKEN"]),
                ("org/gated", {"HF_TOKEN": TOKEN}, ["403", "gated", "accept"]),
                ("org/tiny", {"HF_TOKEN": "hf_secretOther"},
                 ["401", "refuses the token"]),
                ("org/tiny", {"HF_TOKEN": "hf_secret\nX: y"},
                 ["HF_TOKEN", "no token"]),
                ("org/none", {}, ["404", "no model org/none", "spelling"]),
                ("org/tiny@v9", {}, ["404", "no revision 'v9'"]),
                ("org/tiny", {"HF_ENDPOINT": "http://u:secret@h"},
                 ["HF_ENDPOINT"])):
            with self.subTest(name, **env):
                said = self.refuse(1, "pull", name, env=env, names=names)
                self.assert_secret(said)

    def test_a_hub_that_is_away(self):
        repository = self.put()
        repository.listing_faults = [503, 429]
        found = self.pull()
        with socket.socket() as taken:  # bound, but nobody listens
            taken.bind(("127.0.0.1", 0))
            away = {"HF_ENDPOINT":
                    f"http://127.0.0.1:{taken.getsockname()[1]}"}
            names = ["cannot reach", "check the network"]
            self.refuse(1, "pull", "org/tiny", env=away, names=names)
            # There is no tokenizer, so it is asked whether there is one now.
            done = self.run_shoal("generate", "org/tiny", "--prompt-ids", "5",
                                  "--max-tokens", "1", env=away)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("the cache has the model", done.stderr)
            self.assertIn(found["path"], done.stderr)
            self.refuse(1, "generate", "org/other", "--prompt-ids", "5",
                        env=away, names=["no file or folder org/other",
                                         *names])

    def test_hubs_that_are_offline_say_so(self):
        self.put()
        said = self.refuse(1, "pull", "org/tiny", env={"HF_HUB_OFFLINE": "1"},
                           names=["not in the cache", "HF_HUB_OFFLINE"])
        self.assertIn(str(self.home / "hub"), said)
        self.assertEqual(self.hub.requests, [])

    def test_serve_takes_a_name(self):
        self.put()
        serve = self.start("serve", "org/tiny", "--http", "127.0.0.1:0",
                           "--json", "--threads", "1")
        line = serve.wait_line(lambda line: '"ready"' in line)
        self.assertEqual(json.loads(line)["model"], "org/tiny")
        self.assertEqual(serve.end(signal.SIGINT), 130)

    def test_a_full_disk_keeps_what_has_come(self):
        repository = self.put()
        program = self.write("limited", "#!/bin/sh\ntrap '' XFSZ\n"
                             f"ulimit -f 256\nexec {self.program} \"$@\"\n")
        program.chmod(0o755)
        limited = self.start("pull", "org/tiny", program=program)
        self.assertEqual(limited.end(), 1)
        said = "\n".join(limited.said())
        self.assertIn("cannot be written", said)
        self.assertIn("kept", said)
        self.pull()
        self.assertIn("Range", self.hub.asked("cdn")[-1][1])
        self.assertEqual(git_hash(repository.files["config.json"]),
                         repository.hash_of("config.json"))


if __name__ == "__main__":
    main()
