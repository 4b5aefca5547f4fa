# tools/demo_streams.py -- the second half of tools/demo: streams of a served model
# while a peer that computes them is killed.
#
#   demo_streams.py SHOAL MODEL NAME=PID...
#
# Asks a node without a stage for three streams, twice: the second time a peer of
# the pipeline is killed when all of them have begun. Prints what it does, and
# fails unless the texts are the same.
import http.client
import json
import os
import signal
import subprocess
import sys
import threading

PROMPTS = ["#include <", "/* The ", "struct "]
SECONDS = 60
ASKS_MAX = 100


def status(shoal, name):
    return json.loads(subprocess.run(
        [shoal, "status", "--json", "--name", name], check=True,
        capture_output=True, text=True).stdout)


def stream(address, model, i, begun, texts):
    connection = http.client.HTTPConnection(address, timeout=SECONDS)
    body = {"model": model, "prompt": PROMPTS[i], "max_tokens": 200,
            "temperature": 0.5, "seed": i, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body),
                       {"Content-Type": "application/json"})
    text, events = "", 0
    for line in connection.getresponse():
        line = line.decode().rstrip("\n")
        if line == "data: [DONE]":
            texts[i] = text
        elif line.startswith("data: "):
            text += json.loads(line[6:])["choices"][0]["text"]
            events += 1
            if events == 2:
                begun.release()
    connection.close()


def streams(address, model, when_begun=lambda texts: None):
    begun, texts = threading.Semaphore(0), {}
    threads = [threading.Thread(target=stream, daemon=True,
                                args=(address, model, i, begun, texts))
               for i in range(len(PROMPTS))]
    for thread in threads:
        thread.start()
    for _ in threads:
        if not begun.acquire(timeout=SECONDS):
            sys.exit("a stream has not begun")
    when_begun(texts)
    for thread in threads:
        thread.join(SECONDS)
    return texts


def main(shoal, model, *nodes):
    pids = dict(node.rsplit("=", 1) for node in nodes)
    # The node that is asked may hear of the served model a moment later than the
    # one that took it; the training job of the same name has ended.
    for _ in range(ASKS_MAX):
        seen = status(shoal, next(iter(pids)))
        job = next((j for j in seen["jobs"] if j["name"] == model
                    and j["state"] == "running" and j.get("places")), None)
        if job:
            break
    else:
        sys.exit(f"no peer computes {model}")
    names = {peer["id"]: peer["name"] for peer in seen["peers"]}
    stages = [names[stage["id"]] for stage in job["places"][0]]
    asked = next(name for name in pids if name not in stages)
    address = status(shoal, asked)["http"]
    print(f"== {' and '.join(stages)} compute; {asked} is asked for "
          f"{len(PROMPTS)} streams at http://{address}", flush=True)
    undisturbed = streams(address, model)

    def kill(ended):
        os.kill(int(pids[stages[-1]]), signal.SIGKILL)
        print(f"== Killed {stages[-1]} (SIGKILL) while "
              f"{len(PROMPTS) - len(ended)} of them run", flush=True)
        if len(ended) == len(PROMPTS):
            sys.exit("the streams had ended before the death")

    texts = streams(address, model, kill)
    for i, prompt in enumerate(PROMPTS):
        if i not in texts or texts[i] != undisturbed.get(i):
            sys.exit(f"stream {i + 1} ({prompt!r}) is not what it was without "
                     "the death")
    print(f"== All {len(PROMPTS)} streams went on, with the same texts",
          flush=True)


main(*sys.argv[1:])
