// Copies of a right factor's rows, the columns of a tile, by the copy engine. Rows are permuted where the epilogue takes whole chunks, so that
// a thread holds eight neighbouring columns; else they arrive in order, and the threads of a quad exchange their sums. Both take any number
// of rows: those beyond the last one are zeros, and the bytes of a box count in full.
#ifndef HEDDLE_WGMMA_RIGHT_CUH
#define HEDDLE_WGMMA_RIGHT_CUH

#include "hopper.cuh"
#include "tensor_map.cuh"

#if defined(HEDDLE_HOPPER_CODE)

namespace heddle {

/// Starts the copy of `Rows` rows from `row` on, a multiple of 32, of a right_map() of a matrix of `n` rows; to both blocks of a cluster of
/// two if ToBoth. `Permuted`: n is a multiple of 8.
template <int Rows, bool Permuted, bool ToBoth = false>
__device__ __forceinline__ void copy_right(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row, int n) {
  const auto copy = [&](Shared16 place, int eight, int group) {
    if constexpr (ToBoth) {
      copy_permuted_to_both(place, map, done, column, eight, group);
    } else {
      copy_permuted(place, map, done, column, eight, group);
    }
  };
  if constexpr (!Permuted && ToBoth) {
    copy_box_to_all<2>(to, map, done, column, row);
  } else if constexpr (!Permuted) {
    copy_box(to, map, done, column, row);
  } else if (n % permuted_rows == 0) {
    copy(to, 0, row / permuted_rows);
  } else {
    HEDDLE_ROLLED
    for (int own = 0; own < Rows; own += permuted_rows) copy(to + static_cast<uint32_t>(own * box_row_bytes), (row + own) / 8, 0);
  }
}

/// Of a row, thread q of a quad holds columns 8 j + 2 q and the next in values[2 j] and values[2 j + 1]. Afterwards it holds columns 8 q to
/// 8 q + 7. Called by all lanes of a warp.
template <class S>
__device__ __forceinline__ void exchange_in_quad(S (&values)[8]) {
  const int lane = static_cast<int>(threadIdx.x);
  HEDDLE_UNROLL
  for (int step = 1; step < 4; step *= 2) {
    // Pairs j and j + step change places with the thread that differs in this bit: one sends its lower ones, the other its upper ones.
    const bool upper = (lane & step) != 0;
    HEDDLE_UNROLL
    for (int pair = 0; pair < 4; ++pair) {
      if ((pair & step) != 0) continue;
      HEDDLE_UNROLL
      for (int e = 0; e < 2; ++e) {
        S& first = values[2 * pair + e];
        S& second = values[2 * (pair + step) + e];
        const S received = __shfl_xor_sync(0xffffffffu, upper ? first : second, step);
        first = upper ? received : first;
        second = upper ? second : received;
      }
    }
  }
}

}  // namespace heddle

#endif

#endif
