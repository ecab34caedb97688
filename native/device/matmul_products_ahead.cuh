// What matmul_products_few.cuh multiplies: eight elements of a factor at a time as words of a fragment. Right factors that lie in memory one
// row behind the other are asked for a step before they are multiplied, as they lie, and converted then. Registers hold what is on its way:
// through shared memory (cp.async, 64 KiB a block) a launch alone is faster by a tenth, and steps are slower, since the next launch finds no
// room to begin early.
#ifndef HEDDLE_MATMUL_PRODUCTS_AHEAD_CUH
#define HEDDLE_MATMUL_PRODUCTS_AHEAD_CUH

#include "matmul_factor.cuh"
#include "matmul_few.cuh"
#include "matmul_products_left.cuh"

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
  static constexpr bool is_stored = std::is_same_v<T, typename Slots::Element> || std::is_same_v<T, signed char> || is_float8<T>;
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
  /// Pieces that a warp has under way at once, of every product: as many as there are registers for. What computes rows takes some.
  static constexpr int most_pieces = computes_left<Slots> && vec > 8 && products > 1 ? 2 : 4;
  static constexpr int pieces = !Stored ? (products < 4 ? 8 / products : 2) : products < 4 ? most_pieces / products : 1;
  static constexpr int warp_k = pieces * piece, step = warps * warp_k;
  static constexpr int chunks = rows * columns / 8;  // of eight columns that the epilogue is given, to a thread each
};

/// What is known of the left factor's rows, of which there are at most eight: of row lane / 4, or of the last where that does not exist. A row
/// alone is read by the block together, each of several by a warp. All threads of `Warps` warps call it.
template <int Warps, class Slots>
__device__ __forceinline__ LeftRow<Slots> find_left(const Slots& slots, int m) {
  static_assert(Warps >= 8, "a warp for each row");
  LeftRow<Slots> known = {};
  if constexpr (std::is_empty_v<decltype(known.row)>) {
    known.find(slots, WarpTeam<32, Warps>(), 0, 0);
  } else if (m == 1) {
    known.find(slots, BlockTeam<32 * Warps>(), 0, 0);
  } else {
    HEDDLE_SHARED(LeftRow<Slots>, rows, 8);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    if (warp < m) {
      known.find(slots, WarpTeam<32, Warps>(), 0, warp);
      if (lane == 0) rows[warp] = known;
    }
    __syncthreads();
    known = rows[min(lane / 4, m - 1)];
  }
  return known;
}

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
  } else if constexpr (std::is_same_v<Element, __half> && is_float8<T>) {
    HEDDLE_UNROLL
    for (int w = 0; w < 4; ++w) {
      words[w] = float8::halves_of(T(), static_cast<unsigned short>(chunk.words[first / 4 + w / 2] >> (w % 2 * 16)));
    }
  } else if constexpr (std::is_same_v<Element, __half> && std::is_same_v<T, signed char>) {
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

}  // namespace heddle

#endif
