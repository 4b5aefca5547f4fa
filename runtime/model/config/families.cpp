// runtime/model/config/families.cpp -- the families: one row of switches each.
//
// Source: the configuration classes of transformers 5, for the values of keys
//         that a file may leave out.
#include "runtime/model/config/config.hpp"

namespace shoal::model {

namespace {

model_config ids(model_config c, std::optional<std::int32_t> bos,
                 std::vector<std::int32_t> eos) {
  c.bos_token_id = bos;
  c.eos_token_ids = std::move(eos);
  return c;
}

family llama() {
  family f;
  f.model_type = "llama";
  f.architecture = "LlamaForCausalLM";
  f.attention_bias_key = true;
  f.mlp_bias_key = true;
  return f;
}

family mistral() {
  family f;
  f.model_type = "mistral";
  f.architecture = "MistralForCausalLM";
  f.usual.intermediate_size = 14336;
  f.usual.max_position_embeddings = 131072;
  f.usual.sliding_window = 4096;
  f.windows = family::window::all;
  return f;
}

family qwen2() {
  family f;
  f.model_type = "qwen2";
  f.architecture = "Qwen2ForCausalLM";
  f.words = text::word_rules::qwen2;
  f.usual = ids({}, {}, {});
  f.usual.vocab_size = 151936;
  f.usual.intermediate_size = 22016;
  f.usual.max_position_embeddings = 32768;
  f.usual.sliding_window = 4096;
  f.windows = family::window::upper;
  f.qkv_bias = true;
  return f;
}

family qwen3() {
  family f = qwen2();
  f.model_type = "qwen3";
  f.architecture = "Qwen3ForCausalLM";
  f.usual_head_dim = 128;
  f.qkv_bias = false;
  f.attention_bias_key = true;
  f.head_norms = true;
  return f;
}

family gpt2() {
  family f;
  f.model_type = "gpt2";
  f.architecture = "GPT2LMHeadModel";
  f.usual = ids({}, 50256, {50256});
  f.usual.vocab_size = 50257;
  f.usual.hidden_size = 768;
  f.usual.intermediate_size = 0; // 4 * hidden_size
  f.usual.num_hidden_layers = 12;
  f.usual.num_attention_heads = 12;
  f.usual.max_position_embeddings = 1024;
  f.usual.rms_norm_eps = 1e-5;
  f.usual.hidden_act = "gelu_new";
  f.usual.tie_word_embeddings = true;
  f.aliases = {{"hidden_size", "n_embd"},
               {"intermediate_size", "n_inner"},
               {"num_hidden_layers", "n_layer"},
               {"num_attention_heads", "n_head"},
               {"max_position_embeddings", "n_positions"},
               {"rms_norm_eps", "layer_norm_epsilon"},
               {"hidden_act", "activation_function"}};
  f.layer_norm = true;
  f.rotary = false;
  f.gated = false;
  f.qkv_bias = true;
  f.output_bias = true;
  f.mlp_bias = true;
  f.in_out_weights = true;
  return f;
}

family gemma2() {
  family f;
  f.model_type = "gemma2";
  f.architecture = "Gemma2ForCausalLM";
  f.usual = ids({}, 2, {1});
  f.usual.vocab_size = 256000;
  f.usual.hidden_size = 2304;
  f.usual.intermediate_size = 9216;
  f.usual.num_hidden_layers = 26;
  f.usual.num_attention_heads = 8;
  f.usual.max_position_embeddings = 8192;
  f.usual.hidden_act = "gelu_pytorch_tanh";
  f.usual.tie_word_embeddings = true;
  f.usual.sliding_window = 4096;
  f.usual.query_pre_attn_scalar = 256;
  f.usual.attn_logit_softcapping = 50;
  f.usual.final_logit_softcapping = 30;
  f.usual_head_dim = 256;
  f.aliases = {{"hidden_act", "hidden_activation"}};
  f.windows = family::window::alternate;
  f.norm_offset = 1;
  f.post_norms = true;
  f.scaled_embeddings = true;
  f.attention_bias_key = true;
  return f;
}

family mixtral() {
  family f = mistral();
  f.model_type = "mixtral";
  f.architecture = "MixtralForCausalLM";
  f.usual.sliding_window = 0;
  f.usual.rms_norm_eps = 1e-5;
  f.usual.rope_theta = 1e6;
  f.usual.num_experts = 8;
  f.usual.num_experts_per_tok = 2;
  f.usual.router_aux_loss_coef = 0.001;
  f.aliases = {{"num_experts", "num_local_experts"}};
  return f;
}

/// intermediate_size is the size of one expert. Blocks with a plain MLP, whose
/// size is in the file's key of that name, are refused.
family qwen3_moe() {
  family f = qwen3();
  f.model_type = "qwen3_moe";
  f.architecture = "Qwen3MoeForCausalLM";
  f.usual.hidden_size = 2048;
  f.usual.intermediate_size = 768;
  f.usual.num_hidden_layers = 24;
  f.usual.num_experts = 128;
  f.usual.num_experts_per_tok = 8;
  f.usual.norm_topk_prob = false;
  f.usual.router_aux_loss_coef = 0.001;
  f.usual_head_dim = 0;
  f.aliases = {{"intermediate_size", "moe_intermediate_size"},
               {"num_experts", "num_local_experts"}};
  f.norm_topk_key = true;
  f.windows = family::window::switched;
  return f;
}

} // namespace

const std::vector<family>& families() {
  static const std::vector<family> table = {llama(),   mistral(),  qwen2(),
                                            qwen3(),   gpt2(),     gemma2(),
                                            mixtral(), qwen3_moe()};
  return table;
}

} // namespace shoal::model
