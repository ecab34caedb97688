// The tile of a block of matmul_few.cuh and the loads of its right factors. Each warp copies pieces of them to shared memory of its own
// (cp.async), the next while it multiplies one, so that no warp waits for another. A piece has 128 or 256 contiguous bytes of each column.
// Loaded 64 bytes at a time, as fragments hold them, the same weights take a fifth longer to arrive, independent of the code that
// multiplies them (H200, 32 layers of 386 MiB).
#ifndef HEDDLE_MATMUL_FEW_TILE_CUH
#define HEDDLE_MATMUL_FEW_TILE_CUH

#include "matmul_factor.cuh"
#include "matmul_pipeline.cuh"

namespace heddle {

namespace few {

/// Maximum number of rows.
constexpr int64_t most_rows = 8;

}  // namespace few

/// A right factor whose elements are loaded or computed where they are multiplied.
template <class Slots, int Which, class Rows = decltype(std::declval<const Slots&>().stored_of(Factor<Which>(), int64_t()))>
struct FewFactor {
  static constexpr bool is_stored = false;
  static constexpr int vec = 8;
};
/// A right factor with contiguous rows: 16 bytes of a row are prefetched unchanged and converted when they are multiplied.
template <class Slots, int Which, class T>
struct FewFactor<Slots, Which, CopiedRows<T>> {
  using Stored = T;
  /// True if tensor cores can take all values of the type.
  static constexpr bool is_stored = std::is_same_v<T, typename Slots::Element> || std::is_same_v<T, signed char> || is_float8<T>;
  static constexpr int vec = is_stored ? 16 / static_cast<int>(sizeof(T)) : 8;
};

/// True if all right factors are fetched unchanged, the same number of elements of each at a time.
template <class Slots, int... P>
constexpr bool few_stored(std::integer_sequence<int, P...>) {
  return ((FewFactor<Slots, P + 1>::is_stored && FewFactor<Slots, P + 1>::vec == FewFactor<Slots, 1>::vec) && ...);
}
template <class Slots>
constexpr bool few_stored() {
  return few_stored<Slots>(std::make_integer_sequence<int, Slots::PRODUCTS>());
}

/// Columns of one or several matmuls, sixteen per tile. `Wide`: small blocks with more columns, which read the rows less often. Otherwise
/// large blocks, whose many warps have as much in flight where columns are few. Two large blocks per multiprocessor leave a thread 64
/// registers, too few for factors of bytes.
template <class Slots, bool Wide>
struct FewTile {
  static constexpr int products = Slots::PRODUCTS, rows = 8, tile_columns = 16;
  static_assert(Wide || products == 1, "several products have more columns than one");
  static constexpr int tiles = products > 1 ? products : Wide ? 2 : 1;
  static constexpr int all_columns = tiles * tile_columns, columns = all_columns / products;  // of all matmuls, and of each
  static constexpr bool has_bytes = FewFactor<Slots, 1>::vec > 8;
  static constexpr int warps = Wide ? 4 : has_bytes ? 12 : 16, threads = 32 * warps;
  /// The epilogue's loads overlap the matmul where there are registers for them.
  static constexpr int operand_bytes = static_cast<int>(sizeof(typename Slots::Loaded));
  static constexpr bool loads_early = Wide || operand_bytes <= (has_bytes ? 48 : 16);
  static constexpr int resident = Wide ? 3 : operand_bytes <= 64 ? 2 : 1;
  static constexpr int words = tiles == 2 ? 16 : 8;  // of 16 bytes, per column of a piece
  static constexpr uint32_t row_bytes = words * 16, piece_bytes = all_columns * row_bytes;
  static constexpr int stages = 2;
  static constexpr uint32_t ring_bytes = warps * stages * piece_bytes;
  static constexpr int chunks = rows * columns / 8;  // chunks of eight columns for the epilogue, one per thread
  static_assert(chunks <= threads, "a chunk a thread");
};

/// The pieces of one warp: piece i of `count` begins at element from(i) of k.
template <class Tile, class Slots>
class FewRing {
 public:
  using Stored = typename FewFactor<Slots, 1>::Stored;
  static constexpr int vec = FewFactor<Slots, 1>::vec, piece = Tile::words * vec;

  /// `column`: the block's first column of each matmul, out of n.
  __device__ __forceinline__ FewRing(Shared16 shared, int64_t column, int64_t n, int k)
      : warp_(static_cast<int>(threadIdx.x) / 32), lane_(static_cast<int>(threadIdx.x) % 32), k_(k) {
    own_ = shared + static_cast<uint32_t>(warp_) * (Tile::stages * Tile::piece_bytes);
    const int64_t left = n - column - own_column();
    columns_ = static_cast<int>(left < Tile::columns ? left : Tile::columns);
    start_ = (column + own_column()) * k + own_word() * vec;
  }

  __device__ __forceinline__ int count() const { return ((k_ + piece - 1) / piece - warp_ + Tile::warps - 1) / Tile::warps; }
  __device__ __forceinline__ int from(int i) const { return (warp_ + i * Tile::warps) * piece; }

  /// Starts the copies of a piece, with zeros beyond the ends of rows and for missing columns. Only commits if there is no such piece.
  __device__ __forceinline__ void fetch(const Slots& slots, int i) const {
    const int along = from(i), left = along + own_word() * vec < k_ ? columns_ : 0;
    if (along < k_) {
      for_each_product<Slots>([&](auto p) {
        constexpr int first = decltype(p)::value * Tile::columns;
        const auto rows = slots.stored_of(Factor<decltype(p)::value + 1>(), 0);
        HEDDLE_UNROLL
        for (int j = 0; j < Tile::columns; j += at_once) {
          copy_async_16(place(i, first + j + own_column(), own_word()), rows.tensor, rows.first + start_ + static_cast<int64_t>(j) * k_ + along,
                        j < left);
        }
      });
    }
    copy_async_commit();
  }

  /// Waits for a piece after which one more was fetched. All lanes must call it.
  __device__ __forceinline__ void await() const {
    copy_async_wait<1>();
    __syncwarp();
  }

  /// Word `word` of column lane / 4 of a tile's upper or lower half.
  __device__ __forceinline__ Chunk<Stored, vec> read(int i, int tile, int half, int word) const {
    const auto pack = load_shared_16<Stored>(place(i, tile * Tile::tile_columns + half * 8 + lane_ / 4, word));
    Chunk<Stored, vec> chunk;
    memcpy(&chunk.words, &pack, sizeof pack);
    return chunk;
  }

 private:
  static constexpr int at_once = 32 / Tile::words;  // columns whose words the lanes of a warp copy together, one word per lane

  __device__ __forceinline__ int own_word() const { return lane_ % Tile::words; }
  __device__ __forceinline__ int own_column() const { return lane_ / Tile::words; }
  /// Rows are a multiple of 128 bytes apart. Eight lanes read four words of each of two rows; the permutation avoids bank conflicts.
  __device__ __forceinline__ Shared16 place(int i, int row, int word) const {
    const int permuted = word ^ row % 2 * 4;
    return own_ + (static_cast<uint32_t>(i % Tile::stages) * Tile::piece_bytes + static_cast<uint32_t>(row * Tile::words + permuted) * 16);
  }

  Shared16 own_;
  int warp_, lane_, k_;
  int columns_;    // existing columns from the lane's first on
  int64_t start_;  // first element that the lane copies, of its first column
};

}  // namespace heddle

#endif
