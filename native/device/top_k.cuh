// The largest elements of rows. A warp holds the K largest so far sorted across its lanes, lane l the places l, l + 32 and so on: no thread
// has the whole list in its registers, so even a K of 64 takes two pairs of registers per lane. An element is compared with the last of the
// list, and only one that precedes it is inserted; after the first chunks of a row, few do. The warps of a block each have a list, and the
// first warp merges the lists at the end. Elements are ordered by value and then by place, so neither the team nor the order of insertion
// changes the result. Files whose kernels rank nothing do not include this one.
#ifndef HEDDLE_TOP_K_CUH
#define HEDDLE_TOP_K_CUH

#include "team.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// True if a precedes b: it has the larger value, or the lower place among equals. NaN precedes nothing.
__device__ __forceinline__ bool precedes(const Placed<float>& a, const Placed<float>& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

/// Filler of a list with too few elements: it comes after every element.
__device__ __forceinline__ Placed<float> no_element() { return {-INFINITY, INT32_MAX}; }

/// The elements of a chunk to rank: none at first, since NaN is never taken.
template <int Vec>
struct Offers {
  float value[Vec];

  __device__ __forceinline__ Offers() {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) value[i] = NAN;
  }

  /// The largest element; NaN if there is none.
  __device__ __forceinline__ float most() const {
    float most = value[0];
    HEDDLE_UNROLL
    for (int i = 1; i < Vec; ++i) most = fmaxf(most, value[i]);
    return most;
  }

  /// The first place of a value that is there.
  __device__ __forceinline__ int find(float wanted) const {
    int at = Vec - 1;
    HEDDLE_UNROLL
    for (int i = Vec - 2; i >= 0; --i) at = value[i] == wanted ? i : at;
    return at;
  }

  __device__ __forceinline__ void remove(int at) {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) value[i] = i == at ? NAN : value[i];
  }
};

/// The K largest of the elements offered to a warp. All its lanes call every function together.
template <int K>
class WarpList {
 public:
  __device__ __forceinline__ WarpList() {
    HEDDLE_UNROLL
    for (int slot = 0; slot < slots; ++slot) list_[slot] = no_element();
  }

  /// Takes in a chunk of every lane, whose first element has place `first`. Most chunks of a row need one comparison: none of their values
  /// reaches the last of the list. A lane offers its best remaining element, so that one insertion serves the whole chunk.
  template <int Vec>
  __device__ __forceinline__ void take(Offers<Vec> offers, int first) {
    float most = offers.most();
    while (__any_sync(all, most >= last_.value)) {
      const int at = offers.find(most), source = insert_best({most, first + at});
      if (source < 0) return;
      if (lane() != source) continue;
      offers.remove(at);
      most = offers.most();
    }
  }

  /// Takes in one element of every lane.
  __device__ __forceinline__ void take(Placed<float> element) {
    for (int source = insert_best(element); source >= 0; source = insert_best(element)) {
      if (lane() == source) element = no_element();
    }
  }

  /// Writes the list, best first, to the K places from `start` on.
  template <class Places>
  __device__ __forceinline__ void write(Places& places, int start) const {
    HEDDLE_UNROLL
    for (int slot = 0; slot < slots; ++slot) {
      const int place = slot * warp_lanes + lane();
      if (place < K) places[start + place] = list_[slot];
    }
  }

 private:
  static constexpr unsigned int all = 0xffffffffu;
  static constexpr int slots = (K + warp_lanes - 1) / warp_lanes;

  __device__ __forceinline__ static int lane() { return static_cast<int>(threadIdx.x) % warp_lanes; }

  /// A number above 0 with the order of values; zeros of either sign may differ.
  __device__ __forceinline__ static unsigned int rank(float value) {
    constexpr unsigned int sign = 0x80000000u;
    unsigned int bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }

  /// Inserts one of the lanes' elements, if any precedes the last, and returns the lane it came from, otherwise -1. It has the largest
  /// value of the lanes: an element that is not among their K largest is never inserted, unless values are equal.
  __device__ __forceinline__ int insert_best(const Placed<float>& own) {
    const unsigned int waits = precedes(own, last_) ? rank(own.value) : 0;
    const unsigned int best = __reduce_max_sync(all, waits);
    if (best == 0) return -1;
    const int source = __ffs(static_cast<int>(__ballot_sync(all, waits == best))) - 1;
    insert(from_lane(own, all, source, warp_lanes));
    return source;
  }

  /// Inserts an element that precedes the last; the elements after its place move up by one.
  __device__ __forceinline__ void insert(const Placed<float>& element) {
    Placed<float> carried = {INFINITY, -1};
    HEDDLE_UNROLL
    for (int slot = 0; slot < slots; ++slot) {
      const Placed<float> own = list_[slot];
      Placed<float> below = from_below(own, all, 1, warp_lanes);
      if (lane() == 0) below = carried;
      if (slot + 1 < slots) carried = from_lane(own, all, warp_lanes - 1, warp_lanes);
      if (!precedes(own, element)) list_[slot] = slot * warp_lanes + lane() == 0 || precedes(below, element) ? element : below;
    }
    last_ = from_lane(list_[slots - 1], all, (K - 1) % warp_lanes, warp_lanes);
  }

  Placed<float> list_[slots];
  Placed<float> last_ = no_element();
};

/// The ranked elements of a row, read by any of its lanes. Missing elements are -infinity at -1.
template <class Places>
struct Ranked {
  Places& places;
  int start;

  __device__ __forceinline__ Placed<float> get(int i) const { return places[start + i]; }
  __device__ __forceinline__ float value(int i) const { return get(i).value; }
  __device__ __forceinline__ int index(int i) const {
    const int index = get(i).index;
    return index == INT32_MAX ? -1 : index;
  }
};

/// A row's ranking during the loop over its chunks. All lanes of the team process the same number of chunks.
template <class Team, int K>
struct Largest {
  static_assert(Team::lanes % warp_lanes == 0, "whole warps rank rows");

  /// Places in shared memory: a list for each warp of the block.
  static constexpr int places = Team::threads / warp_lanes * K;

  WarpList<K> list;

  template <int Vec>
  __device__ __forceinline__ void take(const Team&, const Offers<Vec>& offers, int first) {
    list.take(offers, first);
  }

  /// Stores the ranking of the row in `shared` for all its lanes.
  template <class Places>
  __device__ __forceinline__ Ranked<Places> finish(const Team& team, Places& shared) {
    const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
    const int start = warp / (Team::lanes / warp_lanes) * (Team::lanes / warp_lanes) * K;
    list.write(shared, warp * K);
    team.meet();
    if (Team::lanes > warp_lanes) {
      if (warp * K == start) merge(shared, start);
      team.meet();
    }
    return {shared, start};
  }

 private:
  /// The first warp takes in the lists of the others.
  template <class Places>
  __device__ __forceinline__ void merge(Places& shared, int start) {
    for (int first = K; first < Team::lanes / warp_lanes * K; first += warp_lanes) {
      const int place = first + static_cast<int>(threadIdx.x) % warp_lanes;
      const bool exists = place < Team::lanes / warp_lanes * K;
      list.take(exists ? static_cast<Placed<float>>(shared[start + place]) : no_element());
    }
    list.write(shared, start);
  }
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
