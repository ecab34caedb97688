// Recurrences along rows. A step needs the carried value of the previous step, so the lanes of a row take turns: each holds the inputs of
// its chunk's steps, which all lanes compute together, and passes on the carried value after its last element. Every team produces the same
// bits. Files whose kernels have no recurrences do not include this one.
#ifndef HEDDLE_FOLD_CUH
#define HEDDLE_FOLD_CUH

#include "fields.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// One thread's share of a recurrence: the inputs of its current chunk's steps, then the carried value after each.
template <class Fold, int Vec>
struct Carry {
  using Value = typename Fold::Value;
  using Element = typename Fold::Element;

  /// Carried value before the team's next chunks.
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
  /// Runs the steps of the chunk. A chunk without elements passes on the carried value it receives.
  __device__ __forceinline__ void run() {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      if (i < count) chunk[i] = carried = Fold::step(carried, elements[i]);
    }
    count = 0;
  }
  __device__ __forceinline__ Value operator[](int i) const { return chunk[i]; }
};

/// Runs the steps of a thread's chunk.
template <int Rows, class Fold, int Vec>
__device__ __forceinline__ void take_turns(ThreadTeam<Rows>&, Carry<Fold, Vec>& carry) {
  carry.run();
}

/// Runs the steps of the chunks of Count adjacent lanes, whose mask is `lanes`; `lane` is this one's number among them.
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

/// Warps take turns too. Each stores its carried value in its own place, which is written again only after a barrier of all others.
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
