// kernels/cpu/product/pack_panel.hpp -- makes a panel of a q8 or q4 weight from floats.
//
// Gives the same bits as reference/: lanes are outputs, and each is computed on
// its own by the same operations in the same order, all rounded as IEEE says.
//
// Cost: some 2 cycles per value for q8 and 9 for q4, with eight lanes.
// Private to kernels/cpu.
#pragma once

#include "kernels/inference/packed_layout.hpp"

namespace shoal::kernels::cpu {

/// Packs panel `panel` of the matrix whose rows `read` gives into
/// chunks_of(cols) chunks at `to`. `scratch` grows to the size of a panel's
/// rows.
void pack_panel(weight_type type, std::size_t panel, std::size_t rows,
                std::size_t cols, const row_reader& read,
                std::vector<float>& scratch, std::byte* to);

} // namespace shoal::kernels::cpu
