// The left factor of the kernels for at most eight rows (matmul_few.cuh, matmul_products_few.cuh), and their operands: elements of a factor
// as words of a fragment, loaded from memory or computed there.
#ifndef HEDDLE_MATMUL_FEW_LEFT_CUH
#define HEDDLE_MATMUL_FEW_LEFT_CUH

#include "matmul_factor.cuh"

namespace heddle {

/// Precomputed values of the left factor's rows, at most eight: of row lane / 4, or of the last where that does not exist. A single row is
/// read by the whole block, each of several by a warp. All threads of `Warps` warps must call it.
template <int Warps, class Slots>
__device__ __forceinline__ LeftRow<Slots> find_left(const Slots& slots, int m) {
  LeftRow<Slots> known = {};
  if constexpr (std::is_empty_v<decltype(known.row)>) {
    known.find(slots, WarpTeam<32, Warps>(), 0, 0);
  } else if (m == 1) {
    known.find(slots, BlockTeam<32 * Warps>(), 0, 0);
  } else {
    HEDDLE_SHARED(LeftRow<Slots>, rows, 8);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    for (int row = warp; row < m; row += Warps) {
      known.find(slots, WarpTeam<32, Warps>(), 0, row);
      if (lane == 0) rows[row] = known;
    }
    __syncthreads();
    known = rows[min(lane / 4, m - 1)];
  }
  return known;
}

/// Eight elements of a factor's row as a lane's words of a fragment, zeros beyond the row's end. `Inside`: all of them are within the row.
template <int Which, bool Inside, class Slots, class Row>
__device__ __forceinline__ void factor_words(const Slots& slots, const Row& row, int at, int along, int k, uint32_t (&words)[4]) {
  using Element = typename Slots::Element;
  float values[8];
  if constexpr (Inside) {
    slots.template chunk_of<true>(Factor<Which>(), row, 0, at, along, 8, values);
  } else {
    factor_chunk<Which, true>(slots, row, true, 0, at, along, k, values);
  }
  Pack<Element, 8> pack;
  round_into(pack, values);
  memcpy(words, &pack, sizeof pack);
}

/// Eight elements of a chunk from `first` on as words of a fragment of type Element, which represents all values of the chunk's type
/// exactly.
template <class Element, class T, int Vec>
__device__ __forceinline__ void stored_words(const Chunk<T, Vec>& chunk, int first, uint32_t (&words)[4]) {
  if constexpr (std::is_same_v<T, Element>) {
    HEDDLE_UNROLL
    for (int w = 0; w < 4; ++w) words[w] = chunk.words[first / 2 + w];
#if !defined(HEDDLE_SIMT)
  } else if constexpr (std::is_same_v<Element, __half> && is_float8<T>) {
    HEDDLE_UNROLL
    for (int w = 0; w < 4; ++w) {
      words[w] = float8::halves_of(T(), static_cast<unsigned short>(chunk.words[first / 4 + w / 2] >> (w % 2 * 16)));
    }
  } else if constexpr (std::is_same_v<Element, __half> && std::is_same_v<T, signed char>) {
    // With 0x64 as its high byte and a byte from 0 to 255 as its low byte, a half is 1024 plus that byte: halves from 1024 on are 1 apart.
    HEDDLE_UNROLL
    for (int w = 0; w < 4; ++w) {
      const uint32_t from_zero = chunk.words[first / 4 + w / 2] ^ 0x80808080u;
      const uint32_t raised = __byte_perm(from_zero, 0x64646464u, w % 2 == 0 ? 0x4140u : 0x4342u), zero_at = 0x64806480u;
      __half2 values, zero;
      memcpy(&values, &raised, sizeof values);
      memcpy(&zero, &zero_at, sizeof zero);
      values = __hsub2(values, zero);
      memcpy(&words[w], &values, sizeof values);
    }
#endif
  } else {
    float values[8];
    HEDDLE_UNROLL
    for (int e = 0; e < 8; ++e) values[e] = chunk[first + e];
    Pack<Element, 8> pack;
    round_into(pack, values);
    memcpy(words, &pack, sizeof pack);
  }
}

/// The left factor's row of a lane, with elements computed where they are multiplied.
template <int Warps, class Slots, class Copied = decltype(std::declval<const Slots&>().copy_of(Factor<0>(), int64_t()))>
class FewLeft {
 public:
  __device__ __forceinline__ FewLeft(const Slots& slots, int m, int row, int k) : known_(find_left<Warps>(slots, m)), row_(row), k_(k) {}

  /// Sixteen bytes of the row from element `along` of k on, zeros beyond its end.
  __device__ __forceinline__ void read(const Slots& slots, int along, uint32_t (&words)[4]) const {
    factor_words<0, false>(slots, known_.template of<0>(), row_, along, k_, words);
  }

 private:
  LeftRow<Slots> known_;
  int row_, k_;
};
/// A left factor in memory, in the type that is multiplied.
template <int Warps, class Slots, class T>
class FewLeft<Warps, Slots, CopiedRows<T>> {
 public:
  __device__ __forceinline__ FewLeft(const Slots& slots, int, int row, int k)
      : rows_(slots.copy_of(Factor<0>(), 0)), first_(rows_.first + static_cast<int64_t>(row) * k), k_(k) {}

  __device__ __forceinline__ void read(const Slots&, int along, uint32_t (&words)[4]) const {
    constexpr int vec = 16 / static_cast<int>(sizeof(T));
    Chunk<T, vec> chunk = {};
    if (along < k_) chunk = load_chunk<vec, true>(rows_.tensor, first_ + along, vec);
    memcpy(words, &chunk.words, sizeof words);
  }

 private:
  CopiedRows<T> rows_;
  int64_t first_;
  int k_;
};

}  // namespace heddle

#endif
