// The threads that compute one row together: a thread, a warp, a block. Each walks the row in chunks, lane by lane, and all
// lanes receive the result of a reduction.
//
// The order of combination is a function of the row's length alone. Chunk g of a row belongs to slot g mod 32. A slot
// combines its chunks in ascending order and the 32 slots are then combined pairwise, whether one warp owns all chunks or a
// block has one chunk a lane. So the number of rows may choose the team without changing a bit of the result.
#ifndef HEDDLE_TEAM_CUH
#define HEDDLE_TEAM_CUH

#include "monoids.cuh"

namespace heddle {

constexpr unsigned int all_lanes = 0xffffffffu;
constexpr int warp_lanes = 32;

template <class T>
__device__ __forceinline__ T exchange(T value, int distance) {
  return __shfl_xor_sync(all_lanes, value, distance);
}
template <class T>
__device__ __forceinline__ Placed<T> exchange(Placed<T> placed, int distance) {
  return {exchange(placed.value, distance), exchange(placed.index, distance)};
}

/// Combines the 32 values of a warp as a butterfly: every lane ends with the same bits, because `combine` is commutative.
template <class Monoid>
__device__ __forceinline__ typename Monoid::Value combine_warp(typename Monoid::Value value) {
  HEDDLE_UNROLL
  for (int distance = warp_lanes / 2; distance > 0; distance /= 2) value = Monoid::combine(value, exchange(value, distance));
  return value;
}

/// One thread a row.
template <int Rows>
struct ThreadTeam {
  static constexpr int lanes = 1;
  static constexpr int rows = Rows;
  static constexpr int threads = Rows;
  static constexpr Sync sync = Sync::none;

  __device__ __forceinline__ int64_t row() const { return static_cast<int64_t>(blockIdx.x) * Rows + threadIdx.x; }
  __device__ __forceinline__ int lane() const { return 0; }

  template <class Monoid>
  __device__ __forceinline__ auto reduce(const Accumulator<Monoid>& accumulator) {
    return Monoid::result(accumulator.total);
  }
};

/// One warp a row.
template <int Rows>
struct WarpTeam {
  static constexpr int lanes = warp_lanes;
  static constexpr int rows = Rows;
  static constexpr int threads = Rows * warp_lanes;
  static constexpr Sync sync = Sync::warp;

  __device__ __forceinline__ int64_t row() const {
    return static_cast<int64_t>(blockIdx.x) * Rows + static_cast<int>(threadIdx.x) / warp_lanes;
  }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) % warp_lanes; }

  template <class Monoid>
  __device__ __forceinline__ auto reduce(const Accumulator<Monoid>& accumulator) {
    return Monoid::result(combine_warp<Monoid>(accumulator.total));
  }
};

/// One block a row.
template <int Lanes>
struct BlockTeam {
  static_assert(Lanes % warp_lanes == 0, "whole warps");
  static constexpr int lanes = Lanes;
  static constexpr int rows = 1;
  static constexpr int threads = Lanes;
  static constexpr Sync sync = Sync::block;

  __device__ __forceinline__ int64_t row() const { return blockIdx.x; }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x); }

  /// Lane l of every warp combines what lanes l of all warps hold, then each warp finishes alone. Two buffers take turns: a
  /// thread that is a reduction ahead writes the one nobody reads, so one barrier a reduction is enough.
  template <class Monoid>
  __device__ __forceinline__ auto reduce(const Accumulator<Monoid>& accumulator) {
    using Value = typename Monoid::Value;
    HEDDLE_SHARED(Value, partial, 2 * Lanes);
    const int base = turn_ * Lanes;
    turn_ ^= 1;
    partial[base + lane()] = accumulator.total;
    __syncthreads();
    Value value = partial[base + lane() % warp_lanes];
    HEDDLE_UNROLL
    for (int warp = 1; warp < Lanes / warp_lanes; ++warp) {
      value = Monoid::combine(value, partial[base + warp * warp_lanes + lane() % warp_lanes]);
    }
    return Monoid::result(combine_warp<Monoid>(value));
  }

 private:
  int turn_ = 0;
};

}  // namespace heddle

#endif
