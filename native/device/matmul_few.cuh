// The matmul for a handful of rows: as in matmul_rows.cuh a product takes as long as the weights take to arrive, but multiplying them by
// this many rows takes tensor cores. Columns of the output are the rows of a warp's products and its rows are their columns, eight at a
// time, so little is multiplied in vain. Fragments come straight from memory: which elements of k meet in a product does not matter as
// long as both factors agree, so a lane reads 16 bytes of a row of weights and the same 16 of a row of a. The warps of a block divide k,
// and their sums are added in order.
#ifndef HEDDLE_MATMUL_FEW_CUH
#define HEDDLE_MATMUL_FEW_CUH

#include "matmul_epilogue.cuh"
#include "matmul_pipeline.cuh"
#include "vector.cuh"

namespace heddle {

/// `Tiles` of 16 columns a block.
template <class T, int Tiles>
struct FewTile {
  static constexpr int tile_columns = 16, columns = Tiles * tile_columns, rows = 8;
  static constexpr int warps = 8, threads = 32 * warps;
  static constexpr int vec = 16 / static_cast<int>(sizeof(T));  // elements of k a lane reads at a time
  static constexpr int pieces = 2;                              // that a warp multiplies in a step, each of four lanes' words
  static constexpr int warp_k = pieces * 4 * vec, step = warps * warp_k;
  static constexpr int ahead = Tiles == 1 ? 2 : 1;              // steps whose weights are on their way
  static constexpr int chunks = rows * columns / 8;             // of eight columns that the epilogue is given, to a thread each
};

/// A block for each `columns` columns. Rows are aligned to 16 bytes. Two blocks share a multiprocessor; the steps of rows and columns that
/// epilogues of int8 read take more registers than that leaves.
template <class T, int Tiles, bool Whole, class Epilogue>
__global__ void __launch_bounds__(FewTile<T, Tiles>::threads, sizeof(T) == 1 ? 1 : 2)
    matmul_few(const int m, const int64_t n, const int k, const bool constant_b, const In<T> a, const In<T> b, const Epilogue epilogue) {
  using Tile = FewTile<T, Tiles>;
  using Call = EpilogueCall<Epilogue>;
  using Sum = SumOf<T>;
  using Words = Chunk<T, Tile::vec>;
  HEDDLE_SHARED(Sum, parts, Tile::warps * Tile::rows * Tile::columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * Tile::columns;
  const int along = warp * Tile::warp_k + lane % 4 * Tile::vec;  // the lane's first element of k
  // Columns and rows that do not exist repeat the last; nobody looks at what comes of them.
  int64_t weights_at[Tiles][2];
  HEDDLE_UNROLL
  for (int tile = 0; tile < Tiles; ++tile) {
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int64_t own = column + tile * Tile::tile_columns + half * 8 + lane / 4;
      weights_at[tile][half] = (own < n ? own : n - 1) * k + along;
    }
  }
  Words weights[Tile::ahead][Tiles][2][Tile::pieces];
  const auto fetch = [&](int step, Words(&to)[Tiles][2][Tile::pieces]) {
    HEDDLE_UNROLL
    for (int piece = 0; piece < Tile::pieces; ++piece) {
      const int further = step * Tile::step + piece * 4 * Tile::vec;
      const bool exists = along + further < k;
      HEDDLE_UNROLL
      for (int tile = 0; tile < Tiles; ++tile) {
        HEDDLE_UNROLL
        for (int half = 0; half < 2; ++half) {
          to[tile][half][piece] = {};
          if (exists) to[tile][half][piece] = load_chunk<Tile::vec, true>(b, weights_at[tile][half] + further, Tile::vec);
        }
      }
    }
  };

  if (!constant_b) wait_for_producers();
  const int steps = (k + Tile::step - 1) / Tile::step;
  HEDDLE_UNROLL
  for (int step = 0; step < Tile::ahead; ++step) fetch(step, weights[step]);
  // Thread t finishes eight columns of one row.
  const int own_row = static_cast<int>(threadIdx.x) / (Tile::columns / 8), own_chunk = static_cast<int>(threadIdx.x) % (Tile::columns / 8);
  const int64_t own_column = column + own_chunk * 8;
  const bool finishes = static_cast<int>(threadIdx.x) < Tile::chunks && own_row < m && own_column < n;
  const int valid = static_cast<int>(n - own_column < 8 ? n - own_column : 8);
  if (finishes && own_row == 0) prefetch_constants(epilogue, static_cast<int>(own_column), 0);
  if (constant_b) wait_for_producers();
  release_consumers();
  typename Call::Loaded loaded = {};
  if (finishes) loaded = Call::template load<Whole>(epilogue, own_row, static_cast<int>(own_column), valid);

  Sum sums[Tiles][4] = {};
  const int64_t rows_at = static_cast<int64_t>(min(lane / 4, m - 1)) * k + along;
  for (int first = 0; first < steps; first += Tile::ahead) {
    HEDDLE_UNROLL
    for (int next = 0; next < Tile::ahead; ++next) {
      const int step = first + next;
      Words rows[Tile::pieces];
      HEDDLE_UNROLL
      for (int piece = 0; piece < Tile::pieces; ++piece) {
        const int further = step * Tile::step + piece * 4 * Tile::vec;
        rows[piece] = {};
        if (along + further < k) rows[piece] = load_chunk<Tile::vec, true>(a, rows_at + further, Tile::vec);
      }
      HEDDLE_UNROLL
      for (int piece = 0; piece < Tile::pieces; ++piece) {
        const auto& right = rows[piece].words;
        HEDDLE_UNROLL
        for (int pair = 0; pair < 4; pair += 2) {
          HEDDLE_UNROLL
          for (int tile = 0; tile < Tiles; ++tile) {
            const auto& upper = weights[next][tile][0][piece].words, &lower = weights[next][tile][1][piece].words;
            multiply_slice<T>(sums[tile], {upper[pair], lower[pair], upper[pair + 1], lower[pair + 1]}, {right[pair], right[pair + 1]});
          }
        }
      }
      fetch(step + Tile::ahead, weights[next]);
    }
  }
  // A lane has, of columns lane / 4 and 8 more of a tile, rows 2 (lane % 4) and the next.
  HEDDLE_UNROLL
  for (int tile = 0; tile < Tiles; ++tile) {
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = lane % 4 * 2 + i % 2, own = tile * Tile::tile_columns + i / 2 * 8 + lane / 4;
      parts[(warp * Tile::rows + row) * Tile::columns + own] = sums[tile][i];
    }
  }
  __syncthreads();
  if (!finishes) return;
  Sum total[8] = {};
  HEDDLE_UNROLL
  for (int w = 0; w < Tile::warps; ++w) {
    HEDDLE_UNROLL
    for (int j = 0; j < 8; ++j) total[j] += parts[(w * Tile::rows + own_row) * Tile::columns + own_chunk * 8 + j];
  }
  Call::template finish<Whole>(epilogue, own_row, static_cast<int>(own_column), valid, total, loaded);
}

namespace few {

/// The most rows.
constexpr int64_t most_rows = 8;

template <int Tiles, class T, class Epilogue>
int32_t launch_columns(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k, In<T> a, In<T> b,
                       Epilogue epilogue, bool constant_b) {
  using Tile = FewTile<T, Tiles>;
  const int64_t blocks = (n + Tile::columns - 1) / Tile::columns;
  constexpr int64_t most_k = INT32_MAX - (Tile::ahead + 1) * Tile::step;
  if (blocks > INT32_MAX || k > most_k) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld, allowed are %lld of k and 2147483647 times %d of n", name,
                static_cast<long long>(n), static_cast<long long>(k), static_cast<long long>(most_k), Tile::columns);
  }
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Tile::threads), 0, Sync::block, true};
  const bool whole = n % 8 == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue);
  const auto run = [&](auto kernel) {
    return launch(queue, error, config, kernel, static_cast<int>(m), n, static_cast<int>(k), constant_b, a, b, epilogue);
  };
  return run(whole ? matmul_few<T, Tiles, true, Epilogue> : matmul_few<T, Tiles, false, Epilogue>);
}

}  // namespace few

/// Enqueues the matmul of at most few::most_rows rows. Refuses more blocks than a grid has. Blocks of more columns read a less often;
/// those of fewer are for products that make less than two of the others for each of the `multiprocessors`.
template <class T, class Epilogue>
int32_t launch_matmul_few(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k, In<T> a, In<T> b,
                          Epilogue epilogue, bool constant_b, int64_t multiprocessors) {
  if (n >= 2 * multiprocessors * FewTile<T, 2>::columns) {
    return few::launch_columns<2>(queue, error, name, m, n, k, a, b, epilogue, constant_b);
  }
  return few::launch_columns<1>(queue, error, name, m, n, k, a, b, epilogue, constant_b);
}

}  // namespace heddle

#endif
