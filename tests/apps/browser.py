# tests/apps/browser.py -- a headless Chromium, driven by the WebDriver protocol.
#
# It speaks to chromedriver itself, so that any python3 will do. Waiting is done by
# scripts in the browser, with a deadline that only a broken page meets.
# Source: https://www.w3.org/TR/webdriver2/
import base64
import http.client
import json
import re
import subprocess

from support import DEADLINE_S

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Home": "\ue011",
        "ArrowLeft": "\ue012", "ArrowRight": "\ue014", "End": "\ue010",
        "Shift": "\ue008", "Space": " ", "ArrowDown": "\ue015"}


class Browser:
    def __init__(self, folder):
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)
        for line in self._driver.stdout:
            if found := re.search(r"successfully on port (\d+)", line):
                break
        else:
            raise AssertionError("chromedriver does not start: see tools/setup")
        self._to = http.client.HTTPConnection("127.0.0.1", int(found[1]),
                                              timeout=DEADLINE_S)
        self._session = ""
        try:
            made = self._begin(folder)
        except BaseException:
            self._end_driver()
            raise
        self._session = "/session/" + made["sessionId"]

    def _begin(self, folder):
        return self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": DEADLINE_S * 1000},
            "goog:chromeOptions": {"args": [
                "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", "--disable-background-networking",
                "--disable-component-update", "--no-first-run",
                "--window-size=1200,900", f"--user-data-dir={folder}"]}}}})

    def _ask(self, method, path, body=None):
        self._to.request(method, self._session + path,
                         None if body is None else json.dumps(body),
                         {"Content-Type": "application/json"})
        value = json.loads(self._to.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{value['error']}: {value['message']}")
        return value

    def close(self):
        self._ask("DELETE", "")
        self._end_driver()

    def _end_driver(self):
        self._to.close()
        self._driver.terminate()
        self._driver.wait()
        self._driver.stdout.close()

    def open(self, url):
        self._ask("POST", "/url", {"url": url})

    def js(self, script, *arguments):
        return self._ask("POST", "/execute/sync",
                         {"script": script, "args": list(arguments)})

    def until(self, condition, *arguments):
        """Waits until a JavaScript expression holds; `a` are the arguments.
        @returns its value"""
        found = self._ask("POST", "/execute/async", {"script": """
            const [a, most, done] = arguments, begin = Date.now();
            const look = () => {
              let value;
              try { value = (%s); } catch (error) { value = null; }
              if (value) done([value]);
              else if (Date.now() - begin > most) done(null);
              else setTimeout(look, 20);
            };
            look();""" % condition,
            "args": [list(arguments), DEADLINE_S * 500]})
        if not found:
            raise AssertionError(f"not so: {condition}\n" + self.js(
                "return document.body.innerText") + f"\n{self.console()}")
        return found[0]

    def click(self, selector):
        element = self._ask("POST", "/element", {
            "using": "css selector", "value": selector})[ELEMENT]
        self._ask("POST", f"/element/{element}/click", {})

    def keys(self, *texts):
        """Presses keys, by their names in KEYS, or types a text."""
        actions = []
        for text in texts:
            held = text.startswith("Shift+")
            text = text.removeprefix("Shift+")
            codes = [KEYS[text]] if text in KEYS else list(text)
            if held:
                actions.append({"type": "keyDown", "value": KEYS["Shift"]})
            for code in codes:
                actions += [{"type": "keyDown", "value": code},
                            {"type": "keyUp", "value": code}]
            if held:
                actions.append({"type": "keyUp", "value": KEYS["Shift"]})
        self._ask("POST", "/actions", {"actions": [
            {"type": "key", "id": "keyboard", "actions": actions}]})

    def tab_to(self, id_):
        """Presses Tab until the element has the focus."""
        for _ in range(40):
            if self.js("return document.activeElement.id") == id_:
                return
            self.keys("Tab")
        raise AssertionError(f"Tab never comes to {id_}")

    def cdp(self, command, **parameters):
        return self._ask("POST", "/goog/cdp/execute",
                         {"cmd": command, "params": parameters})

    def console(self):
        """What the console has said since it was read last."""
        return [entry["message"] for entry in self._ask(
            "POST", "/se/log", {"type": "browser"})]

    def requests(self):
        """Addresses that were asked for since this was read last."""
        events = [json.loads(entry["message"])["message"] for entry in self._ask(
            "POST", "/se/log", {"type": "performance"})]
        return [e["params"]["request"]["url"] for e in events
                if e["method"] == "Network.requestWillBeSent"]

    def dark(self, dark):
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)

    def shot(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self._ask("GET", "/screenshot")))
