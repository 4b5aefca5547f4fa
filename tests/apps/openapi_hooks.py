# tests/apps/openapi_hooks.py -- what schemathesis changes in the requests that it
# makes: they ask for the model that is served, and for few tokens.
#
# Only values that are right are replaced by others that are: what a request gets
# wrong on purpose stays wrong.
import schemathesis

TOKENS = 4


def small(body, name):
    value = body.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and value > TOKENS:
        body[name] = min(value, TOKENS) if value <= 1 << 20 else value


@schemathesis.hook
def before_call(_context, case, _kwargs):
    body = case.body
    # It finds the model's job in answers: that is not to end, and its events do not.
    if case.path.startswith("/shoal/jobs/{job}/"):
        case.path_parameters["job"] = "none"
    if case.path == "/models/unload" and isinstance(body, dict) and body.get(
            "model") == "tiny":
        body["model"] = "none"
    if not isinstance(body, dict) or case.path.startswith(("/models", "/shoal")):
        return
    if isinstance(body.get("model"), str) and len(body["model"]) <= 512:
        body["model"] = "tiny"
    for name in ("max_tokens", "max_completion_tokens", "max_output_tokens",
                 "n", "best_of"):
        small(body, name)
