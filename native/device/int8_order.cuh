// Memory orders of an int8 matrix, as types: the place of an element, and the first element of a 16-byte word. All but the plain one
// interleave: panels of 32 columns follow one another, `pitch` elements apart, and within a panel small tiles of rows are contiguous. Each
// of several generations of tensor cores has had its own order; kernels read all of them.
//
// Sizes in elements: (rows - 1) * pitch + columns for a RowOrder, which ends after the last row's columns; ceil(columns / 32) * pitch for
// the others, which store whole panels.
#ifndef HEDDLE_INT8_ORDER_CUH
#define HEDDLE_INT8_ORDER_CUH

#include "kernel.cuh"

namespace heddle {

constexpr int panel_columns = 32;
constexpr int int8_panels = 2;  // columns of k, in panels, that bodies multiply at a time
constexpr int int8_step = int8_panels * panel_columns;

/// Base of orders whose 16-byte words hold 16 adjacent columns of a row.
struct RowWords {
  static constexpr bool mixes_rows = false;
};

/// Row after row; `pitch` elements from a row to the next.
struct RowOrder : RowWords {
  static __host__ __device__ __forceinline__ int64_t offset(int64_t row, int64_t column, int64_t pitch) {
    return row * pitch + column;
  }
  static __host__ __device__ __forceinline__ int64_t panel_stride(int64_t) { return panel_columns; }
  /// True if a matrix with that many columns that starts at a word consists of words. The last word of a row is not read beyond its end.
  static bool in_words(int64_t pitch, int64_t columns) { return pitch % 16 == 0 && columns % 16 == 0; }
};

/// Base of interleaved orders.
struct PanelOrder {
  static __host__ __device__ __forceinline__ int64_t panel_stride(int64_t pitch) { return pitch; }
  static bool in_words(int64_t pitch, int64_t) { return pitch % panel_columns == 0; }
};

/// COL32: in a panel, rows of 32 columns. `pitch` is 32 times the rows stored.
struct Col32Order : RowWords, PanelOrder {
  static __host__ __device__ __forceinline__ int64_t offset(int64_t row, int64_t column, int64_t pitch) {
    return (column >> 5) * pitch + row * 32 + (column & 31);
  }
};

/// COL32_2R_4R4: COL32 with the rows of every 32 permuted, so that four pairs of rows, eight rows apart, are adjacent. `pitch` is 32 times
/// the rows stored, a multiple of 32 rows.
struct Col32TwoRowOrder : RowWords, PanelOrder {
  static constexpr int tile_rows = 32;
  /// Place of row 0..31 in a tile, and the row at a place.
  static __host__ __device__ __forceinline__ int place_of(int row) { return (row % 8 / 2 * 4 + row / 8) * 2 + row % 2; }
  static __host__ __device__ __forceinline__ int row_at(int place) { return place / 2 % 4 * 8 + place / 8 * 2 + place % 2; }
  static __host__ __device__ __forceinline__ int64_t offset(int64_t row, int64_t column, int64_t pitch) {
    return (column >> 5) * pitch + ((row >> 5) * 32 + place_of(static_cast<int>(row & 31))) * 32 + (column & 31);
  }
};

/// COL4_4R2_8C: in a panel, tiles of eight rows; in a tile, the even rows, then the odd ones; of those, four columns at a time, with four
/// columns of four rows per word. `pitch` is 32 times the rows stored, a multiple of 8 rows.
struct Col4Order : PanelOrder {
  static constexpr bool mixes_rows = true;
  static __host__ __device__ __forceinline__ int64_t offset(int64_t row, int64_t column, int64_t pitch) {
    const int64_t tile = (column >> 5) * pitch + (row >> 3) * 256;
    return tile + (row & 1) * 128 + ((column & 31) >> 2) * 16 + ((row & 7) >> 1) * 4 + (column & 3);
  }
};

}  // namespace heddle

#endif
