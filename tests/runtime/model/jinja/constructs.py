# tests/runtime/model/jinja/constructs.py -- a template for each construct that
# runtime/model/jinja knows: what jinja2 makes of it is what is right.
import pathlib

# Variables of all of them.
VARIABLES = {
    "n": 7, "f": 2.5, "t": True, "nil": None, "s": "Hello, World", "e": "",
    "sp": "  a b\tc\n", "u": "Grüße, 世界 🐟 ǆ", "neg": -3,
    "xs": [3, 1, 2], "ys": ["b", "A", "c", "a"], "zs": [],
    "d": {"b": 1, "a": {"x": [1, "two", None]}, "items": "mine"},
    "people": [{"name": "Ann", "age": 30, "role": "user"},
               {"name": "bob", "age": 25, "role": "system"},
               {"name": "Cid", "age": 30, "role": "user"}],
    "quotes": "it's \"so\" \\ \n \x7f \x01 é",
    "big": 9007199254740993, "tiny": 1e-7, "huge": 1e22, "third": 1 / 3,
}

# One a line: what each of these is.
EXPRESSIONS = (pathlib.Path(__file__).parent / "expressions.txt").read_text(
    encoding="utf-8").removesuffix("\n").split("\n")

# These fail, in both.
FAULTS = """
'a' ~ 1 + 2
undefined_thing.x
undefined_thing + 1
undefined_thing[0]
-undefined_thing
nil.x.y
n.x.y
'a' + 1
1 + 'a'
[1] + (1,)
1 < 'a'
none < 1
[1, 'a'] | sort
1 // 0
1 % 0
1 / 0
1.5 / 0
2 ** 'a'
xs['a'].b
n()
undefined_thing()
s.nothing()
xs.append(4)
d.update({})
d.pop('b')
xs[::0]
undefined_thing[1:]
n[1:]
xs['a':]
1 in n
1 in 'abc'
n | length
none | length
nil | list
n | join
n | first
undefined_thing | tojson
range(3) | tojson
(xs | map('string')) | tojson
(xs | map('string')) | length
{[1]: 2}
n | nofilter
n is notest
xs | map('nofilter') | list
'a' | abs
raise_exception('told')
range(1, 2, 0)
range(100001)
'%d' % 'x'
'%s %s' % (1,)
'%s' % (1, 2)
'%q' % 1
'{}'.format()
'abc'.index('z')
xs.index(9)
''.join([1])
s.split('')
s.strip(1)
s.upper(1)
s.replace('a')
d | dictsort(by='nothing')
x | indent(bad=1)
n | round(method='none')
people | map(attribute='name', nope=1) | list
people | selectattr() | list
namespace(1)
cycler()
(a=1)
1 +
[1, 2
{'a' 1}
'open
1 2
a b
x.
x[1, 2]
f(a=1, 2)
""".strip("\n").split("\n")

# Whole templates.
TEMPLATES = [
    # Loops.
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
    "{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}"
    "{{ loop.depth }}{{ loop.depth0 }}{{ loop.previtem }}-{{ loop.nextitem }}"
    "{{ loop.cycle('a', 'b') }};{% endfor %}",
    "{% for x in xs %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in zs %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in undefined_thing %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in xs if x > 1 %}{{ loop.index }}/{{ loop.length }}={{ x }} "
    "{% endfor %}",
    "{% for x in xs if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }};{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for c in 'añ🐟' %}[{{ c }}]{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}"
    "{% endfor %}",
    "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}"
    "{% else %}never{% endfor %}",
    "{% for x in xs %}{% for y in ys %}{% if y == 'A' %}{% break %}{% endif %}"
    "{{ x }}{{ y }} {{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for p in [[1, [2, [3]]], 4] recursive %}{% if p is iterable %}"
    "({{ loop(p) }}){{ loop.depth }}{% else %}{{ p }}{% endif %}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }},{% endfor %}",
    "{% for x in xs | reverse %}{{ x }}{{ loop.last }}{% endfor %}",
    "{% for x in xs | map('string') | select('ne', '1') %}{{ x }}{% endfor %}",
    "{% for p in people %}{{ loop.previtem.name if loop.previtem is defined "
    "else '^' }}>{{ p.name }} {% endfor %}",
    "{% set g = xs | map('string') %}{{ g | join }}{{ g | join }}",
    "{% if xs | select('gt', 9) %}always{% endif %}",
    # Scopes.
    "{% set x = 1 %}{% for i in xs %}{% set x = i %}{{ x }}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% for i in xs %}{% if i == 1 %}{% set y = 'set' %}{% endif %}"
    "{{ y | default('unset') }} {% endfor %}{{ y is defined }}",
    "{% for i in xs %}{{ x | default('-') }}{% set x = i %}{% endfor %}",
    "{% set ns = namespace(n=0, found=false) %}{% for i in xs %}"
    "{% set ns.n = ns.n + i %}{% if i == 1 %}{% set ns.found = true %}"
    "{% endif %}{% endfor %}{{ ns.n }} {{ ns.found }}",
    "{% set a, b = 1, [2] %}{{ a }}{{ b }}",
    "{% set (a, b) = (1, 2) %}{{ a }}{{ b }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a{{ n }}b{% endset %}{{ x }}|{{ x | length }}",
    "{% set x | upper | replace('A', '4') %}a{{ n }}b{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}",
    "{% set ns = namespace() %}{% set ns.x %}body{% endset %}{{ ns.x }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% set c = 1 %}{% endwith %}"
    "{{ a is defined }}{{ c is defined }}",
    "{% set n = n + 1 %}{{ n }}",
    "{{ ns is defined }}{% set ns.x = 1 %}",
    "{% set d.x = 1 %}",
    # Macros.
    "{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}"
    "{{ f(1) }} {{ f(1, 3) }} {{ f(1, c='z') }} {{ f(a=5) }} {{ f() }}",
    "{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, k=4) }}",
    "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}",
    "{% macro f(x) %}{% if x > 0 %}{{ x }}{{ f(x - 1) }}{% endif %}{% endmacro %}"
    "{{ f(5) }}",
    "{% macro f() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ f() }}",
    "{% macro f() %}{{ z is defined }}{% endmacro %}{% for z in xs %}{{ f() }}"
    "{% endfor %}",
    "{% set y = 1 %}{% macro f() %}{% set y = 2 %}{{ y }}{% endmacro %}"
    "{{ f() }}{{ y }}",
    "{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}in {{ n }}"
    "{% endcall %}",
    "{% macro f(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}"
    "{% endmacro %}{% call(x, i) f(xs) %}{{ i }}:{{ x }} {% endcall %}",
    "{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}",
    "{% macro f() %}{% if caller %}{{ caller() }}{% else %}no{% endif %}"
    "{% endmacro %}{{ f() }}",
    "{% macro f() %} a {% endmacro %}[{{ f() | trim }}]{{ f() is string }}",
    "{% macro f(p) %}{% for k, v in p | items %}{% if v is mapping %}{{ k }}:{"
    "{{ f(v) }}}{% else %}{{ k }}={{ v | tojson }}{% endif %}"
    "{{ ', ' if not loop.last }}{% endfor %}{% endmacro %}"
    "{{ f({'a': 1, 'b': {'c': [1], 'd': {'e': none}}}) }}",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}"
    "{{ f(**{'b': 1, 'a': 2}) }}{{ f(*[1], **{'b': 2}) }}",
    # Blocks.
    "{% filter upper %}a{{ s }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}aXa{% endfilter %}",
    "{% if n == 1 %}a{% elif n == 7 %}b{% else %}c{% endif %}",
    "{% if nil %}a{% elif zs %}b{% else %}c{% endif %}",
    "{% if undefined_thing %}a{% else %}b{% endif %}",
    "{% generation %}a{{ n }}{% set q = 1 %}{% endgeneration %}{{ q is defined }}",
    "{% raw %}{{ not }} {% if %}{% endraw %}.",
    "{%- raw -%}  x  {%- endraw -%}  y",
    "{# a comment {{ n }} #}x{#- y -#} z",
    "{% print 1, 'a' %}",
    # White space.
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "a\n  {% if true %}\n  b\n  {% endif %}\n  c\n\n",
    "  {% if true %} x {% endif %}  \n",
    "a \n {%- if true -%} \n b \n {%- endif -%} \n c",
    "a\n  {%+ if true %}\n  b\n  {%+ endif %}\nc",
    "a\n  {% if true +%}\n  b{% endif +%}\nc",
    "a\n  {{- n -}}\n  b",
    "a\n  {{ n }}\nb",
    "  {# c #}\n  x {# d #}\ny",
    "{%- for x in xs -%}\n  {{ x }}\n{%- endfor -%}\n",
    "{% for x in xs %}\n    {{- x }}\n{% endfor %}\n",
    "a\u00a0\n{%- if true %}b{% endif %}",
    "x {%- set a = 1 %} y",
    "x\r\ny\r{{ n }}\r\n",
    "\n\n{{ n }}\n\n",
    "\t{% if true %}\n\tb\n\t{% endif %}",
    "a{% if true %}\n\nb{% endif %}",
    "{{ '}}' }}{{ {'a': {'b': 1}} }}{{ '{%' }}",
    "{{ {'a':{'b':1}}}}",
    "{{-n}}{{n-}} x",
    "{%if n==7%}yes{%endif%}",
    # Refused, or wrong.
    "{% include 'x' %}",
    "{% extends 'x' %}",
    "{% import 'x' as y %}",
    "{% unknown %}",
    "{% if %}",
    "{% if n %}",
    "{% endif %}",
    "{% for %}{% endfor %}",
    "{% for x %}{% endfor %}",
    "{% set %}",
    "{% set true = 1 %}",
    "{% macro %}{% endmacro %}",
    "{% macro f(a=1, b) %}{% endmacro %}",
    "{{ }}",
    "{{ n",
    "{% break %}",
    "{% raw %}x",
    "{# x",
    "{{ n }",
    "{{ n | }}",
    "{{ raise_exception('told: ' ~ s) }}",
    "{% if n == 7 %}{{ raise_exception('told') }}{% endif %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
    "{% for a in n %}{% endfor %}",
    "{% for x in xs %}{{ loop(x) }}{% endfor %}",
]
