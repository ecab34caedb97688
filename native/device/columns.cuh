// Reductions across rows. A thread owns a chunk of Vec neighbouring columns and walks rows; 32 threads of a block share a chunk and
// divide the rows, and so do the blocks of a cluster where tiles of columns are few. Row r belongs to slot r mod 32 of part r / 32 mod
// Parts. A slot of a part combines its rows in ascending order, the 32 slots of a part are combined pairwise, and the parts one after
// the other: whether the parts are threads' own partial results or blocks changes no bit, nor does the number of columns. Monoids of
// authors are combined in this order too: those of reductions are commutative, up to rounding. Kernels that store rows behind that
// divide them in the same way, but for a few rows, which are a thread's. Files whose kernels reduce no columns do not include this one.
#ifndef HEDDLE_COLUMNS_CUH
#define HEDDLE_COLUMNS_CUH

#include "cluster.cuh"
#include "launcher.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The threads that reduce a tile of Lanes chunks, Slots to a chunk. `Divided`: a part of the rows for each block of a cluster; otherwise a
/// thread keeps the parts apart itself. Either way it asks for the chunks of Parts * Each rows before it needs the first: `Each` of a part.
template <int Lanes, int Parts, bool Divided, int Slots = 32, int Each = 1>
struct ColumnTeam {
  static_assert(warp_lanes % Lanes == 0 || Slots == 1, "a warp has whole rows of chunks");
  /// A thread has all rows of its chunk, and nobody to wait for.
  static constexpr bool is_alone = Slots == 1 && !Divided;
  static constexpr int lanes = Lanes;
  static constexpr int threads = Lanes * Slots;
  static constexpr int warps = threads / warp_lanes;
  static constexpr int blocks = Divided ? Parts : 1;
  /// Partial results a thread keeps of each column.
  static constexpr int sums = Divided ? 1 : Parts;
  /// Rows of one round, and how many rows the next round is further.
  static constexpr int loads = Parts * Each;
  static constexpr int round = Slots * loads * (Divided ? Parts : 1);

  __device__ __forceinline__ int64_t tile() const { return blockIdx.x / blocks; }
  __device__ __forceinline__ int rank() const { return static_cast<int>(blockIdx.x % blocks); }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) % Lanes; }
  __device__ __forceinline__ int slot() const { return static_cast<int>(threadIdx.x) / Lanes; }
  __device__ __forceinline__ int first_row() const { return rank() * Slots + slot(); }
  /// Number of rows from the first load of a round to load j.
  static constexpr __host__ __device__ int rows_before(int j) { return j * Slots * (Divided ? Parts : 1); }
  /// The partial result that load j belongs to.
  static constexpr __host__ __device__ int sum_of(int j) { return Divided ? 0 : j % Parts; }
  /// True for the one thread per chunk that stores the results of its columns.
  __device__ __forceinline__ bool stores() const { return slot() == 0 && rank() == 0; }

  /// Returns the next of two buffers: a thread that is one combination ahead writes the one that no thread reads.
  __device__ __forceinline__ int next_buffer() { return buffer_ ^= 1; }

 private:
  int buffer_ = 0;
};

/// Tiles that columns make.
template <class Team, int Vec>
__host__ __device__ __forceinline__ int column_tiles(int columns) {
  return chunks_of<Team::lanes * Vec>(columns);
}

/// Columns from a thread's chunk on; none where the chunk is beyond the last.
template <class Team, int Vec>
__device__ __forceinline__ int columns_left(const Team& team, int tile, int columns) {
  const int64_t first = (int64_t{tile} * Team::lanes + team.lane()) * Vec;
  return first < columns ? static_cast<int>(columns - first) : 0;
}

/// Partial results of a thread: Vec columns of each of its parts.
template <class Monoid, class Team, int Vec>
struct ColumnSums {
  typename Monoid::Value values[Team::sums][Vec];

  __device__ __forceinline__ ColumnSums() {
    HEDDLE_UNROLL
    for (int part = 0; part < Team::sums; ++part) {
      HEDDLE_UNROLL
      for (int i = 0; i < Vec; ++i) values[part][i] = Monoid::identity();
    }
  }
  /// Takes the element of column i of the row `row`, which load j of a round brought.
  __device__ __forceinline__ void add(int j, int i, typename Monoid::Element element, int row) {
    typename Monoid::Value& value = values[Team::sum_of(j)][i];
    value = Monoid::combine(value, Monoid::lift(element, row));
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
    if constexpr (!Team::is_alone) exchange_.ready();
    uint32_t before = 0;
    ((send<Monoids>(team, before, sums), before += bytes_of_column<Monoids>), ...);
    if constexpr (!Team::is_alone) exchange_.receive();
    before = 0;
    ((total<Monoids>(team, before, results), before += bytes_of_column<Monoids>), ...);
  }

 private:
  static constexpr unsigned int all_lanes = 0xffffffffu;
  static constexpr int columns = Team::lanes * Vec;
  /// Columns whose results fill packs of 16 bytes.
  static constexpr int pack = 4;
  static constexpr int packs = columns / pack;
  static_assert(Vec % pack == 0, "chunks are whole packs");

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
    using Value = typename Monoid::Value;
    Value totals[Vec];
    HEDDLE_UNROLL
    for (int block = 0; block < Team::blocks; ++block) {
      const Shared16 place = place_of<Value>(before, block) + static_cast<uint32_t>(team.lane() * sizeof(totals));
      Pack<int, 4> words[sizeof(totals) / 16];
      HEDDLE_UNROLL
      for (int k = 0; k < static_cast<int>(sizeof(totals) / 16); ++k) words[k] = load_shared_16<int>(place + static_cast<uint32_t>(16 * k));
      Value values[Vec];
      memcpy(values, words, sizeof(values));
      HEDDLE_UNROLL
      for (int i = 0; i < Vec; ++i) totals[i] = block == 0 ? values[i] : Monoid::combine(totals[i], values[i]);
    }
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) results[i] = Monoid::result(totals[i]);
  }

  /// A thread's parts one after the other, where it finds them again.
  template <class Monoid>
  __device__ __forceinline__ void keep(const Team& team, uint32_t before, const ColumnSums<Monoid, Team, Vec>& sums) const {
    using Value = typename Monoid::Value;
    Value total[Vec];
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      total[i] = sums.values[0][i];
      HEDDLE_UNROLL
      for (int part = 1; part < Team::sums; ++part) total[i] = Monoid::combine(total[i], sums.values[part][i]);
    }
    Pack<int, 4> words[sizeof(total) / 16];
    memcpy(words, total, sizeof(total));
    const Shared16 place = place_of<Value>(before, 0) + static_cast<uint32_t>(team.lane() * sizeof(total));
    HEDDLE_UNROLL
    for (int k = 0; k < static_cast<int>(sizeof(total) / 16); ++k) store_shared_16(place + static_cast<uint32_t>(16 * k), words[k]);
  }

  /// Lanes of a warp combine their slots first, the lower ones; then a thread combines what all warps have of four columns, and sends it.
  template <class Monoid>
  __device__ __forceinline__ void exchange_sums(Team& team, uint32_t before, const ColumnSums<Monoid, Team, Vec>& sums) const {
    using Value = typename Monoid::Value;
    HEDDLE_SHARED(Value, partial, 2 * Team::warps * columns);
    const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
    Value total[pack];
    HEDDLE_UNROLL
    for (int part = 0; part < Team::sums; ++part) {
      const int base = team.next_buffer() * Team::warps * columns;
      HEDDLE_UNROLL
      for (int i = 0; i < Vec; ++i) {
        Value value = sums.values[part][i];
        HEDDLE_UNROLL
        for (int distance = Team::lanes; distance < warp_lanes; distance *= 2) {
          const Value other = exchange(value, all_lanes, distance);
          const bool isUpper = (static_cast<int>(threadIdx.x) & distance) != 0;
          value = isUpper ? Monoid::combine(other, value) : Monoid::combine(value, other);
        }
        if (static_cast<int>(threadIdx.x) % warp_lanes < Team::lanes) partial[base + warp * columns + team.lane() * Vec + i] = value;
      }
      __syncthreads();
      if (static_cast<int>(threadIdx.x) < packs) {
        HEDDLE_UNROLL
        for (int k = 0; k < pack; ++k) {
          Value values[Team::warps];
          HEDDLE_UNROLL
          for (int w = 0; w < Team::warps; ++w) values[w] = partial[base + w * columns + static_cast<int>(threadIdx.x) * pack + k];
          HEDDLE_UNROLL
          for (int distance = 1; distance < Team::warps; distance *= 2) {
            HEDDLE_UNROLL
            for (int w = 0; w + distance < Team::warps; w += 2 * distance) values[w] = Monoid::combine(values[w], values[w + distance]);
          }
          total[k] = part == 0 ? values[0] : Monoid::combine(total[k], values[0]);
        }
      }
    }
    if (static_cast<int>(threadIdx.x) >= packs) return;
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

  template <class Value>
  __device__ __forceinline__ Shared16 place_of(uint32_t before, int block) const {
    return places_ + (before * columns * Team::blocks + static_cast<uint32_t>(block * columns * sizeof(Value)));
  }

  ClusterExchange exchange_;
  Shared16 places_;
};

/// Launches `kernel` with a tile a team. `shared`: bytes of all its walks.
template <class Team, class Kernel, class... Args>
int32_t launch_columns(const heddle_launch* queue, heddle_error* error, const char* name, int64_t tiles, uint32_t shared, Kernel kernel,
                       Args... args) {
  const dim3 grid(static_cast<unsigned int>(tiles * Team::blocks));
  const LaunchConfig config{name, grid, dim3(Team::threads), shared, Sync::block, true, Team::blocks};
  return launch(queue, error, config, kernel, args...);
}

/// Picks the team for so many columns of each of `outer` matrices, and has `run` launch it. Chunks of a tile fill whole cache lines; where
/// such tiles and their clusters leave multiprocessors without work, tiles are half as wide. Where there are tiles for all of them,
/// a block reduces all rows of its own.
template <int Vec, int Parts, int Each = 1, class Run>
int32_t choose_columns(Count outer, int64_t columns, Arguments& arguments, Run run) {
  using Wide = ColumnTeam<8, Parts, false, 32, Each>;
  using Narrow = ColumnTeam<4, Parts, false, 32, Each>;
  const int64_t wide = arguments.work(outer * column_tiles<Wide, Vec>(static_cast<int>(columns)), 1);
  const int64_t narrow = arguments.work(outer * column_tiles<Narrow, Vec>(static_cast<int>(columns)), 1);
  if (arguments.status != HEDDLE_OK || wide == 0) return arguments.status;
#if defined(HEDDLE_SIMT)
  // No device to fill: both are there so that both are checked.
  return wide >= 2 ? run(Wide{}, wide) : run(Narrow{}, narrow);
#else
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount);
  if (wide >= 2 * at_once) return run(Wide{}, wide);
  if (narrow >= at_once || device_attribute(cudaDevAttrComputeCapabilityMajor) < 9) return run(Narrow{}, narrow);
  if (wide * Parts >= at_once + at_once / 4) return run(ColumnTeam<8, Parts, true, 32, Each>{}, wide);
  return run(ColumnTeam<4, Parts, true, 32, Each>{}, narrow);
#endif
}

/// The same for kernels that store every row, whose number alone tells how they are divided. Few are a thread's, which waits for nobody; of
/// some, parts that none belongs to would cost registers, and so blocks at once.
template <int Vec, int Parts, int Each = 1, class Run>
int32_t choose_stored_columns(Count outer, int64_t columns, int64_t rows, Arguments& arguments, Run run) {
  using Few = ColumnTeam<64, Parts, false, 1>;
  constexpr int some = Parts < 2 ? Parts : 2;
  if (rows > 32 * some) return choose_columns<Vec, Parts, Each>(outer, columns, arguments, run);
  if (rows > 4 * Parts) return choose_columns<Vec, some, some == Parts ? Each : 1>(outer, columns, arguments, run);
  const int64_t tiles = arguments.work(outer * column_tiles<Few, Vec>(static_cast<int>(columns)), 1);
  return arguments.status != HEDDLE_OK || tiles == 0 ? arguments.status : run(Few{}, tiles);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
