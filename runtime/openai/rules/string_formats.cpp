// runtime/openai/rules/string_formats.cpp -- from parts, each named once.
#include "runtime/openai/rules/string_formats.hpp"

namespace shoal::openai {

namespace {

constexpr std::uint32_t no_most = ~std::uint32_t{0};

std::string date() {
  // From year 1 on: the year 0 is none to most programs.
  return "([1-9][0-9]{3}|0([1-9][0-9]{2}|0([1-9][0-9]|0[1-9])))-((0[13578]|1["
         "02])-(0[1-9]|[12][0-9]|3[01])|"
         "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))";
}

std::string time() {
  return "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
         "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
}

/// RFC 3339, appendix A.
std::string duration() {
  const auto count = [](char unit) { return std::string("[0-9]{1,4}") + unit; };
  const auto from = [&](char a, char b, char c) {
    const std::string last = count(c), two = count(b) + "(" + last + ")?";
    return "(" + count(a) + "(" + two + ")?|" + two + "|" + last + ")";
  };
  const std::string clock = "T" + from('H', 'M', 'S');
  return "P(" + from('Y', 'M', 'D') + "(" + clock + ")?|" + clock + "|"
         + count('W') + ")";
}

std::string label() {
  return "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
}
std::string hostname(const char* more) {
  return label() + "(\\." + label() + ")" + more;
}

std::string email() {
  return "[A-Za-z0-9]([A-Za-z0-9_+-]|\\.[A-Za-z0-9]){0,30}@"
         + hostname("{1,3}");
}

std::string ipv4() {
  const std::string byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
  return "(" + byte + "\\.){3}" + byte;
}

/// RFC 4291, section 2.2, forms 1 and 2.
std::string ipv6() {
  const std::string part = "[0-9a-fA-F]{1,4}";
  const std::string before = part + ":", behind = ":" + part;
  std::string out = "(" + before + "){7}" + part + "|(" + before + "){1,7}:|:("
                    + behind + "){1,7}|::";
  for (int n = 1; n <= 6;
       ++n) // parts before ::, of 7 at most with those behind
    out += "|(" + before + "){" + std::to_string(n) + "}(" + behind + "){1,"
           + std::to_string(7 - n) + "}";
  return out;
}

std::string uri() {
  const std::string signs = "[A-Za-z0-9._~!$&'()*+,;=:@-]";
  const std::string more = "[A-Za-z0-9._~!$&'()*+,;=:@/?-]{0,200}";
  return "https?://" + hostname("{0,3}") + "(:[1-9][0-9]{0,3})?(/" + signs
         + "{0,60}){0,8}(\\?" + more + ")?(#" + more + ")?";
}

std::string json_pointer() {
  return "(/([^~/]|~[01])*)*";
}

constexpr std::uint32_t host_most = 32 + 3 * 33;
constexpr std::uint32_t uri_most = 8 + host_most + 5 + 8 * 61 + 2 * 201;

} // namespace

std::optional<string_format> format_named(std::string_view name) {
  const struct {
    std::string_view name;
    std::string (*pattern)();
    std::uint32_t least, most;
  } known[] = {
    {"date", date, 10, 10},
    {"time", time, 9, 21},
    {"date-time", [] { return date() + "T" + time(); }, 20, 32},
    {"duration", duration, 3, 32},
    {"email", email, 5, 61 + 1 + host_most},
    {"idn-email", email, 5, 61 + 1 + host_most},
    {"hostname", [] { return hostname("{0,3}"); }, 1, host_most},
    {"idn-hostname", [] { return hostname("{0,3}"); }, 1, host_most},
    {"ipv4", ipv4, 7, 15},
    {"ipv6", ipv6, 2, 39},
    {"uri", uri, 8, uri_most},
    {"uri-reference", uri, 8, uri_most},
    {"iri", uri, 8, uri_most},
    {"iri-reference", uri, 8, uri_most},
    {"uri-template", uri, 8, uri_most},
    {"uuid",
     [] {
       return std::string("[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}");
     },
     36, 36},
    {"json-pointer", json_pointer, 0, no_most},
    {"relative-json-pointer",
     [] { return "(0|[1-9][0-9]{0,5})(#|" + json_pointer() + ")"; }, 1,
     no_most},
    {"regex", [] { return std::string("[A-Za-z0-9 _-]*"); }, 0, no_most},
  };
  for (const auto& k : known)
    if (k.name == name)
      return string_format{k.pattern(), k.least, k.most};
  return std::nullopt;
}

} // namespace shoal::openai
