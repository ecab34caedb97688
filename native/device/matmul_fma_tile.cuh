// The share of a float32 matmul that one block computes, as a type, and the loads of its factors. A stage of the pipeline holds 128 bytes
// of k per row, as in matmul_pipeline.cuh: 32 elements in eight words of 16 bytes, permuted so that copies and reads have no bank
// conflicts. A factor is copied in words where its rows are aligned, else in elements; one that is computed is stored at the same place.
#ifndef HEDDLE_MATMUL_FMA_TILE_CUH
#define HEDDLE_MATMUL_FMA_TILE_CUH

#include "cluster.cuh"
#include "matmul_factor.cuh"
#include "matmul_pipeline.cuh"

namespace heddle {

/// Rows x Columns of the output per block; a thread computes ThreadRows rows of eight columns. `Groups` groups of threads compute all of
/// them, each for its words of every step: a small tile has few threads otherwise. `Unroll`: words that are multiplied without a branch, so
/// that the loads of one overlap the multiply-adds of another where there are registers for both.
template <int Rows, int Columns, int ThreadRows, int Groups, int Unroll, int Stages, int Blocks>
struct FmaTile {
  static constexpr int rows = Rows, columns = Columns, groups = Groups, unroll = Unroll;
  static constexpr int stages = Stages, ahead = Stages - 1;
  static constexpr int blocks = Blocks;  // per multiprocessor
  static constexpr int thread_rows = ThreadRows;
  static constexpr int threads_m = Rows / ThreadRows, threads_n = Columns / 8;
  static constexpr int group_threads = threads_m * threads_n, threads = group_threads * Groups;
  /// Rows of a thread that are multiplied in a tile whose other rows do not exist. A branch per row would take registers.
  static constexpr int few_rows = ThreadRows * 5 / 8;
  static constexpr int words = step_row_bytes / 16 / Groups;  // per row, step and group
  static constexpr uint32_t right_at = Rows * step_row_bytes, stage_bytes = (Rows + Columns) * step_row_bytes;
  static constexpr uint32_t sums_row_bytes = 4 * Columns, sums_group_bytes = 8 * sums_row_bytes;
  static_assert(threads_n % 8 == 0 && (threads_m == 2 || threads_m % 4 == 0), "eight threads of a warp along columns");

  /// Place of a word of a row in a factor's part of a stage. The threads of a warp read adjacent rows of the left factor, but every eighth
  /// of a right one, since each has eight adjacent columns.
  template <bool Right>
  static __device__ __forceinline__ uint32_t word_at(uint32_t row, uint32_t word) {
    return row * step_row_bytes + (word ^ (Right ? row / 8 : row) % 8) * 16;
  }

  /// Columns of each of several matmuls, in whole chunks; some of the tile's are unused if it does not divide.
  template <int Products>
  static constexpr int columns_each = Columns / 8 / Products * 8;
  /// Number of groups of eight rows per block of a cluster.
  static constexpr __host__ __device__ int owned_groups(int live, int split) { return ((live + 7) / 8 + split - 1) / split; }
  /// Offset of the sums that other blocks send, after the pipeline: they arrive while this block still multiplies.
  static constexpr __host__ __device__ uint32_t received_at(int live, int steps, int split) {
    const int share = (steps + split - 1) / split;
    const uint32_t pipeline = stage_bytes * static_cast<uint32_t>(share < Stages ? share : Stages);
    const uint32_t sums = sums_group_bytes * static_cast<uint32_t>((live + 7) / 8 * Groups);
    return pipeline > sums ? pipeline : sums;
  }
  static constexpr __host__ __device__ uint32_t barrier_at(int live, int steps, int split) {
    const uint32_t received = split == 1 ? 0 : sums_group_bytes * static_cast<uint32_t>(split * owned_groups(live, split));
    return received_at(live, steps, split) + received;
  }
  /// Offset of the upper or lower half of eight columns in rows of sums. Columns and rows next to each other are in different banks.
  static __device__ __forceinline__ uint32_t half_at(int row, int chunk, int half) {
    return static_cast<uint32_t>(row) * sums_row_bytes + static_cast<uint32_t>(2 * chunk + (half ^ ((row + chunk / 4) & 1))) * 16;
  }
  /// Adds the sums of eight columns of a row in `parts` parts, `stride` bytes apart, in the order of k.
  static __device__ __forceinline__ void add_parts(float (&total)[8], Shared16 from, int row, int chunk, int parts, uint32_t stride) {
    for (int part = 0; part < parts; ++part) {
      HEDDLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto four = load_shared_16<float>(from + (static_cast<uint32_t>(part) * stride + half_at(row, chunk, half)));
        HEDDLE_UNROLL
        for (int c = 0; c < 4; ++c) total[4 * half + c] += four.v[c];
      }
    }
  }
};

namespace fma {

/// Rows in memory, from one element of the first row on. Rows have less than 2^31 bytes. What is copied where it is not `valid` are zeros.
class Rows {
 public:
#if defined(HEDDLE_SIMT)
  __device__ __forceinline__ Rows(const In<float>& tensor, int64_t first, int k) : tensor_(tensor), first_(first), k_(k) {}
  template <int Bytes>
  __device__ __forceinline__ void copy_to(Shared16 to, int row, bool valid) const {
    copy_async<Bytes>(to, tensor_, first_ + static_cast<int64_t>(row) * k_, valid);
  }

 private:
  In<float> tensor_;
  int64_t first_;
  int k_;
#else
  __device__ __forceinline__ Rows(const In<float>& tensor, int64_t first, int k)
      : first_(reinterpret_cast<const char*>(tensor.data + first)), row_bytes_(k * 4) {}
  template <int Bytes>
  __device__ __forceinline__ void copy_to(Shared16 to, int row, bool valid) const {
    // One multiply-add per address.
    const In<float> from = {reinterpret_cast<const float*>(first_ + static_cast<int64_t>(row) * row_bytes_)};
    copy_async<Bytes>(to, from, 0, valid);
  }

 private:
  const char* first_;
  int row_bytes_;
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
    if (words_) {
      copy<16>(to, s);
    } else {
      copy<4>(to, s);
    }
  }
  __device__ __forceinline__ void end(Shared16) const {}

 private:
  /// Starts the thread's copies of a step, `Bytes` each. Rows that do not exist keep what their places hold, since their results are not used.
  template <uint32_t Bytes>
  __device__ __forceinline__ void copy(Shared16 to, int s) const {
    constexpr uint32_t units = step_row_bytes / Bytes, row_step = Tile::threads / units, elements = Bytes / 4;
    // Computed anew in every step, or the places would take the registers of the sums.
    uint32_t thread = threadIdx.x;
    keep(thread);
    const uint32_t own = thread / units, unit = thread % units;
    const int along = s * step_elements<float> + static_cast<int>(unit * elements);
    const bool inside = along < length_;
    const Rows rows(from_.tensor, base_ + (inside ? along : 0), k_);
    HEDDLE_UNROLL
    for (uint32_t i = 0; i < (Count + row_step - 1) / row_step; ++i) {
      const uint32_t row = own + i * row_step;
      const Shared16 at = to + (Tile::template word_at<Which != 0>(First + row, unit * elements / 4) + unit * elements % 4 * 4);
      if (static_cast<int>(row) < rows_) rows.template copy_to<Bytes>(at, static_cast<int>(row), inside);
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
