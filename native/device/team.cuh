// The threads that compute one row together: a thread, some lanes of a warp, a block. Each loops over the row in chunks, lane by lane, and
// all lanes receive the result of a reduction. In a scan all lanes meet at every chunk, also those whose own chunk is beyond the row. After
// `meet` every lane of the row sees earlier writes of the others.
//
// The order of combination depends on the team and the row's length, never on timing. A whole warp and a block agree: chunk g of a row
// belongs to slot g mod 32, a slot combines its chunks in ascending order, and the 32 slots are combined pairwise. So the number of rows
// may choose between a warp and a block of one chunk per lane without changing a bit. In a scan they agree as well: 32 adjacent chunks are
// combined by a warp, and such groups one after the other in ascending order. Blocks of more than 16 warps, which take rows that are too
// long for a warp, combine groups pairwise.
#ifndef HEDDLE_TEAM_CUH
#define HEDDLE_TEAM_CUH

#include "monoids.cuh"

namespace heddle {

constexpr int warp_lanes = 32;

template <class T>
__device__ __forceinline__ T exchange(T value, unsigned int lanes, int distance) {
  return __shfl_xor_sync(lanes, value, distance);
}
template <class T>
__device__ __forceinline__ Placed<T> exchange(Placed<T> placed, unsigned int lanes, int distance) {
  return {exchange(placed.value, lanes, distance), exchange(placed.index, lanes, distance)};
}

template <int Count>
struct Fields;

/// True if `combine` is user-defined; the reversed order of its operands may give other bits.
template <class Value>
struct IsFields : std::false_type {};
template <int Count>
struct IsFields<Fields<Count>> : std::true_type {};

/// Combines the values of Count adjacent lanes, whose mask is `lanes`, as a butterfly: each of them ends with the same bits, because
/// `combine` is commutative, or because the lower lanes come first.
template <class Monoid, int Count>
__device__ __forceinline__ typename Monoid::Value combine_lanes(typename Monoid::Value value, unsigned int lanes) {
  HEDDLE_UNROLL
  for (int distance = Count / 2; distance > 0; distance /= 2) {
    const auto other = exchange(value, lanes, distance);
    if constexpr (IsFields<typename Monoid::Value>::value) {
      const bool isUpper = (static_cast<int>(threadIdx.x) & distance) != 0;
      value = isUpper ? Monoid::combine(other, value) : Monoid::combine(value, other);
    } else {
      value = Monoid::combine(value, other);
    }
  }
  return value;
}

template <class T>
__device__ __forceinline__ T from_lane(T value, unsigned int lanes, int lane, int count) {
  return __shfl_sync(lanes, value, lane, count);
}
template <class T>
__device__ __forceinline__ Placed<T> from_lane(Placed<T> placed, unsigned int lanes, int lane, int count) {
  return {from_lane(placed.value, lanes, lane, count), from_lane(placed.index, lanes, lane, count)};
}

template <class T>
__device__ __forceinline__ T from_below(T value, unsigned int lanes, int distance, int count) {
  return __shfl_up_sync(lanes, value, distance, count);
}
template <class T>
__device__ __forceinline__ Placed<T> from_below(Placed<T> placed, unsigned int lanes, int distance, int count) {
  return {from_below(placed.value, lanes, distance, count), from_below(placed.index, lanes, distance, count)};
}

/// Values of adjacent lanes of a warp, combined in ascending order.
template <class Value>
struct LaneScan {
  /// The lower lanes.
  Value before;
  /// All lanes.
  Value all;
};

/// Scans the values of Count adjacent lanes, whose mask is `lanes`; `lane` is this one's number among them.
template <class Monoid, int Count>
__device__ __forceinline__ LaneScan<typename Monoid::Value> scan_lanes(typename Monoid::Value value, unsigned int lanes,
                                                                      int lane) {
  HEDDLE_UNROLL
  for (int distance = 1; distance < Count; distance *= 2) {
    const auto below = from_below(value, lanes, distance, Count);
    if (lane >= distance) value = Monoid::combine(below, value);
  }
  const auto below = from_below(value, lanes, 1, Count);
  return {lane > 0 ? below : Monoid::identity(), from_lane(value, lanes, Count - 1, Count)};
}

/// One thread per row.
template <int Rows>
struct ThreadTeam {
  static constexpr int lanes = 1;
  static constexpr int rows = Rows;
  static constexpr int threads = Rows;
  static constexpr Sync sync = Sync::none;

  __device__ __forceinline__ int64_t row() const { return static_cast<int64_t>(blockIdx.x) * Rows + threadIdx.x; }
  __device__ __forceinline__ int lane() const { return 0; }
  __device__ __forceinline__ void meet() const {}

  template <class Monoid>
  __device__ __forceinline__ auto reduce(const Accumulator<Monoid>& accumulator) {
    return Monoid::result(accumulator.total);
  }

  template <class Monoid, int Vec>
  __device__ __forceinline__ void scan(Prefix<Monoid, Vec>& prefix) {
    prefix.end_chunk(prefix.carry, Monoid::combine(prefix.carry, prefix.total));
  }
};

/// `Lanes` adjacent lanes of a warp per row: a whole warp, or a part of it when rows are short.
template <int Lanes, int Rows>
struct WarpTeam {
  static_assert(warp_lanes % Lanes == 0, "a power of two of lanes");
  static_assert(Lanes * Rows % warp_lanes == 0, "whole warps");
  static constexpr int lanes = Lanes;
  static constexpr int rows = Rows;
  static constexpr int threads = Lanes * Rows;
  static constexpr Sync sync = Sync::warp;

  __device__ __forceinline__ int64_t row() const {
    return static_cast<int64_t>(blockIdx.x) * Rows + static_cast<int>(threadIdx.x) / Lanes;
  }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x) % Lanes; }
  /// The mask of the row's lanes.
  __device__ __forceinline__ static unsigned int own_lanes() {
    return all_ones >> (warp_lanes - Lanes) << (static_cast<int>(threadIdx.x) % warp_lanes / Lanes * Lanes);
  }
  __device__ __forceinline__ void meet() const { __syncwarp(own_lanes()); }

  template <class Monoid>
  __device__ __forceinline__ auto reduce(const Accumulator<Monoid>& accumulator) {
    return Monoid::result(combine_lanes<Monoid, Lanes>(accumulator.total, own_lanes()));
  }

  template <class Monoid, int Vec>
  __device__ __forceinline__ void scan(Prefix<Monoid, Vec>& prefix) {
    const auto chunks = scan_lanes<Monoid, Lanes>(prefix.total, own_lanes(), lane());
    prefix.end_chunk(Monoid::combine(prefix.carry, chunks.before), Monoid::combine(prefix.carry, chunks.all));
  }

 private:
  static constexpr unsigned int all_ones = 0xffffffffu;
};

/// Values that the lanes of a block exchange in reductions, the same array for all reductions of one type: two buffers.
template <class Value, int Lanes>
struct BlockPartials {
  HEDDLE_SHARED_FUNCTION(Value, values, 2 * Lanes)
};

/// One block per row.
template <int Lanes>
struct BlockTeam {
  static_assert(Lanes % warp_lanes == 0, "whole warps");
  static constexpr int lanes = Lanes;
  static constexpr int rows = 1;
  static constexpr int threads = Lanes;
  static constexpr Sync sync = Sync::block;

  __device__ __forceinline__ int64_t row() const { return blockIdx.x; }
  __device__ __forceinline__ int lane() const { return static_cast<int>(threadIdx.x); }
  __device__ __forceinline__ void meet() const { __syncthreads(); }

  /// Lane l of a warp combines the values of lanes l of all warps, then a butterfly finishes. With few warps every warp does so. With more,
  /// one does it for all, since a second barrier costs less than that work; the bits are the same. Two buffers alternate: a thread that is
  /// a reduction ahead writes the one that is not read.
  template <class Monoid>
  __device__ __forceinline__ auto reduce(const Accumulator<Monoid>& accumulator) {
    using Value = typename Monoid::Value;
    const auto partial = BlockPartials<Value, Lanes>{}.values();
    const int base = turn_ * Lanes;
    turn_ ^= 1;
    partial[base + lane()] = accumulator.total;
    __syncthreads();
    if constexpr (warps <= few_warps) return Monoid::result(over_warps<Monoid>(partial, base));
    if (lane() < warp_lanes) {
      const Value value = over_warps<Monoid>(partial, base);
      __syncwarp();
      if (lane() == 0) partial[base] = value;
    }
    __syncthreads();
    const Value value = partial[base];
    return Monoid::result(value);
  }

  /// Each warp scans its lanes, then the results of warps are combined: in ascending order for few warps, by a scan in every warp where
  /// that is less work. Two buffers alternate as in a reduction.
  template <class Monoid, int Vec>
  __device__ __forceinline__ void scan(Prefix<Monoid, Vec>& prefix) {
    using Value = typename Monoid::Value;
    HEDDLE_SHARED(Value, partial, 2 * warps);
    const int base = turn_ * warps;
    turn_ ^= 1;
    const int own = lane() / warp_lanes;
    const auto chunks = scan_present<Monoid>(prefix.total);
    if (lane() % warp_lanes == 0) partial[base + own] = chunks.all;
    __syncthreads();
    Value total = prefix.carry;
    Value before = total;
    if constexpr (warps <= few_warps) {
      HEDDLE_UNROLL
      for (int warp = 0; warp < warps; ++warp) {
        if (warp == own) before = total;
        total = Monoid::combine(total, partial[base + warp]);
      }
    } else {
      const int place = lane() % warp_lanes;
      const Value value = place < warps ? static_cast<Value>(partial[base + place]) : Monoid::identity();
      const auto groups = scan_present<Monoid>(value);
      before = Monoid::combine(total, from_lane(groups.before, all_ones, own, warp_lanes));
      total = Monoid::combine(total, groups.all);
    }
    prefix.end_chunk(Monoid::combine(before, chunks.before), total);
  }

 private:
  static constexpr unsigned int all_ones = 0xffffffffu;
  static constexpr int warps = Lanes / warp_lanes;
  /// With more warps, a second barrier or a separate scan is cheaper than combining all other warps in every warp.
  static constexpr int few_warps = 16;

  /// Scans the values of a warp's lanes, which are mostly all the identity if few elements count.
  template <class Monoid, class Value>
  __device__ __forceinline__ LaneScan<Value> scan_present(const Value& value) const {
    if (!__any_sync(all_ones, !(value == Monoid::identity()))) return {Monoid::identity(), Monoid::identity()};
    return scan_lanes<Monoid, warp_lanes>(value, all_ones, lane() % warp_lanes);
  }

  template <class Monoid, class Partial>
  __device__ __forceinline__ typename Monoid::Value over_warps(const Partial& partial, int base) const {
    typename Monoid::Value value = partial[base + lane() % warp_lanes];
    HEDDLE_UNROLL
    for (int warp = 1; warp < warps; ++warp) {
      value = Monoid::combine(value, partial[base + warp * warp_lanes + lane() % warp_lanes]);
    }
    return combine_lanes<Monoid, warp_lanes>(value, all_ones);
  }

  int turn_ = 0;
};

}  // namespace heddle

#endif
