// Products of a handful of rows whose factors are computed, such as weights of 8 or 4 bits with their scales: as matmul_few.cuh, the
// columns of a product are rows of what tensor cores multiply, and fragments are made where they are multiplied. Factors are read in whole
// chunks, of which a lane has many on their way at once; those that may not be go through matmul_products_rows.cuh.
#ifndef HEDDLE_MATMUL_PRODUCTS_FEW_CUH
#define HEDDLE_MATMUL_PRODUCTS_FEW_CUH

#include "matmul_factor.cuh"
#include "matmul_few.cuh"

namespace heddle {

/// A right factor of the handful's kernel: elements are read or computed where they are multiplied.
template <class Slots, int Which, class Rows = decltype(std::declval<const Slots&>().stored_of(Factor<Which>(), int64_t()))>
struct FewFactor {
  static constexpr bool is_stored = false;
  static constexpr int vec = 8;
};
/// Or they lie one behind the other: 16 bytes of a row are fetched as they are, before anyone needs them, and converted when they are
/// multiplied.
template <class Slots, int Which, class T>
struct FewFactor<Slots, Which, CopiedRows<T>> {
  using Stored = T;
  /// Of a type whose values tensor cores can take.
  static constexpr bool is_stored = std::is_same_v<T, typename Slots::Element> || std::is_same_v<T, signed char>;
  static constexpr int vec = is_stored ? 16 / static_cast<int>(sizeof(T)) : 8;
};

/// Whether all right factors are fetched as they lie, as many elements of each at a time.
template <class Slots, int... P>
constexpr bool few_stored(std::integer_sequence<int, P...>) {
  return ((FewFactor<Slots, P + 1>::is_stored && FewFactor<Slots, P + 1>::vec == FewFactor<Slots, 1>::vec) && ...);
}
template <class Slots>
constexpr bool few_stored() {
  return few_stored<Slots>(std::make_integer_sequence<int, Slots::PRODUCTS>());
}

/// Sixteen columns a block of each product. `Stored`: right factors are fetched a step ahead.
template <class Slots, bool Stored>
struct ProductsFewTile {
  static constexpr int products = Slots::PRODUCTS;
  static constexpr int columns = 16, rows = 8;
  static constexpr int warps = 8, threads = 32 * warps;
  static constexpr int vec = Stored ? FewFactor<Slots, 1>::vec : 8, piece = 4 * vec;  // of k: a lane's, and that of four lanes
  /// That a warp has under way at once, of every product: as many as there are registers for.
  static constexpr int pieces = Stored ? (products < 4 ? 4 / products : 1) : products < 4 ? 8 / products : 2;
  static constexpr int warp_k = pieces * piece, step = warps * warp_k;
  static constexpr int chunks = rows * columns / 8;  // of eight columns that the epilogue is given, to a thread each
};

/// Eight elements of a factor's row as a lane's words of a fragment, zeros behind the row's end; `Inside`: none lies there.
template <int Which, bool Inside, class Slots, class Row>
__device__ __forceinline__ void factor_words(const Slots& slots, const Row& row, int at, int along, int k, uint32_t (&words)[4]) {
  using Element = typename Slots::Element;
  float values[8];
  if constexpr (Inside) {
    slots.template chunk_of<true>(Factor<Which>(), row, 0, at, along, 8, values);
  } else {
    factor_chunk<Which, true>(slots, row, true, 0, at, along, k, values);
  }
  Pack<Element, 8> pack;
  round_into(pack, values);
  memcpy(words, &pack, sizeof pack);
}

/// Eight elements of a chunk from `first` on as words of a fragment of type Element, which has all values of the chunk's type.
template <class Element, class T, int Vec>
__device__ __forceinline__ void stored_words(const Chunk<T, Vec>& chunk, int first, uint32_t (&words)[4]) {
  if constexpr (std::is_same_v<T, Element>) {
    HEDDLE_UNROLL
    for (int w = 0; w < 4; ++w) words[w] = chunk.words[first / 2 + w];
#if !defined(HEDDLE_SIMT)
  } else if constexpr (std::is_same_v<Element, __half>) {
    // Bytes from 0 to 255 behind the high byte of 1024 are halves from 1024 on, which lie 1 apart.
    HEDDLE_UNROLL
    for (int w = 0; w < 4; ++w) {
      const uint32_t from_zero = chunk.words[first / 4 + w / 2] ^ 0x80808080u;
      const uint32_t raised = __byte_perm(from_zero, 0x64646464u, w % 2 == 0 ? 0x4140u : 0x4342u), zero_at = 0x64806480u;
      __half2 values, zero;
      memcpy(&values, &raised, sizeof values);
      memcpy(&zero, &zero_at, sizeof zero);
      values = __hsub2(values, zero);
      memcpy(&words[w], &values, sizeof values);
    }
#endif
  } else {
    float values[8];
    HEDDLE_UNROLL
    for (int e = 0; e < 8; ++e) values[e] = chunk[first + e];
    Pack<Element, 8> pack;
    round_into(pack, values);
    memcpy(words, &pack, sizeof pack);
  }
}

/// What a warp has under way of the right factors: pieces of the sixteen columns of every product, as they lie in memory.
template <class Slots>
struct FewStored {
  using Tile = ProductsFewTile<Slots, true>;
  using Words = Chunk<typename FewFactor<Slots, 1>::Stored, Tile::vec>;

  Words chunks[Tile::products][2][Tile::pieces];

  /// Asks for piece i of a product from element `along` of k on; zeros behind the row's end.
  template <int Which>
  __device__ __forceinline__ void fetch(const Slots& slots, const int (&at)[2], int i, int along, int k) {
    const auto from = slots.stored_of(Factor<Which + 1>(), 0);
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) {
      Words& to = chunks[Which][half][i];
      to = {};
      if (along < k) to = load_chunk<Tile::vec, true>(from.tensor, from.first + static_cast<int64_t>(at[half]) * k + along, Tile::vec);
    }
  }
  __device__ __forceinline__ void fetch_all(const Slots& slots, const int (&at)[2], int along, int k) {
    HEDDLE_UNROLL
    for (int i = 0; i < Tile::pieces; ++i) {
      for_each_product<Slots>([&](auto p) { fetch<decltype(p)::value>(slots, at, i, along + i * Tile::piece, k); });
    }
  }
};

/// A block for each sixteen columns of every product. Factors are read in whole chunks. `Stored`: rows of the right ones lie one behind the
/// other, and are read a step ahead, the first before the launch in front has finished where nothing writes them: `constant`.
template <bool Whole, bool Stored, class Slots>
__global__ void __launch_bounds__(ProductsFewTile<Slots, Stored>::threads, 2)
    matmul_products_few(const int m, const int64_t n, const int k, const bool constant, const Slots slots) {
  constexpr int count = Slots::PRODUCTS;
  using Tile = ProductsFewTile<Slots, Stored>;
  using T = typename Slots::Element;
  HEDDLE_SHARED(float, parts, Tile::warps * count * Tile::rows * Tile::columns);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * Tile::columns;
  // Columns that do not exist repeat the last; nobody looks at what comes of them.
  int at[2];
  HEDDLE_UNROLL
  for (int half = 0; half < 2; ++half) at[half] = static_cast<int>(column) + min(half * 8 + lane / 4, static_cast<int>(n - 1 - column));
  const int own_k = warp * Tile::warp_k + lane % 4 * Tile::vec;  // the lane's first element of k

  [[maybe_unused]] std::conditional_t<Stored, FewStored<Slots>, int> ahead;
  if constexpr (Stored) {
    if (!constant) wait_for_producers();
    ahead.fetch_all(slots, at, own_k, k);
  }
  // Thread t finishes eight columns of one row.
  const int own_row = static_cast<int>(threadIdx.x) / 2;
  const int64_t own_column = column + static_cast<int>(threadIdx.x) % 2 * 8;
  const bool finishes = static_cast<int>(threadIdx.x) < Tile::chunks && own_row < m && own_column < n;
  const int valid = static_cast<int>(n - own_column < 8 ? n - own_column : 8);
  if (finishes && own_row == 0) prefetch_constants(slots, static_cast<int>(own_column), 0);

  // In this order for the reason given in matmul_mma.cuh.
  if (!Stored || constant) wait_for_producers();
  release_consumers();
  typename Slots::Loaded loaded = {};
  if (finishes) loaded = slots.template load<Whole>(own_row, static_cast<int>(own_column), valid);
  // Rows that do not exist repeat the last, too. Four lanes have one row.
  const WarpTeam<4, Tile::threads / 4> team;
  const int row = min(lane / 4, m - 1);
  LeftRow<Slots> a_row = {};
  if (m == 1) {
    a_row.find(slots, WarpTeam<32, Tile::warps>(), 0, 0);
  } else {
    a_row.find(slots, team, 0, row);
  }
  [[maybe_unused]] RightRows<Slots> b_rows[2] = {};
  if constexpr (!Stored) {
    HEDDLE_UNROLL
    for (int half = 0; half < 2; ++half) b_rows[half].find(slots, team, 0, at[half]);
  }
  float sums[count][4] = {};
  const auto multiply = [&](int first, auto inside) {
    constexpr bool is_inside = decltype(inside)::value;
    const auto add = [&](float(&sum)[4], const uint32_t(&upper)[4], const uint32_t(&lower)[4], const uint32_t(&right)[4]) {
      HEDDLE_UNROLL
      for (int pair = 0; pair < 4; pair += 2) {
        mma_m16n8k16<T>(sum, {upper[pair], lower[pair], upper[pair + 1], lower[pair + 1]}, {right[pair], right[pair + 1]});
      }
    };
    if constexpr (Stored) {
      HEDDLE_UNROLL
      for (int i = 0; i < Tile::pieces; ++i) {
        const int along = first + i * Tile::piece;
        uint32_t right[Tile::vec / 8][4];
        HEDDLE_UNROLL
        for (int part = 0; part < Tile::vec / 8; ++part) factor_words<0, is_inside>(slots, a_row.template of<0>(), row, along + part * 8, k, right[part]);
        for_each_product<Slots>([&](auto p) {
          constexpr int which = decltype(p)::value;
          const auto upper = ahead.chunks[which][0][i], lower = ahead.chunks[which][1][i];
          // What is multiplied next is on its way while this is.
          ahead.template fetch<which>(slots, at, i, along + Tile::step, k);
          HEDDLE_UNROLL
          for (int part = 0; part < Tile::vec / 8; ++part) {
            uint32_t upper_words[4], lower_words[4];
            stored_words<T>(upper, part * 8, upper_words);
            stored_words<T>(lower, part * 8, lower_words);
            add(sums[which], upper_words, lower_words, right[part]);
          }
        });
      }
    } else {
      for_each_product<Slots>([&](auto p) {
        constexpr int which = decltype(p)::value + 1;
        uint32_t upper[Tile::pieces][4], lower[Tile::pieces][4];
        HEDDLE_UNROLL
        for (int i = 0; i < Tile::pieces; ++i) {
          const int along = first + i * Tile::piece;
          factor_words<which, is_inside>(slots, b_rows[0].template of<which>(), at[0], along, k, upper[i]);
          factor_words<which, is_inside>(slots, b_rows[1].template of<which>(), at[1], along, k, lower[i]);
        }
        HEDDLE_UNROLL
        for (int i = 0; i < Tile::pieces; ++i) {
          uint32_t right[4];
          factor_words<0, is_inside>(slots, a_row.template of<0>(), row, first + i * Tile::piece, k, right);
          add(sums[which - 1], upper[i], lower[i], right);
        }
      });
    }
  };
  // Lanes of a warp go the same way: they multiply together.
  for (int begin = warp * Tile::warp_k; begin < k; begin += Tile::step) {
    const int first = begin + lane % 4 * Tile::vec;
    if (begin + Tile::warp_k <= k) {
      multiply(first, Constant<true>());
    } else {
      multiply(first, Constant<false>());
    }
  }
  // A lane has, of columns lane / 4 and 8 more, rows 2 (lane % 4) and the next.
  HEDDLE_UNROLL
  for (int p = 0; p < count; ++p) {
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int r = lane % 4 * 2 + i % 2, own = i / 2 * 8 + lane / 4;
      parts[((warp * count + p) * Tile::rows + r) * Tile::columns + own] = sums[p][i];
    }
  }
  __syncthreads();
  if (!finishes) return;
  float total[count][8] = {};
  for (int w = 0; w < Tile::warps; ++w) {
    HEDDLE_UNROLL
    for (int p = 0; p < count; ++p) {
      HEDDLE_UNROLL
      for (int j = 0; j < 8; ++j) {
        total[p][j] += parts[((w * count + p) * Tile::rows + own_row) * Tile::columns + static_cast<int>(threadIdx.x) % 2 * 8 + j];
      }
    }
  }
  finish_products<Whole>(slots, own_row, static_cast<int>(own_column), valid, total, loaded);
}

/// Whether all factors are read in whole chunks.
template <class Slots, int... F>
bool has_whole_rows(const Slots& slots, int64_t k, std::integer_sequence<int, F...>) {
  return (slots.whole_rows(Factor<F>(), k) && ...);
}
template <class Slots>
bool has_whole_rows(const Slots& slots, int64_t k) {
  return has_whole_rows(slots, k, std::make_integer_sequence<int, Slots::PRODUCTS + 1>());
}

/// Enqueues products of at most few::most_rows rows of one matrix, summed in float32, whose factors have whole rows. Refuses more blocks
/// than a grid has.
template <class Slots>
int32_t launch_products_few(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                            bool constant, const Slots& slots) {
  using Tile = ProductsFewTile<Slots, false>;
  const int64_t blocks = (n + Tile::columns - 1) / Tile::columns;
  constexpr int64_t most = INT32_MAX - 4 * Tile::step;
  if (n > most || k > most) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld, allowed are %lld of each", name, static_cast<long long>(n),
                static_cast<long long>(k), static_cast<long long>(most));
  }
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Tile::threads), 0, Sync::block, true};
  const bool whole = n % 8 == 0 && slots.whole_chunks();
  const auto run = [&](auto kernel) {
    return launch(queue, error, config, kernel, static_cast<int>(m), n, static_cast<int>(k), constant, slots);
  };
  const auto run_stored = [&](auto stored) {
    constexpr bool is_stored = decltype(stored)::value;
    return run(whole ? matmul_products_few<true, is_stored, Slots> : matmul_products_few<false, is_stored, Slots>);
  };
  if constexpr (!few_stored<Slots>()) {
    return run_stored(Constant<false>());
  } else if constexpr (FewFactor<Slots, 1>::vec == 8) {
    // Whole rows are multiples of eight.
    return run_stored(Constant<true>());
  } else {
    return k % FewFactor<Slots, 1>::vec == 0 ? run_stored(Constant<true>()) : run_stored(Constant<false>());
  }
}

}  // namespace heddle

#endif
