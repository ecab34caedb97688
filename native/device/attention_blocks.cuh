// Selection of the key tiles of a block of query rows. The range of keys excludes the tiles before and after it. If a Slots can evaluate
// its mask for a tile of pairs, fully masked tiles are skipped as well, and fully unmasked tiles are marked.
#ifndef HEDDLE_ATTENTION_BLOCKS_CUH
#define HEDDLE_ATTENTION_BLOCKS_CUH

#include "attention_order.cuh"
#include "ranges.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Limit of separately classified tiles; in longer sequences, several adjacent tiles are classified as one. Tests lower it.
#if !defined(HEDDLE_MOST_KEY_TILES)
#define HEDDLE_MOST_KEY_TILES 2048
#endif
constexpr int most_key_tiles = HEDDLE_MOST_KEY_TILES;

/// Maps numbers to unsigned integers of the same order, and back. The order of floats leaves no room for NaN.
struct OrderedInts {
  using Type = int;
  static __device__ __forceinline__ unsigned int key(int value) { return static_cast<unsigned int>(value) ^ 0x80000000u; }
  static __device__ __forceinline__ int value(unsigned int key) { return static_cast<int>(key ^ 0x80000000u); }
};
struct OrderedFloats {
  using Type = float;
  static __device__ __forceinline__ unsigned int key(float value) {
    unsigned int bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  }
  static __device__ __forceinline__ float value(unsigned int key) {
    const unsigned int bits = key >> 31 != 0 ? key ^ 0x80000000u : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
};

/// Bounds of `value(place)` for places from `first` to `last`, computed by `Lanes` adjacent lanes of a warp; other lanes may have other
/// places. Places beyond Span take further rounds. A NaN makes the bounds unlimited.
template <int Span, int Lanes, class Value>
__device__ __forceinline__ auto met_between(int first, int last, Value value) {
  using Order = std::conditional_t<std::is_same_v<decltype(value(0)), float>, OrderedFloats, OrderedInts>;
  using T = typename Order::Type;
  constexpr bool is_float = std::is_same_v<T, float>;
  const unsigned int lowest = Order::key(is_float ? static_cast<T>(-INFINITY) : ranges::least_int);
  const unsigned int highest = Order::key(is_float ? static_cast<T>(INFINITY) : ranges::largest_int);
  unsigned int least = highest, most = lowest;
  const int lane = static_cast<int>(threadIdx.x) % Lanes;
  for (int from = first; from <= last; from += (Span + Lanes - 1) / Lanes * Lanes) {
    HEDDLE_UNROLL
    for (int k = 0; k < Span; k += Lanes) {
      const T met = value(min(from + lane + k, last));
      const unsigned int key = Order::key(met);
      least = met == met ? min(least, key) : lowest, most = met == met ? max(most, key) : highest;
    }
  }
  if constexpr (Lanes == 32) {
    // The minimum of numbers is the complement of the maximum of their complements.
    least = ~__reduce_max_sync(0xffffffffu, ~least), most = __reduce_max_sync(0xffffffffu, most);
  } else {
    HEDDLE_UNROLL
    for (int other = Lanes / 2; other > 0; other /= 2) {
      least = min(least, __shfl_xor_sync(0xffffffffu, least, other)), most = max(most, __shfl_xor_sync(0xffffffffu, most, other));
    }
  }
  return ranges::Range<T>{Order::value(least), Order::value(most)};
}

/// Bounds of values per row, or per column, which a Slots numbers from 0 to Count: each in the member of its type.
template <int Count>
struct MetValues {
  ranges::Ints ints[Count > 0 ? Count : 1];
  ranges::Floats floats[Count > 0 ? Count : 1];

  template <int Span, int Lanes, class Value>
  __device__ __forceinline__ void meet(int first, int last, Value value) {
    meet_from<Span, Lanes, 0>(first, last, value);
  }

 private:
  template <int Span, int Lanes, int At, class Value>
  __device__ __forceinline__ void meet_from([[maybe_unused]] int first, [[maybe_unused]] int last, [[maybe_unused]] Value value) {
    if constexpr (At < Count) {
      set(At, met_between<Span, Lanes>(first, last, [&](int place) { return value(Integer<At>{}, place); }));
      meet_from<Span, Lanes, At + 1>(first, last, value);
    }
  }
  __device__ __forceinline__ void set(int at, ranges::Ints range) { ints[at] = range; }
  __device__ __forceinline__ void set(int at, ranges::Floats range) { floats[at] = range; }
};

/// Class of a tile: its pairs are all masked, partly masked or all unmasked.
enum class TileClass : unsigned char { none, some, all };

__device__ __forceinline__ TileClass class_of(ranges::Truth truth) {
  return truth.may_hold ? (truth.may_fail ? TileClass::some : TileClass::all) : TileClass::none;
}

/// Class of the pairs of queries `rows` and keys `columns`, about Keys of them, from known values per row. Lanes adjacent lanes of a warp
/// compute and receive it together; the others may classify other keys.
template <int Keys, int Lanes, class Slots>
__device__ __forceinline__ TileClass class_between(const Slots& slots, int b, int h, ranges::Ints rows, ranges::Ints columns,
                                                   const MetValues<Slots::row_values>& of_rows) {
  MetValues<Slots::key_values> of_keys;
  of_keys.template meet<Keys, Lanes>(columns.low, columns.high,
                              [&](auto at, int j) { return slots.template key_value<decltype(at)::value>(b, h, j); });
  return class_of(slots.tile(b, h, rows, columns, of_rows, of_keys));
}

template <int Rows, class Slots>
__device__ __forceinline__ MetValues<Slots::row_values> values_of_rows(const Slots& slots, int b, int h, ranges::Ints rows) {
  MetValues<Slots::row_values> of_rows;
  of_rows.template meet<Rows, 32>(rows.low, rows.high,
                              [&](auto at, int i) { return slots.template row_value<decltype(at)::value>(b, h, i); });
  return of_rows;
}

/// Class of a warp's 16 query rows, from `first` on, with a tile of keys. A warp whose pairs are all masked may skip the tile.
template <int Keys, class Slots>
__device__ __forceinline__ TileClass warp_class([[maybe_unused]] const Slots& slots, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                                [[maybe_unused]] int first, [[maybe_unused]] int queries, [[maybe_unused]] int from,
                                                [[maybe_unused]] int keys) {
  if constexpr (masks_tiles<Slots>) {
    const ranges::Ints rows = {min(first, queries - 1), min(first + 15, queries - 1)};
    const TileClass found = class_between<Keys, 32>(slots, b, h, rows, {from, min(from + Keys, keys) - 1},
                                                    values_of_rows<16>(slots, b, h, rows));
    // A vote, so that the compiler knows branches to be uniform.
    if (__any_sync(0xffffffffu, found == TileClass::none)) return TileClass::none;
    return __any_sync(0xffffffffu, found == TileClass::all) ? TileClass::all : TileClass::some;
  } else {
    return TileClass::some;
  }
}

/// Classes of all tiles, then the tiles that are attended: twice their number, plus 1 if the mask lets all pairs through.
HEDDLE_SHARED_FUNCTION(unsigned char, key_tile_classes, most_key_tiles)
HEDDLE_SHARED_FUNCTION(unsigned short, key_tiles_met, most_key_tiles)
/// Number of attended groups, and the base-2 logarithm of the tiles per group.
HEDDLE_SHARED_FUNCTION(int, key_tiles_count, 2)

/// The tiles of Keys keys that a block attends, in order.
template <class Slots, int Keys>
struct KeyTiles {
  int begin = 0, end = 0;  // keys that some query of the block attends, according to ranges
  int count = 0;           // tiles that are attended

  /// First key of an attended tile.
  __device__ __forceinline__ int first_of(int tile) const {
    if constexpr (masks_tiles<Slots>) {
      const int bits = together();
      return begin + (((key_tiles_met()[tile >> bits] >> 1) << bits) + (tile & ((1 << bits) - 1))) * Keys;
    } else {
      return begin + tile * Keys;
    }
  }

  /// True if the mask lets all pairs of a tile through that lie in the ranges of its queries.
  __device__ __forceinline__ bool is_open([[maybe_unused]] int tile) const {
    if constexpr (masks_tiles<Slots>) {
      return (key_tiles_met()[tile >> together()] & 1) != 0;
    } else {
      return !masks_pairs<Slots>;
    }
  }

  /// Finds the tiles for queries `first` to `last`, of a block of Rows, which attend keys from `from` to `to`. All threads of the block
  /// take part, and meet in barriers if a mask classifies tiles.
  template <int Threads, int Rows>
  __device__ __forceinline__ void find([[maybe_unused]] const Slots& slots, [[maybe_unused]] int b, [[maybe_unused]] int h,
                                       [[maybe_unused]] int first, [[maybe_unused]] int last, int from, int to) {
    // Tensors of pairs are read 8 keys at a time, at multiples of 8.
    begin = reads_pairs<Slots> ? from & ~7 : from, end = to;
    const int tiles = begin < end ? (end - begin + Keys - 1) / Keys : 0;
    count = tiles;
    if constexpr (masks_tiles<Slots>) {
      int bits = 0;
      while ((tiles - 1) >> bits >= most_key_tiles) ++bits;
      const int groups = tiles > 0 ? ((tiles - 1) >> bits) + 1 : 0;
      classify<Threads, Rows>(slots, b, h, {first, last}, groups, Keys << bits);
      __syncthreads();
      if (threadIdx.x < 32) gather(groups, bits);
      __syncthreads();
      const int met = key_tiles_count()[0];
      // Only the last of all groups may have fewer tiles.
      const bool has_last = met > 0 && (key_tiles_met()[met - 1] >> 1) == groups - 1;
      count = (met << bits) - (has_last ? (groups << bits) - tiles : 0);
    }
  }

 private:
  /// Logarithm of the number of adjacent tiles that are classified as one. In shared memory, to save registers.
  __device__ __forceinline__ int together() const { return key_tiles_count()[1]; }

  /// Eight lanes per group if columns have values with bounds to compute, else one thread. Lanes of a warp stay together, also beyond the
  /// last group: they compute bounds together.
  template <int Threads, int Rows>
  __device__ __forceinline__ void classify(const Slots& slots, int b, int h, ranges::Ints rows, int groups, int width) const {
    constexpr int team = Slots::key_values > 0 ? 8 : 1, at_once = Threads / team, of_warp = 32 / team;
    const auto of_rows = values_of_rows<Rows>(slots, b, h, rows);
    const int own = static_cast<int>(threadIdx.x) / team;
    for (int first = own / of_warp * of_warp; first < groups; first += at_once) {
      const int group = first + own % of_warp, known = min(group, groups - 1);
      const int from = begin + known * width;
      const TileClass found = class_between<Keys, team>(slots, b, h, rows, {from, min(from + width, end) - 1}, of_rows);
      if (group < groups && threadIdx.x % team == 0) key_tile_classes()[group] = static_cast<unsigned char>(found);
    }
  }

  /// Lists the attended groups; run by one warp.
  __device__ __forceinline__ void gather(int groups, int bits) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    int met = 0;
    for (int from = 0; from < groups; from += 32) {
      const int group = from + lane;
      const TileClass found = group < groups ? static_cast<TileClass>(static_cast<unsigned char>(key_tile_classes()[group]))
                                             : TileClass::none;
      const unsigned int lanes = __ballot_sync(0xffffffffu, found != TileClass::none);
      const int place = met + __popc(lanes & ((1u << lane) - 1));
      if (found != TileClass::none) {
        key_tiles_met()[place] = static_cast<unsigned short>(group * 2 + (found == TileClass::all ? 1 : 0));
      }
      met += __popc(lanes);
    }
    if (lane == 0) key_tiles_count()[0] = met, key_tiles_count()[1] = bits;
  }
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
