// tests/runtime/model/text/tokenizer_ids.cpp -- what a tokenizer.json makes of
// texts and of ids.
//
//   tokenizer_ids TOKENIZER_JSON < LINES
//
// A line is a text in JSON, or a list of ids. Writes a line for each: "ids" and
// "around" (with what the post-processor adds) of a text, and of "around" or of
// the list "text", "all" (special tokens too), "stream" (token by token) and
// "bytes" (the text of the first id and the bytes that the others add); or
// "error".
#include "runtime/files/file_io.hpp"
#include "runtime/files/json.hpp"
#include "runtime/model/text/hf_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace {

using namespace shoal::model;
using namespace shoal::model::text;
using nlohmann::json;

void add_texts(const hf_tokenizer& by, const std::vector<std::string>* bytes,
               const std::vector<token_id>& ids, json& out) {
  out["text"] = by.decode(ids);
  out["all"] = by.decode(ids, false);
  decode_stream stream(by);
  std::string all;
  for (const token_id id : ids)
    all += stream.push(id);
  out["stream"] = all + stream.finish();
  std::vector<token_id> shown;
  for (const token_id id : ids)
    if (!by.is_special(id))
      shown.push_back(id);
  if (bytes == nullptr || shown.empty())
    return;
  std::string joined = by.decode({shown.data(), 1});
  for (std::size_t i = 1; i < shown.size(); ++i)
    joined += (*bytes)[static_cast<std::size_t>(shown[i])];
  out["bytes"] = joined;
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 2)
    return 2;
  const auto file = read_file(argv[1], tokenizer_bytes_max);
  const auto made =
    file ? hf_tokenizer::parse(*file) : result<hf_tokenizer>(file.why());
  if (!made) {
    std::fprintf(stderr, "%s\n", made.message().c_str());
    return 1;
  }
  const auto bytes = made->token_bytes();
  encoder each(*made);
  for (std::string line; std::getline(std::cin, line);) {
    const json given = json::parse(line);
    json out = json::object();
    if (given.is_array()) {
      add_texts(*made, bytes ? &*bytes : nullptr,
                given.get<std::vector<token_id>>(), out);
    } else {
      const auto text = given.get<std::string>();
      const auto ids = each.encode(text, false);
      const auto around = each.encode(text);
      if (ids && around) {
        out["ids"] = *ids;
        out["around"] = *around;
        add_texts(*made, bytes ? &*bytes : nullptr, *around, out);
      } else {
        out["error"] = (ids ? around : ids).message();
      }
    }
    std::puts(json_text(out).c_str());
  }
  return 0;
}
