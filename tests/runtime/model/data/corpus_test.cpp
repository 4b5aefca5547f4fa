// tests/runtime/model/data/corpus_test.cpp -- files, split, blob and bigram.
#include "runtime/model/data/bigram.hpp"
#include "runtime/model/data/corpus.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "tests/runtime/model/fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>

BOOST_AUTO_TEST_SUITE(corpus_suite)

using namespace shoal::model;
using namespace shoal::tests;

namespace {

using paths = std::vector<std::string>;

/// Twenty texts, one binary file and an empty one in nested folders.
void fill(const temporary_folder& folder) {
  for (int i = 0; i < 20; ++i)
    write_text(
      folder
        / ("f" + std::to_string(i % 3) + "/t" + std::to_string(i) + ".txt"),
      "text number " + std::to_string(i) + "\n");
  write_text(folder / "f0/binary", std::string("a\0b", 3));
  write_text(folder / "empty.txt", "");
}

} // namespace

BOOST_AUTO_TEST_CASE(files_folders_and_globs_are_found_sorted_and_once) {
  temporary_folder folder;
  fill(folder);
  const std::string root = folder.path().string();
  const auto all = find_files(paths{root});
  BOOST_REQUIRE(all);
  BOOST_TEST(all->size() == 22u);
  for (std::size_t i = 1; i < all->size(); ++i)
    BOOST_TEST(((*all)[i - 1].relative < (*all)[i].relative));
  BOOST_TEST(find_files(paths{root, root})->size() == 22u);
  BOOST_TEST(find_files(paths{root + "/f1/*.txt"})->size() == 7u);
  BOOST_TEST(find_files(paths{root + "/f[01]"})->size() == 15u);
  BOOST_TEST(find_files(paths{root + "/f1/t1.txt"})->front().relative
             == "t1.txt");
  BOOST_TEST(!find_files(paths{root + "/nothing"}));
  BOOST_TEST(!find_files(paths{root + "/*.none"}));
}

/// Results of a run are no text, unless they are asked for by name; the text
/// that lies beside them is.
BOOST_AUTO_TEST_CASE(what_a_run_writes_is_left_out_of_its_text) {
  temporary_folder folder;
  write_text(folder / "notes.txt", "mine");
  write_text(folder / "out/mine.txt", "mine, too");
  write_text(folder / "out/more/metrics.jsonl", "in a folder that is mine");
  const std::string root = folder.path().string();
  BOOST_TEST(find_files(paths{root})->size() == 3u);
  for (const char* name :
       {"run.lock", "run.json", "run.toml", "metrics.jsonl", "config.json",
        "model.safetensors", "model-00001-of-00002.safetensors",
        "checksums.json", "tokenizer.json", "tb/events", "checkpoint/step-1/a"})
    write_text(folder / "out" / name, "a run's");
  const auto found = find_files(paths{root});
  BOOST_REQUIRE(found);
  BOOST_REQUIRE(found->size() == 3u);
  BOOST_TEST((*found)[1].relative == "out/mine.txt");
  BOOST_TEST((*found)[2].relative == "out/more/metrics.jsonl");
  // Named itself, and as the match of a glob.
  BOOST_TEST(find_files(paths{root + "/out"})->size() == 2u);
  BOOST_TEST(find_files(paths{root + "/out/*"})->size() == 2u);
  BOOST_TEST(find_files(paths{root + "/out/run.json"})->size() == 1u);
  // A folder that holds nothing else.
  std::filesystem::remove(folder / "out/mine.txt");
  std::filesystem::remove_all(folder / "out/more");
  const auto none = read_corpus(paths{root + "/out"}, {});
  BOOST_REQUIRE(!none);
  BOOST_TEST(none.message().find("which a run has written")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_split_is_by_file_and_stays) {
  temporary_folder folder;
  fill(folder);
  corpus_options options;
  options.validation_permille = 300;
  corpus_report report;
  const auto a = read_corpus(paths{folder.path().string()}, options, &report);
  BOOST_REQUIRE(a);
  BOOST_TEST(report.read.files == 20u);
  BOOST_TEST(report.read.not_text.count == 1u);
  BOOST_TEST(report.read.bytes == a->train_size() + a->validation_size());
  std::size_t held = 0;
  for (const file_boundary& file : a->files) {
    BOOST_TEST(file.validation == held_out(file.relative, 300));
    held += file.validation;
  }
  BOOST_TEST(held > 0u);
  BOOST_TEST(held < 20u);
  write_text(folder / "f0/another.txt", "one more");
  const auto b = read_corpus(paths{folder.path().string()}, options);
  for (const file_boundary& file : b->files)
    BOOST_TEST(file.validation == held_out(file.relative, 300));
}

BOOST_AUTO_TEST_CASE(no_side_of_the_split_is_empty) {
  temporary_folder folder;
  write_text(folder / "a", "aaaa");
  write_text(folder / "b", "bbbb");
  for (const auto& [permille, held] :
       {std::pair{1u, 1u}, std::pair{300u, 4u}, std::pair{1000u, 4u}}) {
    corpus_options options;
    options.validation_permille = permille;
    const auto c = read_corpus(paths{folder.path().string()}, options);
    BOOST_REQUIRE(c);
    BOOST_TEST(c->train_size() == 8u - held);
    BOOST_TEST(c->validation_size() == held);
  }
  const auto single = read_corpus(paths{(folder / "a").string()}, {});
  BOOST_REQUIRE(single);
  BOOST_TEST(single->train_size() == 3u);
  BOOST_TEST(single->validation_size() == 1u);
}

// Of two files the larger was held out whole: most of the text.
BOOST_AUTO_TEST_CASE(few_and_unequal_files_do_not_hold_out_most_of_the_text) {
  const std::vector<std::vector<std::size_t>> sizes{
    {1000, 1'000'000},     {1'000'000, 1000},
    {500'000, 500'000},    {1, 1},
    {10, 20, 900'000, 30}, {100'000, 1, 1, 1, 1, 1, 1},
    {3, 400'000},          {70'000, 70'000, 70'000}};
  for (const auto& each : sizes)
    for (const char* name : {"a.txt", "b.txt", "c.jsonl"}) {
      temporary_folder folder;
      for (std::size_t i = 0; i < each.size(); ++i) {
        const std::string text(each[i], char('a' + i));
        const bool lines = std::string(name).ends_with(".jsonl");
        write_text(folder / (std::to_string(i) + name),
                   lines ? "{\"text\":\"x\"}\n{\"text\":\"" + text + "\"}"
                         : text);
      }
      for (const std::uint32_t permille : {1u, 50u, 300u, 900u}) {
        corpus_options options;
        options.validation_permille = permille;
        const auto c = read_corpus(paths{folder.path().string()}, options);
        BOOST_REQUIRE(c);
        const auto held = c->validation_size();
        const auto all = c->train_size() + held;
        BOOST_TEST_CONTEXT(each.size() << " files, " << name << ", " << permille
                                       << ": " << held << " of " << all) {
          BOOST_TEST(held >= 1u);
          BOOST_TEST(held <= std::max<std::uint64_t>(3, all * permille / 333));
          BOOST_TEST(c->train_size() >= 1u);
          BOOST_TEST(c->train_size() * 2 >= all - all * permille / 1000);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(limits_are_named) {
  temporary_folder folder;
  fill(folder);
  corpus_options options;
  options.bytes_max = 50;
  const auto c = read_corpus(paths{folder.path().string()}, options);
  BOOST_REQUIRE(!c);
  BOOST_TEST(c.message().find("more than 50 bytes") != std::string::npos);
  BOOST_TEST(!read_corpus(paths{(folder / "f0/binary").string()}, {}));
  BOOST_TEST(!read_corpus(paths{}, {}));
}

BOOST_AUTO_TEST_CASE(a_blob_is_read_again_or_refused) {
  temporary_folder folder;
  fill(folder);
  for (const std::uint32_t vocab : {256u, 1000u}) {
    corpus_options options;
    options.vocab_size = vocab;
    options.validation_permille = 300;
    const auto c = read_corpus(paths{folder.path().string()}, options);
    BOOST_REQUIRE(c);
    const auto blob = serialise(*c);
    const auto again = parse_corpus(blob);
    BOOST_REQUIRE_MESSAGE(again, why(again));
    BOOST_TEST((serialise(*again) == blob));
    std::vector<token_id> a(5);
    std::vector<token_id> b(5);
    c->copy_train(3, a);
    again->copy_train(3, b);
    BOOST_TEST(a == b, boost::test_tools::per_element());
    for (std::size_t size = 0; size < blob.size(); ++size)
      BOOST_REQUIRE(!parse_corpus(std::span(blob).first(size)));
    auto longer = blob;
    longer.push_back(std::byte(0));
    BOOST_TEST(!parse_corpus(longer));
    // Whatever byte is changed: refused, or read as something consistent.
    for (std::size_t i = 0; i < blob.size(); ++i) {
      auto changed = blob;
      changed[i] ^= std::byte(0xff);
      if (const auto got = parse_corpus(changed))
        BOOST_REQUIRE((serialise(*got) == changed));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_bigram_is_a_distribution_and_learns) {
  bigram model;
  const std::string text = "abababababac";
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  model.train({bytes, text.size()});
  for (const int before : {int('a'), int('b'), int('z')}) {
    double sum = 0;
    for (int next = 0; next < 256; ++next)
      sum += std::exp(-model.loss(static_cast<std::uint8_t>(before),
                                  static_cast<std::uint8_t>(next)));
    BOOST_TEST(std::abs(sum - 1) < 1e-12);
  }
  // count(ab) = 5, count(a.) = 6, p1(b) = 6 / 268.
  BOOST_TEST(std::abs(std::exp(-model.loss('a', 'b')) - (5 + 6.0 / 268) / 7)
             < 1e-12);
}

// A few tiny files were held out, and the loss of a few hundred bytes was reported.
BOOST_AUTO_TEST_CASE(unequal_files_hold_out_about_what_is_asked_for) {
  temporary_folder folder;
  for (int i = 0; i < 40; ++i)
    write_text(folder / (std::to_string(i) + ".txt"),
               std::string(i % 20 == 7 ? 500'000 : 300, 'a'));
  for (const std::uint32_t permille : {10u, 50u, 200u, 500u}) {
    corpus_options options;
    options.validation_permille = permille;
    const auto c = read_corpus(paths{folder.path().string()}, options);
    BOOST_REQUIRE(c);
    const auto wanted =
      (c->train_size() + c->validation_size()) * permille / 1000;
    BOOST_TEST_CONTEXT(permille) {
      BOOST_TEST(c->validation_size() * 3 >= wanted);
      BOOST_TEST(c->validation_size() <= 3 * wanted);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_bigram_loss_is_that_of_held_out_bytes) {
  corpus c;
  const std::string train = "ababab";
  const std::string held = "abba";
  c.train_u8.assign(train.begin(), train.end());
  c.validation_u8.assign(held.begin(), held.end());
  c.files = {{"t", false, 0, 6}, {"v1", true, 0, 2}, {"v2", true, 2, 4}};
  bigram model;
  model.train(c.train_u8);
  const double expected = (model.loss('a', 'b') + model.loss('b', 'a')) / 2;
  BOOST_TEST(bigram_validation_loss(c) == expected);
  BOOST_TEST(bigram_validation_loss(corpus()) == 0.0);
}

BOOST_AUTO_TEST_CASE(tokens_of_a_large_vocabulary_are_kept) {
  constexpr std::uint32_t words = 70'000; // more than 16 bits hold
  std::string json = R"({"pre_tokenizer":{"type":"WhitespaceSplit"},)"
                     R"("model":{"ignore_merges":true,"merges":[],"vocab":{)";
  for (std::uint32_t i = 0; i < words; ++i)
    json += "\"w" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  json.back() = '}';
  const auto made = text::hf_tokenizer::parse(json + "}}");
  BOOST_REQUIRE_MESSAGE(made, why(made));
  const tokenizer by(*made);
  temporary_folder folder;
  write_text(folder / "a", "w69999 w1 w65536\nw65535");
  write_text(folder / "b", "w2 w3");
  corpus_options options;
  options.vocab_size = words;
  options.by = &by;
  options.validation_permille = 0;
  const auto c = read_corpus(paths{folder.path().string()}, options);
  BOOST_REQUIRE_MESSAGE(c, why(c));
  const std::vector<std::uint32_t> want = {69999, 1, 65536, 65535, 2, 3};
  BOOST_TEST(c->train_u32 == want, boost::test_tools::per_element());
  const auto again = parse_corpus(serialise(*c));
  BOOST_REQUIRE_MESSAGE(again, why(again));
  BOOST_TEST(again->train_u32 == c->train_u32);
  options.vocab_size = words - 1;
  const auto narrow = read_corpus(paths{folder.path().string()}, options);
  BOOST_REQUIRE(!narrow);
  BOOST_TEST(narrow.message().find("70000") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_single_file_is_cut_between_characters) {
  const auto made = text::read_tokenizer(golden_folder() / "tokenizers/gpt2");
  BOOST_REQUIRE_MESSAGE(made, why(made));
  const tokenizer by(*made);
  temporary_folder folder;
  std::string text;
  for (int i = 0; i < 101; ++i)
    text += "\xE2\x82\xAC";
  write_text(folder / "a", text);
  corpus_options options;
  options.vocab_size = 481;
  options.by = &by;
  for (std::uint32_t permille : {50u, 100u, 333u}) {
    options.validation_permille = permille;
    const auto c = read_corpus(paths{(folder / "a").string()}, options);
    BOOST_REQUIRE_MESSAGE(c, why(c));
    auto text_of = [&](const std::vector<std::uint32_t>& of) {
      return made->decode(std::vector<token_id>(of.begin(), of.end()));
    };
    BOOST_TEST(text_of(c->train_u32) + text_of(c->validation_u32) == text);
    BOOST_TEST(!c->validation_u32.empty());
  }
}

BOOST_AUTO_TEST_SUITE_END()
