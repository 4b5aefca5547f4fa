// tests/runtime/model/data/documents_test.cpp -- texts, .jsonl files and archives,
// read alike for training and for evaluation.
#include "runtime/model/data/corpus.hpp"
#include "runtime/model/data/sequences.hpp"
#include "runtime/model/text/tokenizer.hpp"
#include "tests/runtime/model/fixture.hpp"
#include "tests/support/packed.hpp"

#include <boost/test/unit_test.hpp>

#include <fstream>

BOOST_AUTO_TEST_SUITE(documents_suite)

using namespace shoal::model;
using namespace shoal::tests;

namespace {

using paths = std::vector<std::string>;

model_config byte_config() {
  model_config config = tiny_config();
  config.vocab_size = 256;
  return config;
}

/// All texts of a path, or the failure.
result<std::vector<std::string>>
texts_of(const std::filesystem::path& path, reading_report& report,
         std::uint64_t bytes_max = corpus_bytes_max) {
  const auto files = find_files(paths{path.string()});
  if (!files)
    return files.why();
  std::vector<std::string> texts;
  const auto read =
    read_documents(*files, {256, bytes_max, "the.key"}, report,
                   [&](const corpus_file&, document d) -> status {
                     texts.push_back(d.text);
                     return done{};
                   });
  if (!read)
    return read.why();
  return texts;
}

void check_failure(const std::filesystem::path& path,
                   const std::vector<std::string>& words) {
  reading_report report;
  const auto texts = texts_of(path, report);
  BOOST_REQUIRE_MESSAGE(!texts, path);
  for (const std::string& word : words)
    BOOST_TEST(texts.message().find(word) != std::string::npos,
               texts.message() << " lacks " << word);
}

const std::string lines =
  "{\"text\":\"one\"}\n\n{\"id\":7,\"text\":\"tw\\u00f6\"}"
  "\r\n{\"text\":\"\"}\n{\"text\":\"three\"}";

} // namespace

BOOST_AUTO_TEST_CASE(training_and_evaluation_read_the_same_documents) {
  temporary_folder folder;
  write_text(folder / "a.jsonl", lines);
  write_text(folder / "b.jsonl.gz", gzip(lines));
  write_text(folder / "c.jsonl.zst", zstd(lines));
  write_text(folder / "d.txt", "four");
  write_text(folder / "e.txt.gz", gzip("fi") + gzip("ve"));
  write_text(folder / "f.zst", zstd("si") + zstd("x"));
  const paths all{folder.path().string()};
  corpus_options options;
  options.validation_permille = 0;
  corpus_report report;
  const auto c = read_corpus(all, options, &report);
  BOOST_REQUIRE_MESSAGE(c, why(c));
  const std::string learned(c->train_u8.begin(), c->train_u8.end());
  const std::string three = "onetw\xC3\xB6three";
  BOOST_TEST(learned == three + three + three + "fourfivesix");
  BOOST_TEST(report.read.files == 6u);
  BOOST_TEST(report.read.documents == 12u);
  BOOST_TEST(report.notices.empty());
  const tokenizer by;
  const auto sequences = read_sequences(all, byte_config(), &by);
  BOOST_REQUIRE_MESSAGE(sequences, why(sequences));
  BOOST_TEST(sequences->all.size() == 12u);
  BOOST_TEST(sequences->bytes == learned.size());
  std::string judged;
  for (const auto& sequence : sequences->all)
    judged += byte_tokenizer().bytes(sequence);
  BOOST_TEST(judged == learned);
}

BOOST_AUTO_TEST_CASE(ids_are_learned_as_they_are) {
  temporary_folder folder;
  write_text(folder / "a.jsonl", R"({"input_ids":[1,2]})"
                                 "\n{\"text\":\"A\"}\n{\"text\":\"B\"}");
  const auto c = read_corpus(paths{(folder / "a.jsonl").string()}, {});
  BOOST_REQUIRE_MESSAGE(c, why(c));
  const std::vector<std::uint8_t> train{1, 2, 65};
  BOOST_TEST(c->train_u8 == train, boost::test_tools::per_element());
  BOOST_TEST(c->validation_u8.size() == 1u); // the last document
  BOOST_TEST(c->files.size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_line_that_is_no_document_is_named) {
  temporary_folder folder;
  const auto file = folder / "a.jsonl";
  const std::string good = "{\"text\":\"x\"}\n";
  const std::pair<const char*, const char*> cases[] = {
    {"{\"text\":", "is not valid JSON"},
    {"{\"text\":\"caf\xe9\"}", "is not valid UTF-8"},
    {"[1]", "is not a JSON object"},
    {"{}", "has no \"text\""},
    {"{\"text\":3}", "\"text\" is 3, must be a string"},
    {"{\"messages\":[]}", "chat template"},
    {"{\"input_ids\":{}}", "input_ids is not a list"},
    {"{\"input_ids\":[256]}", "vocab_size (256)"}};
  for (const auto& [line, what] : cases) {
    write_text(file, good + "\n" + line + "\n" + good);
    check_failure(file, {"a.jsonl:3: ", what});
    check_failure(folder.path(), {"a.jsonl:3: ", what}); // in a folder, too
  }
  write_text(file, good + std::string(jsonl_line_bytes_max + 1, ' '));
  check_failure(file, {"a.jsonl:2: is longer than 67108864 bytes"});
}

BOOST_AUTO_TEST_CASE(a_damaged_archive_is_named_and_never_half_read) {
  temporary_folder folder;
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += std::to_string(i * 7919) + (i % 5 == 0 ? "\n" : " ");
  for (const auto& [name, whole] : {std::pair{"a.txt.gz", gzip(text)},
                                    std::pair{"a.txt.zst", zstd(text)}}) {
    BOOST_TEST_CONTEXT(name) {
      const auto file = folder / name;
      write_text(file, whole);
      reading_report report;
      const auto good = texts_of(file, report);
      BOOST_REQUIRE_MESSAGE(good, why(good));
      BOOST_TEST(good->front() == text);
      for (const std::size_t size : {std::size_t{0}, std::size_t{1},
                                     whole.size() / 2, whole.size() - 1}) {
        write_text(file, whole.substr(0, size));
        check_failure(folder.path(), {name, "is damaged (it ends before"});
      }
      std::string changed = whole;
      changed[whole.size() / 2] ^= 0x10;
      write_text(file, changed);
      check_failure(folder.path(), {name, "is damaged ("});
      write_text(file, "no archive at all");
      check_failure(folder.path(), {name, "is damaged ("});
      write_text(file, whole + "more");
      check_failure(folder.path(), {name, "is damaged ("});
      std::filesystem::remove(file);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_archive_that_becomes_too_much_is_stopped) {
  temporary_folder folder;
  const std::string much(50u << 20, 'a');
  const std::string blank(50u << 20, '\n');
  write_text(folder / "a.txt.gz", gzip(much));
  write_text(folder / "b.txt.zst", zstd(much));
  write_text(folder / "c.jsonl.zst", zstd(blank));
  for (const char* name : {"a.txt.gz", "b.txt.zst", "c.jsonl.zst"}) {
    BOOST_TEST(std::filesystem::file_size(folder / name) < 1u << 17);
    reading_report report;
    const auto texts = texts_of(folder / name, report, 1u << 20);
    BOOST_REQUIRE(!texts);
    BOOST_TEST(texts.message().find(name) != std::string::npos);
    BOOST_TEST(texts.message().find("1048576 bytes (the.key)")
               != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_window_that_is_too_large_is_reported_as_such) {
  temporary_folder folder;
  write_text(folder / "a.zst", zstd("text", zstd_window_log_max + 1));
  check_failure(folder / "a.zst", {"a.zst", "--long"});
}

// Prompts that were to be left out of the loss were learnt without a word.
BOOST_AUTO_TEST_CASE(masks_that_are_not_used_are_reported) {
  temporary_folder folder;
  write_text(folder / "a.jsonl", "{\"input_ids\":[1,2],\"labels\":[-100,2]}\n"
                                 "{\"input_ids\":[1,2],\"labels\":[-100,2]}\n");
  write_text(folder / "b.jsonl", "{\"text\":\"x\",\"loss_mask\":[1]}\n");
  write_text(folder / "c.jsonl", "{\"text\":\"x\",\"attention_mask\":[1]}\n");
  reading_report report;
  BOOST_REQUIRE(texts_of(folder.path(), report));
  BOOST_TEST(report.masked.count == 2u);
  const auto notices = notices_of(report);
  BOOST_REQUIRE(notices.size() == 1u);
  BOOST_TEST(notices[0].find("all tokens are learnt") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(documents_under_another_name_are_reported) {
  const std::pair<std::string, bool> texts[] = {
    {lines, true},
    {"{\"text\": \"only one\"}", true},
    {"\n \r\n" + lines + "\n", true},
    {"{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\nafter eight lines", true},
    {"{\n  \"text\": \"one\"\n}\n", false}, // not a line each
    {"{\"text\": \"one\"}\nthen prose", false},
    {"int main() {}\n", false},
    {"[1, 2]\n", false},
    {"[{}]\n", false},
    {"[\n  {\"text\": \"one\"},\n  {\"text\": \"two\"}]\n", true},
    {" \n", false},
    {"", false}};
  for (const auto& [text, told] : texts) {
    temporary_folder folder;
    write_text(folder / "data.txt", text);
    reading_report report;
    const auto read = texts_of(folder / "data.txt", report);
    BOOST_REQUIRE_MESSAGE(read, why(read));
    BOOST_TEST(report.like_json.count == std::uint64_t(told), text);
    const auto notices = notices_of(report);
    BOOST_TEST(notices.size() == std::size_t(told));
    if (told) {
      BOOST_TEST(notices[0].find("data.txt)") != std::string::npos);
      BOOST_TEST(notices[0].find("NAME.jsonl") != std::string::npos);
    }
  }
  temporary_folder folder;
  write_text(folder / "a.jsonl", lines);
  write_text(folder / "b.txt.gz", gzip(lines));
  write_text(folder / "c", lines);
  reading_report report;
  BOOST_REQUIRE(texts_of(folder.path(), report));
  BOOST_TEST(report.like_json.count == 2u);
}

BOOST_AUTO_TEST_CASE(files_left_out_are_counted_and_named) {
  temporary_folder folder;
  write_text(folder / "good.txt", "good");
  write_text(folder / "latin.txt", "caf\xE9");
  for (int i = 0; i < 5; ++i)
    write_text(folder / ("b" + std::to_string(i)), std::string("a\0b", 3));
  write_text(folder / "b.tar.gz", gzip(std::string(512, '\0')));
  std::ofstream(folder / "huge").close();
  std::filesystem::resize_file(folder / "huge", corpus_file_bytes_max + 1);
  reading_report report;
  const auto texts = texts_of(folder.path(), report);
  BOOST_REQUIRE_MESSAGE(texts, why(texts));
  BOOST_TEST(texts->size() == 2u);
  BOOST_TEST(report.not_text.count == 6u);
  BOOST_TEST(report.not_text.first.size() == 3u);
  const auto notices = notices_of(report);
  BOOST_REQUIRE(notices.size() == 2u);
  const std::string root = folder.path().string();
  BOOST_TEST(notices[0]
             == "skipped 7 files: 6 are not text (first: " + root
                  + "/b.tar.gz, " + root + "/b0, " + root
                  + "/b1), 1 is larger than 1 GiB (" + root + "/huge)");
  BOOST_TEST(notices[1]
             == "1 file is not valid UTF-8, but is read (" + root
                  + "/latin.txt)");
  check_failure(folder / "b0", {"b0: is not text: byte 1 is 0"});
  check_failure(folder / "b.tar.gz", {"b.tar.gz: is not text"});
  check_failure(folder / "huge", {"huge: is larger than"});
}

// It was called binary, or Latin-1, whose conversion does not help.
BOOST_AUTO_TEST_CASE(text_in_utf16_is_named_with_its_conversion) {
  temporary_folder folder;
  const std::string text = "{\"text\": \"The first.\"}\n";
  std::string le, be;
  for (char c : text) {
    le += {c, '\0'};
    be += {'\0', c};
  }
  for (const char* name : {"a.txt", "a.jsonl"}) {
    write_text(folder / name, "\xFF\xFE" + le);
    check_failure(folder / name, {name, "UTF-16", "iconv -f utf-16 -t utf-8"});
    write_text(folder / name, le);
    check_failure(folder / name, {name, "iconv -f utf-16le -t utf-8"});
    write_text(folder / name, be);
    check_failure(folder / name, {name, "iconv -f utf-16be -t utf-8"});
  }
}

BOOST_AUTO_TEST_CASE(half_of_a_surrogate_pair_is_called_so) {
  temporary_folder folder;
  write_text(folder / "a.jsonl", "{\"text\": \"abc \\ud83d def\"}\n");
  check_failure(folder / "a.jsonl", {"a.jsonl:1: is not valid JSON: byte",
                                     "half of a surrogate pair"});
}

BOOST_AUTO_TEST_SUITE_END()
