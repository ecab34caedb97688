// Matmul for hundreds of rows on Hopper, where all tiles run at once and a launch is short: a block computes one tile, the narrowest with
// which they do. Blocks wait for no neighbours, which matters more here than the reads that clusters would save.
#ifndef HEDDLE_WGMMA_SINGLE_CUH
#define HEDDLE_WGMMA_SINGLE_CUH

#include "matmul_epilogue.cuh"
#include "wgmma_tile.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// A tile of 128 rows and `Columns`: eight warps multiply, a ninth starts the copies.
template <int Columns>
struct SingleTile {
  static constexpr int rows = 128;
  static constexpr int columns = Columns;
  static constexpr int block_rows = 64;  // of one wgmma
  static constexpr int multiplying = rows / block_rows * warpgroup_threads;
  static constexpr int threads = multiplying + 32;
  static constexpr uint32_t row_bytes = box_row_bytes;
  static constexpr uint32_t a_bytes = rows * row_bytes, b_bytes = columns * row_bytes, stage_bytes = a_bytes + b_bytes;
  static constexpr uint32_t barrier_bytes = 16;  // per stage: one for full, one for empty
  static constexpr uint32_t shared_limit = 227 * 1024;
  static constexpr int stages = static_cast<int>(shared_limit / (stage_bytes + barrier_bytes));
  static constexpr uint32_t shared_bytes = stages * (stage_bytes + barrier_bytes);
  static constexpr int chunks = rows * columns / 8 / multiplying;  // per thread
};

/// Parameters of a launch.
struct SingleWork {
  int m, n, steps;  // steps of 128 bytes along k
  bool read_b_early;
};

#if defined(HEDDLE_HOPPER_CODE)

template <class Tile>
__device__ __forceinline__ TileOrigin single_origin() {
  return {static_cast<int>(blockIdx.y) * Tile::rows, static_cast<int>(blockIdx.x) * Tile::columns};
}

/// Fills the ring with the block's tiles of a and b. Called by one thread. `Permuted`: as in copy_right().
template <class T, class Tile, bool Permuted>
__device__ __forceinline__ void fill_single_ring(Ring<Tile> ring, const CUtensorMap& a_map, const CUtensorMap& b_map,
                                                 const SingleWork& work) {
  const TileOrigin origin = single_origin<Tile>();
  const auto start_b = [&](const Ring<Tile>& at, int step) {
    at.full().arrive_expecting(Tile::stage_bytes);
    copy_right<Tile::columns, Permuted>(at.b(), b_map, at.full(), step * box_columns<T>, origin.column, work.n);
  };
  const int early = work.read_b_early ? min(work.steps, Tile::stages) : 0;
  Ring<Tile> ahead = ring;
  for (int step = 0; step < early; ++step, ahead.advance()) start_b(ahead, step);
  wait_for_producers();
  for (int step = 0; step < work.steps; ++step, ring.advance()) {
    if (step >= early) {
      ring.empty().wait(ring.parity ^ 1);
      start_b(ring, step);
    }
    copy_box(ring.a(), a_map, ring.full(), step * box_columns<T>, origin.row);
  }
}

/// Multiplies the 64 rows of one warpgroup. A stage is released once the next step's wgmmas are in flight, so that the tensor cores always
/// have some. `Pair`: blocks of the cluster whose copies wait for the release, if there is one.
template <class T, class Tile, int Pair = 1>
__device__ __forceinline__ void multiply_single(SumOf<T> (&sums)[Tile::columns / 2], Ring<Tile> ring, int steps) {
  // Uniform in a warp to the compiler, so that the descriptors of the tiles are computed once per warp.
  const uint32_t group = __shfl_sync(0xffffffffu, threadIdx.x / warpgroup_threads, 0);
  const uint32_t first_row = group * Tile::block_rows;
  const uint32_t thread = threadIdx.x % warpgroup_threads;
  PhaseBarrier previous{};
  for (int step = 0; step < steps; ++step) {
    ring.full().wait(ring.parity);
    begin_products();
    HEDDLE_UNROLL
    for (int slice = 0; slice < 4; ++slice) {
      multiply_rows<T, Tile::columns>(sums, swizzled_rows(ring.a() + first_row * Tile::row_bytes) + 2 * slice,
                                      swizzled_rows(ring.b()) + 2 * slice, step | slice);
    }
    commit_products();
    wait_products<1>();
    if (thread < Pair && step > 0 && (Pair == 1 || step - 1 + Tile::stages < steps)) previous.arrive_at(thread);
    previous = ring.empty();
    ring.advance();
  }
  wait_products<0>();
  pin(sums);
}

/// The chunks of 8 columns that a thread passes to the epilogue; permuted_map() makes the 8 neighbours, or an exchange where chunks are not
/// `Whole`. Two of them are in the same columns, 8 rows apart.
template <class Tile, bool Whole, class Epilogue>
struct SingleChunks {
  using Call = EpilogueCall<Epilogue>;
  static constexpr int vec = 8;
  // The loaded operands of a batch must fit beside the sums.
  static constexpr int words = static_cast<int>((sizeof(typename Call::Loaded) + 3) / 4), most_words = 64;
  static constexpr int batch = Tile::chunks / (Tile::chunks / 2 * words > most_words ? 4 : 2);

  const Epilogue& epilogue;
  int rows, columns;  // of the output
  int row, column;    // the thread's first
  typename Call::Loaded loaded[batch];

  __device__ __forceinline__ SingleChunks(const Epilogue& epilogue, const SingleWork& work)
      : epilogue(epilogue), rows(work.m), columns(work.n) {
    const TileOrigin origin = single_origin<Tile>();
    const int thread = static_cast<int>(threadIdx.x);
    row = origin.row + thread / 32 * 16 + thread % 32 / 4;
    column = origin.column + thread % 4 * vec;
  }

  __device__ __forceinline__ int row_of(int chunk) const { return row + chunk % 2 * 8; }
  __device__ __forceinline__ int column_of(int chunk) const { return column + chunk / 2 * permuted_rows; }

  __device__ __forceinline__ int valid_in(int chunk) const { return Whole ? vec : min(columns - column_of(chunk), vec); }

  /// Loads the operands of a chunk. Beyond the output's edge it loads those at the edge.
  __device__ __forceinline__ typename Call::Loaded load(int chunk) const {
    const int at = min(column_of(chunk), columns - (Whole ? vec : 1));
    return Call::template load<Whole>(epilogue, min(row_of(chunk), rows - 1), at, Whole ? vec : min(columns - at, vec));
  }

  /// Starts the loads of the first batch, which overlap the matmul; there are no registers for more.
  __device__ __forceinline__ void load_first() {
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) loaded[i] = load(i);
  }

  /// All batches run through the same code: fully unrolled it would not fit the instruction cache.
  template <class S>
  __device__ __forceinline__ void finish(const S (&sums)[Tile::columns / 2]) {
    S values[Tile::chunks][vec];
    HEDDLE_UNROLL
    for (int chunk = 0; chunk < Tile::chunks; ++chunk) {
      HEDDLE_UNROLL
      for (int c = 0; c < vec; ++c) values[chunk][c] = sums[chunk / 2 * 16 + c / 2 * 4 + chunk % 2 * 2 + c % 2];
    }
    HEDDLE_ROLLED
    for (int done = 0; done < Tile::chunks; done += batch) {
      HEDDLE_UNROLL
      for (int i = 0; i < batch; ++i) {
        const int chunk = done + i;
        if constexpr (!Whole) exchange_in_quad(values[i]);
        if (row_of(chunk) < rows && column_of(chunk) < columns) {
          Call::template finish<Whole>(epilogue, row_of(chunk), column_of(chunk), valid_in(chunk), values[i], loaded[i]);
        }
        if (chunk + batch < Tile::chunks) loaded[i] = load(chunk + batch);
        HEDDLE_UNROLL
        for (int c = 0; c < vec; ++c) values[i][c] = values[i + batch][c];
      }
      HEDDLE_UNROLL
      for (int i = batch; i + batch < Tile::chunks; ++i) {
        HEDDLE_UNROLL
        for (int c = 0; c < vec; ++c) values[i][c] = values[i + batch][c];
      }
    }
  }
};

#endif

template <class T, class Tile, bool Whole, class Epilogue>
__global__ void __launch_bounds__(Tile::threads, 1)
    matmul_wgmma_single(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                        const SingleWork work, const Epilogue epilogue) {
#if defined(HEDDLE_HOPPER_CODE)
  HEDDLE_DYNAMIC_SHARED(tiles);
  const Ring<Tile> ring{tiles};
  if (threadIdx.x == 0) {
    prefetch_map(a_map);
    prefetch_map(b_map);
    for (int stage = 0; stage < Tile::stages; ++stage) {
      ring.full_of(stage).initialise(1);
      ring.empty_of(stage).initialise(Tile::multiplying / warpgroup_threads);
    }
    publish_barriers();
  }
  __syncthreads();
  if (threadIdx.x >= Tile::multiplying) {
    if (threadIdx.x == Tile::multiplying) fill_single_ring<T, Tile, Whole>(ring, a_map, b_map, work);
    return;
  }
  SingleChunks<Tile, Whole, Epilogue> chunks(epilogue, work);
  prefetch_constants(epilogue, min(chunks.column, work.n - (Whole ? 8 : 1)), 0);
  wait_for_producers();
  release_consumers();
  chunks.load_first();
  SumOf<T> sums[Tile::columns / 2];
  multiply_single<T>(sums, ring, work.steps);
  chunks.finish(sums);
#else
  __trap();
#endif
}

/// Enqueues the matmul with one block per tile, at most as many as a grid has. Requires operands that wgmma::can() accepts. `Whole`: all
/// chunks of the epilogue are whole.
template <class Tile, bool Whole, class T, class Epilogue>
int32_t launch_wgmma_single(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                            const In<T>& a, const In<T>& b, const Epilogue& epilogue, bool read_b_early) {
  CUtensorMap a_map, b_map;
  int32_t status = row_map(&a_map, error, name, a, m, k, Tile::rows);
  if (status == HEDDLE_OK) status = right_map<Whole>(&b_map, error, name, b, n, k, Tile::columns);
  if (status != HEDDLE_OK) return status;
  const auto divide_up = [](int64_t count, int64_t by) { return static_cast<int>((count + by - 1) / by); };
  const SingleWork work{static_cast<int>(m), static_cast<int>(n), divide_up(k, box_columns<T>), read_b_early};
  const dim3 grid(divide_up(n, Tile::columns), divide_up(m, Tile::rows));
  const LaunchConfig config{name, grid, dim3(Tile::threads), Tile::shared_bytes, Sync::block, true};
  return launch(queue, error, config, matmul_wgmma_single<T, Tile, Whole, Epilogue>, a_map, b_map, work, epilogue);
}

}  // namespace heddle

#endif

#endif
