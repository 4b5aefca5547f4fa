# tests/tools/package_test.py -- the Debian package on a bare machine.
#
# Usage: package_test.py BUILD_DIR
# Makes the package (tools/package) and a bare Debian 12 (debootstrap's minbase,
# kept in BUILD_DIR for the next time), installs the package there with what it
# depends on, trains for a moment, compiles a plug-in, and purges it: then the
# files are those of before. Skipped (77) without debootstrap, root, or network.
#
# The bare system has its own processes, mounts and /dev/shm: whatever a command
# starts in it ends with the command.
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(sys.argv[1]).resolve()
SKIPPED = 77
# What programs of Debian keep beside packages, and what the kernel shows.
NOT_OURS = re.compile(
    r"/(dev|proc|run|sys|tmp)/|/var/(cache|log|lib/(apt|dpkg))/"
    r"|/etc/(ld\.so\.cache|(passwd|group|shadow|gshadow|subuid|subgid)-?"
    r"|\.pwd\.lock|mailcap)$|/usr/share/(info/dir|mime/)")
# Runs $2 in the root $1 with /proc and a /dev of its own.
ENTER = """set -e
mount -t proc proc "$1/proc"
mount -t tmpfs -o mode=755 tmpfs "$1/dev"
for i in null zero full random urandom tty; do
  touch "$1/dev/$i"; mount --bind "/dev/$i" "$1/dev/$i"
done
ln -s /proc/self/fd "$1/dev/fd"
mkdir "$1/dev/shm" "$1/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$1/dev/pts"
ln -s pts/ptmx "$1/dev/ptmx"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm"
mount -t tmpfs tmpfs "$1/run"
mount --bind "$3" "$1/var/cache/apt/archives"
exec chroot "$1" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \\
  PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -euo pipefail -c "$2"
"""


def skip(why):
    print("skipped:", why)
    sys.exit(SKIPPED)


def bare_root(folder):
    """Unpacks a bare Debian 12 into `folder`."""
    kept = BUILD / "package-root" / "bookworm-minbase.tar"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as made:
            done = subprocess.run(
                ["debootstrap", "--variant=minbase", "bookworm", made],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0:
                skip("debootstrap makes no Debian 12 here: "
                     + done.stdout.strip().splitlines()[-1])
            os.chmod(made, 0o755)
            new = kept.with_suffix(".new")
            subprocess.run(["tar", "-C", made, "-cf", new, "."], check=True)
            new.rename(kept)
    subprocess.run(["tar", "-C", folder, "-xf", kept], check=True)
    # So that apt reaches what this machine reaches.
    for name in ("etc/resolv.conf", "etc/hosts"):
        shutil.copyfile("/" + name, folder / name)


def files(root):
    out = set()
    for folder, folders, names in os.walk(root):
        for name in names + folders:
            path = "/" + os.path.relpath(os.path.join(folder, name), root)
            if not NOT_OURS.search(path) and not NOT_OURS.search(path + "/"):
                out.add(path)
    return out


def enter(root, command, **more):
    print("+", command.strip().replace("\n", "\n  "), flush=True)
    archives = BUILD / "package-root" / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c",
         ENTER, "enter", root, command, archives], stdin=subprocess.DEVNULL,
        check=True, **more)


def check(root, package):
    before = files(root)
    shutil.copy(package, root / "tmp" / package.name)
    try:
        enter(root, "apt-get update -qq -o APT::Update::Error-Mode=any")
    except subprocess.CalledProcessError:
        skip("apt reaches no packages from here")
    # No program of the bare system has asked for what is installed here.
    enter(root, "apt-get install -y -qq --no-install-recommends "
                f"/tmp/{package.name} >/dev/null")
    said = enter(root, "shoal --version", stdout=subprocess.PIPE,
                 text=True).stdout
    assert re.match(r"shoal \d+\.\d+\.\d+", said), said
    enter(root, "shoal doctor")
    enter(root, """cd /tmp
shoal train --example >run.toml
shoal train run.toml --training.steps 20 --data /usr/share/common-licenses \\
  --out model
test -s model/model.safetensors
test -s model/tokenizer.json""")
    # As the guide says to; and the node takes it.
    enter(root, """cd /tmp
apt-get install -y -qq --no-install-recommends g++ libcaf-dev pkg-config >/dev/null
cp /usr/share/doc/shoal/examples/hello_actor/* .
mv hello_plugin.cpp mine.cpp
g++ -std=c++20 -O2 -fPIC -shared $(pkg-config --cflags shoal) mine.cpp \\
  -o libmine.so -lcaf_core
shoal node --plugin ./libmine.so >node.log 2>&1 & node=$!
timeout 120 grep -q -m1 '\\[hello\\] 1 peer' <(tail -f -n +1 --pid=$node node.log)
kill -INT $node
wait $node""")
    assert "shoal" in (root / "etc/passwd").read_text()  # the service's user
    enter(root, """apt-get purge -y -qq --auto-remove shoal g++ libcaf-dev \\
  pkg-config >/dev/null
rm -rf /root/.local /root/.config /root/.cache""")
    left = files(root) - before
    lost = before - files(root)
    assert not left, f"left behind: {sorted(left)}"
    assert not lost, f"taken away: {sorted(lost)}"


def main():
    if not shutil.which("debootstrap"):
        skip("no debootstrap here: tools/setup --with package installs it")
    if os.getuid() != 0:
        skip("needs root, to make a bare system")
    made = BUILD / "package"
    shutil.rmtree(made, ignore_errors=True)
    # Beside BUILD, so that ccache knows what is compiled.
    subprocess.run([ROOT / "tools/package", "--out", made, "--build-dir",
                    f"{BUILD}-package"], check=True)
    (package,) = made.glob("shoal_*.deb")
    with tempfile.TemporaryDirectory(prefix="shoal-package-") as folder:
        os.chmod(folder, 0o755)
        root = pathlib.Path(folder)
        bare_root(root)
        check(root, package)
    print("the package installs, runs, and leaves nothing behind")


if __name__ == "__main__":
    main()
