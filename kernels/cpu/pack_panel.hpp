// kernels/cpu/pack_panel.hpp -- makes a panel of a q8 or q4 weight from floats.
//
// The same bits as reference/: lanes are outputs, each computed on its own by
// the same operations in the same order, all of which IEEE rounds.
//
// Cost: of a value, some 2 cycles for q8 and 9 for q4 with eight lanes.
// Private to kernels/cpu.
#pragma once

#include "kernels/packed_layout.hpp"

namespace shoal::kernels::cpu {

/// Packs panel `panel` of a matrix whose rows `read` gives, to chunks_of(cols)
/// chunks at `to`. `scratch` grows to what a panel's rows take.
void pack_panel(weight_type type, std::size_t panel, std::size_t rows,
                std::size_t cols, const row_reader& read,
                std::vector<float>& scratch, std::byte* to);

} // namespace shoal::kernels::cpu
