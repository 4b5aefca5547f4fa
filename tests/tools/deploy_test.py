# tests/tools/deploy_test.py -- the files of tools/deploy.
#
# Usage: deploy_test.py PROGRAM
# Fields of the Kubernetes documents that must agree with each other and with the
# program's options; the Slurm script with the real program, where `srun` and
# `scontrol` are small scripts. kubeconform or kubernetes-validate (PyPI) and hadolint
# look too, if they are there.
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "apps"))
from support import TINY_RUN, World  # noqa: E402

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "tools" / "deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
SCRIPT = DEPLOY / "slurm" / "shoal.sbatch"
PORT = 18372  # of a node (runtime/discovery/host_list.hpp)


def have(tool):
    return unittest.skipUnless(shutil.which(tool), f"{tool} is not installed")


class Kubernetes(World):
    def setUp(self):
        super().setUp()
        self.documents = {}
        for file in KUBERNETES:
            for d in yaml.safe_load_all(file.read_text("utf-8")):
                self.documents[d["kind"], d["metadata"]["name"]] = d
        self.set = self.documents["StatefulSet", "shoal"]["spec"]
        self.pod = self.set["template"]
        self.container, = self.pod["spec"]["containers"]

    def test_selectors_name_the_pods(self):
        labels = self.pod["metadata"]["labels"]
        for selector in (
                self.set["selector"]["matchLabels"],
                self.documents["Service", "shoal"]["spec"]["selector"],
                self.documents["Service", "shoal-peers"]["spec"]["selector"],
                self.documents["PodDisruptionBudget", "shoal"]["spec"][
                    "selector"]["matchLabels"],
                self.documents["PodMonitor", "shoal"]["spec"]["selector"][
                    "matchLabels"]):
            self.assertTrue(selector)
            self.assertEqual(selector.items() & labels.items(),
                             selector.items())

    def test_peers_find_each_other_by_the_headless_service(self):
        peers = self.documents["Service", self.set["serviceName"]]["spec"]
        self.assertEqual(peers["clusterIP"], "None")
        self.assertIs(peers["publishNotReadyAddresses"], True)
        words = self.container["command"][-1].split()
        self.assertEqual(words[words.index("--join") + 1],
                         self.set["serviceName"])
        ports = {p["name"]: p["containerPort"]
                 for p in self.container["ports"]}
        self.assertEqual(ports["peers"], PORT)
        self.assertEqual(words[words.index("--listen") + 1],
                         f"0.0.0.0:{ports['peers']}")
        self.assertEqual(words[words.index("--http") + 1],
                         f"0.0.0.0:{ports['http']}")
        for service in ("shoal", "shoal-peers"):
            for port in self.documents["Service", service]["spec"]["ports"]:
                self.assertIn(port["targetPort"], ports)
        for end in self.documents["PodMonitor", "shoal"]["spec"][
                "podMetricsEndpoints"]:
            self.assertIn(end["port"], ports)
            self.assertEqual(end["path"], "/metrics")

    def test_the_program_knows_each_option(self):
        script = self.container["command"][-1]
        known = set(re.findall(r"--[\w.-]+", self.succeed("node", "--help")))
        used = set(re.findall(r"(?<!\S)--[\w.-]+", script))
        self.assertLess({"--join", "--cluster-key"}, used)
        self.assertLessEqual(used, known)

    def test_a_node_starts_with_these_options(self):
        secret, run = self.folder / "secret", self.folder / "run"
        secret.mkdir(), run.mkdir()
        self.succeed("key", "new", secret / "key")
        self.succeed("apikey", "me", "--file", secret / "api.keys")
        for file in secret.iterdir():
            file.chmod(0o440)
        script = self.container["command"][-1]
        for theirs, ours in (("/etc/shoal", secret), ("/run/shoal", run),
                             ("exec shoal", f"exec {self.program}"),
                             ("shoal-peers", "127.0.0.1:1"),
                             (":18372", ":0"), (":8000", ":0")):
            self.assertIn(theirs, script)
            script = script.replace(theirs, str(ours))
        node = self.start("-ec", script, program="/bin/sh")
        node.wait_line(lambda line: "web page: " in line)
        self.assertEqual(node.end(signal.SIGTERM), 0, node.said())

    def test_probes_and_the_end_of_a_pod(self):
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            self.assertEqual(self.container[probe]["httpGet"],
                             {"path": "/health", "port": "http"})
        self.assertEqual(
            self.container["lifecycle"]["preStop"]["exec"]["command"],
            ["shoal", "leave"])
        # More than a node takes to leave (150 s of the service).
        self.assertGreater(self.pod["spec"]["terminationGracePeriodSeconds"],
                           150)

    def test_volumes_and_rights(self):
        spec = self.pod["spec"]
        volumes = {v["name"]: v for v in spec["volumes"]}
        claims = {c["metadata"]["name"]
                  for c in self.set["volumeClaimTemplates"]}
        mounts = {m["mountPath"]: m["name"]
                  for m in self.container["volumeMounts"]}
        self.assertEqual(set(mounts.values()), volumes.keys() | claims)
        self.assertIn(mounts["/var/lib/shoal"], claims)
        self.assertEqual(self.container["env"][0],
                         {"name": "HOME", "value": "/var/lib/shoal"})
        self.assertEqual(volumes[mounts["/dev/shm"]]["emptyDir"]["medium"],
                         "Memory")
        self.assertIn("secret", volumes[mounts["/etc/shoal"]])
        self.assertIs(spec["enableServiceLinks"], False)
        self.assertIs(spec["securityContext"]["runAsNonRoot"], True)
        inside = self.container["securityContext"]
        self.assertIs(inside["allowPrivilegeEscalation"], False)
        self.assertIs(inside["readOnlyRootFilesystem"], True)
        image = (DEPLOY / "container" / "Containerfile").read_text("utf-8")
        self.assertIn(f"USER {spec['securityContext']['runAsUser']}:", image)

    @have("kubeconform")
    def test_kubeconform_takes_them(self):
        subprocess.run(["kubeconform", "-strict", "-ignore-missing-schemas",
                        *KUBERNETES], check=True)

    @have("kubernetes-validate")
    def test_the_schemas_of_kubernetes_take_them(self):
        subprocess.run(["kubernetes-validate", "--strict", *KUBERNETES], check=True)


class Container(unittest.TestCase):
    def test_the_image_has_a_user_and_a_check(self):
        text = (DEPLOY / "container" / "Containerfile").read_text("utf-8")
        stages = re.findall(r"(?m)^FROM (\S+)", text)
        self.assertEqual(stages, ["debian:12-slim"] * 2)
        last = text[text.rindex("\nFROM "):]
        self.assertIn('"--api-keys"', last[last.index("\nCMD ["):])
        for line in (r"USER 10001:10001", r"HEALTHCHECK .*\\\n\s+CMD \[",
                     r"COPY --from=build /package ", r"STOPSIGNAL SIGTERM"):
            self.assertRegex(last, "(?m)^" + line)
        self.assertLess(last.index("\nUSER "), last.index("\nENTRYPOINT "))

    @have("hadolint")
    def test_hadolint_takes_it(self):
        subprocess.run(["hadolint", "--ignore", "DL3008",
                        DEPLOY / "container" / "Containerfile"], check=True)


# Runs the command on "the node" and hands signals on, as srun does.
SRUN = """#!/bin/bash
while [[ $1 = --* ]]; do shift; done
"$@" & child=$!
trap 'kill -TERM $child' TERM
wait $child; code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
exit $code
"""
SCONTROL = """#!/bin/sh
echo "$@" >> "$SCONTROL_LOG"
"""


class Slurm(World):
    def setUp(self):
        super().setUp()
        tools = self.folder / "bin"
        for name, text in (("srun", SRUN), ("scontrol", SCONTROL)):
            self.write(f"bin/{name}", text).chmod(0o755)
        (tools / "shoal").symlink_to(self.program)
        self.succeed("key", "new", "key")
        self.env |= {"PATH": f"{tools}:{os.environ['PATH']}",
                     "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "1",
                     "SLURM_JOB_NODELIST": "localhost",
                     "SHOAL_SCRATCH": str(self.folder / "scratch"),
                     "SHOAL_KEY": str(self.folder / "key"),
                     "SCONTROL_LOG": str(self.folder / "scontrol.log")}

    def begin(self, steps):
        run = self.write("run.toml", TINY_RUN.replace(
            "steps = 5\nseq", f"steps = {steps}\nseq"))
        return self.start(run, self.write_text_files(), "model",
                          program=str(SCRIPT))

    def test_shellcheck_and_bash_take_it(self):
        subprocess.run(["bash", "-n", SCRIPT], check=True)
        if shutil.which("shellcheck"):
            subprocess.run(["shellcheck", SCRIPT], check=True)

    def test_a_run_ends_and_so_do_the_peers(self):
        job = self.begin(5)
        self.assertEqual(job.end(), 0, job.said())
        self.assertTrue((self.folder / "model" / "model.safetensors").exists())
        self.assertFalse((self.folder / "scontrol.log").exists())
        self.assert_ending(self.processes())

    def test_before_the_end_of_its_time_it_is_queued_again_and_goes_on(self):
        first = self.begin(100000)
        first.wait_line(lambda line: re.search(r"step +\d\d+[ /]", line))
        self.assertEqual(first.end(signal.SIGTERM), 0, first.said())
        self.assertEqual((self.folder / "scontrol.log").read_text(),
                         "requeue 7\n")
        self.assert_ending(self.processes())
        second = self.begin(100000)
        line = second.wait_line(lambda line: "step" in line and "loss" in line)
        self.assertNotRegex(line, r"step +1[ /]")
        self.assertEqual(second.end(signal.SIGTERM), 0, second.said())
        self.assert_ending(self.processes())


if __name__ == "__main__":
    World.program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main(verbosity=2)
