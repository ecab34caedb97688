// Rows in the order of the matrices that they choose, for grouped matmuls: a counting sort by one block, and a list of tiles that have one
// matrix each. Rows may come in any order; a matrix may have no rows, or all. The order of the rows of a matrix depends on timing where they
// are not neighbours, and no result depends on it.
#ifndef HEDDLE_GROUPED_ROWS_CUH
#define HEDDLE_GROUPED_ROWS_CUH

#include "kernel.cuh"
#include "scratch.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Consecutive places of the order whose rows choose one matrix; `matrix` is the number of matrices for rows that choose none.
struct GroupedTile {
  int first;
  int count;
  int matrix;
};

/// Layout of the scratch memory: the order of rows, then the number of tiles, then the tiles.
struct GroupedLayout {
  int64_t rows;
  int64_t most_tiles;

  static constexpr int tile_words = 3;

  static GroupedLayout of(int64_t rows, int64_t matrices, int tile_rows) {
    // Each group but the full tiles has at most one cut off; rows without a matrix are a group, too.
    const int64_t groups = matrices + 1 < rows ? matrices + 1 : rows;
    return {rows, rows / tile_rows + groups};
  }
  int64_t words() const { return rows + 1 + tile_words * most_tiles; }
  __host__ __device__ int64_t tile_count_at() const { return rows; }
  __host__ __device__ int64_t tile_at(int64_t tile) const { return rows + 1 + tile_words * tile; }
};

/// The order of rows and the tiles, as a launch reads them.
struct GroupedOrder {
  In<int> words;
  GroupedLayout layout;

  __device__ __forceinline__ int tiles() const { return words.get(layout.tile_count_at()); }
  __device__ __forceinline__ GroupedTile tile(int64_t i) const {
    const int64_t at = layout.tile_at(i);
    return {words.get(at), words.get(at + 1), words.get(at + 2)};
  }
  __device__ __forceinline__ int row(int64_t place) const { return words.get(place); }
};

constexpr int grouping_threads = 512;
constexpr int grouping_room = 4096;  // matrices whose rows are counted at a time

/// Exclusive sum over the threads of the block, of two numbers; `total` receives the sums of all. `shared` has two numbers per warp.
template <class Shared>
__device__ __forceinline__ void sum_before(int (&values)[2], int (&total)[2], Shared& shared) {
  constexpr int warps = grouping_threads / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int sums[2] = {values[0], values[1]};
  HEDDLE_UNROLL
  for (int step = 1; step < 32; step *= 2) {
    HEDDLE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int before = __shfl_up_sync(0xffffffffu, sums[i], static_cast<unsigned int>(step));
      if (lane >= step) sums[i] += before;
    }
  }
  __syncthreads();
  if (lane == 31) {
    shared[2 * warp] = sums[0];
    shared[2 * warp + 1] = sums[1];
  }
  __syncthreads();
  HEDDLE_UNROLL
  for (int i = 0; i < 2; ++i) {
    int before = 0, all = 0;
    for (int w = 0; w < warps; ++w) {
      if (w == warp) before = all;
      all += shared[2 * w + i];
    }
    values[i] = before + sums[i] - values[i];
    total[i] = all;
  }
}

/// Orders rows by their matrices, `grouping_room` matrices at a time. Each thread takes consecutive rows, and counts those that choose one
/// matrix together, so that sorted rows cost few additions.
template <class Slots>
__global__ void __launch_bounds__(grouping_threads, 1)
    group_rows(const int rows, const int matrices, const int tile_rows, const GroupedLayout layout, const Out<int> words, const Slots slots) {
  HEDDLE_SHARED(int, counts, grouping_room);
  HEDDLE_SHARED(int, sums, 2 * grouping_threads / 32);
  constexpr int per_thread = grouping_room / grouping_threads;
  const int thread = static_cast<int>(threadIdx.x);
  const int share = (rows + grouping_threads - 1) / grouping_threads;
  const int64_t own = static_cast<int64_t>(thread) * share;
  const int begin = static_cast<int>(own < rows ? own : rows), end = rows - begin < share ? rows : begin + share;
  const auto group_of = [&](int row) {
    const int matrix = slots.matrix_of(row);
    return matrix >= 0 && matrix < matrices ? matrix : matrices;
  };
  /// Calls `run` for consecutive rows of one group among [low, low + grouping_room): its number there, the first row and their number.
  const auto for_runs = [&](int low, auto run) {
    int from = begin, group = begin < end ? group_of(begin) : 0;
    for (int row = begin; row < end; ++row) {
      const int next = row + 1 < end ? group_of(row + 1) : -1;
      if (next == group) continue;
      if (group >= low && group - low < grouping_room) run(group - low, from, row + 1 - from);
      from = row + 1;
      group = next;
    }
  };
  wait_for_producers();
  release_consumers();
  int placed = 0, tiles = 0;
  for (int low = 0; low <= matrices; low += grouping_room) {
    for (int i = thread; i < grouping_room; i += grouping_threads) counts[i] = 0;
    __syncthreads();
    for_runs(low, [&](int group, int, int count) { add_shared(counts, group, count); });
    __syncthreads();
    int before[2] = {0, 0}, total[2];
    for (int i = 0; i < per_thread; ++i) {
      const int count = counts[thread * per_thread + i];
      before[0] += count;
      before[1] += (count + tile_rows - 1) / tile_rows;
    }
    sum_before(before, total, sums);
    int place = placed + before[0], tile = tiles + before[1];
    for (int i = 0; i < per_thread; ++i) {
      const int group = thread * per_thread + i, count = counts[group];
      counts[group] = place;
      for (int first = 0; first < count; first += tile_rows) {
        const int64_t at = layout.tile_at(tile++);
        words.set(at, place + first);
        words.set(at + 1, count - first < tile_rows ? count - first : tile_rows);
        words.set(at + 2, low + group);
      }
      place += count;
    }
    __syncthreads();
    for_runs(low, [&](int group, int first, int count) {
      const int at = add_shared(counts, group, count);
      for (int i = 0; i < count; ++i) words.set(at + i, first + i);
    });
    __syncthreads();
    placed += total[0];
    tiles += total[1];
  }
  if (thread == 0) words.set(layout.tile_count_at(), tiles);
}

/// Enqueues the order of `rows` rows, in tiles of at most `tile_rows`, into `scratch`, which has the words of the layout.
template <class Slots>
int32_t launch_group_rows(const heddle_launch* queue, heddle_error* error, const char* name, int64_t rows, int64_t matrices, int tile_rows,
                          const GroupedLayout& layout, const Scratch& scratch, const Slots& slots) {
  const LaunchConfig config{name, dim3(1), dim3(grouping_threads), 0, Sync::block, true};
  return launch(queue, error, config, group_rows<Slots>, static_cast<int>(rows), static_cast<int>(matrices), tile_rows, layout,
                scratch.template out_as<int>(), slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
