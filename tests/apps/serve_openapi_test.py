# tests/apps/serve_openapi_test.py -- /openapi.json of a node: whether it is valid,
# and whether a node with a model does what it says, by requests that schemathesis
# makes from it.
#
# With more of these, and other ones, in an environment that has schemathesis:
#
#   python3 -m venv --system-site-packages VENV; VENV/bin/pip install schemathesis
#   SHOAL_API_EXAMPLES=60 SHOAL_API_SEED=2 VENV/bin/python \
#     tests/apps/serve_openapi_test.py build/shoal \
#     OpenApi.test_the_node_does_what_it_says
import json
import os
import pathlib
import signal
import subprocess
import sys

from serving import Serving
from support import main

HOOKS = pathlib.Path(__file__).parent / "openapi_hooks.py"
EXAMPLES = int(os.environ.get("SHOAL_API_EXAMPLES", "15"))
SEED = os.environ.get("SHOAL_API_SEED", "1")
# Of all checks, those that a server can pass without being told what requests mean:
# of valid ones, a model decides (a prompt may be too long for it).
CHECKS = ("not_a_server_error,status_code_conformance,content_type_conformance,"
          "response_headers_conformance,response_schema_conformance,"
          "negative_data_rejection,unsupported_method,ignored_auth,"
          "missing_required_header")


# Messages as they come, so that chats are answered.
TEMPLATE = """\
{% for m in messages %}{{ m.role }}>{{ m.content }}
{% endfor -%}
{% if add_generation_prompt %}a>{% endif %}"""


class OpenApi(Serving):
    def begin(self, *flags):
        self.write("m/chat_template.jinja", TEMPLATE)
        process, self.at = self.serve("--as", "tiny", "--http-jobs", "--http",
                                      "127.0.0.1:0", *flags)
        status, text = self.at.get("/openapi.json")
        self.assertEqual(status, 200)
        return process, json.loads(text)

    def test_it_needs_a_key_as_the_rest(self):
        key = self.succeed("apikey", "ann", "--file", "keys").strip()
        process, self.at = self.serve("--as", "tiny", "--api-keys", "keys",
                                      "--http", "127.0.0.1:0")
        self.assertEqual(self.at.get("/openapi.json")[0], 401)
        connection = self.at.connect()
        connection.request("GET", "/openapi.json", headers={"X-Api-Key": key})
        described = json.load(connection.getresponse())
        connection.close()
        self.assertEqual(len(described["security"]), 2)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_it_is_valid(self):
        validator = self.package("openapi_spec_validator")
        process, described = self.begin()
        validator.validate(described)
        self.assertEqual(process.end(signal.SIGINT), 130)

    def test_the_node_does_what_it_says(self):
        self.package("schemathesis")
        # A body that is wrong may be too long, too.
        self.write("schemathesis.toml", "[checks.negative_data_rejection]\n"
                   'expected-statuses = ["4xx"]\n')
        process, _ = self.begin()
        done = subprocess.run(
            [sys.executable, "-c",
             "from schemathesis.cli import schemathesis; schemathesis()", "run",
             f"http://{self.at.address}/openapi.json", "--checks", CHECKS,
             "--phases", "examples,coverage,fuzzing", "--seed", SEED,
             "--max-examples", str(EXAMPLES), "--continue-on-failure",
             "--suppress-health-check", "all", "--warnings", "off",
             "--generation-database", "none", "--no-color"],
            env={**self.env, "SCHEMATHESIS_HOOKS": HOOKS.stem,
                 "PYTHONPATH": str(HOOKS.parent)},
            cwd=self.folder, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0,
                         done.stdout[-20000:] + done.stderr[-2000:])
        self.assertEqual(self.at.get("/health")[0], 200)
        self.assertEqual(process.end(signal.SIGINT), 130)


if __name__ == "__main__":
    main()
