// The int8 matmul on tensor cores, for operands in any order and many matrices at a time. A block computes a tile of one matrix:
// a pipeline of asynchronous copies, fragments of the next panel of k loading while those of this one are multiplied, and an
// epilogue straight from the sums, of which every lane holds chunks of eight columns.
#ifndef HEDDLE_MATMUL_INT8_KERNEL_CUH
#define HEDDLE_MATMUL_INT8_KERNEL_CUH

#include "matmul_epilogue.cuh"
#include "matmul_int8_pipeline.cuh"

namespace heddle {

/// Rows x Columns of the output per block, by WarpsM x WarpsN warps.
template <int Rows, int Columns, int WarpsM, int WarpsN, int Stages, int BlocksPerMultiprocessor>
struct Int8Tile {
  static constexpr int rows = Rows, columns = Columns, stages = Stages, blocks = BlocksPerMultiprocessor;
  static constexpr int warps_m = WarpsM, threads = 32 * WarpsM * WarpsN;
  static constexpr int warp_rows = Rows / WarpsM, warp_columns = Columns / WarpsN;
  static constexpr int row_pieces = warp_rows / 16, column_groups = warp_columns / 32;
  static constexpr int panels = 2;  // of k in a stage
  static constexpr int step = panels * panel_columns;
  static constexpr int a_panel_bytes = Rows * panel_columns, b_panel_bytes = Columns * panel_columns;
  static constexpr int b_at = panels * a_panel_bytes;  // in a stage
  static constexpr int stage_bytes = b_at + panels * b_panel_bytes;
  static_assert(warp_rows % 16 == 0 && warp_columns % 32 == 0, "a warp multiplies 16 x 32 pieces");

  static constexpr __host__ __device__ int64_t steps(int64_t k) { return (k + step - 1) / step; }
  static constexpr uint32_t shared_bytes(int64_t k) {
    return static_cast<uint32_t>(stage_bytes * (steps(k) < Stages ? steps(k) : Stages));
  }
};

/// The matrices of a launch: those of a batch are `a_batch` and `b_batch` elements apart.
struct Int8Operands {
  In<signed char> a, b;
  int64_t a_batch, a_pitch, b_batch, b_pitch;
};

/// What is multiplied: m x k by n x k.
struct Int8Shape {
  int64_t m, n;
  int k;
};

/// Calls the epilogue for a warp's sums. What it loads for some chunks is under way while earlier ones are finished: as many as
/// the registers hold that fragments no longer need.
template <class Tile, bool Whole, class Epilogue>
class Int8Output {
 public:
  /// `first_row` counts through the batch, `rows` is how many follow in the matrix; both are the lane's.
  __device__ __forceinline__ Int8Output(const Epilogue& epilogue, int64_t first_row, int64_t rows, int64_t column, int64_t n)
      : epilogue_(epilogue), first_row_(first_row), rows_(rows), column_(column), n_(n) {}

  __device__ __forceinline__ void run(const int (&sums)[Tile::row_pieces][Tile::column_groups][4][4]) const {
    typename Call::Loaded loaded[ahead] = {};
    HEDDLE_UNROLL
    for (int c = 0; c < ahead; ++c) load(loaded[c], c);
    HEDDLE_UNROLL
    for (int c = 0; c < chunks; ++c) {
      const int half = c / groups % 2, valid = valid_in(c);
      int chunk[8];
      HEDDLE_UNROLL
      for (int x = 0; x < 8; ++x) chunk[x] = sums[c / groups / 2][c % groups][x / 2][2 * half + x % 2];
      if (valid > 0) Call::template finish<Whole>(epilogue_, row(c), column(c), valid, chunk, loaded[c % ahead]);
      if (c + ahead < chunks) load(loaded[c % ahead], c + ahead);
    }
  }

 private:
  using Call = EpilogueCall<Epilogue>;
  static constexpr int groups = Tile::column_groups, chunks = 2 * Tile::row_pieces * groups;
  static constexpr int free_bytes = 192, fitting = free_bytes / static_cast<int>(sizeof(typename Call::Loaded));
  static constexpr int ahead = fitting < 1 ? 1 : fitting < chunks ? fitting : chunks;

  /// Chunks follow along a row, then in every eighth row.
  static __device__ __forceinline__ int row_in_tile(int c) { return c / groups * 8; }
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

/// The sums of a warp: its share of a tile, panel by panel as the pipeline brings them.
template <class OrderA, class OrderB, class Tile>
class Int8Multiplier {
 public:
  int sums[Tile::row_pieces][Tile::column_groups][4][4] = {};

  /// `row` and `column`: the warp's first in the tile.
  __device__ __forceinline__ Int8Multiplier(Shared16 shared, int row, int column, int k)
      : a_(shared + RowFragments::lane_place(row)),
        b_(shared + (Tile::b_at + ColumnFragments::lane_place(column))),
        b_other_(shared + (Tile::b_at + (ColumnFragments::lane_place(column) ^ 64))),
        k_(k),
        ragged_(k % 16 == 0 ? -1 : k / panel_columns) {}

  /// `refill(s, stage)` starts the copies of step s.
  template <class Refill>
  __device__ __forceinline__ void run(int count, Refill refill) {
    constexpr int ahead = Tile::stages - 1;
    int stage = 0, free_stage = ahead;
    copy_async_wait<ahead - 1>();
    __syncthreads();
    load(0, 0, 0, 0);
    for (int s = 0; s < count; ++s) {
      HEDDLE_UNROLL
      for (int panel = 0; panel < Tile::panels; ++panel) {
        if (panel + 1 < Tile::panels) {
          load((panel + 1) % 2, s, stage, panel + 1);
        } else {
          copy_async_wait<ahead - 1>();
          __syncthreads();
          free_stage = stage;
          stage = stage + 1 == Tile::stages ? 0 : stage + 1;
          if (s + 1 < count) load(0, s + 1, stage, 0);
        }
        multiply(panel % 2);
        if (panel == 0) {
          if (s + ahead < count) refill(s + ahead, free_stage);
          copy_async_commit();
        }
      }
    }
  }

 private:
  using RowFragments = Int8RowFragments<Tile::row_pieces>;
  using ColumnFragments = Int8ColumnFragments<OrderB, Tile::column_groups>;
  static_assert(Tile::panels % 2 == 0, "fragments of a step's first panel are always the first ones");

  __device__ __forceinline__ void load(int which, int s, int stage, int panel) {
    const uint32_t a_at = stage * Tile::stage_bytes + panel * Tile::a_panel_bytes;
    const uint32_t b_at = stage * Tile::stage_bytes + panel * Tile::b_panel_bytes;
    rows_[which].load(a_ + a_at);
    columns_[which].load(b_ + b_at, b_other_ + b_at);
    const int index = s * Tile::panels + panel;
    if (index == ragged_) rows_[which].clear_from(k_ - index * panel_columns);
  }

  __device__ __forceinline__ void multiply(int which) {
    HEDDLE_UNROLL
    for (int i = 0; i < Tile::row_pieces; ++i) {
      HEDDLE_UNROLL
      for (int group = 0; group < Tile::column_groups; ++group) {
        HEDDLE_UNROLL
        for (int j = 0; j < 4; ++j) mma_m16n8k32(sums[i][group][j], rows_[which].a[i], columns_[which].b[group][j]);
      }
    }
  }

  RowFragments rows_[2];
  ColumnFragments columns_[2];
  Shared16 a_, b_, b_other_;
  int k_, ragged_;  // ragged_: the panel that ends within a word, or -1
};

/// Neighbouring blocks compute neighbouring columns, so that the rows of a they share are read from memory once. `Whole`: no
/// chunk of columns is cut off. `constant_b`: no launch still under way writes b.
template <class OrderA, class OrderB, class Tile, bool Whole, class Epilogue>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    matmul_int8(const Int8Shape shape, const uint32_t tiles_m, const uint32_t tiles_n, const bool constant_b,
                const Int8Operands operands, const Epilogue epilogue) {
  HEDDLE_DYNAMIC_SHARED(dynamic);
  Shared16 shared = dynamic;
  keep(shared);
  const int64_t column0 = static_cast<int64_t>(blockIdx.x % tiles_n) * Tile::columns;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x / tiles_n % tiles_m) * Tile::rows;
  const int64_t batch = blockIdx.x / tiles_n / tiles_m;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_row = warp % Tile::warps_m * Tile::warp_rows, warp_column = warp / Tile::warps_m * Tile::warp_columns;
  const int steps = static_cast<int>(Tile::steps(shape.k));
  constexpr int ahead = Tile::stages - 1;

  // A stage holds the panels of a, then those of b.
  const Int8Copies<OrderA, false, Tile::rows, Tile::panels, Tile::threads> a_copies(
      operands.a, batch * operands.a_batch, operands.a_pitch, row0, shape.m, shape.k);
  const Int8Copies<OrderB, true, Tile::columns, Tile::panels, Tile::threads> b_copies(
      operands.b, batch * operands.b_batch, operands.b_pitch, column0, shape.n, shape.k);
  if (!constant_b) wait_for_producers();
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < steps) b_copies.start(shared + (s * Tile::stage_bytes + Tile::b_at), s);
  }
  Int8Multiplier<OrderA, OrderB, Tile> multiplier(shared, warp_row, warp_column, shape.k);
  const int64_t row = row0 + warp_row + lane / 4, column = column0 + warp_column + lane % 4 * 8;
  if (column < shape.n) prefetch_constants(epilogue, static_cast<int>(column), 0);

  // In this order for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < steps) a_copies.start(shared + s * Tile::stage_bytes, s);
    copy_async_commit();
  }
  multiplier.run(steps, [&](int s, int stage) {
    const Shared16 to_stage = shared + stage * Tile::stage_bytes;
    a_copies.start(to_stage, s);
    b_copies.start(to_stage + Tile::b_at, s);
  });
  const Int8Output<Tile, Whole, Epilogue> output(epilogue, batch * shape.m + row, shape.m - row, column, shape.n);
  output.run(multiplier.sums);
}

}  // namespace heddle

#endif
