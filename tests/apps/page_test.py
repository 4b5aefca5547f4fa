# tests/apps/page_test.py -- the page of a node, as people use it in a browser.
#
# Its texts are compared with what the API answers. Nothing here may ask another
# host, or break the Content-Security-Policy: each test looks at both at its end.
import itertools
import json
import pathlib
import signal
import socket
import threading

from page_world import AXE_RUN, Forwarder, PageWorld, axe
from serve_chat_test import ASK, CHAT
from support import TINY_RUN, main

LOG = "document.getElementById('log')"
READY = f"{LOG}.ariaBusy === 'false' && {LOG}.children.length === a[0]"
FILLED = {"chat": "true", "jobs": "document.getElementById('jobs').rows.length",
          "models": "document.getElementById('models').rows.length",
          "shoal": "document.querySelector('#traffic .heat-4')",
          "training": "document.querySelectorAll('#charts path').length === 4"}
NASTY = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'


class Page(PageWorld):
    # ---- files

    def test_files_are_open_and_all_else_needs_the_key(self):
        made = self.succeed("apikey", "alice", "--file", "keys")
        key = next(w for w in made.split() if w.startswith("sk-shoal-"))
        _, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0",
                           "--api-keys", "keys")
        connection = at.connect()

        def get(path, method="GET", **headers):
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer, answer.read().decode()
        answer, text = get("/")
        self.assertEqual(answer.status, 200)
        self.assertIn("<title>Shoal</title>", text)
        self.assertNotIn("style=", text)
        policy = answer.getheader("Content-Security-Policy")
        self.assertEqual(sorted(policy.split("; ")), sorted((
            "default-src 'none'", "script-src 'self'", "style-src 'self'",
            "connect-src 'self'", "img-src 'self' data:", "base-uri 'none'",
            "form-action 'none'", "frame-ancestors 'none'")))
        tag = answer.getheader("ETag")
        for path, status in (("/", 304), ("/page/app.js", 200)):
            answer, text = get(path, **{"If-None-Match": tag})
            self.assertEqual((answer.status, text == ""), (status, status == 304))
            self.assertEqual(answer.getheader("X-Content-Type-Options"), "nosniff")
            self.assertEqual(answer.getheader("Content-Security-Policy"), policy)
        answer, text = get("/page/app.js", "HEAD")
        self.assertEqual((answer.status, text), (200, ""))
        for path in ("/v1/models", "/page/other.js", "/page/"):
            self.assertEqual(get(path)[0].status, 401, path)
        connection.close()
        self.the_key_is_typed_once(at, key)

    def the_key_is_typed_once(self, at, key):
        b = self.visit(at)
        b.until("document.getElementById('key-dialog').open")
        b.keys("wrong", "Enter")
        b.until("!document.getElementById('key-error').hidden")
        b.until("document.activeElement.id === 'key'")
        b.keys(key, "Enter")
        b.until("document.getElementById('model').value === 'tiny'")
        b.js("location.reload()")
        b.until("document.getElementById('model').value === 'tiny'")
        self.assertFalse(b.js("return document.getElementById('key-dialog').open"))
        self.assertFalse(any(key in url for url in b.requests()))
        b.click("#forget-key")
        b.until("document.getElementById('key-dialog').open")
        b.keys("Escape")
        b.until("!document.getElementById('enter-key').hidden")
        self.assertIsNone(b.js("return sessionStorage['shoal.key']"))

    # ---- chat

    def test_a_chat_by_keyboard(self):
        nodes, addresses = {}, {}
        self.begin_node("one", nodes, addresses)
        self.succeed("serve", "m", "--as", "tiny", "--detach", "--name", "one")
        at = addresses["one"]
        b = self.visit(at)
        b.until("document.getElementById('model').value === 'tiny'")
        b.tab_to("tab-chat")
        b.keys("ArrowRight")
        b.until("!document.getElementById('panel-models').hidden")
        b.keys("Home")
        b.until("!document.getElementById('panel-chat').hidden")
        b.tab_to("settings")
        b.keys("Enter")
        b.tab_to("system")
        b.keys("short")
        b.tab_to("temperature")
        b.keys("0", "Tab", "Tab", "12")
        b.tab_to("question")
        b.keys("The cod of file 3", "Enter")
        b.until(READY, 2)
        body = {"model": "tiny", "messages": ASK, "max_tokens": 12,
                "temperature": 0}
        first = at.post(body, CHAT)[1]["choices"][0]["message"]["content"]
        self.assertEqual(self.messages()[-1]["content"], first)
        numbers = b.js(f"return {LOG}.lastChild.querySelector('.numbers').innerText")
        self.assertRegex(numbers, r"^first token [\d.e-]+ s . 12 tokens . [\d,.]+ "
                                  r"tokens/s . ended at the length limit$")
        # Another turn has the first one before it.
        b.until("document.activeElement.id === 'question'")
        b.keys("and 4", "Shift+Enter", "?", "Enter")
        b.until(READY, 4)
        more = ASK + [{"role": "assistant", "content": first},
                      {"role": "user", "content": "and 4\n?"}]
        second = at.post({**body, "messages": more}, CHAT)[1]["choices"][0]
        self.assertEqual(self.messages()[-1]["content"],
                         second["message"]["content"])
        b.click("#log > li:last-child .actions button:nth-of-type(2)")
        b.until(READY, 4)
        self.assertEqual(self.messages()[-1]["content"],
                         second["message"]["content"])
        b.js("location.reload()")
        b.until(READY, 4)
        b.until("document.getElementById('model').value === 'tiny'")
        b.click("#log > li:nth-child(3) .actions button:nth-of-type(2)")
        self.assertEqual(b.js("return document.getElementById('question').value"),
                         "and 4\n?")
        self.assertEqual(len(self.messages()), 2)
        self.a_refusal_is_shown(b, at)

    def a_refusal_is_shown(self, b, at):
        b.click("#new-chat")
        b.js("document.getElementById('question').value = ''")
        b.keys("x" * 300, "Enter")
        b.until(READY, 2)
        said = b.js("return document.querySelector('.message:last-child .error').innerText")
        error = at.post({"model": "tiny", "max_tokens": 12, "messages": ASK[:1] + [
            {"role": "user", "content": "x" * 300}]}, CHAT)
        self.assertEqual((error[0], said), (400, error[1]["error"]["message"]))
        self.a_model_without_a_template(b, at)

    def a_model_without_a_template(self, b, at):
        self.succeed("init", self.tiny_run(), "--out", "plain")
        self.succeed("serve", "plain", "--detach", "--name", "one")
        b.js("location.reload()")
        b.until("document.getElementById('model').options.length === 2")
        b.click("#model option[value=plain]")
        b.click("#new-chat")
        self.options(system="", **{"max-tokens": 9})
        b.tab_to("question")
        b.keys("A herring", "Enter")
        b.until(READY, 2)
        answer = at.post({"model": "plain", "prompt": "A herring",
                          "max_tokens": 9, "temperature": 0})
        self.assertEqual(self.messages()[-1]["content"],
                         answer[1]["choices"][0]["text"])
        self.assertFalse(b.js("return document.getElementById('chat-note').hidden"))

    def test_a_killed_peer_is_not_noticed(self):
        """First a stage, then the node that the page comes from: the proxy before
        the nodes leads to another one then."""
        self.write("long.toml", TINY_RUN.replace(
            "max_position_embeddings = 256", "max_position_embeddings = 4096"))
        self.succeed("init", "long.toml", "--out", "long")
        self.with_template("long")
        nodes, at = {}, {}
        names = ("one", "two", "three", "four")
        for name in names:
            self.begin_node(name, nodes, at)
        for node in nodes.values():
            node.wait_line(lambda line: "4 peers" in line)
        self.succeed("serve", "long", "--as", "tiny", "--stages", 2, "--detach",
                     "--name", "one")
        tokens = 1800
        expected = at["one"].post(
            {"model": "tiny", "messages": ASK, "max_tokens": tokens,
             "temperature": 0}, CHAT)[1]["choices"][0]["message"]["content"]
        job = json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]
        stages = [stage["peer"] for stage in job["places"][0]]
        outside = [name for name in names if name not in stages]
        proxy = Forwarder(at[outside[0]].address)
        self.addCleanup(proxy.close)
        b = self.visit(proxy)
        b.until("document.getElementById('model').value === 'tiny'")
        self.options(system="short", **{"max-tokens": tokens})
        b.tab_to("question")
        # The stage dies with the first tokens, of 1,800; far more of them than it
        # can have sent follow, and the rest waits for the death of the page's node.
        proxy.at_byte[2000] = lambda: nodes[stages[1]].child.kill()
        proxy.hold_at(60_000)
        b.keys("The cod of file 3", "Enter")
        length = f"{LOG}.lastChild.querySelector('.text:not(.thoughts .text)')" \
                 ".textContent.length"
        b.until(f"{LOG}.ariaBusy === 'true' && {length} > 40")
        self.assertTrue(proxy.wait_for_held(), proxy.passed)
        nodes[stages[1]].end(signal.SIGKILL)
        self.assertEqual(b.js(f"return {LOG}.ariaBusy"), "true", "it has ended")
        proxy.to = at[outside[1]].address
        nodes[outside[0]].end(signal.SIGKILL)
        proxy.hold_at(None)
        b.until(READY, 2)
        answer = self.messages()[-1]
        self.assertEqual(answer["state"], "done", answer.get("error"))
        self.assertEqual(answer["content"], expected)
        self.assertEqual(answer["tokens"], tokens)
        # Another one, which is stopped.
        proxy.hold_at(30_000)
        b.click("#log > li:last-child .actions button:nth-of-type(2)")
        b.until(f"{LOG}.ariaBusy === 'true' && {length} > 40")
        b.keys("Escape")
        b.until(READY, 2)
        answer = self.messages()[-1]
        self.assertEqual(answer["state"], "stopped")
        self.assertTrue(expected.startswith(answer["content"]))
        self.assertLess(len(answer["content"]), len(expected))

    # ---- peers and jobs

    def test_a_job_is_submitted_followed_and_cancelled(self):
        nodes, at = {}, {}
        self.begin_node("one", nodes, at, "--http-jobs")
        self.begin_node("two", nodes, at)
        self.begin_node("three", nodes, at) # without it, two may be the quorum
        nodes["one"].wait_line(lambda line: "3 peers" in line)
        b = self.visit(at["one"], "#jobs")
        b.until("document.getElementById('jobs-empty').hidden === false")
        field = "document.getElementById('run-file')"
        result = "document.getElementById('submit-result')"
        b.click("#example")
        self.assertIn("[training]", b.js(f"return {field}.value"))
        b.click("#submit-job")
        b.until(f"{result}.className === 'error'")
        self.assertIn("/path/to/texts", b.js(f"return {result}.textContent"))
        run = TINY_RUN.replace("steps = 5", "steps = 100000").replace(
            "[validation]\nfreq = 5", "[validation]\nfreq = 10")
        run += f'[data]\npaths = ["{self.write_text_files()}"]\n'
        run += "[checkpoint]\ninterval = 20\n"
        b.js(f"{field}.value = arguments[0]", run)
        b.tab_to("job-name")
        b.keys("fish")
        b.tab_to("submit-job")
        b.keys("Enter")
        b.until(f"{result}.textContent.startsWith('Submitted as')")
        row = "document.getElementById('jobs').rows[0]"
        b.until(f"{row}?.textContent.startsWith('fish') "
                f"&& {row}.textContent.includes('running')")
        self.the_curves_come(b)
        self.a_death_is_noted(b, nodes)
        b.click("#tab-jobs")
        cancel = "document.querySelector('[data-cancel]')"
        b.until(cancel)
        self.assertEqual(b.js(f"return {cancel}.ariaLabel"), "Cancel fish")
        b.js(f"{cancel}.focus()")
        b.keys("Enter")
        b.until("document.getElementById('cancel-dialog').open")
        b.keys("Escape")
        b.until("!document.getElementById('cancel-dialog').open")
        b.click("[data-cancel]")
        b.click("#cancel-yes")
        b.until(f"{row}.textContent.includes('cancelled')")
        job = json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]
        self.assertEqual((job["name"], job["state"]), ("fish", "cancelled"))
        self.only_shows(at["three"], "jobs", "submit", "cancel")

    def the_curves_come(self, b):
        b.click("#tab-training")
        b.until("document.querySelectorAll('#charts path').length === 4")
        b.until("document.querySelector('#checkpoints code')")
        b.until("document.getElementById('train-facts').textContent"
                ".includes('about')")
        # The picture says in words what the node has reported.
        said = b.js("return document.querySelector('#charts svg')"
                    ".getAttribute('aria-label')")
        self.assertRegex(said, r"^Loss: training [\d.]+ at step 1, .* held-out ")
        job = json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]
        self.assertGreater(job["step"], 20)

    def a_death_is_noted(self, b, nodes):
        b.click("#tab-shoal")
        b.until("document.getElementById('peers').rows.length === 3")
        self.assertIn("fish: layers", b.js(
            "return document.getElementById('peers').textContent"))
        # Of all pairs, also those that this node is no end of.
        b.until("document.querySelectorAll('#traffic .rate').length === 6")
        nodes["two"].end(signal.SIGKILL)
        b.until("document.querySelector('#changes').textContent"
                ".includes('two is ')")

    def test_models_are_loaded_and_unloaded(self):
        hub = socket.create_server(("127.0.0.1", 0))  # it never answers
        self.addCleanup(hub.close)
        self.env |= {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT":
                     f"http://127.0.0.1:{hub.getsockname()[1]}"}
        nodes, at = {}, {}
        for name in ("one", "two", "three"):
            self.begin_node(name, nodes, at,
                            *(["--http-jobs"] if name == "one" else []))
        for node in nodes.values():
            node.wait_line(lambda line: "3 peers" in line)
        b = self.visit(at["one"])
        b.until("!document.getElementById('chat-load').hidden")
        b.until("document.getElementById('chat-begin').innerText"
                ".includes('shoal serve')")
        b.click("#chat-load a")
        b.until("!document.getElementById('models-empty').hidden")
        result = "document.getElementById('load-result')"
        self.load(b, "/no/such")
        b.until(f"{result}.className === 'error'")
        self.assertIn("/no/such", b.js(f"return {result}.textContent"))
        b.until("document.querySelector('#loads .bad').textContent"
                ".includes('/no/such was not loaded')")
        self.loads_are_cancelled(b, result)
        self.load(b, str(self.folder / "m"), "tiny", stages=2)
        b.until(f"{result}.textContent.startsWith('tiny is uploaded')")
        rows = "document.getElementById('models').rows"
        b.until(f"{rows}[0]?.textContent.includes('ready')")
        job = json.loads(self.succeed("jobs", "--json", "--name", "one"))[0]
        stages = [stage["peer"] for stage in job["places"][0]]
        shown = b.js(f"return {rows}[0].textContent")
        for i, stage in enumerate(job["places"][0]):
            self.assertIn(f"stage {i}: layers {stage['first_layer']}-"
                          f"{stage['last_layer']} on {stages[i]}", shown)
        self.load(b, str(self.folder / "m"), "small")
        b.until(f"{rows}.length === 2 && {rows}[1].textContent.includes('ready')")
        self.others_traffic(at, stages)
        b.until("document.querySelector('[data-unload=tiny]')")
        b.js("document.querySelector('[data-unload=tiny]').focus()")
        b.keys("Enter")
        b.until("document.getElementById('unload-dialog').open")
        b.click("#unload-yes")
        b.until(f"{rows}.length === 1")
        b.click("#tab-chat")
        b.until("document.getElementById('model').value === 'small'")
        self.only_shows(at["three"], "models", "load", "unload")

    def loads_are_cancelled(self, b, result):
        self.load(b, "org/slow")
        b.until("document.querySelector('#loads [data-model=\"org/slow\"]')")
        b.js("document.querySelector('#loads [data-model=\"org/slow\"]').focus()")
        b.keys("Enter")
        b.until(f"{result}.textContent.includes('org/slow was cancelled')")
        b.until("!document.getElementById('loads').textContent"
                ".includes('org/slow')")
        b.until("document.querySelector('#loads .bad button').textContent"
                " === 'Dismiss'")
        b.click("#loads .bad button")
        b.until("document.getElementById('loads').children.length === 0")

    def others_traffic(self, at, stages):
        """A node that runs no stage shows what goes between those that do."""
        outside = next(name for name in at if name not in stages)
        b = self.visit(at[outside], "#shoal")
        names = json.loads(self.succeed("status", "--json", "--name", outside))
        order = [peer["name"] for peer in names["peers"]]
        first, second = (order.index(stage) for stage in stages)
        body = {"model": "tiny", "prompt": "The cod", "max_tokens": 200,
                "temperature": 0}
        over = threading.Event()

        def ask():
            while not over.is_set():
                at[outside].stream(body)
        asker = threading.Thread(target=ask)
        asker.start()
        try:
            b.until("document.getElementById('traffic').querySelectorAll('tbody tr')"
                    "[a[0]].querySelectorAll('td')[a[1]].matches('.heat-2, .heat-3, "
                    ".heat-4')", first, second)
            b.until("[...document.getElementById('flows').rows].some((row) =>"
                    "row.textContent.startsWith(a[0]) && row.textContent"
                    ".includes('tiny'))", f"{stages[0]} \u2192 {stages[1]}")
            said = json.loads(self.succeed("status", "--traffic", "--json",
                                           "--name", outside))
        finally:
            over.set()
            asker.join()
        ids = {peer["name"]: peer["id"] for peer in said["peers"]}
        flow = next(f for f in said["traffic"]["flows"]
                    if (f["from"], f["to"]) == (ids[stages[0]], ids[stages[1]]))
        self.assertGreater(flow["bytes_per_s"], 0)
        self.assertIn(next(j["id"] for j in said["jobs"] if j["name"] == "tiny"),
                      [part["job"] for part in flow["jobs"]])
        table = self.succeed("status", "--traffic", "--name", outside)
        self.assertRegex(table, rf"{stages[0]} +{stages[1]}  .*tiny")
        self.visit(at["one"], "#models")

    def only_shows(self, at, rows, form, button):
        b = self.visit(at, f"#{rows}")
        b.until(f"document.getElementById('{rows}').rows.length === 1")
        off = f"document.getElementById('{form}-off')"
        b.until(f"!{off}.hidden && {off}.innerText.includes('--http-jobs')")
        self.assertTrue(b.js(f"return document.getElementById('{form}-form').hidden"))
        self.assertIsNone(b.js(f"return document.querySelector('[data-{button}]')"))

    # ---- what is shown

    def test_markdown_and_names_are_only_shown(self):
        _, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        b = self.visit(at)
        b.until("document.getElementById('model').value === 'tiny'")
        # Modules cannot be imported by an injected script otherwise.
        markdown = """
            const [text, done] = arguments;
            import('/page/markdown.js').then(({markdown}) => {
              const box = document.createElement('div');
              box.append(markdown(text));
              document.body.append(box);
              setTimeout(() => {
                const out = [box.innerHTML, box.textContent,
                  [...box.querySelectorAll('*')].map((e) => e.localName),
                  [...box.querySelectorAll('*')].flatMap((e) =>
                    [...e.attributes].map((a) => a.name))];
                box.remove();
                done(out);
              }, 0);
            });"""

        def shown(text):
            return b._ask("POST", "/execute/async",
                          {"script": markdown, "args": [text]})
        for attack in (
                NASTY, f"**{NASTY}**", f"| a |\n|---|\n| {NASTY} |",
                f"```\"onload=alert(1)\n{NASTY}\n```", f"# {NASTY}",
                f"[x](javascript:window.hit=1) {NASTY}",
                "[x](JaVaScRiPt:window.hit=1)", "[x](data:text/html,<b>)",
                "[x](vbscript:x)", "[x](\x01javascript:window.hit=1)",
                "![x](javascript:window.hit=1)", "<javascript:window.hit=1>",
                '[x](https://a.b/"onmouseover="window.hit=1)',
                "[x](https://a.b \"t\" onclick=window.hit=1)",
                "<a href='javascript:window.hit=1'>x</a>",
                "<style>*{display:none}</style>", "<base href=//evil.example>",
                "&lt;img src=x onerror=window.hit=1&gt;"):
            html, _, tags, attributes = shown(attack)
            self.assertFalse({"img", "script", "style", "base", "iframe"}
                             & set(tags), (attack, html))
            self.assertFalse([a for a in attributes if a.startswith("on")
                              or a in ("style", "src")], (attack, html))
            self.assertNotRegex(html, r'href="(?!https?://)')
        for text, html in (
                ("a *b* **c** `d`", "<p>a <em>b</em> <strong>c</strong> "
                                    "<code>d</code></p>"),
                ("2 * 3 * 4, snake_case_name", "<p>2 * 3 * 4, snake_case_name</p>"),
                ("# T\n- a\n- b\n  1. c", "<h4>T</h4><ul><li>a</li><li>b<ol "
                 'start="1"><li>c</li></ol></li></ul>'),
                ("\\*a\\*\n\n---\n> q", "<p>*a*</p><hr><blockquote><p>q</p>"
                                        "</blockquote>"),
                ("[x](https://a.b/c)", '<p><a href="https://a.b/c" target="_blank" '
                 'rel="noopener noreferrer nofollow">x</a></p>')):
            self.assertEqual(shown(text)[0], html)
        self.assertEqual(shown("## a # b ##\n# c#\n~~~ c\nd\n~~~")[0],
                         "<h5>a # b</h5><h4>c#</h4>" + shown("~~~ c\nd")[0])
        self.assertIn('<td class="right">2</td>',
                      shown("| a | b |\n|---|--:|\n| 1 | 2 |")[0])
        code = shown("```c\nif (a < b)\n  x;\n```\nend")
        self.assertIn("<code>if (a &lt; b)\n  x;</code>", code[0])
        # Nothing takes long, and no text is lost.
        for text in ("*" * 20000, "[" * 20000, "> " * 5000, "`" * 9999 + "a",
                     "- " * 3000, "**a" * 5000, "_a " * 6000, "[a](" * 5000,
                     "# a" + " " * 19000 + "b", "~" * 19000 + "`",
                     "|-" * 5000, "https://" * 2500, "\n".join("> " * i + "x"
                                                              for i in range(200))):
            for _ in range(5):  # a busy machine may take long for anything
                begin = b.js("return performance.now()")
                shown(text)
                if (took := b.js("return performance.now()") - begin) < 1500:
                    break
            self.assertLess(took, 1500, text[:20])
        self.names_are_only_shown(b)

    def pretend(self, peers, jobs, events):
        """Lets the page see a shoal that is not there."""
        self.browser.js("""
            const [status, jobs, events] = arguments, real = window.fetch;
            window.fetch = (path, options) => {
              const text = path.endsWith('/events')
                ? events.map((e) => `data: ${JSON.stringify(e)}\n\n`).join('')
                : JSON.stringify({
                    '/shoal/status': status, '/shoal/jobs': jobs,
                    '/shoal/traffic': status.traffic,
                    '/models/loads': {allowed: true, loads: status.loads}}[path]);
              return text ? Promise.resolve(new Response(text))
                          : real(path, options);
            };""", {"epoch": 1, "self": peers[0]["id"], "name": peers[0]["name"],
                    "state": "member", "peers": peers, "jobs": jobs,
                    "traffic": {"flows": [
                        {"from": a["id"], "to": b["id"], "bytes": 9 ** i,
                         "bytes_per_s": 7 ** i if i else None, "jobs": [
                             {"job": jobs[0]["id"], "bytes": 9 ** i}]}
                        for i, (a, b) in enumerate(itertools.permutations(peers, 2))],
                        "more": 3, "silent": [peer["id"] for peer in peers[2:]]},
                    "loads": [{"id": "1", "model": "/m", "as": NASTY, "activity": "uploading",
                               "state": "working", "done": 3, "all": 9},
                              {"id": NASTY, "model": NASTY, "as": "", "activity": "", "done": 0,
                               "all": 0, "state": "failed", "error": NASTY}]},
            jobs, events)

    def names_are_only_shown(self, b):
        peer = {"id": "a" * 64, "name": NASTY, "state": NASTY, "incarnation": 1,
                "addresses": [NASTY], "devices": [], "networks": []}
        job = {"id": NASTY, "name": NASTY, "kind": "train", "state": "running",
               "ending": False, "step": 1, "steps": 2, "user": NASTY,
               "waiting": NASTY, "places": [[{"id": "a" * 64, "first_layer": 0,
                                              "last_layer": 1}]]}
        served = job | {"kind": "serve", "id": "x"}
        self.pretend([peer], [job, served], [{"event": "notice", "step": 1, "text": NASTY,
                                      "unix_ms": 1}])
        for tab, table in (("shoal", "peers"), ("jobs", "jobs"),
                           ("models", "models"), ("models", "loads"),
                           ("training", "train-notices")):
            b.click(f"#tab-{tab}")
            b.until("document.getElementById(a[0]).textContent.includes(a[1])",
                    table, NASTY)
        self.assertEqual(b.js("return document.querySelectorAll("
                              "'main img, main script').length"), 0)

    def check(self, b, *where):
        """No rule is broken."""
        self.assertEqual(b.js(self.rules), [], where)
        if self.axe:
            if not b.js("return Boolean(window.axe)"):
                b.js(self.axe)
            self.assertEqual(b._ask("POST", "/execute/async",
                                    {"script": AXE_RUN, "args": []}), [], where)

    def test_it_can_be_used_by_all(self):
        """Labels, roles, headings, contrast, focus and width, in light and dark."""
        _, at = self.serve("--as", "tiny", "--http", "127.0.0.1:0")
        b = self.visit(at)
        b.until("document.getElementById('model').value === 'tiny'")
        self.options(**{"max-tokens": 3})
        b.tab_to("question")
        b.keys("x", "Enter")
        b.until(READY, 2)
        b.js("document.querySelectorAll('details').forEach((e) => e.open = true)")
        device = {"mflops": 5000, "memory_bytes": 1 << 33, "disk_bytes": 1 << 36}
        states = ("active", "joining", "leaving", "unreachable")
        self.pretend(
            [{"id": str(i) * 64, "name": f"peer{i}", "state": state,
              "addresses": ["127.0.0.1:1"], "devices": [device],
              "incarnation": 1} for i, state in enumerate(states)],
            [{"id": str(i) * 16, "name": f"job{i}", "kind": "train", "state": state,
              "step": 3, "steps": 9, "cause": "none", "user": "me@here"}
             for i, state in enumerate(("running", "done", "cancelled", "failed"))]
            + [{"id": str(i) * 16, "name": f"model{i}", "kind": "serve",
                "state": "running", "ending": i == 6, "user": "me@here", "places": [
                    [{"id": "1" * 64, "first_layer": 0, "last_layer": 9}]]}
               for i in (5, 6)],
            [{"event": "step", "step": i, "loss": 4 / i, "lr": 0.1 / i, "peers": 4,
              "tokens_per_s": 100 * i, "unix_ms": 1000 * i} for i in range(1, 60)]
            + [{"event": "eval", "step": 30, "loss": 1, "unix_ms": 1},
               {"event": "view", "step": 31, "cause": "peer3 is gone",
                "unix_ms": 2}])
        self.rules = (pathlib.Path(__file__).parent / "page_rules.js").read_text()
        self.axe = axe()
        for dark in (False, True):
            b.dark(dark)
            for width in (1200, 360):
                b.size(width, 740)
                for tab in ("chat", "models", "shoal", "training", "jobs"):
                    b.js(f"document.getElementById('tab-{tab}').click()")
                    b.until(FILLED[tab])
                    self.check(b, tab, dark, width)
                for dialog in ("key", "cancel", "unload"):
                    name = f"document.getElementById('{dialog}-dialog')"
                    b.js(f"{name}.showModal()")
                    self.check(b, dialog, dark, width)
                    b.js(f"{name}.close()")
        self.the_first_visit(b, at)

    def the_first_visit(self, b, at):
        """Before a model is served; and while an answer comes."""
        b.js("document.getElementById('tab-chat').click(); location.reload()")
        b.until("document.getElementById('model').value === 'tiny'")
        b.js("document.getElementById('chat-begin').hidden = false")
        # Its first token has come; the rest never does.
        b.js("""const real = window.fetch, event = new TextEncoder().encode(
            'data: {"choices":[{"index":0,"delta":{"content":"Cod"}}]}\\n\\n');
            window.fetch = (path, options) => (/^.v1.chat/.test(path)
              ? Promise.resolve(new Response(new ReadableStream(
                  {start: (to) => to.enqueue(event)})))
              : real(path, options));""")
        b.tab_to("question")
        b.keys("x", "Enter")
        b.until(f"{LOG}.ariaBusy === 'true' && {LOG}.children.length === 4")
        self.check(b, "an answer comes")
        for tab, only_shown in (("models", "load-off"), ("jobs", "submit-off")):
            b.js(f"document.getElementById('tab-{tab}').click()")
            b.until(FILLED[tab])
            b.js(f"document.getElementById('{only_shown}').hidden = false")
            self.check(b, only_shown)


if __name__ == "__main__":
    main()
