// Matmuls on tensor cores: the main loop of matmul_mma.cuh for one or several right factors and many matrices. A block's columns are
// distributed over the matmuls, so that all of them multiply the same tile of the left factor. A factor is copied where it may be. One that
// is computed is read, computed, rounded to the element type and stored at the place of a copy; so is one whose rows are not aligned.
#ifndef HEDDLE_MATMUL_PRODUCTS_MMA_CUH
#define HEDDLE_MATMUL_PRODUCTS_MMA_CUH

#include "matmul_factor.cuh"
#include "matmul_mma_choice.cuh"

namespace heddle {

/// Rows of a factor as the main loop brings them. `Aligned`: rows that may be copied are aligned to words.
template <class Slots, int Which, bool Aligned>
using BroughtRows = std::conditional_t<Aligned, decltype(std::declval<const Slots&>().copy_of(Factor<Which>(), int64_t())), NotCopied>;

/// A factor's part of the pipeline: this thread's share of Count rows from `row0` on, of which `rows` exist in the matrix. `Brought`: as
/// BroughtRows says.
template <int Which, int Count, int Threads, bool Whole, class Slots, class Brought>
class FactorStages;

template <int Which, int Count, int Threads, bool Whole, class Slots, class T>
class FactorStages<Which, Count, Threads, Whole, Slots, CopiedRows<T>> {
 public:
  __device__ __forceinline__ FactorStages(const Slots& slots, int64_t matrix, int64_t row0, int64_t rows, int64_t k)
      : FactorStages(slots.copy_of(Factor<Which>(), matrix), row0, rows, k) {}
  __device__ __forceinline__ void find(const Slots&) {}
  __device__ __forceinline__ void start(const Slots&, Shared16 to, int s) const { copies_.start(to, s); }

 private:
  // The elements before the matrix are a whole number of rows.
  __device__ __forceinline__ FactorStages(const CopiedRows<T>& from, int64_t row0, int64_t rows, int64_t k)
      : copies_(from.tensor, from.first / k + row0, from.first / k + rows, 0, k) {}

  OperandCopies<T, Count, Threads, Whole> copies_;
};

template <int Which, int Count, int Threads, bool Whole, class Slots>
class FactorStages<Which, Count, Threads, Whole, Slots, NotCopied> {
 public:
  __device__ __forceinline__ FactorStages(const Slots&, int64_t matrix, int64_t row0, int64_t rows, int64_t k)
      : matrix_(matrix),
        at_(static_cast<int>(row0) + static_cast<int>(threadIdx.x) / words),
        rows_(static_cast<int>(rows)),
        length_(static_cast<int>(k)),
        first_(static_cast<int>(threadIdx.x) % words * 8) {
    const int row = static_cast<int>(threadIdx.x) / words, word = static_cast<int>(threadIdx.x) % words;
    place_ = static_cast<uint32_t>(row * step_row_bytes + (word ^ row % 8) * 16);
  }
  /// Computes the precomputed values of the rows; the threads of a row synchronise.
  __device__ __forceinline__ void find(const Slots& slots) {
    HEDDLE_UNROLL
    for (int i = 0; i < per_thread; ++i) {
      if (exists(i)) known_[i].find(slots, WarpTeam<words, row_step>(), matrix_, at_ + i * row_step);
    }
  }
  __device__ __forceinline__ void start(const Slots& slots, Shared16 to, int s) const {
    HEDDLE_UNROLL
    for (int i = 0; i < per_thread; ++i) {
      float values[8];
      const int k = s * step_elements<Element> + first_;
      factor_chunk<Which>(slots, known_[i].template of<Which>(), exists(i), matrix_, at_ + i * row_step, k, length_, values);
      Pack<Element, 8> pack;
      round_into(pack, values);
      store_shared_16(to + (place_ + static_cast<uint32_t>(i * row_step * step_row_bytes)), pack);
    }
  }

 private:
  using Element = typename Slots::Element;
  static_assert(sizeof(Element) == 2, "a word holds the eight elements of a chunk");
  static constexpr int words = step_row_bytes / 16;  // per row of a stage, one chunk each
  static constexpr int row_step = Threads / words;
  static constexpr int per_thread = Count / row_step;
  static_assert(Count % row_step == 0 && row_step % 8 == 0, "every thread computes as much, at one place of the permutation");

  __device__ __forceinline__ bool exists(int i) const { return at_ + i * row_step < rows_; }

  int64_t matrix_;
  int at_, rows_, length_, first_;
  uint32_t place_;
  FactorRows<Slots, Which, 1> known_[per_thread] = {};
};

/// The right factors' parts of a stage, concatenated.
template <int First, int Left, int Count, int Threads, bool Whole, bool Aligned, class Slots>
struct RightStages {
  FactorStages<First, Count, Threads, Whole, Slots, BroughtRows<Slots, First, Aligned>> own;
  RightStages<First + 1, Left - 1, Count, Threads, Whole, Aligned, Slots> others;

  __device__ __forceinline__ RightStages(const Slots& slots, int64_t matrix, int64_t row0, int64_t rows, int64_t k)
      : own(slots, matrix, row0, rows, k), others(slots, matrix, row0, rows, k) {}
  __device__ __forceinline__ void find(const Slots& slots) {
    own.find(slots);
    others.find(slots);
  }
  __device__ __forceinline__ void start(const Slots& slots, Shared16 to, int s) const {
    own.start(slots, to, s);
    others.start(slots, to + Count * step_row_bytes, s);
  }
};
template <int First, int Count, int Threads, bool Whole, bool Aligned, class Slots>
struct RightStages<First, 0, Count, Threads, Whole, Aligned, Slots> {
  __device__ __forceinline__ RightStages(const Slots&, int64_t, int64_t, int64_t, int64_t) {}
  __device__ __forceinline__ void find(const Slots&) {}
  __device__ __forceinline__ void start(const Slots&, Shared16, int) const {}
};

/// A block computes a tile of every matmul of one matrix. `Whole`: no step of k and no chunk of columns is cut off. `Aligned`: rows that may
/// be copied are aligned to words.
template <class Tile, bool Whole, bool Aligned, class Slots>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    matmul_products_mma(const int64_t m, const int64_t n, const int64_t k, const uint32_t tiles_m, const Slots slots) {
  HEDDLE_DYNAMIC_SHARED(dynamic);
  Shared16 shared = dynamic;
  keep(shared);
  using T = typename Slots::Element;
  using Sum = typename Slots::Sum;
  constexpr int count = Slots::PRODUCTS, columns = Tile::columns / count;
  static_assert(Tile::columns % count == 0 && columns % 16 == 0 && Tile::warps_n == 1 && Tile::warps_k == 1,
                "each product has whole pieces of a warp's columns");
  const int64_t row0 = static_cast<int64_t>(blockIdx.x % tiles_m) * Tile::rows;
  const int64_t matrix = blockIdx.x / tiles_m;
  const int64_t column0 = static_cast<int64_t>(blockIdx.y) * columns;
  const int steps = static_cast<int>(steps_of<T>(k));
  const int live = static_cast<int>(m - row0 < Tile::rows ? m - row0 : Tile::rows), groups = (live + 7) / 8;

  // A stage holds the rows of the left factor, then those of each right one.
  constexpr int ahead = Multiplier<T, Tile>::ahead;
  constexpr uint32_t b_at = Tile::rows * step_row_bytes;
  FactorStages<0, Tile::rows, Tile::threads, Whole, Slots, BroughtRows<Slots, 0, Aligned>> a_stages(slots, matrix, row0, m, k);
  RightStages<1, count, columns, Tile::threads, Whole, Aligned, Slots> b_stages(slots, matrix, column0, n, k);
  constexpr int chunks = columns / 8;
  const int own_chunks = live * chunks;
  const auto valid_in = [&](int chunk) {
    const int64_t left = n - column0 - chunk % chunks * 8;
    return chunk >= own_chunks || left <= 0 ? 0 : Whole || left >= 8 ? 8 : static_cast<int>(left);
  };
  const auto row_of = [&](int chunk) { return matrix * m + row0 + chunk / chunks; };
  const auto column_of = [&](int chunk) { return static_cast<int>(column0) + chunk % chunks * 8; };
  const int first_chunk = static_cast<int>(threadIdx.x);
  if (valid_in(first_chunk) > 0) prefetch_constants(slots, column_of(first_chunk), 0);
  Multiplier<T, Tile> multiplier(shared);

  // The order matters, for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  a_stages.find(slots);
  b_stages.find(slots);
  const auto start = [&](int s, int stage) {
    const Shared16 to = shared + static_cast<uint32_t>(stage * Tile::stage_bytes);
    a_stages.start(slots, to, s);
    b_stages.start(slots, to + b_at, s);
  };
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < steps) start(s, s);
    copy_async_commit();
  }
  multiplier.run(steps, start);

  // Sums overwrite stages that other warps may still read. Two neighbouring lanes hold two columns of two rows each. After an exchange the
  // even lane holds four columns of the upper row, the odd lane four of the lower.
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const bool odd = lane % 2 != 0;
  __syncthreads();
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::row_pieces; ++i) {
    const int group = warp * (Tile::warp_rows / 8) + 2 * i + (odd ? 1 : 0);
    HEDDLE_UNROLL
    for (int j = 0; j < 2 * Tile::column_pieces; ++j) {
      const Sum(&d)[4] = multiplier.sums[i][j];
      const Sum first = __shfl_xor_sync(0xffffffffu, odd ? d[0] : d[2], 1);
      const Sum second = __shfl_xor_sync(0xffffffffu, odd ? d[1] : d[3], 1);
      using Four = Pack<Sum, 4>;
      const Four four = odd ? Four{{first, second, d[2], d[3]}} : Four{{d[0], d[1], first, second}};
      if (group < groups) store_shared_16(shared + (static_cast<uint32_t>(group * Tile::group_bytes) + piece_place(j, lane / 4) + lane % 4 / 2 * 16), four);
    }
  }
  __syncthreads();
  for (int chunk = first_chunk; chunk < own_chunks; chunk += Tile::threads) {
    const int valid = valid_in(chunk);
    if (valid == 0 && !Slots::PARTS) continue;
    const int row = chunk / chunks;
    Sum total[count][8];
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      const Shared16 from = shared + (static_cast<uint32_t>(row / 8 * Tile::group_bytes) + piece_place(p * chunks + chunk % chunks, row % 8));
      HEDDLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const auto four = load_shared_16<Sum>(from + half * 16);
        HEDDLE_UNROLL
        for (int c = 0; c < 4; ++c) total[p][4 * half + c] = four.v[c];
      }
    }
    if (valid > 0) {
      const auto loaded = slots.template load<Whole>(row_of(chunk), column_of(chunk), valid);
      finish_products<Whole>(slots, row_of(chunk), column_of(chunk), valid, total, loaded);
    }
    // Neighbouring threads have the same row; all of them take part, with existing columns or without.
    static_assert(!Slots::PARTS || chunks % 4 == 0, "four neighbours hold a group of columns");
    keep_products(slots, row_of(chunk), column_of(chunk), valid, total);
  }
}

/// The tiles for a number of matmuls: each has a multiple of 16 columns of every matmul.
template <int Products>
struct ProductsMmaTiles {
  using Small = MmaTile<64, 64, 4, 1, 1, 6, 2>;
  using Large = MmaTile<128, 128, 8, 1, 1, 5, 1>;
};
template <>
struct ProductsMmaTiles<3> {
  using Small = MmaTile<64, 96, 4, 1, 1, 5, 2>;
  using Large = Small;
};

/// True if tensor cores can take every factor: 16-bit factors always, int8 factors only unchanged from memory.
template <class Slots>
constexpr bool all_copied(std::integer_sequence<int>) {
  return true;
}
template <class Slots, int First, int... Others>
constexpr bool all_copied(std::integer_sequence<int, First, Others...>) {
  using Copied = decltype(std::declval<const Slots&>().copy_of(Factor<First>(), int64_t()));
  return !std::is_same_v<Copied, NotCopied> && all_copied<Slots>(std::integer_sequence<int, Others...>());
}
template <class Slots>
constexpr bool multiplies_by_mma = tensor_core_type<typename Slots::Element> && (!Slots::PARTS || Slots::PRODUCTS <= 3) &&
                                   (sizeof(typename Slots::Element) == 2 ||
                                    all_copied<Slots>(std::make_integer_sequence<int, Slots::PRODUCTS + 1>()));

/// True if some factor may be copied, if its rows are aligned.
template <class Slots, int... Which>
constexpr bool copies_any(std::integer_sequence<int, Which...>) {
  return (!std::is_same_v<BroughtRows<Slots, Which, true>, NotCopied> || ...);
}

template <class Slots, int... Which>
bool copies_all(const Slots& slots, int64_t k, std::integer_sequence<int, Which...>) {
  return (slots.copies(Factor<Which>(), k) && ...);
}

template <class Tile, bool Whole, bool Aligned, class Slots>
int32_t launch_products_tile(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m,
                             int64_t n, int64_t k, const Slots& slots) {
  constexpr int columns = Tile::columns / Slots::PRODUCTS;
  const int64_t tiles_m = (m + Tile::rows - 1) / Tile::rows, tiles_n = (n + columns - 1) / columns;
  const Count blocks = Count(tiles_m) * Count(matrices);
  constexpr int64_t most_n = 65535;
  if (blocks.is_overflow() || blocks.value > INT32_MAX || tiles_n > most_n) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld x %lld tiles of %lld matrices exceed the blocks of a launch", name,
                static_cast<long long>(tiles_m), static_cast<long long>(tiles_n), static_cast<long long>(matrices));
  }
  LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks.value), static_cast<unsigned int>(tiles_n)), dim3(Tile::threads),
                      Tile::shared_bytes(m, steps_of<typename Slots::Element>(k), 1), Sync::block};
  config.starts_early = true;
  return launch(queue, error, config, matmul_products_mma<Tile, Whole, Aligned, Slots>, m, n, k, static_cast<uint32_t>(tiles_m), slots);
}

/// Enqueues matmuls whose factors tensor cores multiply. Uses large tiles where there are enough of them for every multiprocessor.
template <class Slots>
int32_t launch_products_mma(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m, int64_t n,
                            int64_t k, const Slots& slots) {
  using T = typename Slots::Element;
  using Tiles = ProductsMmaTiles<Slots::PRODUCTS>;
  using Large = typename Tiles::Large;
  using Small = typename Tiles::Small;
  const bool whole = is_whole<T>(n, k, slots);
  if (!whole) return launch_products_tile<Small, false, true>(queue, error, name, matrices, m, n, k, slots);
  const MatmulDevice device = matmul_device();
  constexpr int columns = Large::columns / Slots::PRODUCTS;
  const int64_t tiles = (m + Large::rows - 1) / Large::rows * ((n + columns - 1) / columns) * matrices;
  const bool fits = Large::shared_bytes(m, steps_of<T>(k), 1) <= device.shared_bytes;
  if (fits && tiles >= device.multiprocessors) return launch_products_tile<Large, true, true>(queue, error, name, matrices, m, n, k, slots);
  return launch_products_tile<Small, true, true>(queue, error, name, matrices, m, n, k, slots);
}

/// Enqueues matmuls of 16-bit factors, some of whose rows are not aligned to words.
template <class Slots>
int32_t launch_products_unaligned(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m, int64_t n,
                                  int64_t k, const Slots& slots) {
  return launch_products_tile<typename ProductsMmaTiles<Slots::PRODUCTS>::Small, false, false>(queue, error, name, matrices, m, n, k, slots);
}

}  // namespace heddle

#endif
