// actors/gateway/prompts/prompt_model.hpp -- what turns requests of a model into tokens.
//
// Threads: immutable.
#pragma once

#include "runtime/jobs/serve_config.hpp"
#include "runtime/model/hf/chat_template.hpp"
#include "runtime/model/hf/generation_config.hpp"
#include "runtime/model/text/tokenizer.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::actors {

/// What the files say of a model's text.
struct model_text {
  std::shared_ptr<const model::tokenizer> tokenizer; ///< null: none
  std::string no_text; ///< why there is no tokenizer
  std::string lost; ///< why not all of its files could be read; "": they could
  std::optional<model::chat_template> chat;
  std::string no_chat; ///< that there is no chat template, and why
  model::generation_defaults defaults;
  std::string no_rules; ///< why its text cannot be made to keep to a rule
};

struct prompt_model {
  std::string name;
  runtime::serve_config config;
  std::shared_ptr<const model_text> text; ///< null: its files are not here yet
};

using prompt_models = std::vector<std::shared_ptr<const prompt_model>>;

} // namespace shoal::actors
