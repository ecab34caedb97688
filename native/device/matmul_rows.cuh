// The matmul for up to four rows. Decoding multiplies one row, or some, by every weight, so a matmul takes as long as the weights take to
// arrive, and tensor cores do not pay off. A warp loads pieces of eight columns of weights along k, all in flight at once. Where nothing
// writes the weights, it does so before the previous launch has finished. It multiplies them by the rows and reduces over its lanes. The
// warps of a block divide k, and their sums are added in the order of k.
#ifndef HEDDLE_MATMUL_ROWS_CUH
#define HEDDLE_MATMUL_ROWS_CUH

#include "matmul_epilogue.cuh"
#include "sharing.cuh"
#include "vector.cuh"

namespace heddle {

struct RowsTile {
  static constexpr int columns = 8;               // per block
  static constexpr int vec = 8;                   // elements of k per lane at a time
  static constexpr int warp_k = 32 * vec;
  static constexpr int most_warps = 8;
  static constexpr int few_warps = 4;  // of smaller blocks, one of which begins while another ends
  static constexpr int most_rows = 4;
  /// Blocks per multiprocessor that ptxas must allow for, 0 for no bound. For one more it spills a register or two on sm_80.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  static constexpr int resident = 1;
#else
  static constexpr int resident = 0;
#endif
  static constexpr int resident_few = 4;
};

/// Adds eight values over the lanes of a warp. Returns the sum of value (lane / 4), the same in four lanes.
__device__ __forceinline__ float sum_eight(float (&values)[8], int lane) {
  HEDDLE_UNROLL
  for (int half = 4; half > 0; half /= 2) {
    const bool upper = (lane & (4 * half)) != 0;
    HEDDLE_UNROLL
    for (int i = 0; i < half; ++i) {
      const float sent = upper ? values[i] : values[i + half], kept = upper ? values[i + half] : values[i];
      values[i] = kept + __shfl_xor_sync(0xffffffffu, sent, 4 * half);
    }
  }
  float sum = values[0];
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  return sum;
}

/// One block per eight columns. `Rows`: at least m; `Warps`: at least those of a block. k is a multiple of eight, and rows are aligned to
/// 16 bytes.
template <class T, int Rows, int Warps, bool Whole, class Epilogue>
__global__ void __launch_bounds__(32 * Warps, Warps == RowsTile::few_warps ? RowsTile::resident_few : RowsTile::resident)
    matmul_rows(const int m, const int64_t n, const int k, const bool constant_b, const In<T> a, const In<T> b, const Epilogue epilogue) {
  using Tile = RowsTile;
  using Call = EpilogueCall<Epilogue>;
  HEDDLE_SHARED(float, parts, Warps * Rows * Tile::columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * Tile::columns;
  const int64_t left = n - column;
  const int valid = static_cast<int>(left < Tile::columns ? left : Tile::columns);
  Chunk<T, Tile::vec> weights[Tile::columns];
  const auto fetch = [&](int at) {
    HEDDLE_UNROLL
    for (int j = 0; j < Tile::columns; ++j) {
      const int64_t row = column + (j < valid ? j : 0);
      weights[j] = load_chunk<Tile::vec, true>(b, row * k + at, Tile::vec);
    }
  };

  if (!constant_b) wait_for_producers();
  int at = static_cast<int>(threadIdx.x) * Tile::vec;
  if (at < k) fetch(at);
  if (threadIdx.x == 0) prefetch_constants(epilogue, static_cast<int>(column), 0);
  if (constant_b) wait_for_producers();
  release_consumers();
  const bool finishes = static_cast<int>(threadIdx.x) < m;
  typename Call::Loaded loaded = {};
  if (finishes) loaded = Call::template load<Whole>(epilogue, threadIdx.x, static_cast<int>(column), valid);
  float sums[Rows][Tile::columns] = {};
  const int step = warps * Tile::warp_k;
  for (; at < k; at += step) {
    Chunk<T, Tile::vec> rows[Rows];
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) rows[r] = load_chunk<Tile::vec, true>(a, static_cast<int64_t>(r < m ? r : 0) * k + at, Tile::vec);
    HEDDLE_UNROLL
    for (int r = 0; r < Rows; ++r) {
      HEDDLE_UNROLL
      for (int j = 0; j < Tile::columns; ++j) {
        HEDDLE_UNROLL
        for (int e = 0; e < Tile::vec; ++e) sums[r][j] += rows[r][e] * weights[j][e];
      }
    }
    if (at + step < k) fetch(at + step);
  }
  HEDDLE_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const float sum = sum_eight(sums[r], lane);
    if (lane % 4 == 0) parts[(warp * Rows + r) * Tile::columns + lane / 4] = sum;
  }
  __syncthreads();
  if (!finishes) return;
  const int r = static_cast<int>(threadIdx.x);
  float total[Tile::columns] = {};
  for (int w = 0; w < warps; ++w) {
    HEDDLE_UNROLL
    for (int j = 0; j < Tile::columns; ++j) total[j] += parts[(w * Rows + r) * Tile::columns + j];
  }
  Call::template finish<Whole>(epilogue, r, static_cast<int>(column), valid, total, loaded);
}

/// Shared memory that divides the blocks of one row evenly, where they fill the device. Among many blocks a multiprocessor one more or less
/// matters little.
inline uint32_t memory_of_one_row(int64_t blocks) {
  constexpr int64_t most_sharing = 4;
  return fills_shares(blocks) ? evenly_shared(blocks, 0, most_sharing) : 0;
}

/// Enqueues the matmul of at most `RowsTile::most_rows` rows. Refuses more than 2^31 - 1 blocks.
template <class T, class Epilogue>
int32_t launch_matmul_rows(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                           In<T> a, In<T> b, Epilogue epilogue, bool constant_b) {
  const int64_t blocks = (n + RowsTile::columns - 1) / RowsTile::columns;
  if (blocks > INT32_MAX || k > INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld, expected at most 2147483647 for k and eight times that for n", name,
                static_cast<long long>(n), static_cast<long long>(k));
  }
  // Small blocks have as many threads in total as large ones only where there are enough of them.
  const bool small = m == 1 && blocks >= 3 * multiprocessors_of_device();
  const int64_t wanted = (k + RowsTile::warp_k - 1) / RowsTile::warp_k, most = small ? RowsTile::few_warps : RowsTile::most_warps;
  const int64_t warps = wanted < most ? wanted : most;
  LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(static_cast<unsigned int>(32 * warps)), m == 1 ? memory_of_one_row(blocks) : 0, Sync::block};
  config.starts_early = true;
  const bool whole = n % RowsTile::columns == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue);
  const auto run = [&](auto kernel) {
    return launch(queue, error, config, kernel, static_cast<int>(m), n, static_cast<int>(k), constant_b, a, b, epilogue);
  };
  constexpr int rows = RowsTile::most_rows, many = RowsTile::most_warps, few = RowsTile::few_warps;
  if (small) return run(whole ? matmul_rows<T, 1, few, true, Epilogue> : matmul_rows<T, 1, few, false, Epilogue>);
  if (m == 1) return run(whole ? matmul_rows<T, 1, many, true, Epilogue> : matmul_rows<T, 1, many, false, Epilogue>);
  return run(whole ? matmul_rows<T, rows, many, true, Epilogue> : matmul_rows<T, rows, many, false, Epilogue>);
}

}  // namespace heddle

#endif
