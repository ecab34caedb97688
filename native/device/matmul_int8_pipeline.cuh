// Loads of an int8 matmul's operands, of any storage order, to shared memory and from there to the tensor cores. A stage of the pipeline
// holds panels of 32 columns of k. Threads copy 16-byte words to consecutive places. The order determines which word belongs at a place, so
// that the matmul sees one of two formats:
//
// - rows: 32 bytes per row, with the halves of every second four rows exchanged, for matrix loads. The rows of b are permuted within every
//   32 as in COL32_2R_4R4.
// - words of COL4_4R2_8C, with the halves of words exchanged in odd rows. One 16-byte load provides the operands of four mmas.
//
// Both give a lane, over four mmas of eight columns each, eight neighbouring columns of the output, so the epilogue needs no exchange.
// Neither copies nor loads have bank conflicts.
#ifndef HEDDLE_MATMUL_INT8_PIPELINE_CUH
#define HEDDLE_MATMUL_INT8_PIPELINE_CUH

#include <type_traits>

#include "int8_order.cuh"
#include "matmul_pipeline.cuh"

namespace heddle {

/// Position of an element in an operand.
struct Int8Place {
  int row, column;
};

/// Purpose of a staged panel: a or b of an mma, or b to be converted to rows first.
enum class Int8Use { rows, columns, turned_columns };

/// Position of the first element of the word that belongs at a 16-byte place of a staged panel; the column counts within the panel.
template <class Order, Int8Use Use>
__device__ __forceinline__ Int8Place word_at(int place) {
  if constexpr (Order::mixes_rows && Use == Int8Use::turned_columns) {
    const int odd = place >> 3 & 1;
    return {place >> 4 << 3 | odd, ((place & 7) ^ (odd + 2 * (place >> 4 & 1))) * 4};
  } else if constexpr (Order::mixes_rows) {
    const int odd = place >> 3 & 1;
    return {place >> 4 << 3 | odd, ((place & 7) ^ 4 * odd) * 4};
  } else {
    const int slot = place >> 1, half = (place & 1) ^ (slot >> 2 & 1);
    return {Use != Int8Use::rows ? slot / 32 * 32 + Col32TwoRowOrder::row_at(slot % 32) : slot, half * 16};
  }
}

/// One operand's part of the pipeline: this thread's copies of Rows rows, from `row0` on, Panels panels per step. Words beyond the last row
/// repeat an earlier one, since their results are not used; words beyond k are zero and not read. `Whole`: k is a multiple of a step.
template <class Order, Int8Use Use, int Rows, int Panels, int Threads, bool Whole>
class Int8Copies {
 public:
  /// `first`: the matrix's first element in the tensor. k is at most 2^31 - 1 less a step.
  __device__ __forceinline__ Int8Copies(const In<signed char>& tensor, int64_t first, int64_t pitch, int64_t row0, int64_t rows,
                                        int k)
      : Int8Copies(tensor, first, pitch, row0, rows, k, std::make_integer_sequence<int, per_panel>()) {}

  /// Starts the copies of step `s` into the stage's part at `to`.
  __device__ __forceinline__ void start(Shared16 to, int s) const {
    HEDDLE_UNROLL
    for (int panel = 0; panel < Panels; ++panel) {
      const int64_t offset = (s * Panels + panel) * panel_stride_;
      const bool valid = Whole || (s * Panels + panel) * panel_columns < left_;
      HEDDLE_UNROLL
      for (int i = 0; i < per_panel; ++i) {
        from_[i].copy_to(to + (place_ + (panel * words + i * Threads) * 16), offset, valid);
      }
    }
  }

 private:
  static constexpr int words = Rows * panel_columns / 16;
  static constexpr int per_panel = words / Threads;
  static_assert(words % Threads == 0 && Threads % 64 == 0, "every thread copies as much, and the same columns of all tiles");

  template <int... I>
  __device__ __forceinline__ Int8Copies(const In<signed char>& tensor, int64_t first, int64_t pitch, int64_t row0, int64_t rows,
                                        int k, std::integer_sequence<int, I...>)
      : from_{CopySource<signed char>(
            tensor, first + word_offset(static_cast<int>(threadIdx.x) + I * Threads, row0, rows, pitch))...},
        panel_stride_(Order::panel_stride(pitch)),
        left_(k - word_at<Order, Use>(static_cast<int>(threadIdx.x)).column),
        place_(threadIdx.x * 16) {}

  static __device__ __forceinline__ int64_t word_offset(int place, int64_t row0, int64_t rows, int64_t pitch) {
    const Int8Place at = word_at<Order, Use>(place);
    const int64_t row = row0 + at.row, last = Order::mixes_rows ? (rows - 1) & ~int64_t{6} : rows - 1;
    return Order::offset(row < rows ? row : last, at.column, pitch);
  }

  CopySource<signed char> from_[per_panel];  // the thread's words in the first panel, also beyond k: those are not read
  int64_t panel_stride_;                     // elements
  int left_;                                 // of k from the words' column on
  uint32_t place_;                           // of the first word in a stage
};

/// 16 rows of a for each of RowPieces, one panel of k, as operands of mma_m16n8k32().
template <int RowPieces>
struct Int8RowFragments {
  uint32_t a[RowPieces][4];

  /// The lane's place in a staged panel whose rows start at `row0`, a multiple of 16.
  static __device__ __forceinline__ uint32_t lane_place(int row0) {
    const int lane = threadIdx.x % 32;
    return (row0 + lane % 16) * 32 + (lane / 16 ^ lane / 4 % 2) * 16;
  }
  __device__ __forceinline__ void load(Shared16 from) {
    HEDDLE_UNROLL
    for (int i = 0; i < RowPieces; ++i) load_matrix_x4(a[i], from + i * 512);
  }
  /// Clears columns from `left` on: the padding of a matrix counts as zero.
  __device__ __forceinline__ void clear_from(int left) {
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int bytes = left - 16 * half - 4 * static_cast<int>(threadIdx.x % 4);
      const uint32_t kept = bytes >= 4 ? ~0u : bytes <= 0 ? 0u : (1u << 8 * bytes) - 1;
      HEDDLE_UNROLL
      for (int i = 0; i < RowPieces; ++i) {
        a[i][2 * half] &= kept;
        a[i][2 * half + 1] &= kept;
      }
    }
  }
};

/// 32 rows of b, columns of the output, for each of Groups: four mmas each. Of the eight columns that output lane l % 4 holds of its group,
/// column 2j + c, c < 2, belongs to mma j.
template <class Order, int Groups>
struct Int8ColumnFragments {
  uint32_t b[Groups][4][2];

  /// The lane's place in a staged panel whose rows start at `row0`, a multiple of 32.
  static __device__ __forceinline__ uint32_t lane_place(int row0) {
    const int lane = threadIdx.x % 32;
    if constexpr (Order::mixes_rows) {
      const int odd = lane / 4 % 2;
      return row0 * 32 + lane / 8 * 256 + odd * 128 + (lane % 4 + 4 * odd) * 16;
    } else {
      return (row0 + lane / 16 * 8 + lane % 8) * 32 + (lane / 8 % 2 ^ lane / 4 % 2) * 16;
    }
  }
  /// `other`: lane_place() with the other half of its words.
  __device__ __forceinline__ void load(Shared16 from, Shared16 other) {
    HEDDLE_UNROLL
    for (int group = 0; group < Groups; ++group) {
      if constexpr (Order::mixes_rows) {
        HEDDLE_UNROLL
        for (int half = 0; half < 2; ++half) {
          const auto four = load_shared_16<uint32_t>((half == 0 ? from : other) + group * 1024);
          HEDDLE_UNROLL
          for (int j = 0; j < 4; ++j) b[group][j][half] = four.v[j];
        }
      } else {
        HEDDLE_UNROLL
        for (int pair = 0; pair < 2; ++pair) {
          uint32_t words[4];
          load_matrix_x4(words, from + (group * 1024 + pair * 512));
          HEDDLE_UNROLL
          for (int i = 0; i < 4; ++i) b[group][2 * pair + i / 2][i % 2] = words[i];
        }
      }
    }
  }
};

}  // namespace heddle

#endif
