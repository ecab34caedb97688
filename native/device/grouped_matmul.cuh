// Matmuls whose rows choose their matrix, with a compiled epilogue:
//
//   acc[r, c] = sum over i of left[left_begin(r) + i] * right[(matrix_of(r) * n + c) * k + i]
//
// Rows may choose in any order. They are grouped by matrix on the device, so that each tile multiplies one matrix; up to eight rows are not
// grouped. A row whose matrix does not exist has sums of zero: its body does not use them. Slots are an epilogue as in matmul.cuh, and
//
//   using Left; using Right;               storage types of the factors
//   In<Left> left(); In<Right> right()     the factors
//   int matrix_of(int64_t row)             the matrix that a row chooses
//   int64_t left_begin(int64_t row)        first of the k elements of a row of the left factor
#ifndef HEDDLE_GROUPED_MATMUL_CUH
#define HEDDLE_GROUPED_MATMUL_CUH

#include "mma.cuh"

#if defined(HEDDLE_SIMT)
// As in simt.hpp: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif
#include "grouped_few.cuh"
#include "grouped_mma.cuh"
#include "grouped_simple.cuh"
#include "grouped_wgmma.cuh"
#include "matmul_mma_choice.cuh"

namespace heddle {

// Tiles of 128 rows for many rows per matrix; otherwise most tiles have few rows, and small ones keep more of the matrices in flight.
using GroupedLargeTile = MmaTile<128, 128, 8, 1, 1, 5, 1>;
using GroupedSmallTile = MmaTile<64, 128, 4, 1, 1, 4, 2>;

/// True if tensor cores multiply the factors: both have one 16-bit type.
template <class Slots>
constexpr bool multiplies_grouped_by_mma =
    std::is_same_v<typename Slots::Left, typename Slots::Right> && sizeof(typename Slots::Left) == 2;

/// Enqueues epilogue(left rows x chosen matrices) for `rows` rows and `matrices` matrices of n x k elements.
template <class Slots>
int32_t launch_grouped_matmul(const heddle_launch* queue, heddle_error* error, const char* name, Count rows, int64_t n, int64_t k,
                              int64_t matrices, const Slots& slots) {
  static_assert(Slots::VEC == 8, "an epilogue takes eight columns");
  if (rows.is_overflow() || rows.value > INT32_MAX - grouping_threads) {
    return fail(error, HEDDLE_INVALID, "kernel %s: its rows exceed %lld", name, static_cast<long long>(INT32_MAX - grouping_threads));
  }
  const int64_t m = rows.value;
  // Both factors begin at the start of a tensor, and their rows have k elements each.
  const bool aligned = k % 8 == 0 && k > 0 && slots.left().aligned(0, 16) && slots.right().aligned(0, 16);
  if (m <= GroupedFewTile::most_rows) {
    const bool whole = aligned && n % 8 == 0 && EpilogueCall<Slots>::whole_chunks(slots);
    return launch_grouped_few(queue, error, name, m, n, k, matrices, whole, slots);
  }
  if constexpr (multiplies_grouped_by_mma<Slots>) {
    if (aligned) {
      constexpr int64_t many_rows = 96;
      const int64_t chosen = matrices < m ? matrices : m;
#if defined(HEDDLE_HOPPER)
      if (can_group_by_wgmma(m, n, k, matrices)) {
        if (m >= many_rows * chosen) return launch_grouped_wgmma<GroupedTallTile>(queue, error, name, m, n, k, matrices, slots);
        return launch_grouped_wgmma<GroupedShortTile>(queue, error, name, m, n, k, matrices, slots);
      }
#endif
      const bool fits = grouped_shared_bytes<GroupedLargeTile>() <= matmul_device().shared_bytes;
      if (fits && m >= many_rows * chosen) return launch_grouped_mma<GroupedLargeTile>(queue, error, name, m, n, k, matrices, slots);
      return launch_grouped_mma<GroupedSmallTile>(queue, error, name, m, n, k, matrices, slots);
    }
  }
  return launch_grouped_simple(queue, error, name, m, n, k, matrices, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
