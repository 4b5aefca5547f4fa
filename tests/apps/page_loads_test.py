# tests/apps/page_loads_test.py -- the page's list of loads of models, when it changes
# under the user's hands. The browser answers for the node, so that the test decides
# when a load ends.
from page_world import PageWorld
from support import main

LINES = "document.querySelectorAll('#loads li').length"
ERROR = "document.getElementById('models-error').textContent"
THREE_LOADS = """
    window.asked = [];
    window.looks = 0;
    window.loads = ["1", "2", "3"].map((id) => (
      {id, model: `m${id}`, as: "", state: "working", activity: "", done: 0, all: 0}));
    const real = window.fetch, answer = (value, status = 200) =>
      Promise.resolve(new Response(JSON.stringify(value), {status}));
    window.fetch = (path, options) => {
      if (options?.method === "DELETE") {
        const id = path.split("/").pop();
        asked.push(id);
        if (id === "3") return answer({error: {message: "it is stuck"}}, 500);
        loads = loads.filter((load) => load.id !== id);
        return answer({});
      }
      if (path !== "/models/loads") return real(path, options);
      ++looks;
      return answer({allowed: true, loads});
    };"""


class Loads(PageWorld):
    def world(self):
        at = {}
        self.begin_node("one", {}, at, "--http-jobs")
        b = self.visit(at["one"], "#models")
        b.js(THREE_LOADS)
        b.until(f"{LINES} === 3")
        return b

    def test_a_second_click_cancels_no_other_load(self):
        """The next line takes the place of the one that has gone."""
        b = self.world()
        b.js("document.querySelector('#loads button').focus()")
        b.keys("Enter")
        b.until(f"{LINES} === 2")
        b.keys("Enter")  # the focus has gone with its button
        b.js("""for (const button of document.querySelectorAll('#loads button'))
                  button.dispatchEvent(
                    new MouseEvent('click', {bubbles: true, detail: 1}));""")
        b.until(f"{LINES} === 1")
        self.assertEqual(b.js("return asked"), ["1", "2"])

    def test_why_a_load_could_not_be_cancelled_stays(self):
        b = self.world()
        b.js("document.querySelector('#loads li:last-child button').click()")
        b.until(f"{ERROR} === 'it is stuck'")
        b.until("looks > a[0] + 1", b.js("return looks"))
        self.assertEqual(b.js(f"return {ERROR}"), "it is stuck")
        b.js("document.querySelector('#loads button').click()")
        b.until(f"{LINES} === 2 && {ERROR} === ''")


if __name__ == "__main__":
    main()
