#!/usr/bin/env python3
# tools/check_layers.py -- the house and its rules, enforced.
#
#   check_layers.py [ROOT]
#
#   apps -> actors -> runtime -> { transport, kernels };  runtime/core: plain C++
#
# Each folder of the product is a room on a floor. A file may include its own
# room and rooms of lower floors, so rooms cannot form a cycle, and of outside
# libraries only those that its room is for. A room has at most 25 files, a
# README of at most 60 lines, and lists its sources sorted in its meson.build.
# Also checked: files are short and begin with their path, tests do not sleep,
# JSON is parsed with a bound of its depth and written without throwing at a text
# that is not UTF-8, nothing is used that clang 14 lacks, which builds the fuzz
# targets, and every folder that the README's table names exists.
# Prints "file:line: what is wrong" and exits with 1 if anything is.
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1
                    else pathlib.Path(__file__).parent.parent).resolve()
FOLDERS = ["kernels", "transport", "runtime", "actors", "apps"]
README_LINES_MAX = 60
FILE_LINES_MAX = 600
ROOM_FILES_MAX = 25

# From the ground up. Rooms of one floor do not include each other.
FLOORS = [
    ["kernels/common", "kernels/memory", "transport", "runtime/core/text",
     "runtime/pch"],
    ["kernels/layers", "kernels/training", "runtime/core"],
    ["kernels/inference", "runtime/core/cluster/local"],
    ["kernels"],
    ["kernels/cpu/isa", "kernels/reference", "transport/loopback",
     "transport/introduced", "transport/tls", "runtime/core/cluster",
     "runtime/core/grammar", "runtime/core/schedule", "runtime/core/serving",
     "runtime/core/state", "runtime/host"],
    ["kernels/reference/layers", "kernels/reference/training",
     "runtime/core/planning/layout"],
    ["kernels/cpu/product", "kernels/reference/inference", "transport/shm", "transport/ucx",
     "runtime/core/planning", "runtime/files"],
    ["kernels/cpu", "runtime/core/measure", "runtime/core/training",
     "runtime/openai/rules", "runtime/work"],
    ["kernels/cpu/inference", "kernels/cpu/layers", "kernels/cpu/training",
     "runtime/openai"],
    ["runtime/anthropic", "runtime/openai/responses"],
    ["runtime/http/keys"],
    ["runtime/http"],
    ["runtime/http/client"],
    ["runtime/core/training/job/state"],
    ["runtime/core/training/job", "runtime/model/config", "runtime/model/files",
     "runtime/model/text/patterns", "runtime/discovery"],
    ["runtime/model", "runtime/model/text/models"],
    ["runtime/model/text"],
    ["runtime/model/data", "runtime/model/jinja/values",
     "runtime/model/text/trainer"],
    ["runtime/model/jinja"],
    ["runtime/model/decode"],
    ["runtime/jobs"],
    ["runtime/model/hf", "runtime/observe", "runtime/wire"],
    ["runtime", "runtime/links", "runtime/model/gguf", "runtime/store"],
    ["runtime/identity"],
    ["runtime/control"],
    ["runtime/node/state"],
    ["runtime/node/status"],
    ["runtime/node/requests"],
    ["runtime/node"],
    ["actors/pch", "actors/training"],
    ["actors/checkpoint", "actors/reduction"],
    ["actors/job/parts"],
    ["actors/job"],
    ["actors/serving"],
    ["actors/gateway/prompts"],
    ["actors/gateway"],
    ["actors/gateway/description"],
    ["actors"],
    ["apps/page", "apps/terminal", "runtime/hub"],  # only commands use the hub
    ["apps/common"],
    ["apps/remote", "apps/transfer"],
    ["apps/submit"],
    ["apps/train"],
    ["apps/manage"],
    ["apps/bench", "apps/chaos", "apps/chat", "apps/model", "apps/node", "apps/serve",
     "apps/top"],
    ["apps/plan"],
    ["apps/cli"],
    ["apps", "apps/examples/hello_actor"],
]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS)
            for room in rooms}

# Longest prefix wins. Each: project folders and outside headers allowed.
UCX = r"<uc[pst]/"
ASIO = r"<boost/asio|<openssl/"
BOOST = r"<boost/(?!beast)"
BEAST = r"<boost/beast"  # slow to compile: in .cpp files only
CUDA = r"<cuda|<cublas"
DNNL = r"<dnnl|<oneapi/dnnl"
HIGHWAY = r"<hwy/|\"hwy/"
CAF = r"<caf/"
PROTOBUF = r"<google/protobuf|\.pb\.h"
PCRE2 = r"<pcre2"
UTF8PROC = r"<utf8proc"
ARCHIVES = r"<zlib\.h|<zstd"
LIBEDIT = r"<histedit|<editline"
NCURSES = r"<n?curses"
CURL = r"<curl/"
OUTSIDE = [UCX, ASIO, CUDA, DNNL, HIGHWAY, CAF, PROTOBUF, r"<boost/",
           r"<nlohmann/", r"<toml\+\+|<toml\.hpp", r"<CLI/", r"<xxhash\.h",
           PCRE2, UTF8PROC, ARCHIVES, CURL, LIBEDIT, NCURSES]
RULES = {
    "kernels": (["kernels"], []),
    "kernels/cpu": (["kernels"], [DNNL, HIGHWAY]),
    "kernels/cuda": (["kernels"], [CUDA]),
    "transport": (["transport"], []),
    "transport/tls": (["transport"], [ASIO, BOOST, r"<xxhash\.h"]),
    "transport/introduced": (["transport"], [r"<xxhash\.h"]),
    "transport/shm": (["transport"], []),
    "transport/ucx": (["transport"], [UCX, r"<xxhash\.h"]),
    "transport/loopback": (["transport"], [r"<xxhash\.h"]),
    "runtime/core": (["runtime/core"], []),
    "runtime/host": (["runtime/host", "runtime/core"], []),
    "runtime/files": (["runtime/files", "runtime/host", "runtime/core"],
                      [r"<nlohmann/", r"<xxhash\.h", r"<openssl/"]),
    "runtime/model": (["runtime/model", "runtime/files", "runtime/core",
                       "kernels"], [r"<nlohmann/"]),
    "runtime/model/data": (["runtime/model", "runtime/files", "runtime/core",
                            "kernels"], [r"<nlohmann/", ARCHIVES]),
    "runtime/model/text/patterns": (["runtime/model", "runtime/files",
                                     "runtime/core", "kernels"],
                                    [r"<nlohmann/", PCRE2, UTF8PROC]),
    "runtime": (["runtime", "transport", "kernels"],
                [CAF, PROTOBUF, ASIO, BOOST, r"<nlohmann/", r"<xxhash\.h"]),
    "runtime/hub": (["runtime/hub", "runtime/model/files", "runtime/files",
                     "runtime/core"], [CURL, r"<nlohmann/", r"<openssl/"]),
    "runtime/http": (["runtime"], [ASIO, BOOST, BEAST]),
    "runtime/anthropic": (["runtime"], [r"<nlohmann/"]),
    "runtime/openai": (["runtime"], [r"<nlohmann/"]),
    "actors": (["actors", "runtime", "transport", "kernels"],
               [CAF, r"<nlohmann/"]),
    "apps": (FOLDERS, [CAF, r"<nlohmann/", r"<toml\+\+|<toml\.hpp", r"<CLI/",
                       BOOST, ASIO]),
    "apps/chat": (FOLDERS, [r"<nlohmann/", LIBEDIT]),
    "apps/top": (FOLDERS, [r"<nlohmann/", NCURSES, UTF8PROC]),
}
SUBRANGE = re.compile(
    r"(std::views::\w+|std::ranges::(?:rotate|unique|remove_if|remove|"
    r"stable_partition|partition|equal_range|search|find_end)\b)")
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\(|"
                   r"(?<![\w.])::?sleep\s*\(")
# Foreign JSON may nest so deep that the library uses up the stack.
PARSE = re.compile(r"\bjson::(parse|accept|sax_parse)\s*\(", re.I)
# It throws where it prints a text that is not UTF-8, such as a file's name.
DUMP = re.compile(r"(\.|->)\s*dump\s*\(")
JSON_HOME = "runtime/files/json.hpp"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(["<][^">\n]+[">])', re.M)
errors = []


includes = {}  # room -> {room that it includes: where, first}


def check_floor(path, number, target):
    room, other = str(path.parent), str(pathlib.PurePath(target).parent)
    if room == other or room not in FLOOR_OF or other not in FLOOR_OF:
        return  # a room without a floor is told of by check_rooms()
    where = f"{path}:{number}"
    includes.setdefault(room, {}).setdefault(other, where)
    if FLOOR_OF[other] >= FLOOR_OF[room]:
        errors.append(f"{where}: {room} may not include {other}, which is not "
                      "on a lower floor")


def check_cycles():
    """Names one cycle of rooms, if there is any."""
    done = set()

    def visit(room, way):
        if room in way:
            cycle = way[way.index(room):] + [room]
            errors.append(f"{includes[cycle[-2]][room]}: closes a cycle of "
                          f"rooms: {' -> '.join(cycle)}")
            return True
        if room in done:
            return False
        done.add(room)
        return any(visit(other, way + [room])
                   for other in sorted(includes.get(room, {})))

    any(visit(room, []) for room in sorted(includes))


def check_rooms():
    rooms = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".proto"):
                rooms.setdefault(str(path.parent.relative_to(ROOT)),
                                 []).append(path.name)
    for room, names in rooms.items():
        if room not in FLOOR_OF:
            errors.append(f"{room}:1: has no floor in tools/check_layers.py")
        if len(names) > ROOM_FILES_MAX:
            errors.append(f"{room}:1: {len(names)} files, more than "
                          f"{ROOM_FILES_MAX}")
        if not (room.endswith("/pch")
                or (ROOT / room / "README.md").exists()):
            errors.append(f"{room}:1: has no README.md")
        build = ROOT / room / "meson.build"
        sources = [name for name in names if name.endswith(".cpp")]
        if not sources or room.startswith("apps/examples"):
            continue
        lists = [re.findall(r"'(\w+\.cpp)'", text) for text in re.findall(
            r"files\(([^)]*)\)",
            build.read_text("utf-8") if build.exists() else "")]
        for name in sorted(set(sources) - set(sum(lists, []))):
            errors.append(f"{room}/meson.build:1: does not list {name}")
        if any(names != sorted(names) for names in lists):
            errors.append(f"{room}/meson.build:1: lists its files unsorted")


def rule_for(path):
    prefix = str(path.parent)
    while prefix not in RULES:
        prefix = str(pathlib.PurePath(prefix).parent)
    return RULES[prefix]


def found(pattern, text):
    """Each match in a file, with the number of its line."""
    number, counted = 1, 0
    for match in pattern.finditer(text):
        number += text.count("\n", counted, match.start())
        counted = match.start()
        yield number, match


def check_includes(path, text):
    inside, outside = rule_for(path)
    for number, match in found(INCLUDE, text):
        name = match.group(1)
        where = f"{path}:{number}"
        target = name[1:-1]
        if name[0] == '"' and target.split("/")[0] in FOLDERS:
            if target.endswith(".pb.h"):
                if PROTOBUF not in outside:
                    errors.append(f"{where}: may not include {name}")
            elif not any(target.startswith(a + "/") for a in inside):
                errors.append(f"{where}: may not include {name}")
            else:
                check_floor(path, number, target)
            continue
        if re.search(BEAST, name) and path.suffix == ".hpp":
            errors.append(f"{where}: a header may not include {name}")
        for pattern in OUTSIDE:
            if re.search(pattern, name) and not any(
                    re.search(a, name) for a in outside):
                errors.append(f"{where}: may not include {name}")
                break


def check_json(path, text):
    if str(path) == JSON_HOME:
        return
    for number, _ in found(PARSE, text):
        errors.append(f"{path}:{number}: JSON is parsed by {JSON_HOME} only")
    for number, _ in found(DUMP, text):
        errors.append(f"{path}:{number}: JSON is written by json_text() of "
                      f"{JSON_HOME} only")


def main():
    for folder in FOLDERS + ["tests"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".py", ".proto"):
                continue
            relative = path.relative_to(ROOT)
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            if len(lines) > FILE_LINES_MAX:
                errors.append(f"{relative}:1: {len(lines)} lines, "
                              f"more than {FILE_LINES_MAX}")
            if path.suffix in (".hpp", ".cpp") and lines and not (
                    lines[0].startswith(f"// {relative}")):
                errors.append(f"{relative}:1: the first line is not "
                              f"'// {relative} -- what it is'")
            for number, match in found(SUBRANGE, text):
                errors.append(f"{relative}:{number}: clang 14 does not compile "
                              f"{match[0]} of GCC 12's library")
            if folder == "tests":
                for number, _ in found(SLEEP, text):
                    errors.append(f"{relative}:{number}: a test sleeps")
            elif path.suffix in (".hpp", ".cpp"):
                check_includes(relative, text)
                check_json(relative, text)
    check_cycles()
    check_rooms()
    for readme in sorted([ROOT / "tests/README.md", ROOT / "tools/README.md",
                          *(readme for folder in FOLDERS
                            for readme in (ROOT / folder).rglob("README.md"))]):
        length = len(readme.read_text(encoding="utf-8").splitlines())
        if length > README_LINES_MAX:
            errors.append(f"{readme.relative_to(ROOT)}:1: {length} lines, "
                          f"more than {README_LINES_MAX}")
    table = re.findall(r"^\| `([a-z/_]+)/?` \|",
                       (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    for name in table:
        if not (ROOT / name).exists():
            errors.append(f"README.md: names {name}, which does not exist")
    print("\n".join(errors) or "layers: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
