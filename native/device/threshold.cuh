// The threshold of a row: the largest of its keys from which on elements weigh at least a target together. Nothing is sorted.
// Weights are summed as integers, in units of 2^-36, so neither the team nor the timing of its lanes shows in the result.
//
// A thread and the lanes of a warp find the bits of the key one by one, from the highest. A block narrows the range of keys
// instead: it counts the weights of 1024 equal parts of the range, finds the part that reaches the target, and collects its
// elements. The few there usually are it weighs against each other; where they are many (equal, or far closer than the rest)
// it narrows the range again. An element is computed again in every walk over the row: rows that come here may be far longer
// than registers or shared memory hold, and are in the cache after the first.
#ifndef HEDDLE_THRESHOLD_CUH
#define HEDDLE_THRESHOLD_CUH

#include "team.cuh"

namespace heddle {

/// An element of the row: where it stands, and what it weighs.
struct Weighed {
  float key;
  float weight;
};

/// Sums of weights: exact for a million elements of the largest weight.
using Units = unsigned long long;
constexpr float units_of_one = 68719476736.0f;  // 2^36
constexpr float heaviest = 256.0f;
/// Targets from here on are beyond any sum.
constexpr float unreachable = 134217728.0f;  // 2^27

__device__ __forceinline__ Units units_of(float weight) {
  return static_cast<Units>(fmaf(fminf(fmaxf(weight, 0.0f), heaviest), units_of_one, 0.5f));
}

/// At least one unit, so that something must be there.
__device__ __forceinline__ Units target_units(float target) {
  return target > 0.0f ? static_cast<Units>(fmaxf(target * units_of_one, 1.0f)) : 1;
}

/// Equal keys get equal bits: there is one zero. Whatever is not a number is below all numbers.
__device__ __forceinline__ float plain_key(float key) { return key == key ? key + 0.0f : -INFINITY; }

/// Unsigned integers in the order of the keys.
__device__ __forceinline__ unsigned int key_order(float key) {
  const unsigned int bits = __float_as_uint(key);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float key_of_order(unsigned int order) {
  return __uint_as_float((order >> 31) != 0 ? order & 0x7fffffffu : ~order);
}

/// For teams that are less than a block: rows are short.
template <class Team, class Element>
__device__ __forceinline__ float threshold(Team& team, int length, float target, Element element) {
  if (!(target < unreachable)) return -INFINITY;
  const Units wanted = target_units(target);
  unsigned int found = 0;
  for (unsigned int bit = 0x80000000u; bit != 0; bit >>= 1) {
    const unsigned int least = found | bit;
    Accumulator<Sum<Units>> above;
    for (int c = team.lane(); c < length; c += Team::lanes) {
      const Weighed item = element(c);
      if (key_order(plain_key(item.key)) >= least) above.total += units_of(item.weight);
    }
    if (team.reduce(above) >= wanted) found = least;
  }
  return found == 0 ? -INFINITY : key_of_order(found);
}

/// Keys from `low` to `high`, cut into equal parts. The highest key has the last part for itself, so parts are always fewer
/// keys than the range, whatever float arithmetic makes of it.
struct KeyRange {
  static constexpr int parts = 1024;

  float low;
  float high;
  float boost;
  float scale;

  __device__ __forceinline__ KeyRange(float lowest, float highest) : low(lowest), high(highest) {
    constexpr float largest = 3.4028235e38f, tiny = 1e-30f, huge_factor = 1.2676506e30f;  // 2^100
    const float width = fminf(fminf(high, largest) - low, largest);
    // Where the width is so small that its inverse overflows, distances are made larger first.
    boost = width < tiny ? huge_factor : 1.0f;
    scale = static_cast<float>(parts - 1) / (width * boost);
  }

  __device__ __forceinline__ int part(float key) const {
    return key >= high ? parts - 1 : static_cast<int>(fminf((key - low) * boost * scale, static_cast<float>(parts - 2)));
  }
  __device__ __forceinline__ bool holds(float key) const { return key >= low && key <= high; }
};

/// Visits the elements of a row with a key above -Infinity, several at a time so that loads are under way together. Elements at
/// -Infinity change no result: a threshold that is not reached above them is -Infinity in any case.
template <int Lanes, class Element, class Visit>
__device__ __forceinline__ void walk_row(int lane, int length, Element element, Visit visit) {
  constexpr int batch = 4;
  for (int64_t first = lane; first < length; first += batch * Lanes) {
    Weighed items[batch];
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      const int64_t c = first + i * Lanes;
      items[i] = c < length ? element(static_cast<int>(c)) : Weighed{-INFINITY, 0.0f};
    }
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      const float key = plain_key(items[i].key);
      if (key > -INFINITY) visit(key, items[i].weight);
    }
  }
}

// What a block shares, the same arrays for all thresholds of a kernel: every one ends with a meeting after its last access.
// Weights of the parts, and afterwards those of the elements of one part, beside their keys; the part found, and what is above it.
HEDDLE_SHARED_FUNCTION(Units, threshold_weights, KeyRange::parts)
HEDDLE_SHARED_FUNCTION(float, threshold_keys, KeyRange::parts)
HEDDLE_SHARED_FUNCTION(int, threshold_found, 1)
HEDDLE_SHARED_FUNCTION(Units, threshold_found_above, 1)
HEDDLE_SHARED_FUNCTION(int, threshold_members, 1)

/// One block a row.
template <int Lanes, class Element>
__device__ __forceinline__ float threshold(BlockTeam<Lanes>& team, int length, float target, Element element) {
  if (!(target < unreachable)) return -INFINITY;
  constexpr int parts = KeyRange::parts;
  constexpr int each = (parts + Lanes - 1) / Lanes;
  const auto weights = threshold_weights();
  const auto keys = threshold_keys();
  const auto found = threshold_found();
  const auto found_above = threshold_found_above();
  const auto members = threshold_members();
  const int lane = team.lane();
  Units wanted = target_units(target);
  // Nothing is left out before the first walk.
  KeyRange range(-INFINITY, INFINITY);
  int part = -1;
  for (;;) {
    Accumulator<Min<float>> least;
    Accumulator<Max<float>> most;
    walk_row<Lanes>(lane, length, element, [&](float key, float) {
      if (part >= 0 && !(range.holds(key) && range.part(key) == part)) return;
      least.total = fminf(least.total, key);
      most.total = fmaxf(most.total, key);
    });
    const float low = team.reduce(least);
    const float high = team.reduce(most);
    if (part >= 0 && low == high) return low;
    range = KeyRange(low, high);

    for (int i = lane; i < parts; i += Lanes) weights[i] = 0;
    if (lane == 0) members[0] = 0;
    team.meet();
    walk_row<Lanes>(lane, length, element, [&](float key, float weight) {
      const Units units = units_of(weight);
      if (range.holds(key) && units > 0) sum_shared(weights, range.part(key), units);
    });
    team.meet();

    // Lanes take parts from the highest down: before a lane lies what is above its parts.
    const int top = parts - 1 - lane * each;
    Units own = 0;
    for (int i = 0; i < each && top - i >= 0; ++i) own += weights[top - i];
    Prefix<Sum<Units>, 1> prefix;
    prefix.add(0, own, lane);
    team.scan(prefix);
    if (prefix.carry < wanted) return -INFINITY;
    Units above = prefix.before;
    if (above < wanted && wanted <= above + own) {
      int i = top;
      for (; above + weights[i] < wanted; --i) above += weights[i];
      found[0] = i;
      found_above[0] = above;
    }
    team.meet();
    part = found[0];
    wanted -= found_above[0];

    walk_row<Lanes>(lane, length, element, [&](float key, float weight) {
      if (!range.holds(key) || range.part(key) != part) return;
      const Units units = units_of(weight);
      if (units == 0) return;
      const int place = add_shared(members, 0, 1);
      if (place >= parts) return;
      keys[place] = key;
      weights[place] = units;
    });
    team.meet();
    const int count = members[0];
    if (count <= parts) {
      Accumulator<Max<float>> best;
      for (int i = lane; i < count; i += Lanes) {
        const float key = keys[i];
        Units sum = 0;
        for (int j = 0; j < count; ++j) {
          if (keys[j] >= key) sum += weights[j];
        }
        if (sum >= wanted) best.total = fmaxf(best.total, key);
      }
      return team.reduce(best);
    }
    team.meet();
  }
}

}  // namespace heddle

#endif
