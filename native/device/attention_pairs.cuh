// Inputs of scores for each pair of a query and a key, such as a bias or a dense mask: a thread's share of a tile, read as adjacent keys of
// a row and exchanged among the lanes of a quad into the layout of their scores.
#ifndef HEDDLE_ATTENTION_PAIRS_CUH
#define HEDDLE_ATTENTION_PAIRS_CUH

#include <utility>

#include "attention_slots.cuh"
#include "attention_tiles.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// A thread's `Elements` of a tile, in the order of its scores: element i belongs to row i / 2 % 2 and to the key i / 4 * 8 + i % 2 places
/// after the thread's first. Types of 8 and of 16 bits are prefetched 8 keys at a time, a quad's lanes the 32 of four fragments. Others are
/// read when they are used, to save registers.
template <class Slots, int Elements>
class TilePairs {
  using Eight = decltype(std::declval<const Slots&>().template pair_chunk<8>(0, 0, 0, 0, 0));
  static constexpr bool is_ahead = Eight::in_words && Elements % 16 == 0;
  /// Words of 8 keys: a pair of keys in each, or two pairs.
  static constexpr int per_eight = 8 / Eight::per_word;

 public:
  using Value = std::decay_t<decltype(std::declval<const Eight&>()[0])>;

  /// Starts loading for the tile with first key `from`, of `keys` keys in total. `row(half)` is either of the thread's rows.
  template <class Row>
  __device__ __forceinline__ void load(const Slots& slots, int b, int h, int from, int keys, Row row) {
    slots_ = &slots, b_ = b, h_ = h, from_ = from, keys_ = keys;
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) rows_[half] = row(half);
    if constexpr (is_ahead) {
      const int own = static_cast<int>(threadIdx.x) % 4 * 8;
      HEDDLE_UNROLL
      for (int group = 0; group < Elements / 16; ++group) {
        HEDDLE_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int column = from + group * 32 + own;
          const Eight chunk = slots.template pair_chunk<8>(b, h, rows_[half], column, keys - column);
          HEDDLE_UNROLL
          for (int i = 0; i < per_eight; ++i) words_[(group * per_eight + i) * 2 + half] = chunk.words[i];
        }
      }
    }
  }

  /// Gives every lane the inputs of its scores. All lanes of the warp take part.
  __device__ __forceinline__ void settle() {
    if constexpr (is_ahead) {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      HEDDLE_UNROLL
      for (int group = 0; group < Elements / 16; ++group) {
        HEDDLE_UNROLL
        for (int half = 0; half < 2; ++half) {
          uint32_t words[per_eight];
          HEDDLE_UNROLL
          for (int i = 0; i < per_eight; ++i) words[i] = words_[(group * per_eight + i) * 2 + half];
          transpose_quad(words, lane);
          HEDDLE_UNROLL
          for (int i = 0; i < per_eight; ++i) words_[(group * per_eight + i) * 2 + half] = words[i];
        }
      }
    }
  }

  /// Value for a row and the key `place` after the thread's first.
  __device__ __forceinline__ Value operator()(int half, int place) const {
    if constexpr (is_ahead) {
      // Pairs of keys are in the order of fragments, as many per word as fit.
      const int at = place / 8 * 2 + place % 2;
      Eight one;
      one.words[0] = words_[at / Eight::per_word * 2 + half];
      return one[at % Eight::per_word];
    } else {
      const int column = from_ + static_cast<int>(threadIdx.x) % 4 * 2 + place / 8 * 8;
      return slots_->template pair_chunk<2>(b_, h_, rows_[half], column, keys_ - column)[place % 2];
    }
  }

 private:
  const Slots* slots_;
  int b_, h_, from_, keys_, rows_[2];
  uint32_t words_[is_ahead ? Elements / Eight::per_word : 1];
};

/// No values, for scores without inputs per pair.
struct NoPairs {
  template <class... Anything>
  __device__ __forceinline__ void load(const Anything&...) {}
  __device__ __forceinline__ void settle() {}
  __device__ __forceinline__ float operator()(int, int) const { return 0.0f; }
};
template <class Slots, int Elements, bool Reads>
struct PairsOf {
  using Type = NoPairs;
};
template <class Slots, int Elements>
struct PairsOf<Slots, Elements, true> {
  using Type = TilePairs<Slots, Elements>;
};
template <class Slots, int Elements>
using Pairs = typename PairsOf<Slots, Elements, reads_pairs<Slots>>::Type;

/// Value for one pair.
template <class Slots>
__device__ __forceinline__ auto pair_of([[maybe_unused]] const Slots& slots, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                         [[maybe_unused]] int i, [[maybe_unused]] int j) {
  if constexpr (reads_pairs<Slots>) {
    return slots.template pair_chunk<2>(b, h, i, j, 1)[0];
  } else {
    return 0.0f;
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
