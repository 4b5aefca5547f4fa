# tests/runtime/model/jinja/constructs.py -- a template for each construct that
# runtime/model/jinja knows: what jinja2 makes of it is what is right.

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

# What each of these is.
EXPRESSIONS = """
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7 / 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
7.5 // 2
-7.5 % 2
1 - -1
+n
-f
n - f
1.0
1e3
1.5e-7
1_000
1e100
100000000000000000000.0
0.1 + 0.2
big
tiny
huge
third
3.0 == 3
t + 1
true
True
none
None
false or 'x'
'' or 0 or 'z'
1 and 2
0 and 2
not 0
not n == 7
n == 7 and f != 2
1 < 2 < 3
1 < 3 < 2
'a' < 'b'
[1, 2] < [1, 3]
n >= 7
n <= 6
'lo' in s
'xx' not in s
1 in xs
'b' in d
'zz' in d
n in [7]
3 in undefined_thing
s ~ n ~ f ~ nil ~ t
s ~ (1 + 2)
s + '!'
xs + [4]
(1, 2) + (3,)
'ab' * 3
2 * 'ab'
[0] * 3
-1 * 'x'
'%s is %d and %5.2f%%' % ('x', 3, 2.5)
'%s' % n
'%-5s|%5s|%05d' % ('a', 'b', 42)
'%r %x' % ('q', 255)
'%(a)s' % {'a': 1}
s[0]
s[-1]
s[1:4]
s[:-1]
s[::-1]
s[::2]
s[10:2:-2]
s[100:]
u[0]
u[-3:]
u[::-1]
u | length
xs[0]
xs[-1]
xs[1:]
xs[:2]
xs[::-1]
xs[5:1]
(1, 2, 3)[1:]
xs[99] is defined
d['b']
d.b
d.a.x[1]
d['a']['x'][0]
d.missing is defined
d['missing'] is undefined
d.a.missing | default('no')
d['items']
d.items() | list
d.items is callable
d.get('b')
d.get('zz')
d.get('zz', 5)
d.keys() | list
d.values() | list
d.a.items() | list
d.items() | length
xs.index(1)
xs.count(3)
(1)
()
(1,)
(1, 2)
[1, 'a', none, true, 1.5, [2], {'k': 'v'}]
{'a': 1, 'b': [1, 2], 3: none}
{}
[]
quotes
[quotes]
['it\\'s', 'a"b', 'both\\'"']
[u]
'tab\\there\\n\\x41\\u00e9\\U0001F41F\\101'
'a' 'b' "c"
n if t else f
n if nil else f
'x' if false
1 if 0 else 2 if 0 else 3
undefined_thing
undefined_thing | default('d')
undefined_thing | default
undefined_thing is defined
nil | default('d')
nil | default('d', true)
e | default('d', boolean=True)
e | d('x')
s | upper
s | lower
u | upper
u | lower
'hELLO wORLD-fOO (bar)' | title
'hELLO wORLD' | capitalize
'straße' | upper
'ß' | capitalize
sp | trim
'xxhixx' | trim('x')
s | length
xs | count
d | length
xs | first
xs | last
zs | first is defined
s | first
s | last
xs | sort
ys | sort
ys | sort(case_sensitive=true)
xs | sort(reverse=true)
people | sort(attribute='name') | map(attribute='name') | list
people | sort(attribute='age,name') | map(attribute='name') | join(',')
ys | unique | list
[1, 1.0, true, 2, 'a', 'A'] | unique | list
people | unique(attribute='role') | map(attribute='name') | list
xs | join
xs | join(', ')
people | join('; ', attribute='name')
[1, none, 'x'] | join('-')
xs | reverse | list
s | reverse
xs | sum
people | sum(attribute='age')
[[1], [2]] | sum(start=[])
xs | min
xs | max
ys | min
people | max(attribute='age')
zs | max is defined
xs | list
s | list
d | list
range(5) | list
range(2, 8, 3) | list
range(5, 0, -2) | list
range(3)[1]
range(10)[2:4] | list
range(0) | list
d | dictsort
{'b': 2, 'A': 1, 'c': 0} | dictsort
{'b': 2, 'A': 1, 'c': 0} | dictsort(true)
{'b': 2, 'A': 1, 'c': 0} | dictsort(by='value')
{'b': 2, 'A': 1, 'c': 0} | dictsort(reverse=true)
d.a | items | list
undefined_thing | items | list
people | map(attribute='name') | list
people | map(attribute='nope', default='?') | list
people | map('length') | list
ys | map('upper') | list
ys | map('replace', 'a', 'z') | join
xs | select('odd') | list
xs | select('greaterthan', 1) | list
[0, 1, '', 'a'] | select | list
[0, 1, '', 'a'] | reject | list
xs | reject('odd') | list
people | selectattr('role', 'equalto', 'user') | map(attribute='name') | list
people | selectattr('age', 'gt', 26) | list | length
people | selectattr('name') | list | length
people | rejectattr('role', 'eq', 'user') | map(attribute='name') | first
people | selectattr('role', 'in', ['system']) | list
'a-b-c' | replace('-', '+')
'a-b-c' | replace('-', '+', 1)
'abc' | replace('', '.')
12345 | replace(3, 'x')
'a\\nb\\n\\nc' | indent
'a\\nb\\n\\nc' | indent(2, true)
'a\\nb\\n\\nc' | indent(2, blank=true)
'a\\nb' | indent('> ')
'a\\n' | indent
'12' | int
' -12 ' | int
'1_2' | int
'x' | int
'x' | int(5)
'3.9' | int
3.9 | int
-3.9 | int
'ff' | int(base=16)
'0xff' | int(0, 16)
true | int
none | int(4)
'2.5' | float
'x' | float
'x' | float(1.5)
3 | float
'1e3' | float
n | string
f | string
nil | string
n | string | length
xs | string
s | safe
'<a href="x">&\\'' | escape
'<b>' | e
-3 | abs
-2.5 | abs
2.5 | round
3.5 | round
2.675 | round(2)
42 | round
2.4 | round(method='ceil')
2.6 | round(0, 'floor')
1234.5 | round(-2)
'%s-%s' | format('a', 2)
'hi' | center(10)
'a b c' | wordcount
d | attr('items') is callable
d.a | tojson
d | tojson
people | tojson
people | tojson(indent=2)
people | tojson(indent=4)
zs | tojson(indent=2)
{} | tojson(indent=2)
{'a': []} | tojson(indent=1)
d | tojson(separators=(',', ':'))
d | tojson(separators=(',', ': '), indent=2)
d | tojson(sort_keys=true)
quotes | tojson
u | tojson
u | tojson(ensure_ascii=true)
[1, 1.5, 1e22, none, true, 'x'] | tojson
{1: 'a', none: 'b', true: 'c', 1.5: 'd'} | tojson
(1, 2) | tojson
tiny | tojson
n is odd
n is even
n is divisibleby(7)
n is divisibleby 3
n is number
t is number
s is number
n is integer
t is integer
f is float
n is float
t is boolean
n is boolean
t is true
t is false
1 is true
nil is none
n is none
s is string
n is string
d is mapping
xs is mapping
xs is iterable
s is iterable
n is iterable
xs is sequence
d is sequence
s is sequence
(xs | map('string')) is sequence
(xs | map('string')) is iterable
range is callable
n is callable
n is defined
n is not defined
undefined_thing is undefined
n is sameas n
1 is sameas true
n is eq 7
n is equalto(7)
n is ne 8
n is gt 6
n is lt(8)
n is ge 7
n is le 6
n is greaterthan 1
n is lessthan 1
3 is in xs
'X' is upper
'x' is lower
'X1' is upper
'upper' is filter
'nofilter' is filter
'odd' is test
n is not none and s is string
sp.strip()
sp.lstrip()
sp.rstrip()
'xxaxx'.strip('x')
'xxaxx'.lstrip('x')
'xyaxy'.rstrip('yx')
s.split()
s.split(', ')
'a,b,,c'.split(',')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'  a  b '.split()
'  a  b  c '.split(none, 1)
'  a  b  c '.rsplit(none, 1)
'  a '.split(none, 0)
''.split()
''.split(',')
'a</think>b</think>c'.split('</think>')[-1]
'a\\nb\\r\\nc'.splitlines()
'a\\nb\\n'.splitlines(true)
s.startswith('Hell')
s.startswith(('x', 'H'))
s.endswith('World')
s.endswith('x')
s.startswith('World', 7)
s.replace('l', 'L')
s.replace('l', 'L', 1)
s.upper()
s.lower()
s.title()
"it's ab".title()
s.capitalize()
s.find('o')
s.rfind('o')
s.find('zz')
u.find('界')
s.index('W')
s.count('l')
s.count('o', 5)
s.partition(', ')
s.rpartition('zz')
', '.join(ys)
'{} and {}'.format(1, 'b')
'{1} {0} {x} {{}}'.format('a', 'b', x=3)
'abc'.center(8)
'abc'.ljust(6, '.')
'abc'.rjust(6)
'-42'.zfill(6)
'abc'.isalpha()
'a1'.isalnum()
'12'.isdigit()
'1a'.isdigit()
' \\t'.isspace()
'AB'.isupper()
'ab1'.islower()
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
s['upper']()
namespace(a=1).a
namespace({'a': 1}, b=2).b
namespace(a=1).zz is defined
dict(a=1, b=2)
dict([('a', 1)], b=2)
joiner()()
cycler(1, 2).next()
loop is defined
strftime_now('%Y-%m-%d %H:%M')
strftime_now('%d %b %Y')
strftime_now('')
[[1, 2], [3]][0][1]
d.a.x.1
xs.0
{'a': {'b': 1}}.a.b
(s | lower).split('o') | map('trim') | join('|')
[1, 2] == [1, 2.0]
{'a': 1} == {'a': 1}
(1, 2) == [1, 2]
none == none
undefined_thing == other_undefined
1 == '1'
'a' == 'a' != 'b'
""".strip("\n").split("\n")

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
