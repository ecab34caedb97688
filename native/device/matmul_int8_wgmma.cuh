// The int8 matmul with Hopper's wgmma, for many tiles. Both operands are multiplied directly from shared memory, in the row format of
// matmul_int8_pipeline.cuh, which is wgmma's 32-byte swizzle. Operands of interleaved orders are loaded by asynchronous copies. Words of
// COL4_4R2_8C, which mix rows, are converted to rows one step before they are multiplied.
#ifndef HEDDLE_MATMUL_INT8_WGMMA_CUH
#define HEDDLE_MATMUL_INT8_WGMMA_CUH

#include "matmul_int8_output.cuh"
#include "matmul_int8_pipeline.cuh"
#include "wgmma_narrow.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// Rows x 128 of the output per block; each warpgroup computes its share of the rows. `Turned`: b is converted to rows, in the space of one
/// of the stages.
template <int Rows, int Warpgroups, int Stages, int BlocksPerMultiprocessor, bool Turned>
struct Int8WgmmaTile {
  static constexpr int rows = Rows, columns = 128, panels = int8_panels, blocks = BlocksPerMultiprocessor;
  static constexpr bool turned = Turned;
  static constexpr int stages = Turned ? Stages - 1 : Stages;
  static constexpr int threads = warpgroup_threads * Warpgroups;
  static constexpr int group_rows = Rows / Warpgroups;
  static constexpr int piece_rows = 64;  // of one wgmma
  static constexpr int row_pieces = group_rows / piece_rows, column_groups = columns / 32;
  static constexpr int a_panel_bytes = Rows * panel_columns, b_panel_bytes = columns * panel_columns;
  static constexpr int b_at = panels * a_panel_bytes;  // in a stage
  static_assert(stages > 3, "copies of two steps are under way");
  static constexpr int stage_bytes = b_at + panels * b_panel_bytes;
  // Of three converted steps one is written while the wgmmas of the other two are in flight.
  static constexpr int turned_at = stages * stage_bytes, turned_bytes = panels * b_panel_bytes, turned_steps = Turned ? 3 : 0;

  static constexpr __host__ __device__ int64_t steps(int64_t k) { return k / int8_step; }
  static constexpr uint32_t shared_bytes(int64_t) { return turned_at + turned_steps * turned_bytes; }
};

/// Converts a stage of b from words that mix rows to rows. Of four neighbouring words, word i holds columns 4i to 4i + 3 of four rows, and
/// row i takes its share of each. Requires that the copies of all threads have arrived.
template <class Tile>
__device__ __forceinline__ void turn_columns(Shared16 from, Shared16 to) {
  constexpr int fours = Tile::panels * Tile::columns / 2;
  HEDDLE_UNROLL
  for (int first = 0; first < fours; first += Tile::threads) {
    const int four = first + static_cast<int>(threadIdx.x);
    if (four >= fours) break;
    // The lanes of one load, or of one store, have no bank conflicts.
    const int half = four & 1, odd = four >> 1 & 1, tile = four >> 2;
    const uint32_t line = tile * 256 + odd * 128;
    Pack<uint32_t, 4> words[4];
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      words[i] = load_shared_16<uint32_t>(from + (line + ((half * 4 + i) ^ (odd + 2 * (tile & 1))) * 16));
    }
    const int slot = tile % 4 * 2 + odd;
    const Shared16 rows = to + (tile / 4 * 1024 + slot * 32 + (half ^ (slot >> 2)) * 16);
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      store_shared_16(rows + i * 256, Pack<uint32_t, 4>{{words[0].v[i], words[1].v[i], words[2].v[i], words[3].v[i]}});
    }
  }
}

#if defined(HEDDLE_HOPPER_CODE)
/// wgmma descriptor of 32-byte rows with the halves of every second four exchanged: eight rows, then the next eight.
__device__ __forceinline__ uint64_t short_rows(Shared16 tile) {
  constexpr uint64_t swizzle_32 = uint64_t{3} << 62, next_eight_rows = uint64_t{256 / 16} << 32, unused = uint64_t{1} << 16;
  return swizzle_32 | next_eight_rows | unused | ((tile.address & 0x3ffff) >> 4);
}
#endif

/// A block computes a tile, as in matmul_int8_kernel.cuh. No step of k and no chunk of columns is cut off.
template <class OrderA, class OrderB, class Tile, class Epilogue>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    matmul_int8_wgmma(const Int8Shape shape, const uint32_t tiles_m, const uint32_t tiles_n, const bool constant_b,
                      const Int8Operands operands, const Epilogue epilogue) {
#if defined(HEDDLE_HOPPER_CODE)
  HEDDLE_DYNAMIC_SHARED(shared);
  const int64_t column0 = static_cast<int64_t>(blockIdx.x % tiles_n) * Tile::columns;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x / tiles_n % tiles_m) * Tile::rows;
  const int64_t batch = blockIdx.x / tiles_n / tiles_m;
  const int group = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  const int steps = static_cast<int>(Tile::steps(shape.k));
  // A stage is refilled two steps after its wgmmas were issued, so that one step's wgmmas are always in flight.
  constexpr int ahead = Tile::stages - 2;
  constexpr int early = Tile::turned ? 1 : 0;  // steps between the arrival of copies and their wgmmas
  static_assert(Tile::turned == OrderB::mixes_rows, "what mixes rows is turned");
  const auto stage_at = [&](int stage) { return shared + stage * Tile::stage_bytes; };

  // Measured: copies that check whether their words are within k leave the wgmmas more room than copies without the check.
  const Int8Copies<OrderA, Int8Use::rows, Tile::rows, Tile::panels, Tile::threads, false> a_copies(
      operands.a, batch * operands.a_batch, operands.a_pitch, row0, shape.m, shape.k);
  const Int8Copies<OrderB, Int8Use::turned_columns, Tile::columns, Tile::panels, Tile::threads, false> b_copies(
      operands.b, batch * operands.b_batch, operands.b_pitch, column0, shape.n, shape.k);
  if (!constant_b) wait_for_producers();
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < steps) b_copies.start(stage_at(s) + Tile::b_at, s);
  }
  const int64_t row = row0 + group * Tile::group_rows + threadIdx.x % warpgroup_threads / 32 * 16 + threadIdx.x % 32 / 4;
  const int64_t column = column0 + threadIdx.x % 4 * 8;
  // Prefetched once for all rows, as in matmul_int8_kernel.cuh.
  if (row < Tile::piece_rows && batch == 0 && column < shape.n) prefetch_constants(epilogue, static_cast<int>(column), 0);

  // The order matters, for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < steps) a_copies.start(stage_at(s), s);
    copy_async_commit();
  }

  const uint64_t a_rows = short_rows(shared + group * Tile::group_rows * 32);
  const uint64_t b_rows = short_rows(shared + (Tile::turned ? Tile::turned_at : Tile::b_at));
  int sums[Tile::row_pieces][4 * Tile::column_groups][4] = {};
  if constexpr (Tile::turned) {
    copy_async_wait<ahead - 1>();
    __syncthreads();
    turn_columns<Tile>(stage_at(0) + Tile::b_at, shared + Tile::turned_at);
  }
  int stage = 0, free_stage = ahead, turned = 0;
  for (int s = 0; s < steps; ++s) {
    wait_products<1>();
    copy_async_wait<ahead - 1 - early>();
    publish_to_products();
    __syncthreads();
    begin_products();
    HEDDLE_UNROLL
    for (int panel = 0; panel < Tile::panels; ++panel) {
      const uint64_t a_at = (stage * Tile::stage_bytes + panel * Tile::a_panel_bytes) / 16;
      const int b_stage = Tile::turned ? turned * Tile::turned_bytes : stage * Tile::stage_bytes;
      const uint64_t b_at = (b_stage + panel * Tile::b_panel_bytes) / 16;
      HEDDLE_UNROLL
      for (int i = 0; i < Tile::row_pieces; ++i) {
        multiply_narrow<signed char>(sums[i], a_rows + a_at + i * (Tile::piece_rows * 32 / 16), b_rows + b_at);
      }
    }
    commit_products();
    if (s + ahead < steps) {
      a_copies.start(stage_at(free_stage), s + ahead);
      b_copies.start(stage_at(free_stage) + Tile::b_at, s + ahead);
    }
    copy_async_commit();
    stage = stage + 1 == Tile::stages ? 0 : stage + 1;
    if constexpr (Tile::turned) {
      turned = turned + 1 == Tile::turned_steps ? 0 : turned + 1;
      if (s + 1 < steps) {
        turn_columns<Tile>(stage_at(stage) + Tile::b_at, shared + (Tile::turned_at + turned * Tile::turned_bytes));
      }
    }
    free_stage = free_stage + 1 == Tile::stages ? 0 : free_stage + 1;
  }
  wait_products<0>();
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::row_pieces; ++i) pin(sums[i]);
  const Int8Output<Tile, true, Epilogue> output(epilogue, batch * shape.m + row, shape.m - row, column, shape.n);
  output.run(sums);
#endif
}

}  // namespace heddle

#endif

#endif
