// Code shared by the bodies of the int8 matmul: the operands of a launch, and the path of sums from a warp's registers to the epilogue. Of
// every 32 columns a lane holds eight neighbours in each of two rows, spread over four mmas of eight columns.
#ifndef HEDDLE_MATMUL_INT8_OUTPUT_CUH
#define HEDDLE_MATMUL_INT8_OUTPUT_CUH

#include "matmul_epilogue.cuh"

namespace heddle {

/// The matrices of a launch: those of a batch are `a_batch` and `b_batch` elements apart.
struct Int8Operands {
  In<signed char> a, b;
  int64_t a_batch, a_pitch, b_batch, b_pitch;
};

/// Sizes of the operands: m x k by n x k.
struct Int8Shape {
  int64_t m, n;
  int k;
};

/// Calls the epilogue for a warp's sums. Loads of later chunks are in flight while earlier chunks are finished, as many as fit the
/// registers that fragments no longer need.
template <class Tile, bool Whole, class Epilogue>
class Int8Output {
 public:
  /// `first_row` counts through the batch; `rows` is the number of rows that follow in the matrix. Both are the lane's.
  __device__ __forceinline__ Int8Output(const Epilogue& epilogue, int64_t first_row, int64_t rows, int64_t column, int64_t n)
      : epilogue_(epilogue), first_row_(first_row), rows_(rows), column_(column), n_(n) {}

  __device__ __forceinline__ void run(const int (&sums)[Tile::row_pieces][4 * Tile::column_groups][4]) const {
    typename Call::Loaded loaded[ahead];
    HEDDLE_UNROLL
    for (int c = 0; c < ahead; ++c) load(loaded[c], c);
    HEDDLE_UNROLL
    for (int c = 0; c < chunks; ++c) {
      const int half = c / groups % 2, valid = valid_in(c);
      int chunk[8];
      HEDDLE_UNROLL
      for (int x = 0; x < 8; ++x) chunk[x] = sums[c / groups / 2][c % groups * 4 + x / 2][2 * half + x % 2];
      if (valid > 0) Call::template finish<Whole>(epilogue_, row(c), column(c), valid, chunk, loaded[c % ahead]);
      if (c + ahead < chunks) load(loaded[c % ahead], c + ahead);
    }
  }

 private:
  using Call = EpilogueCall<Epilogue>;
  static constexpr int groups = Tile::column_groups, chunks = 2 * Tile::row_pieces * groups;
  static constexpr int free_bytes = 192, fitting = free_bytes / static_cast<int>(sizeof(typename Call::Loaded));
  static constexpr int ahead = fitting < 1 ? 1 : fitting < chunks ? fitting : chunks;

  /// Chunks proceed along a row, then along the row eight below, then to the rows of the next mma.
  static __device__ __forceinline__ int row_in_tile(int c) { return c / groups / 2 * Tile::piece_rows + c / groups % 2 * 8; }
  __device__ __forceinline__ int64_t row(int c) const { return first_row_ + row_in_tile(c); }
  __device__ __forceinline__ int column(int c) const { return static_cast<int>(column_) + c % groups * 32; }
  __device__ __forceinline__ int valid_in(int c) const {
    const int64_t left = n_ - column(c);
    return row_in_tile(c) >= rows_ || left <= 0 ? 0 : Whole || left >= 8 ? 8 : static_cast<int>(left);
  }
  __device__ __forceinline__ void load(typename Call::Loaded& loaded, int c) const {
    const int valid = valid_in(c);
    if (valid > 0) loaded = Call::template load<Whole>(epilogue_, row(c), column(c), valid);
  }

  const Epilogue& epilogue_;
  int64_t first_row_, rows_, column_, n_;
};

}  // namespace heddle

#endif
