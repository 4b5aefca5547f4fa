// tests/runtime/model/files/safetensors_test.cpp -- good, bad and lying files.
#include "runtime/files/mapped_file.hpp"
#include "runtime/model/files/safetensors.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <ostream>

BOOST_AUTO_TEST_SUITE(safetensors)

namespace bdata = boost::unit_test::data;
using namespace shoal::model;
using namespace shoal::tests;

namespace {

/// A file with this header and this number of bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\1');
}

result<std::vector<stored_tensor>> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file)), "w.safetensors");
}

struct bad_header {
  const char* header;
  std::size_t data_bytes;
  const char* named;
};
std::ostream& operator<<(std::ostream& out, const bad_header& bad) {
  return out << bad.header;
}

#define ENTRY(offsets)                                                         \
  R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" offsets "}}"

const bad_header bad_headers[] = {
  {"", 0, "not a JSON object"},
  {"{", 0, "not a JSON object"},
  {"[]", 0, "not a JSON object"},
  {R"({"a":7})", 0, "tensor a: lacks"},
  {R"({"a":{}})", 0, "tensor a: lacks"},
  {R"({"a":{"dtype":1,"shape":[],"data_offsets":[0,4]}})", 4, "wrong kind"},
  {R"({"a":{"dtype":"F99","shape":[],"data_offsets":[0,4]}})", 4, "F99"},
  {R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8, "shape"},
  {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],
       "data_offsets":[0,8]}})",
   8, "too large"},
  {R"({"a":{"dtype":"F64","shape":[2305843009213693952],
       "data_offsets":[0,0]}})",
   0, "needs others"},
  {ENTRY("[0]"), 8, "data_offsets"},
  {ENTRY("[0,8.5]"), 8, "data_offsets"},
  {ENTRY("[8,0]"), 8, "lie outside"},
  {ENTRY("[0,8]"), 4, "lie outside"},
  {ENTRY("[0,18446744073709551615]"), 8, "lie outside"},
  {ENTRY("[0,4]"), 4, "needs others"},
  {ENTRY("[0,8]"), 9, "belong to no tensor"},
  {ENTRY("[1,9]"), 9, "hole"},
  {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
       "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
   12, "tensor b: overlaps"},
  {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
       "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
   8, "tensor a: comes twice"},
  {R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],
       "data_offsets":[0,4]}})",
   4, "dimensions"},
};

tensor_to_save tensor(std::string name, std::span<const float> values) {
  return {std::move(name), {values.size()}, values};
}

} // namespace

BOOST_DATA_TEST_CASE(a_lying_header_is_refused, bdata::make(bad_headers), bad) {
  const auto parsed = parse(file_of(bad.header, bad.data_bytes));
  BOOST_REQUIRE(!parsed);
  BOOST_TEST(parsed.message().starts_with("w.safetensors: "));
  BOOST_TEST(parsed.message().find(bad.named) != std::string::npos,
             parsed.message());
}

BOOST_AUTO_TEST_CASE(a_file_cut_off_anywhere_is_refused) {
  const std::string whole = file_of(ENTRY("[0,8]"), 8);
  BOOST_REQUIRE(parse(whole));
  for (std::size_t size = 0; size < whole.size(); ++size)
    BOOST_TEST(!parse(whole.substr(0, size)));
}

BOOST_AUTO_TEST_CASE(a_huge_header_length_is_refused_unread) {
  for (const std::uint64_t length :
       {std::uint64_t(1) << 40, ~std::uint64_t(0), ~std::uint64_t(0) - 7}) {
    std::string file(64, ' ');
    std::memcpy(file.data(), &length, 8);
    BOOST_TEST(!parse(file));
  }
}

BOOST_AUTO_TEST_CASE(halves_become_the_floats_they_are) {
  // All 65536 halves against the definition of the format.
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    float got = 0;
    widen(stored_type::f16, reinterpret_cast<const std::byte*>(&half),
          {&got, 1});
    const int exponent = half >> 10 & 31;
    const int fraction = half & 1023;
    const float sign = half & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 31 && fraction != 0) {
      BOOST_REQUIRE(std::isnan(got));
      continue;
    }
    float expected = exponent == 0
                       ? std::ldexp(static_cast<float>(fraction), -24)
                       : std::ldexp(1024.0f + fraction, exponent - 25);
    if (exponent == 31)
      expected = HUGE_VALF;
    BOOST_REQUIRE(std::bit_cast<std::uint32_t>(got)
                  == std::bit_cast<std::uint32_t>(sign * expected));
  }
  const std::uint16_t brain = 0xc049;
  float got = 0;
  widen(stored_type::bf16, reinterpret_cast<const std::byte*>(&brain),
        {&got, 1});
  BOOST_TEST(got == -3.140625f);
}

BOOST_AUTO_TEST_CASE(written_weights_are_read_whole_or_in_shards) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {4, 5};
  const std::vector<float> c = {-0.0f};
  const std::vector<tensor_to_save> tensors = {tensor("a", a), tensor("b", b),
                                               tensor("c", c)};
  for (const std::uint64_t limit : {1ull, 12ull, 20ull, 1000ull}) {
    temporary_folder folder;
    BOOST_REQUIRE(write_sharded(folder.path(), tensors, limit));
    const auto source = safetensors_source::open(folder.path());
    BOOST_REQUIRE_MESSAGE(source, why(source));
    BOOST_TEST(source->names().size() == 3u);
    for (const auto& t : tensors) {
      std::vector<float> got(t.values.size());
      BOOST_REQUIRE(source->read(t.name, t.shape, got));
      BOOST_TEST(std::memcmp(got.data(), t.values.data(), t.values.size_bytes())
                 == 0);
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      BOOST_TEST(entry.path().string().find(".part") == std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_file_is_cut_between_its_tensors) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<float> b = {4, 5};
  const std::vector<float> none;
  const std::vector<float> c = {-0.0f};
  const std::vector<tensor_to_save> tensors = {
    tensor("z", a), tensor("b", b), tensor("none", none), tensor("c", c)};
  const temporary_folder folder;
  const auto path = folder.path() / "model.safetensors";
  BOOST_REQUIRE(write_safetensors(path, tensors));
  const auto file = mapped_file::open(path);
  BOOST_REQUIRE(file);
  const std::pair<std::uint64_t, std::size_t> expected[] = {
    {1, 3}, {12, 2}, {20, 2}, {24, 1}};
  for (const auto& [limit, parts] : expected) {
    const auto whole = (*file)->bytes();
    const auto cut =
      cut_safetensors(whole.first(header_end(whole.first(8), whole.size())),
                      whole.size(), "it", limit);
    BOOST_REQUIRE_MESSAGE(cut, why(cut));
    BOOST_TEST(cut->size() == parts);
    std::vector<std::string> texts;
    for (const file_part& part : *cut) {
      texts.push_back(part.begin);
      for (const auto& v : part.values)
        texts.back().append(reinterpret_cast<const char*>(whole.data())
                              + v.first,
                            v.last - v.first);
      BOOST_TEST(texts.back().size() == part.begin.size() + part.data_bytes());
    }
    std::vector<file_in_memory> files;
    for (const std::string& text : texts)
      files.push_back({"part" + std::to_string(files.size()),
                       std::as_bytes(std::span(text)), nullptr});
    const auto source = safetensors_source::open(std::move(files));
    BOOST_REQUIRE_MESSAGE(source, why(source));
    BOOST_TEST(source->names().size() == 4u);
    for (const auto& t : tensors) {
      std::vector<float> got(t.values.size());
      BOOST_REQUIRE(source->read(t.name, t.shape, got));
      BOOST_TEST(std::ranges::equal(got, t.values));
    }
  }
  const auto bytes = (*file)->bytes();
  BOOST_TEST(why(cut_safetensors(bytes, bytes.size() - 1, "it", 12)).find("it")
             == 0u);
  BOOST_TEST(
    why(cut_safetensors(bytes.first(9), bytes.size(), "it", 12)).find("it")
    == 0u);
}

BOOST_AUTO_TEST_CASE(shape_type_and_absence_are_named) {
  temporary_folder folder;
  const std::string header =
    R"({"i":{"dtype":"I32","shape":[2],"data_offsets":[0,8]},
          "f":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})";
  write_text(folder / "model.safetensors", file_of(header, 16));
  const auto source = safetensors_source::open(folder.path());
  BOOST_REQUIRE(source);
  auto fault = [&](const char* name, std::vector<std::uint64_t> shape) {
    const auto checked = source->check(name, shape);
    return checked ? std::string() : checked.message();
  };
  BOOST_TEST(fault("f", {2}).empty());
  BOOST_TEST(fault("f", {2, 1}).find("shape [2], the config needs [2,1]")
             != std::string::npos);
  BOOST_TEST(fault("i", {2}).find("tensor i: type I32") != std::string::npos);
  BOOST_TEST(fault("x", {2}).find("tensor x: is missing") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_index_that_lies_is_refused) {
  const std::string file = file_of(ENTRY("[0,8]"), 8);
  for (const char* index :
       {"", "[]", R"({"weight_map":7})", R"({"weight_map":{"a":1}})",
        R"({"weight_map":{"a":"../x.safetensors"}})",
        R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":""}})",
        R"({"weight_map":{"a":"gone.safetensors"}})",
        R"({"weight_map":{"b":"x.safetensors"}})",
        R"({"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})"}) {
    temporary_folder folder;
    write_text(folder / "x.safetensors", file);
    write_text(folder / "y.safetensors", file);
    write_text(folder / "model.safetensors.index.json", index);
    BOOST_TEST(!safetensors_source::open(folder.path()), index);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_folder_is_refused) {
  temporary_folder folder;
  BOOST_TEST(!safetensors_source::open(folder.path()));
  BOOST_TEST(!safetensors_source::open(folder / "none"));
  write_text(folder / "model.safetensors", "");
  BOOST_TEST(!safetensors_source::open(folder.path()));
}

BOOST_AUTO_TEST_SUITE_END()
