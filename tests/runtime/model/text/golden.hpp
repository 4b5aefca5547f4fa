// tests/runtime/model/text/golden.hpp -- the golden tokenizers and samples.
#pragma once

#include "runtime/files/file_io.hpp"
#include "runtime/model/text/hf_tokenizer.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace shoal::tests {

inline constexpr const char* golden_names[] = {
  "gpt2",  "llama2",   "llama3", "mistral", "qwen2",         "gemma2", "odd",
  "words", "unknowns", "t5",     "mt5",     "unigram_llama", "albert", "bert"};

inline std::filesystem::path tokenizer_folder() {
  const char* from = std::getenv("SHOAL_GOLDEN");
  return std::filesystem::path(from != nullptr ? from : "tests/golden")
         / "tokenizers";
}

inline std::string file_text(const std::filesystem::path& path) {
  auto text = model::read_file(path, 64u << 20);
  if (!text)
    throw std::runtime_error(text.message());
  return *text;
}

inline nlohmann::json file_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(file_text(path));
}

/// A golden tokenizer without its tokenizer_config.json.
inline model::text::hf_tokenizer golden_tokenizer(const std::string& name) {
  auto made = model::text::hf_tokenizer::parse(
    file_text(tokenizer_folder() / name / "tokenizer.json"));
  if (!made)
    throw std::runtime_error(made.message());
  return *made;
}

/// The texts that were encoded: bytes, not all of them UTF-8.
inline std::vector<std::string> samples() {
  std::vector<std::string> out;
  for (const std::string text : file_json(tokenizer_folder() / "texts.json")) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
      bytes.push_back(
        static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
    out.push_back(std::move(bytes));
  }
  return out;
}

} // namespace shoal::tests
