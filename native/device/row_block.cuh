// Blocks that compute one row each, and what the lanes of any team of a row hold of its chunks where these lie apart or have totals of their own.
//
// A block with two chunks a lane has twice the loads in flight of one with as many lanes as chunks. The totals of both chunks are combined as those of
// twice the lanes, so that the number of rows may choose between the two without changing a bit (team.cuh). Files without rows of blocks do not
// include this one.
#ifndef HEDDLE_ROW_BLOCK_CUH
#define HEDDLE_ROW_BLOCK_CUH

#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// One block per row, whose lanes keep the totals of `Apart` chunks apart.
template <int Lanes, int Apart = 1>
struct RowBlock;

/// Chunks of a lane whose totals a team takes apart.
template <class Team>
constexpr int totals_apart = 1;
template <int Lanes, int Apart>
constexpr int totals_apart<RowBlock<Lanes, Apart>> = Apart;

/// One thread's share of a reduction: a total for each of `Count` chunks.
template <class Monoid, int Count>
struct ChunkTotals {
  typename Monoid::Value totals[Count];
  typename Monoid::Value chunk = Monoid::identity();
  int turn = 0;

  __device__ __forceinline__ ChunkTotals() {
    HEDDLE_UNROLL
    for (int i = 0; i < Count; ++i) totals[i] = Monoid::identity();
  }
  __device__ __forceinline__ void add(typename Monoid::Element element, int index) {
    chunk = Monoid::combine(chunk, Monoid::lift(element, index));
  }
  __device__ __forceinline__ void end_chunk() {
    totals[turn] = Monoid::combine(totals[turn], chunk);
    chunk = Monoid::identity();
    turn = turn + 1 == Count ? 0 : turn + 1;
  }
};

/// One thread's share of a reduction of a row that its team keeps.
template <class Team, class Monoid>
using RowShare = std::conditional_t<totals_apart<Team> == 1, Accumulator<Monoid>, ChunkTotals<Monoid, totals_apart<Team>>>;

/// One thread's share of a scan: its current chunk, whose elements are `Step` apart (apart.cuh), and the combination of the row before its tile.
template <class Monoid, int Vec, int Step>
struct PrefixApart {
  using Value = typename Monoid::Value;

  Value chunk[Vec];
  /// A bit for each element of the chunk that exists.
  unsigned int present = 0;
  /// Everything before the tile.
  Value before = Monoid::identity();
  /// Everything before the team's next chunks.
  Value carry = Monoid::identity();

  __device__ __forceinline__ void add(int i, typename Monoid::Element element, int index) {
    chunk[i] = Monoid::lift(element, index);
    present |= 1u << i;
  }
  __device__ __forceinline__ void end_chunk(Value own, Value next) {
    before = own;
    carry = next;
    present = 0;
  }
  __device__ __forceinline__ auto operator[](int i) const { return Monoid::result(Monoid::combine(before, chunk[i])); }
};

/// The share of a scan whose chunks have elements `Step` apart.
template <class Monoid, int Vec, int Step>
using RowPrefix = std::conditional_t<Step == 1, Prefix<Monoid, Vec>, PrefixApart<Monoid, Vec, Step>>;

/// Scans a tile: each element becomes the combination of all up to it, in the order of the row, which is that of rounds of Step adjacent lanes.
/// @return the combination of the tile
template <class Monoid, int Vec, int Step>
__device__ __forceinline__ typename Monoid::Value scan_tile(PrefixApart<Monoid, Vec, Step>& prefix, unsigned int lanes, int lane) {
  auto all = Monoid::identity();
  HEDDLE_UNROLL
  for (int i = 0; i < Vec; ++i) {
    auto value = (prefix.present >> i & 1u) != 0 ? prefix.chunk[i] : Monoid::identity();
    HEDDLE_UNROLL
    for (int distance = 1; distance < Step; distance *= 2) {
      const auto below = from_below(value, lanes, distance, Step);
      if (lane >= distance) value = Monoid::combine(below, value);
    }
    prefix.chunk[i] = Monoid::combine(all, value);
    all = Monoid::combine(all, from_lane(value, lanes, Step - 1, Step));
  }
  return all;
}

template <class Team, class Monoid, int Vec>
__device__ __forceinline__ void scan_row(Team& team, Prefix<Monoid, Vec>& prefix) {
  team.scan(prefix);
}
template <int Lanes, int Rows, class Monoid, int Vec, int Step>
__device__ __forceinline__ void scan_row(WarpTeam<Lanes, Rows>& team, PrefixApart<Monoid, Vec, Step>& prefix) {
  static_assert(Step == Lanes, "a tile of as many columns as lanes");
  const auto all = scan_tile(prefix, team.own_lanes(), team.lane());
  prefix.end_chunk(prefix.carry, Monoid::combine(prefix.carry, all));
}
template <int Lanes, int Apart, class Monoid, int Vec, int Step>
__device__ __forceinline__ void scan_row(RowBlock<Lanes, Apart>& team, PrefixApart<Monoid, Vec, Step>& prefix) {
  team.scan_tiles(prefix);
}

template <int Lanes, int Apart>
struct RowBlock : BlockTeam<Lanes> {
  using BlockTeam<Lanes>::lane;

  /// Lane l of a warp combines the totals of lanes l of all warps, then a butterfly finishes. With few warps every warp does so. With more,
  /// one does it for all: what the others would read takes longer than a second barrier, and the bits are the same. Two buffers alternate: a
  /// thread that is a reduction ahead writes the one that is not read.
  template <class Monoid>
  __device__ __forceinline__ auto reduce(const Accumulator<Monoid>& accumulator) {
    return exchange<Monoid, 1>([&](int) { return accumulator.total; });
  }
  /// The same for the totals of chunks apart, in the order of a block of `Count` times the lanes.
  template <class Monoid, int Count>
  __device__ __forceinline__ auto reduce(const ChunkTotals<Monoid, Count>& accumulator) {
    return exchange<Monoid, Count>([&](int i) { return accumulator.totals[i]; });
  }

  /// As `scan` of a block: each warp scans its tile, and the tiles before it are combined in ascending order.
  template <class Monoid, int Vec, int Step>
  __device__ __forceinline__ void scan_tiles(PrefixApart<Monoid, Vec, Step>& prefix) {
    using Value = typename Monoid::Value;
    static_assert(Step == warp_lanes, "a tile for each warp");
    HEDDLE_SHARED(Value, partial, 2 * warps);
    const int base = turn_ * warps;
    turn_ ^= 1;
    const int own = lane() / warp_lanes;
    const auto tile = scan_tile(prefix, all_ones, lane() % warp_lanes);
    if (lane() % warp_lanes == 0) partial[base + own] = tile;
    __syncthreads();
    Value total = prefix.carry;
    Value before = total;
    HEDDLE_UNROLL_FEW
    for (int warp = 0; warp < warps; ++warp) {
      if (warp == own) before = total;
      total = Monoid::combine(total, partial[base + warp]);
    }
    prefix.end_chunk(before, total);
  }

 private:
  static constexpr unsigned int all_ones = 0xffffffffu;
  static constexpr int warps = Lanes / warp_lanes;
  /// Most reads of 32 totals in a reduction that all warps of a block combine. On an H200, an RMS norm of 8,192 rows of 4,096 elements takes
  /// 42 us if each of 16 warps reads all totals, 38 if one does.
  static constexpr int few_reads = 64;

  template <class Monoid, int Count, class Total>
  __device__ __forceinline__ auto exchange(Total total) {
    using Value = typename Monoid::Value;
    static_assert(Count <= Apart, "room for the totals of every lane");
    constexpr int groups = warps * Count;
    const auto partial = BlockPartials<Value, Lanes * Apart>{}.values();
    const int base = turn_ * Lanes * Apart;
    turn_ ^= 1;
    HEDDLE_UNROLL
    for (int i = 0; i < Count; ++i) partial[base + i * Lanes + lane()] = total(i);
    __syncthreads();
    if constexpr (warps * groups <= few_reads) return Monoid::result(over_groups<Monoid, groups>(partial, base));
    if (lane() < warp_lanes) {
      const Value value = over_groups<Monoid, groups>(partial, base);
      __syncwarp();
      if (lane() == 0) partial[base] = value;
    }
    __syncthreads();
    const Value value = partial[base];
    return Monoid::result(value);
  }

  template <class Monoid, int Groups, class Partial>
  __device__ __forceinline__ typename Monoid::Value over_groups(const Partial& partial, int base) const {
    typename Monoid::Value value = partial[base + lane() % warp_lanes];
    HEDDLE_UNROLL
    for (int group = 1; group < Groups; ++group) {
      value = Monoid::combine(value, partial[base + group * warp_lanes + lane() % warp_lanes]);
    }
    return combine_lanes<Monoid, warp_lanes>(value, all_ones);
  }

  int turn_ = 0;
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
