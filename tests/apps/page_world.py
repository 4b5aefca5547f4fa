# tests/apps/page_world.py -- a browser before a node's page, for tests of it.
#
# With axe-core at hand, its rules are asked, too: SHOAL_AXE names axe.min.js, or
# this Python has the package axe-core-python.
import importlib.util
import json
import os
import pathlib
import socket
import tempfile
import threading

from browser import Browser
from serve_chat_test import TEMPLATE
from serving import Serving
from support import DEADLINE_S


def axe():
    """The source of axe-core; None: there is none here."""
    if named := os.environ.get("SHOAL_AXE"):
        return pathlib.Path(named).read_text()
    found = importlib.util.find_spec("axe_core_python")
    return found and (pathlib.Path(found.origin).parent
                      / "axe.min.js").read_text()


AXE_RUN = """
    const done = arguments[arguments.length - 1];
    axe.run(document, {resultTypes: ['violations']}).then((found) => done(
      found.violations.flatMap((v) => v.nodes.map((n) =>
        `axe, ${v.impact}: ${v.id}: ${n.html.slice(0, 200)}: ${n.failureSummary}`))));"""


class Forwarder:
    """A reverse proxy in small: the page's address, before several nodes.

    Of the answers in a chat it passes only about `hold_at` bytes, so a test
    decides how far the page gets, whatever the speed of the machine; `at_byte`
    maps a number of bytes to what is done once they have come."""

    def __init__(self, address):
        self.to = address
        self.passed = 0
        self.at_byte = {}
        self._hold_at = None
        self._changed = threading.Condition()
        self._open = []
        self._chats = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            host, port = self.to.split(":")
            try:
                node = socket.create_connection((host, int(port)))
            except OSError:
                client.close()
                continue
            self._open += [client, node]
            for pair in ((client, node), (node, client)):
                threading.Thread(target=self._pass, args=pair,
                                 daemon=True).start()

    def hold_at(self, size):
        """Counts from now on; None lets all pass."""
        with self._changed:
            self.passed = 0
            self._hold_at = size
            self._changed.notify_all()

    def wait_for_held(self):
        with self._changed:
            return self._changed.wait_for(lambda: self.passed >= self._hold_at,
                                          DEADLINE_S)

    def _count(self, size):
        with self._changed:
            self._changed.wait_for(lambda: self._hold_at is None
                                   or self.passed < self._hold_at)
            self.passed += size
            self._changed.notify_all()
            due = [at for at in self.at_byte if at <= self.passed]
        for at in due:
            self.at_byte.pop(at)()

    def _pass(self, source, target):
        try:
            while data := source.recv(2048):
                if b"POST /v1/chat/" in data:
                    self._chats.add(target)
                if source in self._chats:
                    self._count(len(data))
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self._listener.close()
        self.hold_at(None)
        for each in self._open:
            each.close()


class PageWorld(Serving):
    @classmethod
    def setUpClass(cls):
        cls.chrome = tempfile.TemporaryDirectory(prefix="shoal-chrome-",
                                                 ignore_cleanup_errors=True)
        cls.browser = Browser(cls.chrome.name)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.chrome.cleanup()

    def setUp(self):
        super().setUp()
        self.with_template("m")
        self.origins = []
        b = self.browser
        b.size(1200, 900)
        b.dark(False)
        b.console(), b.requests()

    def with_template(self, model):
        path = self.folder / model / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text())
                                   | {"chat_template": TEMPLATE}))

    def tearDown(self):
        if self.origins:
            said = [line for line in self.browser.console()
                    # Refusals and cuts that a test has caused.
                    if "Failed to load resource" not in line]
            self.assertEqual(said, [])
            strange = [url for url in self.browser.requests() if not
                       url.startswith((*self.origins, "data:", "chrome:"))]
            self.assertEqual(strange, [])
            self.assertIsNone(self.browser.js("return window.hit"))
            self.browser.open("about:blank")
        super().tearDown()

    def visit(self, at, fragment=""):
        self.origins.append(f"http://{at.address}/")
        self.browser.open(self.origins[-1] + fragment)
        return self.browser

    def messages(self):
        return json.loads(self.browser.js(
            "return sessionStorage['shoal.chat']"))["messages"]

    def options(self, **more):
        for name, value in {"temperature": 0, **more}.items():
            self.browser.js(
                "const field = document.getElementById(arguments[0]);"
                "field.value = arguments[1];"
                "field.dispatchEvent(new Event('input'))", name, str(value))

    def load(self, b, model, name="", stages=""):
        b.js("""const [model, name, stages] = arguments, $ = (id) =>
                  document.getElementById(id);
                $('load-model').value = model;
                $('load-as').value = name;
                $('load-stages').value = stages;""", model, name, str(stages))
        b.click("#load")
