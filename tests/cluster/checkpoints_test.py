# tests/cluster/checkpoints_test.py -- checkpoints of real processes: each peer
# writes its part, other layouts go on from them, damaged files are noticed.
#
# Method: a run is interrupted, which makes a checkpoint, and goes on in another
# layout. The losses must be those of one process that goes on from the same
# checkpoint, to the last bit.
import json
import pathlib
import re
import shutil
import signal
import sys

from lifecycle_support import (Run, kill_together, log_of, run_scenarios,
                               scenario, wait_for)

STEPS = 60
WROTE = re.compile(r"\[checkpoint\] step (\d+): wrote (\d+) of (\d+) units, "
                   r"([\d.]+) ([KMG]?i?B)\b")
POWER = {"B": 0, "KiB": 1, "MiB": 2, "GiB": 3}


def text_for(folder):
    text = folder / "text"
    text.write_bytes(bytes(32 + (i * i * 7 + i // 3) % 90
                           for i in range(300_000)))
    return [str(text)]


def interrupted(cluster, folder, data, flags=(), **layout):
    """Runs a few steps, then stops in order; the losses, and where the
    checkpoint is."""
    run = Run(cluster, folder, steps=STEPS, data=data, flags=flags, **layout)
    run.advance(5)
    run.process.send_signal(signal.SIGINT)
    assert run.finish(30) == 130
    saved = [e for e in run.events if e["event"] == "checkpoint"]
    assert saved and saved[-1]["step"] == max(run.losses) < STEPS, saved
    return run.losses, pathlib.Path(saved[-1]["path"])


@scenario
def other_layouts_go_on_to_the_same_losses(cluster, folder):
    """2 x 2, then 3 stages, then one process."""
    cluster.start_all()
    cluster.wait_view(4)
    data = text_for(folder)
    first, saved = interrupted(cluster, folder, data, replicas=2, stages=2)
    # One process from here on, by itself, to compare with.
    other = folder / "other"
    shutil.copytree(folder / "out", other / "out")
    alone = Run(cluster, other, steps=STEPS, data=data, flags=["--resume"],
                replicas=1, stages=1, own=True)
    assert alone.finish(60) == 0
    assert min(alone.losses) == max(first) + 1
    second, _ = interrupted(cluster, folder, data, ["--resume"], replicas=1,
                            stages=3)
    assert min(second) == max(first) + 1
    third = Run(cluster, folder, steps=STEPS, data=data, flags=["--resume"],
                replicas=1, stages=1, own=True)
    assert third.finish(60) == 0
    assert min(third.losses) == max(second) + 1
    assert {**second, **third.losses} == alone.losses
    assert ((third.out / "model.safetensors").read_bytes()
            == (alone.out / "model.safetensors").read_bytes())
    # Before it, replicas add in another order.
    whole = folder / "whole"
    whole.mkdir()
    one = Run(cluster, whole, steps=STEPS, data=data, replicas=1, stages=1,
              own=True)
    assert one.finish(60) == 0
    worst = max(abs(first[s] / one.losses[s] - 1) for s in first)
    print(f"  2 x 2 to step {max(first)}, 3 stages to {max(second)}, one "
          f"process to {STEPS}: as one from step {max(first) + 1} on, bit for "
          f"bit; before it within {worst:.1e}")
    assert worst <= 1e-5
    # What is brought home is what loaders of Hugging Face models expect.
    names = sorted(p.name for p in saved.iterdir())
    assert "model.safetensors" in names and "config.json" in names, names
    index = json.loads((saved / "optimizer.safetensors.index.json")
                       .read_text(encoding="utf-8"))
    assert set(index["weight_map"].values()) <= set(names), names


@scenario
def each_peer_writes_its_part_and_keeps_a_share(cluster, folder):
    cluster.start_all()
    cluster.wait_view(4)
    run = Run(cluster, folder, steps=20, interval=10, data=text_for(folder),
              blocks=24, flags=["--checkpoint.keepers", "4"])
    run.until(lambda e: e["event"] == "step")
    told = cluster.run(["status", "--data-dir", str(cluster.mine)], 1).stdout
    assert "in parts on 4 disks, each part on 2" in told, told
    assert run.finish(90) == 0
    stores = {}
    for peer in cluster.peers:
        for name, file in checkpoint_files(peer).get(20, {}).items():
            stores.setdefault(name, []).append(file.exists())
    shards = [s for name, s in stores.items() if "-of-00026" in name]
    assert len(shards) == 52 and all(sum(s) >= 2 for s in shards), stores
    whole = [peer.name for peer in cluster.peers if 20 in checkpoints(peer)]
    print(f"  {len(shards)} files on two disks or more; whole on {whole}")
    # The command brings it home by way of the node that it talks to.
    assert set(whole) <= {cluster.peers[0].name}, whole
    wrote = {}
    for peer in cluster.peers:
        for line in log_of(peer):
            if found := WROTE.search(line):
                step, units = map(int, found.groups()[:2])
                size = float(found[4]) * 1024 ** POWER[found[5]]
                wrote.setdefault(step, {})[peer.name] = (units, size)
    steps = sorted(wrote)
    assert steps[-1] == 20 and len(steps) >= 3, wrote
    assert max(b - a for a, b in zip([0, *steps], steps)) <= 10, wrote
    for step, by in wrote.items():
        total = sum(size for _, size in by.values())
        parts = {name: f"{size / total:.1%}" for name, (_, size) in by.items()}
        print(f"  step {step}: {total:.0f} bytes, {parts}")
        assert len(by) == 4 and sum(units for units, _ in by.values()) == 26
        assert all(0.2 < size / total < 0.3 for _, size in by.values())


@scenario
def a_peer_that_was_away_at_the_end_fetches_the_model(cluster, folder):
    cluster.start_all()
    cluster.wait_view(3)
    run = Run(cluster, folder, steps=40, replicas=2, stages=1, number=2,
              interval=10, data=text_for(folder))
    run.advance(3)
    away = cluster.peers[0]
    away.kill()
    assert run.finish(90) == 0
    away.start()
    away.wait_ready()
    cluster.wait_view(3)
    job = away.status()["jobs"][0]
    # Its log does not have the end: those steps would be trained again.
    shutil.rmtree(run.out / "checkpoint/step-40")
    assert any((run.out / "checkpoint").iterdir())
    done = cluster.run(["train", str(run.out), "--resume", "--data-dir",
                        str(cluster.mine)], 1)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "with a checkpoint of step 40" in done.stderr, done.stderr
    out = folder / "later"
    done = cluster.run(["attach", job["id"], "--out", str(out), "--data-dir",
                        str(cluster.mine)], 1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ((out / "model.safetensors").read_bytes()
            == (run.out / "model.safetensors").read_bytes())


a_peer_that_was_away_at_the_end_fetches_the_model.peers = 3
FILE = "model-00003-of-00006.safetensors"


def checkpoint_files(peer):
    """step -> name -> path: the checkpoints of which a store has the manifest."""
    found = {}
    blobs = peer.store / "blobs"
    for blob in blobs.glob("[0-9a-f][0-9a-f]/*"):
        try:
            manifest = json.loads(blob.read_bytes())
        except ValueError:
            continue
        if (not isinstance(manifest, dict)
                or manifest.get("format") != "shoal-checkpoint-1"):
            continue
        files = {f["name"]: blobs / f["sha256"][:2] / f["sha256"][2:]
                 for f in manifest["files"]}
        found[manifest["step"]] = files
    return found


def checkpoints(peer):
    """The same of those of which it has all files."""
    return {step: files for step, files in checkpoint_files(peer).items()
            if all(f.exists() for f in files.values())}


def swap(a, b):
    one, two = a.read_bytes(), b.read_bytes()
    a.write_bytes(two)
    b.write_bytes(one)


DAMAGES = {
    "torn": lambda f, _: f.write_bytes(f.read_bytes()[:4096]
                                       + bytes(f.stat().st_size - 4096)),
    "bit_flipped": lambda f, _: f.write_bytes(
        f.read_bytes()[:-1] + bytes([f.read_bytes()[-1] ^ 1])),
    "truncated": lambda f, _: f.write_bytes(f.read_bytes()[:-1]),
    "swapped": swap,
}


def damaged(cluster, folder, act, everywhere):
    """All die and come back; one keeper's copy is damaged, or all are."""
    cluster.start_all()
    cluster.wait_view(2)
    run = Run(cluster, folder, replicas=1, stages=2, interval=10,
              data=text_for(folder))
    run.until(lambda e: e["event"] == "checkpoint" and e["step"] >= 20)

    def in_both():
        return set(checkpoints(cluster.peers[0])) \
            & set(checkpoints(cluster.peers[1]))

    wait_for(lambda: len(in_both()) >= 2)
    kill_together(cluster.peers)
    held = {}
    for peer in cluster.peers:
        for step, files in checkpoints(peer).items():
            held.setdefault(step, {})[peer] = files
    # The newest may have reached one store only. Then the other has parts of
    # it, of which all together would be enough.
    newest = max(step for step, by in held.items() if len(by) == 2)
    for step in [s for s in held if s > newest]:
        for files in held.pop(step).values():
            for peer in cluster.peers:
                blob = peer.store.joinpath(*files[FILE].parts[-3:])
                blob.unlink(missing_ok=True)
    victims = list(held[newest].items())[:None if everywhere else 1]
    for _, files in victims:
        before = files[FILE].read_bytes()
        act(files[FILE], files["optimizer-00002-of-00006.safetensors"])
        assert files[FILE].read_bytes() != before
    cluster.start_all()
    back = run.until(lambda e: "restoring from the checkpoint" in
                     e.get("text", ""))["text"]
    run.advance(3)
    said = f"{FILE} of the checkpoint of step {newest} is damaged here"
    for peer, _ in victims:
        assert any(said in line for line in log_of(peer)), log_of(peer)
    print(f"  {said}; {back}")
    wanted = max(s for s in held if s < newest) if everywhere else newest
    assert back.endswith(f"of step {wanted}"), (back, sorted(held))


def add(name, act, everywhere):
    def check(cluster, folder):
        damaged(cluster, folder, act, everywhere)
    check.__name__ = name
    check.peers = 2
    scenario(check)


for NAME, ACT in DAMAGES.items():
    add(NAME + "_in_one_store", ACT, False)
    add(NAME + "_in_all_stores", ACT, True)


if __name__ == "__main__":
    sys.exit(run_scenarios())
