// Grouped matmuls on tensor cores: a block multiplies a tile of rows that choose one matrix by columns of that matrix, with the main loop of
// matmul_mma.cuh. Rows of the left factor are copied from wherever they are.
#ifndef HEDDLE_GROUPED_MMA_CUH
#define HEDDLE_GROUPED_MMA_CUH

#include "grouped_rows.cuh"
#include "matmul_mma.cuh"

namespace heddle {

/// This thread's copies of Count rows of k elements, of which `rows` exist: row r begins at element `begin_of(r)`. As OperandCopies for rows
/// that are not neighbours.
template <class T, int Count, int Threads, bool Whole>
class GatheredCopies {
 public:
  template <class BeginOf>
  __device__ __forceinline__ GatheredCopies(const In<T>& tensor, int rows, int64_t k, BeginOf begin_of)
      : GatheredCopies(tensor, rows, k, threadIdx.x % words * elements, begin_of, std::make_integer_sequence<int, per_thread>()) {}

  /// Starts the copies of the `s`-th step into the stage's part at `to`.
  __device__ __forceinline__ void start(Shared16 to, int s) const {
    const int64_t offset = static_cast<int64_t>(s) * step_elements<T>;
    HEDDLE_UNROLL
    for (int i = 0; i < per_thread; ++i) {
      if (i < groups_) from_[i].copy_to(to + (place_ + i * row_step * step_row_bytes), offset, Whole || offset < left_);
    }
  }

 private:
  static constexpr int words = step_row_bytes / 16;
  static constexpr int elements = 16 / static_cast<int>(sizeof(T));
  static constexpr int row_step = Threads / words;
  static constexpr int per_thread = Count / row_step;
  static_assert(Count % row_step == 0 && row_step % 8 == 0, "every thread copies as much, at one place of the permutation");

  template <class BeginOf, int... I>
  __device__ __forceinline__ GatheredCopies(const In<T>& tensor, int rows, int64_t k, int64_t k0, BeginOf begin_of,
                                            std::integer_sequence<int, I...>)
      : from_{CopySource<T>(tensor, begin_of(nearest(static_cast<int>(threadIdx.x) / words + I * row_step, rows)) + (k0 < k ? k0 : 0))...},
        left_(k - k0),
        groups_(((rows < Count ? rows : Count) + row_step - 1) / row_step) {
    const int row = threadIdx.x / words, word = threadIdx.x % words;
    place_ = row * step_row_bytes + (word ^ row % 8) * 16;
    keep(place_);
  }

  static __device__ __forceinline__ int nearest(int row, int rows) { return row < rows ? row : rows - 1; }

  CopySource<T> from_[per_thread];
  int64_t left_;
  int groups_;
  uint32_t place_;
};

/// Bytes between rows of sums in shared memory; the padding spreads them over the banks.
template <class Tile>
constexpr uint32_t grouped_sums_stride = Tile::columns * 4 + 16;

/// Dynamic shared memory of a block: the pipeline, later the sums.
template <class Tile>
constexpr uint32_t grouped_shared_bytes() {
  constexpr uint32_t sums = Tile::rows * grouped_sums_stride<Tile>, stages = Tile::stages * Tile::stage_bytes;
  return sums > stages ? sums : stages;
}

/// Stores a warp's sums of a tile, row by row. Two neighbouring lanes hold two columns of two rows each, and store four of one.
template <class Tile, class Sums>
__device__ __forceinline__ void store_sums(const Sums& sums, Shared16 to) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool odd = lane % 2 != 0;
  const int row0 = warp % Tile::warps_m * Tile::warp_rows + lane / 4 + (odd ? 8 : 0);
  const int column0 = warp / Tile::warps_m % Tile::warps_n * Tile::warp_columns + lane % 4 / 2 * 4;
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::row_pieces; ++i) {
    HEDDLE_UNROLL
    for (int j = 0; j < 2 * Tile::column_pieces; ++j) {
      const float(&d)[4] = sums[i][j];
      const float first = __shfl_xor_sync(0xffffffffu, odd ? d[0] : d[2], 1);
      const float second = __shfl_xor_sync(0xffffffffu, odd ? d[1] : d[3], 1);
      using Four = Pack<float, 4>;
      const Four four = odd ? Four{{first, second, d[2], d[3]}} : Four{{d[0], d[1], first, second}};
      const int row = row0 + 16 * i, column = column0 + 8 * j;
      store_shared_16(to + (row * grouped_sums_stride<Tile> + column * 4), four);
    }
  }
}

/// Passes the sums of a tile to the epilogue, from where store_sums() has put them; chunks of columns are distributed over the threads. Loads of several
/// chunks are in flight.
template <class Tile, bool Whole, class Slots>
__device__ __forceinline__ void finish_grouped_tile(const Slots& slots, const GroupedOrder& order, const GroupedTile& own, int64_t n,
                                                    int64_t column0, Shared16 from_sums) {
  using Call = EpilogueCall<Slots>;
  constexpr int batch = 4, chunks = Tile::columns / 8;
  const int64_t rest = n - column0;
  const int count = rest <= 0 ? 0 : own.count * chunks;
  HEDDLE_ROLLED
  for (int first = static_cast<int>(threadIdx.x); first < count; first += batch * Tile::threads) {
    typename Call::Loaded loaded[batch];
    int64_t rows[batch];
    const auto at = [&](int i) { return min(first + i * Tile::threads, count - 1); };
    // None beyond the last column.
    const auto valid_in = [&](int piece) { return rest - piece * 8 >= 8 ? 8 : static_cast<int>(rest - piece * 8); };
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) rows[i] = order.row(own.first + at(i) / chunks);
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      const int piece = at(i) % chunks, valid = valid_in(piece);
      if (valid > 0) loaded[i] = Call::template load<Whole>(slots, rows[i], static_cast<int>(column0) + piece * 8, valid);
    }
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      if (first + i * Tile::threads >= count) break;
      const int row = at(i) / chunks, piece = at(i) % chunks, valid = valid_in(piece);
      if (valid <= 0) continue;
      const Shared16 from = from_sums + (row * grouped_sums_stride<Tile> + piece * 32);
      const Pack<float, 4> low = load_shared_16<float>(from), high = load_shared_16<float>(from + 16);
      float sums[8];
      HEDDLE_UNROLL
      for (int c = 0; c < 8; ++c) sums[c] = c < 4 ? low.v[c] : high.v[c - 4];
      Call::template finish<Whole>(slots, rows[i], static_cast<int>(column0) + piece * 8, valid, sums, loaded[i]);
    }
  }
}

/// A block per tile of rows and Tile::columns columns. `Whole`: no step of k and no chunk of columns is cut off.
template <class Slots, class Tile, bool Whole>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    grouped_mma(const int64_t n, const int64_t k, const int matrices, const GroupedOrder order, const Slots slots) {
  using T = typename Slots::Left;
  HEDDLE_DYNAMIC_SHARED(dynamic);
  Shared16 shared = dynamic;
  keep(shared);
  // In this order for the reason given in matmul_mma.cuh.
  wait_for_producers();
  release_consumers();
  if (static_cast<int>(blockIdx.x) >= order.tiles()) return;
  const GroupedTile own = order.tile(blockIdx.x);
  const int64_t column0 = static_cast<int64_t>(blockIdx.y) * Tile::columns;
  const bool has_matrix = own.matrix < matrices;
  const int steps = has_matrix ? static_cast<int>(steps_of<T>(k)) : 0;
  const int64_t right0 = (has_matrix ? own.matrix : 0) * n;
  constexpr int ahead = Multiplier<T, Tile>::ahead;
  constexpr uint32_t right_at = Tile::rows * step_row_bytes;
  Multiplier<T, Tile> multiplier(shared);
  if (steps > 0) {
    const GatheredCopies<T, Tile::rows, Tile::threads, Whole> left(
        slots.left(), own.count, k, [&](int r) { return slots.left_begin(order.row(own.first + r)); });
    const OperandCopies<T, Tile::columns, Tile::threads, Whole> right(slots.right(), right0 + column0, right0 + n, 0, k);
    const auto fill = [&](int s, int stage) {
      const Shared16 to = shared + stage * Tile::stage_bytes;
      left.start(to, s);
      right.start(to + right_at, s);
    };
    HEDDLE_UNROLL
    for (int s = 0; s < ahead; ++s) {
      if (s < steps) fill(s, s);
      copy_async_commit();
    }
    multiplier.run(steps, fill);
  }
  // Sums overwrite stages that other warps may still read.
  __syncthreads();
  store_sums<Tile>(multiplier.sums, shared);
  __syncthreads();
  finish_grouped_tile<Tile, Whole>(slots, order, own, n, column0, shared);
}

/// Enqueues the order of rows, and the matmul with one tile. Rows of both factors are aligned to 16 bytes.
template <class Tile, class Slots>
int32_t launch_grouped_mma(const heddle_launch* queue, heddle_error* error, const char* name, int64_t rows, int64_t n, int64_t k,
                           int64_t matrices, const Slots& slots) {
  using T = typename Slots::Left;
  const GroupedLayout layout = GroupedLayout::of(rows, matrices, Tile::rows);
  const int64_t tiles_n = (n + Tile::columns - 1) / Tile::columns;
  constexpr int64_t most_n = 65535;
  if (tiles_n > most_n || layout.most_tiles > INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld x %lld tiles, expected at most 2147483647 x %lld", name,
                static_cast<long long>(layout.most_tiles), static_cast<long long>(tiles_n), static_cast<long long>(most_n));
  }
  const Scratch scratch(queue, error, name, layout.words());
  if (scratch.status != HEDDLE_OK) return scratch.status;
  const int32_t status = launch_group_rows(queue, error, name, rows, matrices, Tile::rows, layout, scratch, slots);
  if (status != HEDDLE_OK) return status;
  LaunchConfig config{name, dim3(static_cast<unsigned int>(layout.most_tiles), static_cast<unsigned int>(tiles_n)), dim3(Tile::threads),
                      grouped_shared_bytes<Tile>(), Sync::block};
  config.starts_early = true;
  const bool whole = k % step_elements<T> == 0 && n % 8 == 0 && EpilogueCall<Slots>::whole_chunks(slots);
  return launch(queue, error, config, whole ? grouped_mma<Slots, Tile, true> : grouped_mma<Slots, Tile, false>, n, k,
                static_cast<int>(matrices), GroupedOrder{scratch.template in_as<int>(), layout}, slots);
}

}  // namespace heddle

#endif
