// The threshold of a row: the largest of its keys at or above which elements together weigh at least a target. Nothing is sorted. Weights
// are summed as integers, in units of 2^-36, so the result depends neither on the team nor on the timing of its lanes.
//
// A thread and the lanes of a warp find the bits of the key one by one, from the highest. A block examines the highest element of each lane
// first. If these weigh enough, as they usually do when few elements are needed, it collects the elements that are not below them and
// compares all pairs. Otherwise it narrows the range of keys: it sums the weights of 1024 equal parts of the range, finds the part that
// reaches the target, and collects its elements. If these are many (equal, or far closer than the rest) it narrows the range again. Each
// pass over the row computes elements again: rows that come here may be far longer than registers or shared memory hold, and are in the
// cache after the first pass.
#ifndef HEDDLE_THRESHOLD_CUH
#define HEDDLE_THRESHOLD_CUH

#include "team.cuh"

namespace heddle {

/// Sums of weights: exact for a million elements of the largest weight.
using Units = unsigned long long;
constexpr float units_of_one = 68719476736.0f;  // 2^36
constexpr float heaviest = 256.0f;
/// This target and larger ones are beyond any sum.
constexpr float unreachable = 134217728.0f;  // 2^27

__device__ __forceinline__ Units units_of(float weight) {
  return static_cast<Units>(fmaf(fminf(fmaxf(weight, 0.0f), heaviest), units_of_one, 0.5f));
}

/// At least one unit, so that an empty sum does not reach it.
__device__ __forceinline__ Units target_units(float target) {
  return target > 0.0f ? static_cast<Units>(fmaxf(target * units_of_one, 1.0f)) : 1;
}

/// Maps equal keys to equal bits: there is one zero. NaN is below all numbers.
__device__ __forceinline__ float plain_key(float key) { return key == key ? key + 0.0f : -INFINITY; }

/// Unsigned integers in the order of the keys.
__device__ __forceinline__ unsigned int key_order(float key) {
  const unsigned int bits = __float_as_uint(key);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float key_of_order(unsigned int order) {
  return __uint_as_float((order >> 31) != 0 ? order & 0x7fffffffu : ~order);
}

/// For teams smaller than a block: rows are short. `key(c)` is the key of element c, `weight(c, key)` its weight.
template <class Team, class Key, class Weight>
__device__ __forceinline__ float threshold(Team& team, int length, float target, Key key, Weight weight) {
  if (!(target < unreachable)) return -INFINITY;
  const Units wanted = target_units(target);
  unsigned int found = 0;
  for (unsigned int bit = 0x80000000u; bit != 0; bit >>= 1) {
    const unsigned int least = found | bit;
    Accumulator<Sum<Units>> above;
    for (int c = team.lane(); c < length; c += Team::lanes) {
      const float own = key(c);
      if (key_order(plain_key(own)) >= least) above.total += units_of(weight(c, own));
    }
    if (team.reduce(above) >= wanted) found = least;
  }
  return found == 0 ? -INFINITY : key_of_order(found);
}

/// Keys from `low` to `high`, cut into equal parts. The highest key has the last part for itself, so a part always has fewer keys than the
/// range, regardless of float rounding.
struct KeyRange {
  static constexpr int parts = 1024;

  float low;
  float high;
  float boost;
  float scale;

  __device__ __forceinline__ KeyRange(float lowest, float highest) : low(lowest), high(highest) {
    constexpr float largest = 3.4028235e38f, tiny = 1e-30f, huge_factor = 1.2676506e30f;  // 2^100
    const float width = fminf(fminf(high, largest) - low, largest);
    // If the width is so small that its inverse overflows, distances are scaled up first.
    boost = width < tiny ? huge_factor : 1.0f;
    scale = static_cast<float>(parts - 1) / (width * boost);
  }

  __device__ __forceinline__ int part(float key) const {
    return key >= high ? parts - 1 : static_cast<int>(fminf((key - low) * boost * scale, static_cast<float>(parts - 2)));
  }
  __device__ __forceinline__ bool holds(float key) const { return key >= low && key <= high; }
};

/// Visits the elements of a row, several at a time so that their loads overlap. Places after the row have a key of -Infinity. They and
/// elements with a NaN key change no result: a threshold that is not reached above them is -Infinity in any case. Comparisons of visitors
/// skip them.
template <int Lanes, class Key, class Visit>
__device__ __forceinline__ void walk_row(int lane, int length, Key key, Visit visit) {
  constexpr int batch = 8;
  const unsigned int end = static_cast<unsigned int>(length);
  for (unsigned int first = static_cast<unsigned int>(lane); first < end; first += batch * Lanes) {
    float keys[batch];
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) {
      const unsigned int c = first + i * Lanes;
      keys[i] = c < end ? key(static_cast<int>(c)) : -INFINITY;
    }
    HEDDLE_UNROLL
    for (int i = 0; i < batch; ++i) visit(static_cast<int>(first + i * Lanes), keys[i]);
  }
}

// Shared memory of a block, the same arrays for all thresholds of a kernel: every threshold ends with a barrier after its last access.
// Weights of the parts, and afterwards those of collected elements and the sum of each with all above it, beside their keys; the part
// found, and the weight above it.
HEDDLE_SHARED_FUNCTION(Units, threshold_weights, KeyRange::parts)
HEDDLE_SHARED_FUNCTION(float, threshold_keys, KeyRange::parts)
HEDDLE_SHARED_FUNCTION(int, threshold_found, 1)
HEDDLE_SHARED_FUNCTION(Units, threshold_found_above, 1)
HEDDLE_SHARED_FUNCTION(int, threshold_members, 1)

/// The highest part down to which a target is reached, and the weight above it; -1 if it is not reached at all.
struct FoundPart {
  int part;
  Units above;
};

/// Sums the weights of the elements that `visit_all` passes to its visitor, per part, and finds the part that reaches the target.
/// `weight(c, key)` is called only for elements of the range.
template <int Lanes, class Weight, class VisitAll>
__device__ __forceinline__ FoundPart find_part(BlockTeam<Lanes>& team, const KeyRange& range, Units wanted, Weight weight,
                                               VisitAll visit_all) {
  constexpr int parts = KeyRange::parts;
  constexpr int each = (parts + Lanes - 1) / Lanes;
  const auto weights = threshold_weights();
  const auto found = threshold_found();
  const auto found_above = threshold_found_above();
  const int lane = team.lane();
  for (int i = lane; i < parts; i += Lanes) weights[i] = 0;
  team.meet();
  visit_all([&](int c, float key) {
    if (!range.holds(key)) return;
    const Units units = units_of(weight(c, key));
    if (units > 0) sum_shared(weights, range.part(key), units);
  });
  team.meet();

  // Lanes take parts from the highest down: earlier lanes have the parts above.
  const int top = parts - 1 - lane * each;
  Units own = 0;
  for (int i = 0; i < each && top - i >= 0; ++i) own += weights[top - i];
  Prefix<Sum<Units>, 1> prefix;
  prefix.add(0, own, lane);
  team.scan(prefix);
  if (prefix.carry < wanted) {
    team.meet();
    return {-1, 0};
  }
  Units above = prefix.before;
  if (above < wanted && wanted <= above + own) {
    int i = top;
    for (; above + weights[i] < wanted; --i) above += weights[i];
    found[0] = i;
    found_above[0] = above;
  }
  team.meet();
  return {found[0], found_above[0]};
}

/// Collects the elements with keys from `from` to `to`, and finds the threshold among them if they are few. NaN, which is no threshold,
/// means that they are too many.
template <int Lanes, class Key, class Weight>
__device__ __forceinline__ float threshold_of_few(BlockTeam<Lanes>& team, int length, Units wanted, float from, float to, Key key,
                                                  Weight weight) {
  // Each is compared with each, by several lanes: with more elements, another round over parts is faster.
  constexpr int few = KeyRange::parts / 4, helpers = 4;
  const auto weights = threshold_weights();
  const auto keys = threshold_keys();
  const auto members = threshold_members();
  const int lane = team.lane();
  if (lane == 0) members[0] = 0;
  for (int i = lane; i < few; i += Lanes) weights[few + i] = 0;
  team.meet();
  walk_row<Lanes>(lane, length, key, [&](int c, float own) {
    if (!(own >= from && own <= to)) return;
    const Units units = units_of(weight(c, own));
    if (units == 0) return;
    const int place = add_shared(members, 0, 1);
    if (place >= few) return;
    keys[place] = own;
    weights[place] = units;
  });
  team.meet();
  const int count = members[0];
  if (count <= few) {
    for (int task = lane; task < few * helpers; task += Lanes) {
      const int i = task % few;
      if (i >= count) continue;
      const float own = keys[i];
      Units sum = 0;
      for (int j = task / few; j < count; j += helpers) {
        if (keys[j] >= own) sum += weights[j];
      }
      if (sum > 0) sum_shared(weights, few + i, sum);
    }
    team.meet();
  }
  Accumulator<Max<float>> best;
  for (int i = lane; i < count && count <= few; i += Lanes) {
    if (weights[few + i] >= wanted) best.total = fmaxf(best.total, keys[i]);
  }
  const float result = team.reduce(best);
  return count <= few ? result : NAN;
}

/// One block per row.
template <int Lanes, class Key, class Weight>
__device__ __forceinline__ float threshold(BlockTeam<Lanes>& team, int length, float target, Key key, Weight weight) {
  if (!(target < unreachable)) return -INFINITY;
  const int lane = team.lane();
  Units wanted = target_units(target);

  float own = -INFINITY;
  int place = 0;
  Accumulator<Min<float>> lowest_of_all;
  walk_row<Lanes>(lane, length, key, [&](int c, float other) {
    if (other > -INFINITY) lowest_of_all.total = fminf(lowest_of_all.total, other);
    if (other > own) {
      own = other;
      place = c;
    }
  });
  Accumulator<Max<float>> most;
  most.total = own;
  const float high = team.reduce(most);
  // The row has no key above -Infinity.
  if (high == -INFINITY) return -INFINITY;
  Accumulator<Min<float>> least;
  if (own > -INFINITY) least.total = own;
  KeyRange range(team.reduce(least), high);
  // The first round weighs only the highest element of each lane: if these reach the target, the threshold is not below the key at which
  // they do.
  for (bool all = false;;) {
    const FoundPart found = find_part(team, range, wanted, weight, [&](auto visit) {
      if (all) {
        walk_row<Lanes>(lane, length, key, visit);
      } else {
        visit(place, own);
      }
    });
    if (found.part < 0 && all) return -INFINITY;
    Accumulator<Min<float>> lowest;
    Accumulator<Max<float>> highest;
    if (all) {
      wanted -= found.above;
      walk_row<Lanes>(lane, length, key, [&](int, float other) {
        if (!range.holds(other) || range.part(other) != found.part) return;
        lowest.total = fminf(lowest.total, other);
        highest.total = fmaxf(highest.total, other);
      });
    } else {
      highest.total = high;
      if (found.part < 0) lowest = lowest_of_all;
      if (found.part >= 0 && range.holds(own) && range.part(own) >= found.part) lowest.total = own;
    }
    const float from = team.reduce(lowest);
    const float to = team.reduce(highest);
    if (found.part >= 0) {
      if (from == to) return from;
      const float among = threshold_of_few(team, length, wanted, from, to, key, weight);
      if (among == among) return among;
    }
    range = KeyRange(from, to);
    all = true;
  }
}

}  // namespace heddle

#endif
