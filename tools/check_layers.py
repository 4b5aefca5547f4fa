#!/usr/bin/env python3
# tools/check_layers.py -- the layer table, enforced.
#
#   apps -> actors -> runtime -> { transport, kernels };  runtime/core: plain C++
#
# Checks every #include of the product against what its folder may include,
# that tests do not sleep, that JSON is parsed with a bound of its depth and
# written without throwing at a text that is not UTF-8, that each folder's
# README exists and is short, that files are short, and that every folder the
# README's table names exists.
# Prints "file:line: what is wrong" and exits with 1 if anything is.
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ["kernels", "transport", "runtime", "actors", "apps"]
README_LINES_MAX = 60
FILE_LINES_MAX = 600

# Longest prefix wins. Each: project folders and outside headers allowed.
UCX = r"<uc[pst]/"
ASIO = r"<boost/asio|<openssl/"
CUDA = r"<cuda|<cublas"
DNNL = r"<dnnl|<oneapi/dnnl"
HIGHWAY = r"<hwy/|\"hwy/"
CAF = r"<caf/"
PROTOBUF = r"<google/protobuf|\.pb\.h"
PCRE2 = r"<pcre2"
UTF8PROC = r"<utf8proc"
ARCHIVES = r"<zlib\.h|<zstd"
OUTSIDE = [UCX, ASIO, CUDA, DNNL, HIGHWAY, CAF, PROTOBUF, r"<boost/",
           r"<nlohmann/", r"<toml\+\+|<toml\.hpp", r"<CLI/", r"<xxhash\.h",
           PCRE2, UTF8PROC, ARCHIVES]
RULES = {
    "kernels": (["kernels"], []),
    "kernels/cpu": (["kernels"], [DNNL, HIGHWAY]),
    "kernels/cuda": (["kernels"], [CUDA]),
    "transport": (["transport"], []),
    "transport/tls": (["transport"], [ASIO, r"<boost/", r"<xxhash\.h"]),
    "transport/paired": (["transport"], [r"<xxhash\.h"]),
    "transport/shm": (["transport"], []),
    "transport/ucx": (["transport"], [UCX, r"<xxhash\.h"]),
    "transport/loopback": (["transport"], [r"<xxhash\.h"]),
    "runtime/core": (["runtime/core"], []),
    "runtime/model": (["runtime/model", "runtime/core", "kernels"],
                      [r"<nlohmann/", ARCHIVES]),
    "runtime/model/text": (["runtime/model", "runtime/core", "kernels"],
                           [r"<nlohmann/", PCRE2, UTF8PROC]),
    "runtime": (["runtime", "transport", "kernels"],
                [CAF, PROTOBUF, ASIO, r"<boost/", r"<nlohmann/",
                 r"<xxhash\.h"]),
    "actors": (["actors", "runtime", "transport", "kernels"],
               [CAF, r"<nlohmann/"]),
    "apps": (FOLDERS, [CAF, r"<nlohmann/", r"<toml\+\+|<toml\.hpp", r"<CLI/",
                       r"<boost/", ASIO]),
}
SLEEP = re.compile(r"\b(sleep_for|sleep_until|usleep|nanosleep)\s*\(|"
                   r"(?<![\w.])::?sleep\s*\(")
# Foreign JSON may nest so deep that the library uses up the stack.
PARSE = re.compile(r"\bjson::(parse|accept|sax_parse)\s*\(", re.I)
# It throws where it prints a text that is not UTF-8, such as a file's name.
DUMP = re.compile(r"(\.|->)\s*dump\s*\(")
JSON_HOME = "runtime/model/json.hpp"
INCLUDE = re.compile(r'\s*#\s*include\s+(["<][^">]+[">])')
errors = []


def rule_for(path):
    prefix = str(path.parent)
    while prefix not in RULES:
        prefix = str(pathlib.PurePath(prefix).parent)
    return RULES[prefix]


def check_includes(path, lines):
    inside, outside = rule_for(path)
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(1)
        where = f"{path}:{number}"
        target = name[1:-1]
        if name[0] == '"' and target.split("/")[0] in FOLDERS:
            if target.endswith(".pb.h"):
                if PROTOBUF not in outside:
                    errors.append(f"{where}: may not include {name}")
            elif not any(target.startswith(a + "/") for a in inside):
                errors.append(f"{where}: may not include {name}")
            continue
        for pattern in OUTSIDE:
            if re.search(pattern, name) and not any(
                    re.search(a, name) for a in outside):
                errors.append(f"{where}: may not include {name}")
                break


def check_json(path, lines):
    if str(path) == JSON_HOME:
        return
    for number, line in enumerate(lines, 1):
        if PARSE.search(line):
            errors.append(f"{path}:{number}: JSON is parsed by {JSON_HOME} "
                          "only")
        if DUMP.search(line):
            errors.append(f"{path}:{number}: JSON is written by json_text() "
                          f"of {JSON_HOME} only")


def main():
    for folder in FOLDERS + ["tests"]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".hpp", ".cpp", ".py", ".proto"):
                continue
            relative = path.relative_to(ROOT)
            lines = path.read_text(encoding="utf-8").splitlines()
            if len(lines) > FILE_LINES_MAX:
                errors.append(f"{relative}:1: {len(lines)} lines, "
                              f"more than {FILE_LINES_MAX}")
            if path.suffix in (".hpp", ".cpp") and lines and not (
                    lines[0].startswith(f"// {relative}")):
                errors.append(f"{relative}:1: the first line is not "
                              f"'// {relative} -- what it is'")
            if folder == "tests":
                for number, line in enumerate(lines, 1):
                    if SLEEP.search(line):
                        errors.append(f"{relative}:{number}: a test sleeps")
            elif path.suffix in (".hpp", ".cpp"):
                check_includes(relative, lines)
                check_json(relative, lines)
    for readme in sorted(ROOT.glob("*/README.md")):
        length = len(readme.read_text(encoding="utf-8").splitlines())
        if length > README_LINES_MAX:
            errors.append(f"{readme.relative_to(ROOT)}:1: {length} lines, "
                          f"more than {README_LINES_MAX}")
    for folder in FOLDERS + ["tests", "tools"]:
        if not (ROOT / folder / "README.md").exists():
            errors.append(f"{folder}: has no README.md")
    table = re.findall(r"^\| `([a-z/_]+)/?` \|",
                       (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    for name in table:
        if not (ROOT / name).exists():
            errors.append(f"README.md: names {name}, which does not exist")
    print("\n".join(errors) or "layers: ok")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
