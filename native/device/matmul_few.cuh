// The matmul for at most eight rows. As in matmul_rows.cuh it takes as long as the weights take to arrive, but multiplying them by this
// many rows requires tensor cores. The mma is transposed: its rows are columns of the output and its columns are rows of the output, eight
// at a time, so that little is computed in vain. The order of k within an mma does not matter as long as both factors agree. So a lane
// takes 16 bytes of a column of weights and the same elements of a row of the left factor, which it loads or computes. The warps of a block
// divide k, and their sums are added in order.
#ifndef HEDDLE_MATMUL_FEW_CUH
#define HEDDLE_MATMUL_FEW_CUH

#include "matmul_few_left.cuh"
#include "matmul_few_tile.cuh"
#include "matmul_mma_choice.cuh"

namespace heddle {

/// One block per `columns` columns of every matmul. Right factors are in memory, in rows aligned to 16 bytes. `constant`: nothing writes
/// them meanwhile. `Whole`: no chunk of the epilogue is cut off.
template <class Tile, bool Whole, class Slots>
__global__ void __launch_bounds__(Tile::threads, Whole ? Tile::resident : 1)
    matmul_few(const int m, const int64_t n, const int k, const bool constant, const Slots slots) {
  using T = typename Slots::Element;
  using Sum = typename Slots::Sum;
  using Ring = FewRing<Tile, Slots>;
  HEDDLE_DYNAMIC_SHARED(shared);
  HEDDLE_SHARED(Sum, parts, Tile::warps * Tile::rows * Tile::all_columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * Tile::columns;
  const Ring ring(shared, column, n, k);

  if (!constant) wait_for_producers();
  ring.fetch(slots, 0);
  // Thread t finishes eight columns of one row.
  const int own_row = static_cast<int>(threadIdx.x) / (Tile::columns / 8), own_chunk = static_cast<int>(threadIdx.x) % (Tile::columns / 8);
  const int64_t own_column = column + own_chunk * 8;
  const bool finishes = static_cast<int>(threadIdx.x) < Tile::chunks && own_row < m && own_column < n;
  const int valid = static_cast<int>(n - own_column < 8 ? n - own_column : 8);
  if (finishes && own_row == 0) prefetch_constants(slots, static_cast<int>(own_column), 0);
  // The order matters, for the reason given in matmul_mma.cuh.
  if (constant) wait_for_producers();
  release_consumers();
  typename Slots::Loaded loaded = {};
  const auto load = [&] {
    if (finishes) loaded = slots.template load<Whole>(own_row, static_cast<int>(own_column), valid);
  };
  if (Tile::loads_early) load();

  // Rows that do not exist repeat the last. Four lanes share one row.
  const FewLeft<Tile::warps, Slots> left(slots, m, min(lane / 4, m - 1), k);
  Sum sums[Tile::tiles][4] = {};
  const int count = ring.count();
  for (int i = 0; i < count; ++i) {
    // The left factor's elements for the sixteen bytes of a word, in their own type: `shares` times sixteen bytes.
    constexpr int shares = Ring::vec * static_cast<int>(sizeof(T)) / 16, share = Ring::vec / shares;
    uint32_t rows[Tile::words / 4][shares][4];
    HEDDLE_UNROLL
    for (int w = 0; w < Tile::words / 4; ++w) {
      HEDDLE_UNROLL
      for (int s = 0; s < shares; ++s) left.read(slots, ring.from(i) + (4 * w + lane % 4) * Ring::vec + s * share, rows[w][s]);
    }
    ring.fetch(slots, i + 1);
    ring.await();
    HEDDLE_UNROLL
    for (int w = 0; w < Tile::words / 4; ++w) {
      HEDDLE_UNROLL
      for (int tile = 0; tile < Tile::tiles; ++tile) {
        const auto upper = ring.read(i, tile, 0, 4 * w + lane % 4), lower = ring.read(i, tile, 1, 4 * w + lane % 4);
        HEDDLE_UNROLL
        for (int s = 0; s < shares; ++s) {
          uint32_t above[4], below[4];
          stored_words<T>(upper, s * share, above);
          stored_words<T>(lower, s * share, below);
          const auto& right = rows[w][s];
          HEDDLE_UNROLL
          for (int pair = 0; pair < 4; pair += 2) {
            multiply_slice<T>(sums[tile], {above[pair], below[pair], above[pair + 1], below[pair + 1]}, {right[pair], right[pair + 1]});
          }
        }
      }
    }
    // The piece after the next overwrites this one.
    __syncwarp();
  }
  if (!Tile::loads_early) load();
  // A lane holds rows 2 (lane % 4) and the next of columns lane / 4 and lane / 4 + 8 of a tile.
  HEDDLE_UNROLL
  for (int tile = 0; tile < Tile::tiles; ++tile) {
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int row = lane % 4 * 2 + i % 2, own = tile * Tile::tile_columns + i / 2 * 8 + lane / 4;
      parts[(warp * Tile::rows + row) * Tile::all_columns + own] = sums[tile][i];
    }
  }
  __syncthreads();
  // All threads add the parts of k and leave the sums in place of the first warp's: few threads finish, and one alone would take long.
  constexpr int all = Tile::rows * Tile::all_columns;
  for (int at = static_cast<int>(threadIdx.x); at < all; at += Tile::threads) {
    Sum sum = 0;
    HEDDLE_UNROLL
    for (int w = 0; w < Tile::warps; ++w) sum += parts[w * all + at];
    parts[at] = sum;
  }
  __syncthreads();
  if (!finishes) return;
  Sum total[Tile::products][8];
  HEDDLE_UNROLL
  for (int p = 0; p < Tile::products; ++p) {
    HEDDLE_UNROLL
    for (int j = 0; j < 8; ++j) total[p][j] = parts[own_row * Tile::all_columns + p * Tile::columns + own_chunk * 8 + j];
  }
  finish_products<Whole>(slots, own_row, static_cast<int>(own_column), valid, total, loaded);
}

namespace few {

template <class Tile, class Slots>
int32_t launch_tile(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k, bool constant,
                    const Slots& slots) {
  const int64_t blocks = (n + Tile::columns - 1) / Tile::columns;
  constexpr int64_t most_k = INT32_MAX - Tile::stages * Tile::warps * FewRing<Tile, Slots>::piece;
  if (n > INT32_MAX || k > most_k) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld, expected at most 2147483647 and %lld", name,
                static_cast<long long>(n), static_cast<long long>(k), static_cast<long long>(most_k));
  }
  // The limit of shared memory without opt-in also counts the kernel's static shared memory. With spare bytes, rings of exactly that size
  // opt in.
  constexpr uint32_t spare = 16;
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Tile::threads), Tile::ring_bytes + spare, Sync::block, true};
  const bool whole = n % 8 == 0 && slots.whole_chunks();
  const auto run = [&](auto kernel) {
    return launch(queue, error, config, kernel, static_cast<int>(m), n, static_cast<int>(k), constant, slots);
  };
  return run(whole ? matmul_few<Tile, true, Slots> : matmul_few<Tile, false, Slots>);
}

/// Enqueues matmuls of at most most_rows rows, whose right factors are in memory. Blocks are small in three cases: there are several per
/// multiprocessor, k is too short for the many warps of large blocks, or rows are computed, which takes registers that large blocks lack.
template <class Slots>
int32_t launch_stored(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k, bool constant,
                      const Slots& slots) {
  using Wide = FewTile<Slots, true>;
  using Left = decltype(slots.copy_of(Factor<0>(), int64_t()));
  if constexpr (Slots::PRODUCTS == 1 && !std::is_same_v<Left, NotCopied>) {
    using Large = FewTile<Slots, false>;
    const bool is_long = k >= Large::warps * FewRing<Large, Slots>::piece;
    if (is_long && n < 2 * matmul_device().multiprocessors * Wide::columns) {
      return launch_tile<Large>(queue, error, name, m, n, k, constant, slots);
    }
  }
  return launch_tile<Wide>(queue, error, name, m, n, k, constant, slots);
}

}  // namespace few

/// One matmul of factors in memory, as slots (documented in matmul_products.cuh).
template <class T, class Epilogue>
struct PlainSlots {
  using Sum = SumOf<T>;
  using Element = T;
  using Call = EpilogueCall<Epilogue>;
  using Loaded = typename Call::Loaded;
  static constexpr int PRODUCTS = 1;
  static constexpr bool PARTS = false;

  In<T> a, b;
  Epilogue epilogue;

  bool whole_chunks() const { return Call::whole_chunks(epilogue); }
  __device__ __forceinline__ void prefetch(int column) const { prefetch_constants(epilogue, column, 0); }
  template <bool Whole>
  __device__ __forceinline__ Loaded load(int64_t row, int column, int valid) const {
    return Call::template load<Whole>(epilogue, row, column, valid);
  }
  template <bool Whole>
  __device__ __forceinline__ void finish(int64_t row, int column, int valid, const Sum (&sums)[8], const Loaded& loaded) const {
    Call::template finish<Whole>(epilogue, row, column, valid, sums, loaded);
  }
  template <int Which>
  __host__ __device__ __forceinline__ CopiedRows<T> copy_of(Factor<Which>, int64_t) const {
    return {Which == 0 ? a : b, 0};
  }
  template <int Which>
  __host__ __device__ __forceinline__ CopiedRows<T> stored_of(Factor<Which> which, int64_t matrix) const {
    return copy_of(which, matrix);
  }
  template <int Which>
  bool copies(Factor<Which>, int64_t length) const {
    constexpr int word = 16;
    return length * static_cast<int64_t>(sizeof(T)) % word == 0 && (Which == 0 ? a : b).aligned(0, word);
  }
};

/// Enqueues the matmul of at most few::most_rows rows. Rows of a and b are aligned to 16 bytes.
template <class T, class Epilogue>
int32_t launch_matmul_few(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k, In<T> a, In<T> b,
                          const Epilogue& epilogue, bool constant_b) {
  return few::launch_stored(queue, error, name, m, n, k, constant_b, PlainSlots<T, Epilogue>{a, b, epilogue});
}

}  // namespace heddle

#endif
