// The fallback matmul: every storage type, every m, n and k, every alignment. 64 x 64 tiles, plain multiply-adds in float32, or in int32
// for int8. It serves float32 and rows that tensor cores cannot read.
#ifndef HEDDLE_MATMUL_SIMPLE_CUH
#define HEDDLE_MATMUL_SIMPLE_CUH

#include "matmul_epilogue.cuh"
#include "vector.cuh"

namespace heddle {

/// A block computes `edge` rows and columns, `depth` of k at a time; a thread computes two rows of eight columns.
struct SimpleTile {
  static constexpr int edge = 64;
  static constexpr int depth = 16;
  static constexpr int threads = 256;
  static constexpr int rows = 2;
  static constexpr int columns = 8;
  static constexpr int load = 4;           // elements of each operand that a thread loads at a time
  static constexpr int stride = edge + 4;  // per k slice; the padding spreads the transposing stores over the banks
};
static_assert(SimpleTile::edge * SimpleTile::depth == SimpleTile::threads * SimpleTile::load, "one load a thread");

/// Loads the thread's elements of a 64 x 16 piece of `tensor` (rows x k): zero beyond either end.
template <class T>
__device__ __forceinline__ Chunk<T, SimpleTile::load> load_piece(const In<T>& tensor, int64_t row0, int64_t rows, int64_t k0,
                                                                 int64_t k) {
  const int64_t row = row0 + threadIdx.x * SimpleTile::load / SimpleTile::depth;
  const int64_t first = k0 + threadIdx.x * SimpleTile::load % SimpleTile::depth;
  const int64_t left = row < rows && first < k ? k - first : 0;
  const int valid = static_cast<int>(left < SimpleTile::load ? left : SimpleTile::load);
  return load_chunk<SimpleTile::load>(tensor, row * k + first, valid);
}

/// `Whole`: no chunk of columns is cut off. With bounds of more than one block per multiprocessor ptxas spills a register.
template <class T, bool Whole, class Epilogue>
__global__ void __launch_bounds__(SimpleTile::threads, 1) matmul_simple(const int64_t m, const int64_t n, const int64_t k,
                                                                        const int64_t tiles_m, const In<T> a, const In<T> b,
                                                                        const Epilogue epilogue) {
  using Tile = SimpleTile;
  using Call = EpilogueCall<Epilogue>;
  static_assert(Epilogue::VEC == Tile::columns, "an epilogue takes eight columns");
  HEDDLE_SHARED(SumOf<T>, a_piece, Tile::depth * Tile::stride);
  HEDDLE_SHARED(SumOf<T>, b_piece, Tile::depth * Tile::stride);
  const int64_t row0 = blockIdx.x % tiles_m * Tile::edge;
  const int64_t column0 = blockIdx.x / tiles_m * Tile::edge;
  const int loaded_row = threadIdx.x * Tile::load / Tile::depth;
  const int loaded_k = threadIdx.x * Tile::load % Tile::depth;
  const int row = threadIdx.x / (Tile::edge / Tile::columns) * Tile::rows;
  const int column = threadIdx.x % (Tile::edge / Tile::columns) * Tile::columns;

  if (threadIdx.x * Tile::columns < Tile::edge && column0 + column < n) {
    prefetch_constants(epilogue, static_cast<int>(column0) + column, 0);
  }
  // The order matters, for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  SumOf<T> sums[Tile::rows][Tile::columns] = {};
  auto a_next = load_piece(a, row0, m, 0, k);
  auto b_next = load_piece(b, column0, n, 0, k);
  for (int64_t k0 = 0; k0 < k; k0 += Tile::depth) {
    HEDDLE_UNROLL
    for (int i = 0; i < Tile::load; ++i) {
      a_piece[(loaded_k + i) * Tile::stride + loaded_row] = static_cast<SumOf<T>>(a_next[i]);
      b_piece[(loaded_k + i) * Tile::stride + loaded_row] = static_cast<SumOf<T>>(b_next[i]);
    }
    __syncthreads();
    // The loads of the next piece are in flight while this one is multiplied.
    a_next = load_piece(a, row0, m, k0 + Tile::depth, k);
    b_next = load_piece(b, column0, n, k0 + Tile::depth, k);
    HEDDLE_UNROLL
    for (int inner = 0; inner < Tile::depth; ++inner) {
      SumOf<T> b_values[Tile::columns];
      HEDDLE_UNROLL
      for (int j = 0; j < Tile::columns; ++j) b_values[j] = b_piece[inner * Tile::stride + column + j];
      HEDDLE_UNROLL
      for (int i = 0; i < Tile::rows; ++i) {
        const SumOf<T> a_value = a_piece[inner * Tile::stride + row + i];
        HEDDLE_UNROLL
        for (int j = 0; j < Tile::columns; ++j) sums[i][j] += a_value * b_values[j];
      }
    }
    __syncthreads();
  }
  const int64_t left = n - column0 - column;
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::rows; ++i) {
    if (left <= 0 || row0 + row + i >= m) continue;
    const int valid = static_cast<int>(left < Tile::columns ? left : Tile::columns);
    const int64_t own_row = row0 + row + i;
    const int own_column = static_cast<int>(column0) + column;
    const auto loaded = Call::template load<Whole>(epilogue, own_row, own_column, valid);
    Call::template finish<Whole>(epilogue, own_row, own_column, valid, sums[i], loaded);
  }
}

/// Enqueues the matmul for any shape. `name`: the kernel's name in messages. Refuses more than 2^31 - 1 tiles.
template <class T, class Epilogue>
int32_t launch_matmul_simple(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                             In<T> a, In<T> b, Epilogue epilogue) {
  const int64_t tiles_m = (m + SimpleTile::edge - 1) / SimpleTile::edge;
  const int64_t tiles_n = (n + SimpleTile::edge - 1) / SimpleTile::edge;
  if (tiles_n > 0 && tiles_m > INT32_MAX / tiles_n) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld x %lld tiles exceed the 2147483647 blocks of a launch", name,
                static_cast<long long>(tiles_m), static_cast<long long>(tiles_n));
  }
  LaunchConfig config{name, dim3(static_cast<unsigned int>(tiles_m * tiles_n)), dim3(SimpleTile::threads), 0, Sync::block};
  config.starts_early = true;
  const bool whole = n % SimpleTile::columns == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue);
  return launch(queue, error, config, whole ? matmul_simple<T, true, Epilogue> : matmul_simple<T, false, Epilogue>, m, n, k,
                tiles_m, a, b, epilogue);
}

}  // namespace heddle

#endif
