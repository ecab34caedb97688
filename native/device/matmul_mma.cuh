// The matmul for few rows, on tensor cores. Few rows mean few tiles and short kernels, which are bound by latency. So k is split over the
// blocks of a cluster to keep every multiprocessor loading, weights are fetched while the previous launch still runs, and addresses are
// computed before the wait for it. Partial sums are added in shared memory, never in a second kernel.
//
// A block multiplies its share of k in steps of 128 bytes. Its sums then go to the blocks of the cluster that own their rows. Owners add
// them in the order of k, so that timing changes no bit, and run the epilogue.
#ifndef HEDDLE_MATMUL_MMA_CUH
#define HEDDLE_MATMUL_MMA_CUH

#include "matmul_epilogue.cuh"
#include "matmul_multiply.cuh"
#include "vector.cuh"

namespace heddle {

/// Offset of the partial sums of eight columns of a row among those of eight rows. Rows of a piece are contiguous, so that a warp sends
/// whole lines, and rotated from piece to piece, so that reads along a row hit different banks.
__device__ __forceinline__ uint32_t piece_place(int piece, int row) {
  return static_cast<uint32_t>(piece * 256 + (row + piece) % 8 * 32);
}

/// A block computes a tile, or its share of k: blocks of a cluster, neighbours along x, divide the steps of k. `Whole`: no step of k and no
/// chunk of columns is cut off.
template <class T, class Tile, bool Whole, class Epilogue>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    matmul_mma(const int64_t m, const int64_t n, const int64_t k, const int split, const uint32_t sums_at,
               const uint32_t barrier_at, const bool constant_b, const In<T> a, const In<T> b, const Epilogue epilogue) {
  HEDDLE_DYNAMIC_SHARED(dynamic);
  Shared16 shared = dynamic;
  keep(shared);
  const int rank = static_cast<int>(blockIdx.x) % split;
  const int64_t row0 = static_cast<int64_t>(blockIdx.x / split) * Tile::rows;
  const int64_t column0 = static_cast<int64_t>(blockIdx.y) * Tile::columns;
  const int steps = static_cast<int>(steps_of<T>(k));
  const int begin = steps * rank / split, count = steps * (rank + 1) / split - begin;

  // The tile's rows are distributed over the blocks of the cluster, eight at a time; a block receives the sums of its rows from all blocks.
  const int live = static_cast<int>(m - row0 < Tile::rows ? m - row0 : Tile::rows);
  const int groups = (live + 7) / 8, owned = Tile::owned_groups(live, split), own_first = rank * owned;
  const int own_groups = groups - own_first < owned ? groups - own_first : owned;
  const int own_rows = live - own_first * 8 < own_groups * 8 ? live - own_first * 8 : own_groups * 8;
  const int slots = split * Tile::warps_k;
  const ClusterExchange exchange(shared + barrier_at, split);
  exchange.announce(own_groups > 0 ? own_groups * slots * Tile::group_bytes : 0);

  // A stage holds the rows of a, then those of b.
  constexpr int ahead = Multiplier<T, Tile>::ahead;
  constexpr uint32_t b_bytes = Tile::rows * step_row_bytes;
  const OperandCopies<T, Tile::rows, Tile::threads, Whole> a_copies(a, row0, m, begin, k);
  const OperandCopies<T, Tile::columns, Tile::threads, Whole> b_copies(b, column0, n, begin, k);
  if (!constant_b) wait_for_producers();
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < count) b_copies.start(shared + (s * Tile::stage_bytes + b_bytes), s);
  }

  // A thread's chunks of the output: those of the block's rows, distributed round-robin.
  using Call = EpilogueCall<Epilogue>;
  constexpr int chunks = Tile::columns / 8;
  const int own_chunks = own_rows * chunks;
  const auto valid_in = [&](int chunk) {
    const int64_t left = n - column0 - chunk % chunks * 8;
    return chunk >= own_chunks || left <= 0 ? 0 : Whole || left >= 8 ? 8 : static_cast<int>(left);
  };
  const auto row_of = [&](int chunk) { return row0 + own_first * 8 + chunk / chunks; };
  const auto column_of = [&](int chunk) { return static_cast<int>(column0) + chunk % chunks * 8; };
  int chunk = static_cast<int>(threadIdx.x), valid = valid_in(chunk);
  if (valid > 0) prefetch_constants(epilogue, column_of(chunk), 0);

  Multiplier<T, Tile> multiplier(shared);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool odd = lane % 2 != 0;
  const int slot = rank * Tile::warps_k + warp / (Tile::warps_m * Tile::warps_n);
  const int own_group = warp % Tile::warps_m * (Tile::warp_rows / 8) + (odd ? 1 : 0);
  const int own_piece = warp / Tile::warps_m % Tile::warps_n * (Tile::warp_columns / 8);
  const Shared16 parts = shared + sums_at;
  typename ClusterExchange::Destination to[Tile::row_pieces];
  HEDDLE_UNROLL
  for (int i = 0; i < Tile::row_pieces; ++i) {
    const int group = own_group + 2 * i, owner = group < groups ? group / owned : 0;
    to[i] = exchange.destination(parts + (slot * owned + group - owner * owned) * Tile::group_bytes, owner);
    keep(to[i].place);
    keep(to[i].barrier);
  }
  const auto place_of = [&](int chunk) {
    const int row = chunk / chunks, piece = chunk % chunks;
    return parts + (row / 8 * Tile::group_bytes + piece_place(piece, row % 8));
  };
  Shared16 own_part = place_of(chunk);
  keep(own_part);

  // The next launch may start only now. Started while the previous launch still runs, it would share a multiprocessor's L1 cache with it,
  // and could hit lines there that were read before this launch wrote them.
  wait_for_producers();
  release_consumers();
  HEDDLE_UNROLL
  for (int s = 0; s < ahead; ++s) {
    if (s < count) a_copies.start(shared + s * Tile::stage_bytes, s);
    copy_async_commit();
  }
  typename Call::Loaded loaded = {};
  if (valid > 0) loaded = Call::template load<Whole>(epilogue, row_of(chunk), column_of(chunk), valid);
  multiplier.run(count, [&](int s, int stage) {
    const Shared16 to_stage = shared + stage * Tile::stage_bytes;
    a_copies.start(to_stage, s);
    b_copies.start(to_stage + b_bytes, s);
  });

  // Partial sums go to the owners of their rows, one slot per part of k. Two neighbouring lanes hold two columns of two rows each. After an
  // exchange the even lane holds four columns of the upper row, the odd lane four of the lower.
  const auto send_all = [&](auto clustered) {
    HEDDLE_UNROLL
    for (int i = 0; i < Tile::row_pieces; ++i) {
      HEDDLE_UNROLL
      for (int j = 0; j < 2 * Tile::column_pieces; ++j) {
        const SumOf<T>(&d)[4] = multiplier.sums[i][j];
        const SumOf<T> first = __shfl_xor_sync(0xffffffffu, odd ? d[0] : d[2], 1);
        const SumOf<T> second = __shfl_xor_sync(0xffffffffu, odd ? d[1] : d[3], 1);
        using Four = Pack<SumOf<T>, 4>;
        const Four four = odd ? Four{{first, second, d[2], d[3]}} : Four{{d[0], d[1], first, second}};
        const uint32_t place = piece_place(own_piece + j, lane / 4) + lane % 4 / 2 * 16;
        if (own_group + 2 * i < groups) exchange.send<decltype(clustered)::value>(to[i], place, four);
      }
    }
  };
  if (split > 1) {
    exchange.ready();
    send_all(Constant<true>());
  } else {
    // Sums overwrite stages that other warps may still read.
    __syncthreads();
    send_all(Constant<false>());
  }
  exchange.receive();

  while (chunk < own_chunks) {
    const int next = chunk + Tile::threads;
    typename Call::Loaded next_loaded = {};
    int next_valid = 0;
    if (next < own_chunks) {
      next_valid = valid_in(next);
      if (next_valid > 0) next_loaded = Call::template load<Whole>(epilogue, row_of(next), column_of(next), next_valid);
    }
    if (valid > 0) {
      SumOf<T> total[8] = {};
      add_parts(total, own_part, slots, owned * Tile::group_bytes);
      Call::template finish<Whole>(epilogue, row_of(chunk), column_of(chunk), valid, total, loaded);
    }
    if (next >= own_chunks) break;
    chunk = next;
    valid = next_valid;
    loaded = next_loaded;
    own_part = place_of(chunk);
  }
}

/// True if no step of k and no chunk of columns is cut off.
template <class T, class Epilogue>
bool is_whole(int64_t n, int64_t k, const Epilogue& epilogue) {
  return k % step_elements<T> == 0 && n % 8 == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue);
}

/// Enqueues the matmul with one tile and k split over clusters of `split` blocks (1 to 8, at most the steps of k; more than 1 requires
/// sm_90). Rows of a and b are 16-byte aligned. `Whole`: for shapes that are is_whole(). `constant_b`: no launch still in flight writes b.
template <class Tile, bool Whole, class T, class Epilogue>
int32_t launch_matmul_tile(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                           In<T> a, In<T> b, Epilogue epilogue, bool constant_b, int split) {
  static_assert(Epilogue::VEC == 8, "an epilogue takes eight columns");
  const int64_t tiles_m = (m + Tile::rows - 1) / Tile::rows, tiles_n = (n + Tile::columns - 1) / Tile::columns;
  constexpr int64_t most_m = INT32_MAX / 8, most_n = 65535;
  if (tiles_m > most_m || tiles_n > most_n) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld x %lld tiles, expected at most %lld x %lld", name,
                static_cast<long long>(tiles_m), static_cast<long long>(tiles_n), static_cast<long long>(most_m),
                static_cast<long long>(most_n));
  }
  LaunchConfig config{name, dim3(static_cast<unsigned int>(tiles_m * split), static_cast<unsigned int>(tiles_n)),
                      dim3(Tile::threads), Tile::shared_bytes(m, steps_of<T>(k), split), Sync::block};
  config.starts_early = true;
  config.cluster = static_cast<uint32_t>(split);
  const uint32_t barrier_at = config.shared_bytes - ClusterExchange::barrier_bytes;
  return launch(queue, error, config, matmul_mma<T, Tile, Whole, Epilogue>, m, n, k, split, Tile::sums_at(steps_of<T>(k), split), barrier_at,
                constant_b, a, b, epilogue);
}

}  // namespace heddle

#endif
