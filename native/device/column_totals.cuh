// Reductions across rows. A thread owns a chunk of Vec neighbouring columns and walks rows; 32 threads of a block share a chunk and
// divide the rows. Where tiles of columns are few, more blocks divide them: those of a cluster, or if a kernel has one walk over many rows,
// sections of the grid, of which the last to end combines the results of all. Row r belongs to slot r mod 32 of section or block r / 32 mod
// their number. A thread combines its rows in ascending order, the 32 slots are combined pairwise, and the blocks of a cluster one after the
// other: the order follows from the extents and the number of multiprocessors. Monoids of authors are combined in this order
// too: those of reductions are commutative, up to rounding. Kernels that store rows behind that divide them in the same way,
// but for a few rows, which are a thread's. columns.cuh chooses the threads and blocks.
#ifndef HEDDLE_COLUMN_TOTALS_CUH
#define HEDDLE_COLUMN_TOTALS_CUH

#include "cluster.cuh"
#include "column_team.cuh"
#include "totals.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Partial results of a thread for its Vec columns.
template <class Monoid, class Team, int Vec>
struct ColumnSums {
  typename Monoid::Value values[Vec];

  __device__ __forceinline__ ColumnSums() {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) values[i] = Monoid::identity();
  }
  /// Takes the element of column i of the row `row`.
  __device__ __forceinline__ void add(int i, typename Monoid::Element element, int row) {
    values[i] = Monoid::combine(values[i], Monoid::lift(element, row));
  }
};

/// Bytes that the results of a column take, of all reductions of a walk.
template <class... Monoids>
constexpr uint32_t bytes_of_column = (0u + ... + static_cast<uint32_t>(sizeof(typename Monoids::Value)));

/// Bytes of shared memory that a walk's results take.
template <class Team, int Vec, class... Monoids>
constexpr uint32_t bytes_of_walk = ClusterExchange::barrier_bytes + Team::blocks * Team::lanes * Vec * bytes_of_column<Monoids...>;

/// The results of one walk over the rows, exchanged among the blocks of a cluster and the threads of a block. Its memory begins at `shared`.
/// All threads make it before the walk, which announces the exchange, and combine() after it.
template <class Team, int Vec, class... Monoids>
class ColumnTotals {
 public:
  __device__ __forceinline__ explicit ColumnTotals(Shared16 shared)
      : exchange_(shared, Team::blocks), places_(shared + ClusterExchange::barrier_bytes) {
    if constexpr (!Team::is_alone) exchange_.announce(bytes_of_column<Monoids...> * columns * Team::blocks);
  }

  /// Leaves the results of each reduction for a thread's columns in an array.
  template <class... Results>
  __device__ __forceinline__ void combine(Team& team, const ColumnSums<Monoids, Team, Vec>&... sums, Results (&... results)[Vec]) const {
    exchange_all(team, sums...);
    uint32_t before = 0;
    ((total<Monoids>(team, before, results), before += bytes_of_column<Monoids>), ...);
  }

  /// The same where the grid may have sections: true in the last block of a tile to end, which has the results of all. The others leave theirs
  /// in `left`; `arrived` counts the blocks of each tile.
  template <class... Results>
  __device__ __forceinline__ bool combine_sections(Team& team, [[maybe_unused]] const Out<float>& left,
                                                   [[maybe_unused]] const Out<int>& arrived, ColumnSums<Monoids, Team, Vec>&... sums,
                                                   Results (&... results)[Vec]) const {
    if constexpr (Team::is_sectioned) {
      constexpr int words = words_of_totals<Monoids...> * columns;
      exchange_all(team, sums...);
      const int64_t first = team.tile() * team.sections() * words;
      int64_t place = first + int64_t{team.section()} * words;
      uint32_t before = 0;
      ((leave<Monoids>(team, left, place, before), place += words_of_totals<Monoids> * columns, before += bytes_of_column<Monoids>), ...);
      if (!is_last(team, arrived)) return false;
      place = first;
      ((sums = take<Monoids>(team, left, place, words), place += words_of_totals<Monoids> * columns), ...);
    }
    combine(team, sums..., results...);
    return true;
  }

 private:
  static constexpr unsigned int all_lanes = 0xffffffffu;
  static constexpr int columns = Team::lanes * Vec;
  /// Columns whose results fill packs of 16 bytes.
  static constexpr int pack = 4;
  static constexpr int packs = columns / pack;
  static_assert(Vec % pack == 0, "chunks are whole packs");

  /// Combines what the threads of all blocks of a cluster have of each reduction, where each block finds it.
  __device__ __forceinline__ void exchange_all(Team& team, const ColumnSums<Monoids, Team, Vec>&... sums) const {
    if constexpr (!Team::is_alone) exchange_.ready();
    uint32_t before = 0;
    ((send<Monoids>(team, before, sums), before += bytes_of_column<Monoids>), ...);
    if constexpr (!Team::is_alone) exchange_.receive();
  }

  /// Combines what the block's threads have of a reduction and sends it to every block. `before`: bytes a column of the reductions sent
  /// already.
  template <class Monoid>
  __device__ __forceinline__ void send(Team& team, uint32_t before, const ColumnSums<Monoid, Team, Vec>& sums) const {
    if constexpr (Team::is_alone) {
      keep<Monoid>(team, before, sums);
    } else {
      exchange_sums<Monoid>(team, before, sums);
    }
  }

  template <class Monoid, class T>
  __device__ __forceinline__ void total(const Team& team, uint32_t before, T (&results)[Vec]) const {
    typename Monoid::Value totals[Vec];
    HEDDLE_UNROLL
    for (int block = 0; block < Team::blocks; ++block) {
      typename Monoid::Value values[Vec];
      block_values(team, before, block, values);
      HEDDLE_UNROLL
      for (int i = 0; i < Vec; ++i) totals[i] = block == 0 ? values[i] : Monoid::combine(totals[i], values[i]);
    }
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) results[i] = Monoid::result(totals[i]);
  }

  /// Results that a block has sent of a thread's columns.
  template <class Value>
  __device__ __forceinline__ void block_values(const Team& team, uint32_t before, int block, Value (&values)[Vec]) const {
    const Shared16 place = place_of<Value>(before, block) + static_cast<uint32_t>(team.lane() * sizeof(values));
    Pack<int, 4> words[sizeof(values) / 16];
    HEDDLE_UNROLL
    for (int k = 0; k < static_cast<int>(sizeof(values) / 16); ++k) words[k] = load_shared_16<int>(place + static_cast<uint32_t>(16 * k));
    memcpy(values, words, sizeof(values));
  }

  /// Keeps a thread's results where it finds them again.
  template <class Monoid>
  __device__ __forceinline__ void keep(const Team& team, uint32_t before, const ColumnSums<Monoid, Team, Vec>& sums) const {
    using Value = typename Monoid::Value;
    Pack<int, 4> words[sizeof(sums.values) / 16];
    memcpy(words, sums.values, sizeof(sums.values));
    const Shared16 place = place_of<Value>(before, 0) + static_cast<uint32_t>(team.lane() * sizeof(sums.values));
    HEDDLE_UNROLL
    for (int k = 0; k < static_cast<int>(sizeof(sums.values) / 16); ++k) store_shared_16(place + static_cast<uint32_t>(16 * k), words[k]);
  }

  /// Lanes of a warp combine their slots first, the lower ones; then a thread combines what all warps have of four columns, and sends it.
  template <class Monoid>
  __device__ __forceinline__ void exchange_sums(Team& team, uint32_t before, const ColumnSums<Monoid, Team, Vec>& sums) const {
    using Value = typename Monoid::Value;
    HEDDLE_SHARED(Value, partial, 2 * Team::warps * columns);
    const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
    const int base = team.next_buffer() * Team::warps * columns;
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      Value value = sums.values[i];
      HEDDLE_UNROLL
      for (int distance = Team::lanes; distance < warp_lanes; distance *= 2) {
        const Value other = exchange(value, all_lanes, distance);
        const bool isUpper = (static_cast<int>(threadIdx.x) & distance) != 0;
        value = isUpper ? Monoid::combine(other, value) : Monoid::combine(value, other);
      }
      if (static_cast<int>(threadIdx.x) % warp_lanes < Team::lanes) partial[base + warp * columns + team.lane() * Vec + i] = value;
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) >= packs) return;
    Value total[pack];
    HEDDLE_UNROLL
    for (int k = 0; k < pack; ++k) total[k] = of_warps<Monoid>(partial, base + static_cast<int>(threadIdx.x) * pack + k);
    Pack<int, 4> words[sizeof(total) / 16];
    memcpy(words, total, sizeof(total));
    HEDDLE_UNROLL
    for (int block = 0; block < Team::blocks; ++block) {
      const Shared16 place = place_of<Value>(before, team.rank()) + static_cast<uint32_t>(threadIdx.x * sizeof(total));
      const ClusterExchange::Destination to = exchange_.destination(place, block);
      HEDDLE_UNROLL
      for (int k = 0; k < static_cast<int>(sizeof(total) / 16); ++k) {
        exchange_.template send<(Team::blocks > 1)>(to, static_cast<uint32_t>(16 * k), words[k]);
      }
    }
  }

  /// Pairwise combination of the results that all warps of a block have of a column, the first at `place`.
  template <class Monoid, class Partial>
  __device__ __forceinline__ static typename Monoid::Value of_warps(const Partial& partial, int place) {
    typename Monoid::Value values[Team::warps];
    HEDDLE_UNROLL
    for (int w = 0; w < Team::warps; ++w) values[w] = partial[place + w * columns];
    HEDDLE_UNROLL
    for (int distance = 1; distance < Team::warps; distance *= 2) {
      HEDDLE_UNROLL
      for (int w = 0; w + distance < Team::warps; w += 2 * distance) values[w] = Monoid::combine(values[w], values[w + distance]);
    }
    return values[0];
  }

  /// Stores the results of a section at word `place`, by the threads that store those of columns.
  template <class Monoid>
  __device__ __forceinline__ void leave(const Team& team, const Out<float>& left, int64_t place, uint32_t before) const {
    using Value = typename Monoid::Value;
    constexpr int count = sizeof(Value) / sizeof(float);
    if (team.slot() != 0) return;
    Value values[Vec];
    block_values(team, before, 0, values);
    float words[Vec * count];
    memcpy(words, values, sizeof(values));
    HEDDLE_UNROLL
    for (int i = 0; i < Vec * count; ++i) left.set(place + team.lane() * Vec * count + i, words[i]);
  }

  /// Combined results that sections have left of a thread's columns: of one in `Slots` of them.
  template <class Monoid>
  __device__ __forceinline__ ColumnSums<Monoid, Team, Vec> take(const Team& team, const Out<float>& left, int64_t place, int words) const {
    using Value = typename Monoid::Value;
    constexpr int count = sizeof(Value) / sizeof(float);
    ColumnSums<Monoid, Team, Vec> taken;
    HEDDLE_UNROLL_FEW
    for (int section = team.slot(); section < team.sections(); section += Team::slots) {
      float own[Vec * count];
      HEDDLE_UNROLL
      for (int i = 0; i < Vec * count; ++i) own[i] = left.get(place + int64_t{section} * words + team.lane() * Vec * count + i);
      Value values[Vec];
      memcpy(values, own, sizeof(values));
      HEDDLE_UNROLL
      for (int i = 0; i < Vec; ++i) taken.values[i] = Monoid::combine(taken.values[i], values[i]);
    }
    return taken;
  }

  /// Counts a block of a tile: true in all threads of the last, which sees what all have left.
  __device__ __forceinline__ bool is_last(const Team& team, const Out<int>& arrived) const {
    HEDDLE_SHARED(int, before, 1);
    __threadfence();  // the results are visible before the count
    __syncthreads();
    if (threadIdx.x == 0) before[0] = arrive(arrived, team.tile(), team.sections() - 1);
    __syncthreads();
    __threadfence();  // and read after it
    return before[0] == team.sections() - 1;
  }

  template <class Value>
  __device__ __forceinline__ Shared16 place_of(uint32_t before, int block) const {
    return places_ + (before * columns * Team::blocks + static_cast<uint32_t>(block * columns * sizeof(Value)));
  }

  ClusterExchange exchange_;
  Shared16 places_;
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
