// tests/runtime/model/jinja/jinja_test.cpp -- limits, marks and faults; that
// results are jinja2's is jinja2_test.py's.
#include "runtime/files/json.hpp"
#include "runtime/model/jinja/template.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>

BOOST_AUTO_TEST_SUITE(jinja_templates)

using namespace shoal;
using namespace shoal::jinja;
using json = nlohmann::ordered_json;

namespace {

struct rendered {
  std::optional<marked_text> text;
  text_template::fault why;
};

rendered render(const std::string& source, const json& foreign = json::object(),
                const json& own = json::object(), limits bounds = {}) {
  const auto parsed = text_template::parse(source);
  rendered out;
  if (!parsed) {
    out.why.message = parsed.message();
    return out;
  }
  out.text = parsed->render({&foreign, &own, {}, bounds}, out.why);
  return out;
}

std::string fault_of(const std::string& source, limits bounds = {}) {
  const rendered r = render(source, json::object(), json::object(), bounds);
  BOOST_TEST(!r.text.has_value());
  return r.why.message;
}

/// The text with what is foreign in brackets.
std::string marked(const std::string& source, const json& foreign,
                   const json& own = json::object()) {
  const rendered r = render(source, foreign, own);
  if (!r.text)
    return r.why.message;
  std::string out;
  std::size_t at = 0;
  for (const text_range& f : r.text->foreign) {
    out += r.text->bytes.substr(at, f.first - at) + "["
           + r.text->bytes.substr(f.first, f.last - f.first) + "]";
    at = f.last;
  }
  return out + r.text->bytes.substr(at);
}

} // namespace

/// A template may make a control token of a role's name.
BOOST_AUTO_TEST_CASE(what_a_client_chooses_is_not_what_it_writes) {
  constexpr std::array<std::string_view, 2> roles{"user", "tool"};
  const json c = {
    {"m",
     {{{"role", "user"}, {"text", "user"}}, {{"role", "eos"}, {"text", "x"}}}}};
  const auto t = text_template::parse(
    "{% for x in m %}<|{{ x.role }}|>{{ x.text }}{% endfor %}");
  BOOST_REQUIRE(t);
  text_template::fault why;
  const auto text = t->render({&c, nullptr, {}, {}, {"role", roles}}, why);
  BOOST_REQUIRE(text);
  BOOST_TEST(text->bytes == "<|user|>user<|eos|>x");
  std::string foreign;
  for (const text_range& f : text->foreign)
    foreign += "[" + text->bytes.substr(f.first, f.last - f.first) + "]";
  BOOST_TEST(foreign == "[user][eos][x]");
}

BOOST_AUTO_TEST_CASE(what_a_client_wrote_stays_marked) {
  const json c = {{"x", " a|b "}, {"m", {{"k", "v"}}}, {"n", 7}};
  const json own = {{"bos", "<s>"}};
  BOOST_TEST(marked("{{ bos }}({{ x }})", c, own) == "<s>([ a|b ])");
  BOOST_TEST(marked("{{ x | trim }}.{{ x.strip() }}", c) == "[a|b].[a|b]");
  BOOST_TEST(marked("{{ '<' + x[1:2] ~ '>' }}", c) == "<[a]>");
  BOOST_TEST(marked("{{ x.split('|')[1] }};{{ x.split('|') | join('|') }}", c)
             == "[b ];[ a]|[b ]");
  BOOST_TEST(marked("{{ x.replace('|', '<s>') }}", c) == "[ a]<s>[b ]");
  BOOST_TEST(marked("{{ x | upper }}{{ n }}", c) == "[ A|B ]7");
  BOOST_TEST(marked("{{ m | tojson }}", c) == "{[\"k\"]: [\"v\"]}");
  BOOST_TEST(marked("{{ m }}", c) == "{['k']: ['v']}");
  BOOST_TEST(marked("{% macro f(a) %}({{ a }}){% endmacro %}"
                    "{% set b %}{{ f(x) }}{% endset %}{{ b }}",
                    c)
             == "([ a|b ])");
  BOOST_TEST(marked("{% for k, v in m | items %}{{ k }}={{ v }}{% endfor %}", c)
             == "[k]=[v]");
  BOOST_TEST(marked("{{ '%s!' % x }}", c) == "[ a|b ]!");
  BOOST_TEST(marked("{% filter upper %}a{{ x }}{% endfilter %}", c)
             == "[A A|B ]"); // cannot be followed: all of it
}

BOOST_AUTO_TEST_CASE(a_fault_names_its_line) {
  BOOST_TEST(fault_of("a\n{{ x.y }}") == "line 2: 'x' is undefined");
  BOOST_TEST(fault_of("a\n\n{% if %}") == "line 3: unexpected end of the tag");
  BOOST_TEST(fault_of("{% include 'x' %}")
             == "line 1: \"include\" is not supported here");
  BOOST_TEST(fault_of("{{ 1 | nothing }}")
             == "line 1: no filter named 'nothing'");
  BOOST_TEST(fault_of("{% for x in y %}")
             == "line 1: the template ends where \"endfor\" is missing");
  const rendered r = render("\n{{ raise_exception('roles ' ~ 1) }}");
  BOOST_TEST(r.why.message == "roles 1");
  BOOST_TEST(r.why.by_template);
}

BOOST_AUTO_TEST_CASE(nothing_takes_long_or_grows_without_end) {
  for (const char* source : {
         "{% for a in range(99999) %}{% for b in range(99999) %}"
         "{% endfor %}{% endfor %}",
         "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}"
         "{% for i in range(99999) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
         "{{ 'abc' * 99999999999 }}",
         "{{ 'abc' * 9223372036854775807 }}",
         "{{ [1] * 99999999999 }}",
         "{{ 'a' | center(99999999999) }}",
         "{{ 'a'.center(4611686018427387905) }}",
         "{{ range(100000) | list | tojson(indent='x' * 1000000) }}",
         "{% set ns = namespace(j='') %}{% for i in range(100000) %}"
         "{% set ns.j = joiner(ns.j) %}{% endfor %}",
         "{% set ns = namespace(f=1) %}{% for i in range(100000) %}"
         "{% set ns.f = cycler(ns.f).next %}{% endfor %}",
         "{{ 'a' | indent(99999999999) }}",
         "{{ 'a'.zfill(99999999999) }}",
         "{{ '%401d' % 1 }}",
         "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
         "{% macro f(n) %}{{ f(n + 1) ~ f(n + 2) }}{% endmacro %}{{ f(1) }}",
         "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
         "{{ range(100001) }}",
         "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}"
         "{% set ns.x = [ns.x, ns.x] %}{% endfor %}",
         "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}"
         "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
         "{% set ns = namespace(x=[1]) %}{% for i in range(100) %}"
         "{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
         "{% set ns = namespace(x=[1]) %}{% set m = namespace(x=[1]) %}"
         "{% for i in range(100) %}{% set ns.x = [ns.x, ns.x] %}"
         "{% set m.x = [m.x, m.x] %}{% endfor %}{{ ns.x == m.x }}",
         "{% for i in range(99999) %}{{ range(99999) | list | length }}"
         "{% endfor %}",
         "{{ 2 ** 64 }}",
         "{{ 9223372036854775807 + 1 }}",
       }) {
    BOOST_TEST_CONTEXT(source) {
      BOOST_TEST(!fault_of(source).empty());
    }
  }
  limits small;
  small.output_bytes_max = 100;
  BOOST_TEST(fault_of("{% for i in range(99) %}xxxxx{% endfor %}", small)
             == "line 1: the text has more than 100 bytes");
}

BOOST_AUTO_TEST_CASE(no_nesting_uses_up_the_stack) {
  const auto many = [](std::string_view text) {
    std::string out;
    for (int i = 0; i < 100'000; ++i)
      out += text;
    return out;
  };
  for (const std::string& source :
       {"{{ " + many("(") + "1" + many(")") + " }}",
        "{{ " + many("[") + many("]") + " }}", "{{ " + many("not ") + "1 }}",
        "{{ " + many("-") + "1 }}", "{{ 1" + many("+1") + " }}",
        "{{ x" + many(".x") + " }}", "{{ x" + many("|e") + " }}",
        "{{ x" + many("()") + " }}", "{{ x" + many(" is a") + " }}",
        many("{% if 1 %}") + many("{% endif %}"),
        many("{% for x in y %}") + many("{% endfor %}"),
        "{% set " + many("(") + " x = 1 %}", "{{ 1" + many(" if 1") + " }}",
        "{{ 1" + many(" if 1 else 1") + " }}", "{{ x" + many("(x") + " }}"})
    BOOST_TEST(!text_template::parse(source));
  // Long, but not deep.
  BOOST_TEST(bool(text_template::parse("{{ 'a'" + many(" ~ 'a'") + " }}")));
  std::string branches = "{% if 0 %}";
  for (int i = 0; i < 50'000; ++i)
    branches += "{% elif 0 %}";
  BOOST_TEST(bool(text_template::parse(branches + "{% endif %}")));
}

/// Sanitizers tell of what is not given back.
BOOST_AUTO_TEST_CASE(what_holds_itself_is_given_back) {
  BOOST_TEST(render("{% set ns = namespace() %}{% set ns.me = ns %}"
                    "{% set ns.all = [ns] %}{{ ns.me.me.all | length }}")
               .text->bytes
             == "1");
  BOOST_TEST(
    render("{% macro f() %}{{ g }}{% endmacro %}{% set g = f %}x").text->bytes
    == "x");
  BOOST_TEST(
    render("{% set ns = namespace() %}{% for i in range(2) recursive %}"
           "{% set ns.loop = loop %}{% endfor %}x")
      .text->bytes
    == "x");
  // A chain of namespaces as long as the steps allow.
  BOOST_TEST(render("{% set ns = namespace(x=0) %}{% for i in range(99999) %}"
                    "{% set ns.x = namespace(x=ns.x) %}{% endfor %}y")
               .text->bytes
             == "y");
}

BOOST_AUTO_TEST_SUITE_END()
