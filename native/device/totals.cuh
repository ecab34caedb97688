// Reductions of whole tensors. Chunks of a walk are dealt out to blocks in turns, and each block combines the values of its threads. If
// there are several blocks, the one that ends last combines theirs, in ascending order whichever it is. A short walk is done by one warp, since there may be many
// of them. The team and the number of blocks depend on the number of chunks alone. So the bits of a result depend neither on device nor
// timing, nor on the number of results. Files whose kernels reduce no whole tensor do not include this one.
#ifndef HEDDLE_TOTALS_CUH
#define HEDDLE_TOTALS_CUH

#include "launcher.cuh"
#include "scratch.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

constexpr int total_threads = 256;
/// Chunks of every tensor that a thread loads before it uses the first.
constexpr int total_loads = 4;
/// Chunks per thread that justify a block, and the most blocks of one walk: as many as a warp combines in some rounds, and more than run at
/// once. The CPU device divides earlier, so that short tensors test both paths.
#if defined(HEDDLE_SIMT)
constexpr int64_t total_rounds = 1;
#else
constexpr int64_t total_rounds = 8;
#endif
constexpr int64_t most_parts = 1024;
/// Chunks that a warp takes in the same number of rounds, with a walk of its own for each warp of a block.
constexpr int64_t few_chunks = int64_t{warp_lanes} * total_loads * (total_rounds > 1 ? 4 : 1);
constexpr int walks_of_block = total_threads / warp_lanes;

using WalkingBlock = BlockTeam<total_threads>;
using WalkingWarp = WarpTeam<warp_lanes, walks_of_block>;

/// Words that the results of all reductions of a walk take.
template <class... Monoids>
constexpr int words_of_totals = (0 + ... + static_cast<int>(sizeof(typename Monoids::Value) / sizeof(float)));

/// Combined value of all threads of a walk, in each of them.
template <class Monoid>
__device__ __forceinline__ typename Monoid::Value total_of(const WalkingWarp& team, const Accumulator<Monoid>& accumulator) {
  return combine_lanes<Monoid, warp_lanes>(accumulator.total, team.own_lanes());
}

template <class Monoid>
__device__ __forceinline__ typename Monoid::Value total_of(const WalkingBlock&, const Accumulator<Monoid>& accumulator) {
  using Value = typename Monoid::Value;
  constexpr int warps = total_threads / warp_lanes;
  HEDDLE_SHARED(Value, partial, warps);
  const Value own = combine_lanes<Monoid, warp_lanes>(accumulator.total, 0xffffffffu);
  __syncthreads();  // an earlier reduction of the same kind has been read
  if (static_cast<int>(threadIdx.x) % warp_lanes == 0) partial[static_cast<int>(threadIdx.x) / warp_lanes] = own;
  __syncthreads();
  Value total = partial[0];
  HEDDLE_UNROLL
  for (int warp = 1; warp < warps; ++warp) total = Monoid::combine(total, partial[warp]);
  return total;
}

/// Stores a block's total at word `place`.
template <class Value>
__device__ __forceinline__ void leave_total(const Out<float>& sums, int64_t place, const Value& total) {
  constexpr int count = sizeof(Value) / sizeof(float);
  if (threadIdx.x != 0) return;
  float words[count];
  memcpy(words, &total, sizeof(total));
  HEDDLE_UNROLL
  for (int i = 0; i < count; ++i) sums.set(place + i, words[i]);
}

/// Counts one of the blocks 0 to `last` that meet at a counter; returns the number before. After the last the counter is 0 again.
#if defined(HEDDLE_SIMT)
inline int arrive(const Out<int>& counters, int64_t i, int last) {
  int* const counter = reinterpret_cast<int*>(counters.buffer().data) + i;
  int before = __atomic_load_n(counter, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(counter, &before, before == last ? 0 : before + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return before;
}
#else
__device__ __forceinline__ int arrive(const Out<int>& counters, int64_t i, int last) {
  return static_cast<int>(atomicInc(reinterpret_cast<unsigned int*>(counters.data + i), static_cast<unsigned int>(last)));
}
#endif

/// True in the first warp of the last of the `parts` blocks of a walk to leave its totals, which sees those of all. `arrived` counts the
/// blocks of each walk.
__device__ __forceinline__ bool is_last_part(const Out<int>& arrived, int64_t walk, int parts) {
  if (static_cast<int>(threadIdx.x) >= warp_lanes) return false;
  int before = 0;
  if (threadIdx.x == 0) {
    __threadfence();  // the totals are visible before the count
    before = arrive(arrived, walk, parts - 1);
  }
  before = __shfl_sync(0xffffffffu, before, 0);
  __threadfence();  // and read after it
  return before == parts - 1;
}

/// Combines the totals of `parts` blocks, of which the first is at word `place` and each further one `stride` words after the previous: by
/// all lanes of a warp, which all get the result.
template <class Monoid>
__device__ __forceinline__ typename Monoid::Value take_total(const Out<float>& sums, int64_t place, int parts, int stride) {
  using Value = typename Monoid::Value;
  constexpr int count = sizeof(Value) / sizeof(float);
  Value total = Monoid::identity();
  HEDDLE_UNROLL_FEW
  for (int part = static_cast<int>(threadIdx.x); part < parts; part += warp_lanes) {
    float words[count];
    HEDDLE_UNROLL
    for (int i = 0; i < count; ++i) words[i] = sums.get(place + int64_t{part} * stride + i);
    Value value;
    memcpy(&value, words, sizeof(value));
    total = Monoid::combine(total, value);
  }
  return combine_lanes<Monoid, warp_lanes>(total, 0xffffffffu);
}

/// Combines the values of all threads of a walk. True where outputs are computed: everywhere if one team walks `Alone`, and otherwise in the
/// first warp of the last block to end.
template <bool Alone, class Team, class... Monoids>
__device__ __forceinline__ bool combine_totals(const Team& team, int part, int parts, const Out<float>& sums, const Out<int>& arrived,
                                              Accumulator<Monoids>&... all) {
  ((all.total = total_of(team, all)), ...);
  if constexpr (Alone) {
    return true;
  } else {
    constexpr int words = words_of_totals<Monoids...>;
    int64_t place = int64_t{blockIdx.x} * words;
    ((leave_total(sums, place, all.total), place += words_of_totals<Monoids>), ...);
    if (!is_last_part(arrived, blockIdx.x / parts, parts)) return false;
    place = (int64_t{blockIdx.x} - part) * words;
    ((all.total = take_total<Monoids>(sums, place, parts, words), place += words_of_totals<Monoids>), ...);
    return true;
  }
}

/// Launches the walk over `chunks` chunks of each of `rows` tensors: `brief` if a warp does it, `alone` if one block does, otherwise
/// `divided`, whose blocks pass on totals of `words` words each.
template <class... Params, class... Args>
int32_t launch_totals(const heddle_launch* queue, heddle_error* error, Arguments& arguments, const char* name, Count rows, Count chunks,
                      int words, void (*brief)(Params...), void (*alone)(Params...), void (*divided)(Params...), Args... args) {
  if (arguments.status == HEDDLE_OK && chunks.is_overflow()) {
    return fail(error, HEDDLE_INVALID, "kernel %s: the number of elements exceeds 64 bits", name);
  }
  const int64_t wanted = chunks.value / (total_threads * total_rounds) + (chunks.value % (total_threads * total_rounds) != 0 ? 1 : 0);
  const int64_t parts = wanted < 1 ? 1 : wanted > most_parts ? most_parts : wanted;
  const bool is_brief = chunks.value <= few_chunks;
  const int64_t walks = is_brief ? arguments.work(rows, walks_of_block) : arguments.work(rows * parts, 1);
  if (arguments.status != HEDDLE_OK || walks == 0) return arguments.status;
  const int64_t blocks = is_brief ? (walks + walks_of_block - 1) / walks_of_block : walks;
  const Scratch scratch(queue, error, name, parts > 1 ? blocks * words : 0);
  if (scratch.status != HEDDLE_OK) return scratch.status;
  const Scratch counters(queue, error, name, parts > 1 ? rows.value : 0, ScratchOf::counters);
  if (counters.status != HEDDLE_OK) return counters.status;
  const Sync sync = is_brief ? Sync::warp : Sync::block;
  const LaunchConfig walk{name, dim3(static_cast<unsigned int>(blocks)), dim3(total_threads), 0, sync, true};
  const auto kernel = is_brief ? brief : parts > 1 ? divided : alone;
  return launch(queue, error, walk, kernel, rows.value, chunks.value, static_cast<int>(parts), scratch.out(), counters.out_as<int>(), args...);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
