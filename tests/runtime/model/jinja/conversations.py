# tests/runtime/model/jinja/conversations.py -- conversations by chance, from a
# seed: right ones for the most part, some odd ones.
import random

# What a model's files say.
OWN = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
       "unk_token": "<unk>"}

WORDS = ["herring", "cod", "Grüße", "世界", "🐟", "it's", "\"quoted\"", "<|im_end|>",
         "a\\b", "tab\there", "{{ x }}", "{% if %}", "<b>&amp;</b>", "", "  ",
         "\n", "\n\n", "e\u0301", "\u00a0", "\u2028", "</think>", "<think>",
         "[INST]", "true", "None", "0", "ß", "İ", "ǆ", "'", "\r\n", "\x7f"]

SCHEMAS = [
    {"type": "object", "properties": {}},
    {"type": "object", "properties": {
        "city": {"type": "string", "description": "the city's \"name\""},
        "unit": {"type": "string", "enum": ["C", "F"], "default": "C"}},
     "required": ["city"]},
    {"type": "object", "properties": {
        "xs": {"type": "array", "items": {"type": "number", "minimum": -1.5}},
        "opt": {"type": ["string", "null"]},
        "inner": {"type": "object", "properties": {
            "Ünï": {"type": "boolean"}, "n": {"type": "integer"}}}},
     "required": ["xs", "inner"], "additionalProperties": False},
]


def text(rng, most=6):
    return "".join(rng.choice(WORDS) + rng.choice(["", " ", "\n", ", "])
                   for _ in range(rng.randrange(most)))


def content(rng, parts):
    if not parts or rng.random() < 0.7:
        return text(rng)
    return [{"type": "text", "text": text(rng)}
            for _ in range(rng.randrange(1, 4))]


def value(rng, depth=0):
    kind = rng.randrange(8 if depth < 2 else 6)
    if kind == 0:
        return text(rng, 3)
    if kind == 1:
        return rng.randrange(-1000, 10**12)
    if kind == 2:
        return rng.choice([0.5, -1.25, 1e-7, 3.0, 1e22, 0.1, 123456.789])
    if kind < 6:
        return rng.choice([True, False, None])
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(["a", "b", "Ü", "key with space"]): value(rng, depth + 1)
            for _ in range(rng.randrange(3))}


def tools(rng):
    out = []
    for i in range(rng.randrange(1, 4)):
        function = {"name": f"tool_{i}", "parameters": rng.choice(SCHEMAS)}
        if rng.random() < 0.8:
            function["description"] = text(rng) or "does something"
        if rng.random() < 0.2:
            function["strict"] = True
        out.append({"type": "function", "function": function})
    return out


def calls(rng, ids):
    out = []
    for i in range(rng.randrange(1, 3)):
        call = {"type": "function",
                "function": {"name": f"tool_{rng.randrange(3)}",
                             "arguments": {rng.choice("abc"): value(rng)
                                           for _ in range(rng.randrange(3))}}}
        if ids:
            call["id"] = f"call{rng.randrange(10**5):05d}"
        out.append(call)
    return out


# What a template knows: tools, parts of contents, a system message, thoughts.
KNOWS = {
    "plain": {"parts": False},
    "qwen2": {"tools": True, "parts": False, "system": True},
    "qwen3": {"tools": True, "parts": False, "system": True, "thinks": True},
    "llama3": {"tools": True, "parts": True, "system": True},
    "mistral": {"tools": True, "parts": False, "system": True, "ids": True},
    "gemma": {"parts": True, "system": True},
    "phi": {"tools": True, "parts": False, "system": True},
    "deepseek": {"tools": True, "parts": False, "system": True, "thinks": True},
    "schema": {"tools": True, "parts": True, "system": True, "thinks": True},
}


def conversation(rng, name):
    knows = KNOWS[name]
    out = {"messages": []}
    messages = out["messages"]
    if knows.get("system") and rng.random() < 0.5:
        messages.append({"role": "system",
                         "content": content(rng, knows["parts"])})
    uses_tools = knows.get("tools") and rng.random() < 0.6
    if uses_tools:
        out["tools"] = tools(rng)
    for _ in range(rng.randrange(1, 5)):
        messages.append({"role": "user",
                         "content": content(rng, knows["parts"])})
        if rng.random() < 0.2:
            break
        if uses_tools and rng.random() < 0.5:
            made = calls(rng, knows.get("ids"))
            message = {"role": "assistant", "tool_calls": made}
            if rng.random() < 0.7:
                message["content"] = rng.choice(["", None, text(rng)])
            else:
                message["content"] = None
            messages.append(message)
            for call in made:
                answer = {"role": "tool",
                          "content": rng.choice([text(rng), "{\"x\": 1}"])}
                if "id" in call:
                    answer["tool_call_id"] = call["id"]
                answer["name"] = call["function"]["name"]
                messages.append(answer)
        message = {"role": "assistant", "content": text(rng)}
        if knows.get("thinks"):
            if rng.random() < 0.3:
                message["reasoning_content"] = text(rng)
            elif rng.random() < 0.4:
                message["content"] = ("<think>\n" + text(rng) + "\n</think>\n\n"
                                      + message["content"])
        messages.append(message)
    if rng.random() < 0.1:  # an odd one
        messages.insert(rng.randrange(len(messages) + 1),
                        {"role": rng.choice(["user", "assistant", "system",
                                             "other"]), "content": "odd"})
    if rng.random() < 0.6:
        out["add_generation_prompt"] = rng.random() < 0.8
    if knows.get("thinks") and rng.random() < 0.4:
        out["enable_thinking"] = rng.random() < 0.5
    if rng.random() < 0.2:
        out["date_string"] = "01 Jan 2026"
    if uses_tools and rng.random() < 0.3:
        out["tools_in_user_message"] = rng.random() < 0.5
    return out


def draw(name, count):
    rng = random.Random(name)
    return [conversation(rng, name) for _ in range(count)]
