// Recurrences along rows. A step needs what the step before it carries, so the lanes of a row take turns: each holds what the steps of its
// chunk take, computed by all lanes together, and passes on what is carried behind its last element. Every team makes the same bits.
// Files whose kernels carry nothing do not include this one.
#ifndef HEDDLE_FOLD_CUH
#define HEDDLE_FOLD_CUH

#include "fields.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// One thread's share of a recurrence: what the steps of its current chunk take, then what each carries on.
template <class Fold, int Vec>
struct Carry {
  using Value = typename Fold::Value;
  using Element = typename Fold::Element;

  /// What is carried in front of the team's next chunks.
  Value carried;
  Element elements[Vec];
  Value chunk[Vec];
  int count = 0;

  __device__ __forceinline__ explicit Carry(Value start) : carried(start) {}

  /// Takes element i of the chunk, in ascending order.
  __device__ __forceinline__ void add(int i, Element element, int) {
    elements[i] = element;
    count = i + 1;
  }
  /// Makes the steps of the chunk. A chunk without elements carries on what it is given.
  __device__ __forceinline__ void run() {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      if (i < count) chunk[i] = carried = Fold::step(carried, elements[i]);
    }
    count = 0;
  }
  __device__ __forceinline__ Value operator[](int i) const { return chunk[i]; }
};

/// Makes the steps of a thread's chunk.
template <int Rows, class Fold, int Vec>
__device__ __forceinline__ void take_turns(ThreadTeam<Rows>&, Carry<Fold, Vec>& carry) {
  carry.run();
}

/// The steps of the chunks of Count neighbouring lanes, whose mask is `lanes`; `lane` is this one's number among them.
template <int Count, class Fold, int Vec>
__device__ __forceinline__ void take_turns_of_lanes(Carry<Fold, Vec>& carry, unsigned int lanes, int lane) {
  HEDDLE_ROLLED
  for (int turn = 0; turn < Count; ++turn) {
    if (turn == lane) carry.run();
    carry.carried = from_lane(carry.carried, lanes, turn, Count);
  }
}

template <int Lanes, int Rows, class Fold, int Vec>
__device__ __forceinline__ void take_turns(WarpTeam<Lanes, Rows>& team, Carry<Fold, Vec>& carry) {
  take_turns_of_lanes<Lanes>(carry, team.own_lanes(), team.lane());
}

/// Warps take turns too. Each leaves what it carries on in a place of its own, which is written again only after all others have met.
template <int Lanes, class Fold, int Vec>
__device__ __forceinline__ void take_turns(BlockTeam<Lanes>& team, Carry<Fold, Vec>& carry) {
  using Value = typename Fold::Value;
  constexpr int warps = Lanes / warp_lanes;
  HEDDLE_SHARED(Value, places, warps);
  const int own = team.lane() / warp_lanes;
  HEDDLE_ROLLED
  for (int warp = 0; warp < warps; ++warp) {
    if (warp == own) {
      take_turns_of_lanes<warp_lanes>(carry, 0xffffffffu, team.lane() % warp_lanes);
      if (team.lane() % warp_lanes == 0) places[warp] = carry.carried;
    }
    team.meet();
    if (warp != own) carry.carried = places[warp];
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
