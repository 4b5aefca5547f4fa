// kernels/inference/paged_attention.cpp -- what all backends use of a cache in pages.
#include "kernels/inference/paged_attention.hpp"

#include "kernels/inference/paged_layout.hpp"

namespace shoal::kernels {

const char* name_of(kv_type type) noexcept {
  switch (type) {
  case kv_type::f32:
    return "f32";
  case kv_type::bf16:
    return "bf16";
  case kv_type::q8:
    return "q8";
  }
  return "";
}

std::size_t kv_page_bytes(kv_type type, std::size_t kv_heads,
                          std::size_t head_size) noexcept {
  return kv_heads * paged_layout(type, head_size).bytes;
}

} // namespace shoal::kernels
