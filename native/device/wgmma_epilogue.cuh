// Epilogue of a Hopper tile: a thread passes its share of the sums to the compiled epilogue, eight neighbouring columns of a row at a time
// (of each matmul), and schedules the loads of the epilogue's operands.
#ifndef HEDDLE_WGMMA_EPILOGUE_CUH
#define HEDDLE_WGMMA_EPILOGUE_CUH

#include "matmul_epilogue.cuh"
#include "wgmma_tile.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

#if defined(HEDDLE_HOPPER_CODE)

/// The part of a tile that one thread passes to the epilogue: chunks of 8 neighbouring columns (see permuted_map(), or exchange_in_quad()
/// where chunks are not `Whole`). The code finishes some columns, moves the sums of the others into their place and runs again. Fully
/// unrolled, an epilogue of 200 instructions per chunk would not fit the instruction cache.
template <class Tile, bool Whole, class Epilogue>
struct ThreadChunks {
  using Call = EpilogueCall<Epilogue>;
  using Loaded = typename Call::Loaded;
  static constexpr int vec = 8;
  static constexpr int group = 2 * Tile::blocks / Tile::split;  // chunks of the same columns
  static constexpr int all_groups = Tile::own_columns / permuted_rows;
  static constexpr int groups = Tile::split > 1 ? all_groups : all_groups % 2 == 0 && Tile::products == 1 ? 2 : 1;
  static constexpr int count = groups * group;                  // per pass
  static constexpr int passes = all_groups / groups;
  static constexpr int sums = Tile::columns / 2 / Tile::split;  // per 64 rows
  static constexpr int own_sums = sums / Tile::products;        // of these, per matmul
  static constexpr int pass_columns = groups * permuted_rows, pass_sums = pass_columns / 2 / Tile::split;
  // Loads are issued in batches, since waiting for one load waits for all earlier ones. Where the warpgroups share a tile, the loads
  // overlap its wgmmas, and the loaded operands of all chunks must fit beside the sums. Otherwise there are registers for a few when the
  // sums are complete, and the other warpgroup multiplies meanwhile.
  static constexpr int words = static_cast<int>((sizeof(Loaded) + 3) / 4), most_early_words = 12;
  static constexpr bool load_early = !Tile::in_turns && words <= most_early_words;
  static constexpr int batch = [] {
    constexpr int spare = Tile::columns * Tile::blocks > 256 ? 16 : 64;
    int fitting = count;
    while ((fitting > 2 && fitting * words > spare) || count % fitting != 0) --fitting;
    return fitting;
  }();
  static constexpr int held = load_early ? passes * count : count;

  const Epilogue& epilogue;
  int rows, columns;  // of the output
  int row, column;    // the thread's first
  Loaded loaded[held];

  __device__ __forceinline__ ThreadChunks(const Epilogue& epilogue, const WgmmaWork& work)
      : epilogue(epilogue), rows(work.m), columns(work.n) {}

  __device__ __forceinline__ void place(TileOrigin origin, int offset) {
    const int thread = threadIdx.x % warpgroup_threads;
    row = origin.row + offset + thread / warp_lanes * 16 + thread % warp_lanes / 4;
    column = origin.column + thread % 4 * vec;
  }

  __device__ __forceinline__ int row_of(int chunk) const {
    if constexpr (Tile::split > 1) {
      return row;
    } else {
      return row + chunk % group / 2 * Tile::block_rows + chunk % 2 * 8;
    }
  }
  __device__ __forceinline__ int column_of(int chunk) const { return column + chunk / group * permuted_rows; }

  __device__ __forceinline__ int valid_in(int chunk) const { return Whole ? vec : min(columns - column_of(chunk), vec); }

  /// Loads the operands of chunks [first, end). Beyond the output's edge it loads those at the edge.
  __device__ __forceinline__ void load(int first, int end) {
    HEDDLE_UNROLL
    for (int chunk = first; chunk < end; ++chunk) {
      const int at = min(column_of(chunk), columns - (Whole ? vec : 1));
      loaded[chunk] = Call::template load<Whole>(epilogue, min(row_of(chunk), rows - 1), at, Whole ? vec : min(columns - at, vec));
    }
  }

  /// `tile_sums`: the result of multiply_tile() or of add_parts_of_k().
  template <class S>
  __device__ __forceinline__ void finish(S (&tile_sums)[Tile::blocks][sums]) {
    HEDDLE_ROLLED
    for (int pass = 1;; ++pass) {
      HEDDLE_UNROLL
      for (int chunk = 0; chunk < count; ++chunk) {
        // Made opaque to the compiler now and then, so that it keeps no offsets derived from `row` over all chunks: registers are scarce.
        if (chunk % batch % 2 == 0) asm volatile("" : "+r"(row));
        if (!load_early && chunk % batch == 0) load(chunk, chunk + batch);
        S values[Tile::products][vec];
        HEDDLE_UNROLL
        for (int product = 0; product < Tile::products; ++product) {
          HEDDLE_UNROLL
          for (int i = 0; i < vec; ++i) {
            const int at = product * own_sums + chunk / group * 2 * vec + i / 2 * 4 + chunk % 2 * 2 + i % 2;
            values[product][i] = Tile::split > 1 ? tile_sums[0][chunk * vec + i] : tile_sums[chunk % group / 2][at];
          }
        }
        if constexpr (!Whole) {
          static_assert(Tile::split == 1, "a thread holds whole rows of quads");
          HEDDLE_UNROLL
          for (int product = 0; product < Tile::products; ++product) exchange_in_quad(values[product]);
        }
        if (row_of(chunk) < rows && column_of(chunk) < columns) {
          if constexpr (Tile::products == 1) {
            Call::template finish<Whole>(epilogue, row_of(chunk), column_of(chunk), valid_in(chunk), values[0], loaded[chunk]);
          } else {
            Call::template finish<Whole>(epilogue, row_of(chunk), column_of(chunk), valid_in(chunk), values, loaded[chunk]);
          }
        }
      }
      if (pass == passes) break;
      HEDDLE_UNROLL
      for (int block = 0; block < Tile::blocks; ++block) {
        HEDDLE_UNROLL
        for (int i = 0; i + pass_sums < sums; ++i) {
          if (i % own_sums + pass_sums < own_sums) tile_sums[block][i] = tile_sums[block][i + pass_sums];
        }
      }
      HEDDLE_UNROLL
      for (int chunk = 0; chunk + count < held; ++chunk) loaded[chunk] = loaded[chunk + count];
      column += pass_columns;
    }
  }
};

#endif

}  // namespace heddle

#endif

#endif
