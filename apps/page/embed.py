# apps/page/embed.py -- writes the page's files as a C++ source.
#
#   embed.py OUTPUT FILE...
#
# A file is served at /page/NAME, index.html at /. Its ETag is its SHA-256.
import hashlib
import pathlib
import sys

TYPES = {".html": "text/html; charset=utf-8",
         ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml"}
PIECE = 64  # bytes on a line

ESCAPES = [chr(b) if 32 <= b < 127 and chr(b) not in '"\\?' else f"\\{b:03o}"
           for b in range(256)]


def literal(data):
    return "\n".join('     "' + "".join(ESCAPES[b] for b in data[i:i + PIECE])
                     + '"' for i in range(0, len(data), PIECE))


def main():
    output, *names = sys.argv[1:]
    rows = []
    for name in names:
        file = pathlib.Path(name)
        data = file.read_bytes()
        path = "/" if file.name == "index.html" else "/page/" + file.name
        tag = hashlib.sha256(data).hexdigest()[:32]
        rows.append(f'  {{"{path}", "{TYPES[file.suffix]}", "\\"{tag}\\"",\n'
                    f"    std::string_view(\n{literal(data)},\n"
                    f"     {len(data)})}},\n")
    pathlib.Path(output).write_text(
        '#include "apps/page/page.hpp"\n\n'
        "namespace shoal::apps {\n\n"
        "static constexpr page_file files[] = {\n" + "".join(rows) + "};\n\n"
        "std::span<const page_file> page_files() {\n  return files;\n}\n\n"
        "} // namespace shoal::apps\n", encoding="ascii")


main()
