// Loads of the factors of a float32 matmul into the stages of matmul_fma_tile.cuh. A factor is copied in words where its rows are aligned, else in
// elements; one that is computed is stored at the same place.
#ifndef HEDDLE_MATMUL_FMA_STAGES_CUH
#define HEDDLE_MATMUL_FMA_STAGES_CUH

#include "matmul_factor.cuh"
#include "matmul_fma_tile.cuh"

namespace heddle {

namespace fma {

/// A walk over the rows of a factor that a thread copies, from an element of one row to the same element of the next. What is copied where it is not
/// `valid` are zeros.
class RowWalk {
 public:
  /// `step`: elements from one row to the next.
#if defined(HEDDLE_SIMT)
  __device__ __forceinline__ RowWalk(const In<float>& tensor, int64_t first, int64_t step) : tensor_(tensor), at_(first), step_(step) {}
  template <int Bytes>
  __device__ __forceinline__ void copy_to(Shared16 to, bool valid) const {
    copy_async<Bytes>(to, tensor_, at_, valid);
  }
  __device__ __forceinline__ void advance() { at_ += step_; }

 private:
  In<float> tensor_;
  int64_t at_, step_;
#else
  __device__ __forceinline__ RowWalk(const In<float>& tensor, int64_t first, int64_t step) : at_(tensor.data + first), step_(step) {}
  template <int Bytes>
  __device__ __forceinline__ void copy_to(Shared16 to, bool valid) const {
    copy_async<Bytes>(to, In<float>{at_}, 0, valid);
  }
  /// One addition per row, where a place computed from its number takes several instructions beside those of the sums.
  __device__ __forceinline__ void advance() { at_ += step_; }

 private:
  const float* at_;
  int64_t step_;
#endif
};

/// Rows of a matrix that a block multiplies: those from row0 on, `length` of their k elements from `first` on.
struct Share {
  int64_t matrix, row0, rows;
  int k, first, length;
  bool words;  // rows are aligned to 16 bytes, as are their lengths
};

/// This thread's part of the loads of Count rows, which become rows `First` and on of the stage's part. begin() starts the loads of a step,
/// end() completes those that no asynchronous copy does.
template <int Which, int First, int Count, class Tile, class Slots,
          class Copied = decltype(std::declval<const Slots&>().copy_of(Factor<Which>(), int64_t()))>
class Stages;

template <int Which, int First, int Count, class Tile, class Slots, class T>
class Stages<Which, First, Count, Tile, Slots, CopiedRows<T>> {
  static_assert(std::is_same_v<T, float>, "copied unchanged");

 public:
  __device__ __forceinline__ Stages(const Slots& slots, const Share& share)
      : from_(slots.copy_of(Factor<Which>(), share.matrix)),
        base_(from_.first + share.row0 * share.k + share.first),
        k_(share.k),
        length_(share.length),
        rows_(static_cast<int>(share.rows - share.row0 < Count ? share.rows - share.row0 : Count)),
        words_(share.words) {}
  __device__ __forceinline__ void find(const Slots&) {}
  __device__ __forceinline__ void begin(const Slots&, Shared16 to, int s) const {
    const bool whole = rows_ == Count && (s + 1) * step_elements<float> <= length_;
    if (words_) {
      copy<16>(to, s, whole);
    } else {
      copy<4>(to, s, whole);
    }
  }
  __device__ __forceinline__ void end(Shared16) const {}

 private:
  template <uint32_t Bytes>
  __device__ __forceinline__ void copy(Shared16 to, int s, bool whole) const {
    constexpr bool divides = Count % (Tile::threads * Bytes / step_row_bytes) == 0;
    if (divides && whole) {
      copy<Bytes, true>(to, s);
    } else {
      copy<Bytes, false>(to, s);
    }
  }
  /// Starts the thread's copies of a step, `Bytes` each. Rows that do not exist keep what their places hold, since their results are not used.
  /// `Whole`: all rows and elements exist.
  template <uint32_t Bytes, bool Whole>
  __device__ __forceinline__ void copy(Shared16 to, int s) const {
    constexpr bool right = Which != 0;
    constexpr uint32_t units = step_row_bytes / Bytes, row_step = Tile::threads / units, elements = Bytes / 4;
    // Computed anew in every step, or the places would take the registers of the sums.
    uint32_t thread = threadIdx.x;
    keep(thread);
    const uint32_t own = thread / units, unit = thread % units, word = unit * elements / 4, part = unit * elements % 4 * 4;
    const int along = s * step_elements<float> + static_cast<int>(unit * elements);
    const bool inside = Whole || along < length_;
    RowWalk walk(from_.tensor, base_ + static_cast<int64_t>(own) * k_ + (inside ? along : 0), static_cast<int64_t>(k_) * row_step);
    const uint32_t first = Tile::template word_at<right>(own, word);
    HEDDLE_UNROLL
    for (uint32_t i = 0; i < (Count + row_step - 1) / row_step; ++i) {
      const uint32_t row = First + i * row_step;
      // Rows that share no bit with the thread's own permute its word by constants.
      const uint32_t at = First % row_step == 0 ? (first ^ Tile::template permutation<right>(row) * 16) + row * step_row_bytes
                                                : Tile::template word_at<right>(row + own, word);
      if (Whole || static_cast<int>(own + i * row_step) < rows_) walk.template copy_to<Bytes>(to + (at + part), inside);
      walk.advance();
    }
  }

  CopiedRows<T> from_;
  int64_t base_;  // first element of the block's first row
  int k_, length_, rows_;
  bool words_;
};

template <int Which, int First, int Count, class Tile, class Slots>
class Stages<Which, First, Count, Tile, Slots, NotCopied> {
 public:
  __device__ __forceinline__ Stages(const Slots&, const Share& share)
      : matrix_(share.matrix),
        at_(static_cast<int>(share.row0) + own_row()),
        rows_(static_cast<int>(share.rows)),
        end_(share.first + share.length),
        first_(share.first + own_lane() * 8) {}
  /// Computes the precomputed values of the rows; the threads of a row synchronise.
  __device__ __forceinline__ void find(const Slots& slots) {
    HEDDLE_UNROLL
    for (int i = 0; i < per_thread; ++i) {
      if (exists(i)) known_[i].find(slots, WarpTeam<lanes, row_step>(), matrix_, at_ + i * row_step);
    }
  }
  __device__ __forceinline__ void begin(const Slots& slots, Shared16, int s) {
    HEDDLE_UNROLL
    for (int i = 0; i < per_thread; ++i) {
      const int along = first_ + s * step_elements<float>;
      factor_chunk<Which>(slots, known_[i].template of<Which>(), exists(i), matrix_, at_ + i * row_step, along, end_, values_[i]);
    }
  }
  __device__ __forceinline__ void end(Shared16 to) const {
    HEDDLE_UNROLL
    for (int i = 0; i < per_thread; ++i) {
      const int row = own_row() + i * row_step;
      if (Count % row_step != 0 && row >= Count) continue;
      HEDDLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float* const four = values_[i] + 4 * half;
        store_shared_16(to + Tile::template word_at<Which != 0>(static_cast<uint32_t>(First + row), static_cast<uint32_t>(2 * own_lane() + half)), Pack<float, 4>{{four[0], four[1], four[2], four[3]}});
      }
    }
  }

 private:
  static constexpr int lanes = step_elements<float> / 8;  // threads of a row, one chunk each
  static constexpr int row_step = Tile::threads / lanes, per_thread = (Count + row_step - 1) / row_step;

  static __device__ __forceinline__ int own_row() { return static_cast<int>(threadIdx.x) / lanes; }
  static __device__ __forceinline__ int own_lane() { return static_cast<int>(threadIdx.x) % lanes; }
  __device__ __forceinline__ bool exists(int i) const { return own_row() + i * row_step < Count && at_ + i * row_step < rows_; }

  int64_t matrix_;
  int at_, rows_, end_, first_;
  FactorRows<Slots, Which, 1> known_[per_thread] = {};
  float values_[per_thread][8] = {};
};

/// The right factors' parts of a stage, concatenated: factors from `Which` on, Count columns each.
template <int Which, int Products, int Count, class Tile, class Slots>
struct RightStages {
  Stages<Which, (Which - 1) * Count, Count, Tile, Slots> own;
  RightStages<Which + 1, Products, Count, Tile, Slots> others;

  __device__ __forceinline__ RightStages(const Slots& slots, const Share& share) : own(slots, share), others(slots, share) {}
  __device__ __forceinline__ void find(const Slots& slots) {
    own.find(slots);
    others.find(slots);
  }
  __device__ __forceinline__ void begin(const Slots& slots, Shared16 to, int s) {
    own.begin(slots, to, s);
    others.begin(slots, to, s);
  }
  __device__ __forceinline__ void end(Shared16 to) const {
    own.end(to);
    others.end(to);
  }
};
template <int Products, int Count, class Tile, class Slots>
struct RightStages<Products + 1, Products, Count, Tile, Slots> {
  __device__ __forceinline__ RightStages(const Slots&, const Share&) {}
  __device__ __forceinline__ void find(const Slots&) {}
  __device__ __forceinline__ void begin(const Slots&, Shared16, int) {}
  __device__ __forceinline__ void end(Shared16) const {}
};

}  // namespace fma

}  // namespace heddle

#endif
