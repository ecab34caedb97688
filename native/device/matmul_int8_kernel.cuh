// The int8 matmul on tensor cores (mma), for operands in any order and many matrices at a time. A block computes a tile of one matrix with
// a pipeline of asynchronous copies. Fragments of the next panel of k load while those of the current one are multiplied. The epilogue
// takes the sums directly from registers: every lane holds chunks of eight columns.
#ifndef HEDDLE_MATMUL_INT8_KERNEL_CUH
#define HEDDLE_MATMUL_INT8_KERNEL_CUH

#include "matmul_int8_output.cuh"
#include "matmul_int8_pipeline.cuh"

namespace heddle {

/// Rows x Columns of the output per block, by WarpsM x WarpsN warps.
template <int Rows, int Columns, int WarpsM, int WarpsN, int Stages, int BlocksPerMultiprocessor>
struct Int8Tile {
  static constexpr int rows = Rows, columns = Columns, stages = Stages, blocks = BlocksPerMultiprocessor;
  static constexpr int warps_m = WarpsM, threads = 32 * WarpsM * WarpsN;
  static constexpr int warp_rows = Rows / WarpsM, warp_columns = Columns / WarpsN;
  static constexpr int piece_rows = 16;  // of one mma
  static constexpr int row_pieces = warp_rows / piece_rows, column_groups = warp_columns / 32;
  static constexpr int panels = int8_panels;  // of k per stage
  static constexpr int a_panel_bytes = Rows * panel_columns, b_panel_bytes = Columns * panel_columns;
  static constexpr int b_at = panels * a_panel_bytes;  // in a stage
  static constexpr int stage_bytes = b_at + panels * b_panel_bytes;
  static_assert(warp_rows % 16 == 0 && warp_columns % 32 == 0, "a warp multiplies 16 x 32 pieces");

  static constexpr __host__ __device__ int64_t steps(int64_t k) { return (k + int8_step - 1) / int8_step; }
  static constexpr uint32_t shared_bytes(int64_t k) {
    return static_cast<uint32_t>(stage_bytes * (steps(k) < Stages ? steps(k) : Stages));
  }
};

/// The sums of a warp: its share of a tile, panel by panel as the pipeline delivers them.
template <class OrderB, class Tile, bool Whole>
class Int8Multiplier {
 public:
  int sums[Tile::row_pieces][4 * Tile::column_groups][4] = {};

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
    if (!Whole && index == ragged_) rows_[which].clear_from(k_ - index * panel_columns);
  }

  __device__ __forceinline__ void multiply(int which) {
    HEDDLE_UNROLL
    for (int i = 0; i < Tile::row_pieces; ++i) {
      HEDDLE_UNROLL
      for (int group = 0; group < Tile::column_groups; ++group) {
        HEDDLE_UNROLL
        for (int j = 0; j < 4; ++j) mma_m16n8k32(sums[i][4 * group + j], rows_[which].a[i], columns_[which].b[group][j]);
      }
    }
  }

  RowFragments rows_[2];
  ColumnFragments columns_[2];
  Shared16 a_, b_, b_other_;
  int k_, ragged_;  // ragged_: the panel that ends within a word, or -1
};

/// One block computes one tile. Neighbouring blocks compute neighbouring columns, so that the rows of a that they share are read from
/// memory once. `Whole`: no step of k and no chunk of columns is cut off. `constant_b`: no launch still in flight writes b.
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
  const Int8Copies<OrderA, Int8Use::rows, Tile::rows, Tile::panels, Tile::threads, Whole> a_copies(
      operands.a, batch * operands.a_batch, operands.a_pitch, row0, shape.m, shape.k);
  const Int8Copies<OrderB, Int8Use::columns, Tile::columns, Tile::panels, Tile::threads, Whole> b_copies(
      operands.b, batch * operands.b_batch, operands.b_pitch, column0, shape.n, shape.k);
  if (!constant_b) wait_for_producers();
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < steps) b_copies.start(shared + (s * Tile::stage_bytes + Tile::b_at), s);
  }
  Int8Multiplier<OrderB, Tile, Whole> multiplier(shared, warp_row, warp_column, shape.k);
  const int64_t row = row0 + warp_row + lane / 4, column = column0 + warp_column + lane % 4 * 8;
  // Prefetched once for all rows: thousands of blocks that request the same lines would wait for each other.
  if (row < Tile::warp_rows && batch == 0 && column < shape.n) prefetch_constants(epilogue, static_cast<int>(column), 0);

  // The order matters, for the reason given in matmul_mma.cuh.
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
