// State of a warp of attention_decode_kernel.cuh: a query, the keys and values of a piece, the place that is not in memory yet, and a
// worker's sum so far.
#ifndef HEDDLE_ATTENTION_DECODE_PARTS_CUH
#define HEDDLE_ATTENTION_DECODE_PARTS_CUH

#include "attention_slots.cuh"
#include "cluster.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Heads of up to `size` elements: `Lanes` adjacent lanes of a warp hold a row, each `Chunks` chunks of 16 bytes. `Rows` query rows attend
/// the same keys and values, which are read once for them.
template <class T, int Lanes, int Chunks, int Rows = 1>
struct DecodeShape {
  static_assert(warp_lanes % Lanes == 0, "a power of two of lanes");
  static constexpr int lanes = Lanes, chunks = Chunks, vec = 16 / static_cast<int>(sizeof(T)), size = Lanes * Chunks * vec;
  static constexpr int groups = warp_lanes / Lanes;      // places a warp reads at once
  static constexpr int unroll = Chunks == 1 ? 2 : 1;     // and per lane, one after the other
  static constexpr int piece = groups * unroll;          // places
  static constexpr int workers = size <= 128 ? 32 : 8;   // a power of two, at least the warps of a block
  static constexpr int split_workers = workers < 16 ? workers : 16;  // of each segment of a row that has several
  static constexpr int rows = Rows;
  static constexpr int warps = 8, crowded_warps = 4;     // per block at most, and if blocks wait for one another
  static constexpr int ahead = Chunks <= 2 ? 4 : 8 / Chunks;  // pieces of a warp on their way: 8 KB
  static constexpr uint32_t row_bytes = (size + 4) * 4;  // a sum, then the score it is relative to, its total and the largest score
  static constexpr uint32_t slot_bytes = rows * row_bytes;

  /// Memory for the sums of every worker with a piece and of the fresh place, and for the exchange.
  static __host__ __device__ constexpr uint32_t shared_bytes(int64_t places) {
    const int64_t pieces = (places + piece - 1) / piece;
    return (static_cast<uint32_t>(pieces < workers ? pieces : workers) + 1) * slot_bytes + ClusterExchange::barrier_bytes;
  }
};

/// True if a Slots computes elements of a query or of a fresh key from their whole row, as a norm does.
template <class Slots, class = void>
constexpr bool folds_rows = false;
template <class Slots>
constexpr bool folds_rows<Slots, decltype(static_cast<void>(Slots::folds_rows))> = Slots::folds_rows;

/// True if a Slots knows the stride of places.
template <class Slots, class = void>
constexpr bool has_steps = false;
template <class Slots>
constexpr bool has_steps<Slots, decltype(static_cast<void>(Slots::has_steps))> = Slots::has_steps;

/// Pieces in a warp's registers, in flight or just multiplied. Sums of whole rows take registers themselves, and so do several rows, or row
/// ends, with many elements per lane.
template <class Shape, bool Whole, class Slots>
constexpr int decode_held = Shape::chunks >= 8 || folds_rows<Slots> || (Shape::vec > 8 && (Shape::rows > 1 || !Whole)) ? 1 : 2;

/// Blocks of 256 threads that registers of a multiprocessor must suffice for.
template <class Shape>
constexpr int decode_resident = Shape::chunks > 1 || Shape::rows > 2 || Shape::rows * Shape::vec > 16 ? 1 : 2;

/// The same for pieces in shared memory. A fresh place takes registers itself.
template <class Shape, class Slots>
constexpr int ring_resident = decode_resident<Shape> == 1 ? 1 : Slots::has_fresh || folds_rows<Slots> || Shape::vec > 8 ? 2 : 3;

/// A lane's columns of a row of a head.
template <class Shape, bool Whole>
struct DecodeColumns {
  int first, head_dim;

  /// Calls `act(chunk, c, valid)` for each of the lane's chunks, with its first column and the number of elements that exist from there on.
  template <class Act>
  __device__ __forceinline__ void each(Act act) const {
    HEDDLE_UNROLL
    for (int chunk = 0; chunk < Shape::chunks; ++chunk) {
      const int c = first + chunk * Shape::lanes * Shape::vec;
      act(chunk, c, Whole ? Shape::vec : min(max(head_dim - c, 0), Shape::vec));
    }
  }

  /// Loads a chunk of which `valid` elements exist; nothing else is read.
  template <class T>
  __device__ __forceinline__ Chunk<T, Shape::vec> load(const In<T>& tensor, int64_t offset, int valid) const {
    Chunk<T, Shape::vec> chunk = {};
    if (valid > 0) chunk = load_chunk<Shape::vec, Whole>(tensor, offset, valid);
    return chunk;
  }
};

/// A query row, and its dot product with a key.
template <class Shape>
struct DecodeQuery {
  float values[Shape::chunks][Shape::vec];

  /// Dot product with a key, the same on all lanes of a group, which all take part.
  template <class T>
  __device__ __forceinline__ float product(const Chunk<T, Shape::vec> (&key)[Shape::chunks]) const {
    float sum = 0.0f;
    HEDDLE_UNROLL
    for (int chunk = 0; chunk < Shape::chunks; ++chunk) {
      HEDDLE_UNROLL
      for (int e = 0; e < Shape::vec; ++e) sum = fmaf(values[chunk][e], key[chunk][e], sum);
    }
    return combine_lanes<Sum<float>, Shape::lanes>(sum, 0xffffffffu);
  }
};

/// Scales of the keys and values of some places: none where rows have no scales.
template <bool Scaled, int Places>
struct DecodeScales {
  __device__ __forceinline__ float key(float raw, int) const { return raw; }
  __device__ __forceinline__ float value(float weight, int) const { return weight; }
};
template <int Places>
struct DecodeScales<true, Places> {
  float keys[Places], values[Places];

  __device__ __forceinline__ float key(float raw, int u) const { return raw * keys[u]; }
  __device__ __forceinline__ float value(float weight, int u) const { return weight * values[u]; }
};

/// Keys and values of a piece, in their storage type.
template <class T, class Shape, bool Scaled>
struct DecodePiece {
  Chunk<T, Shape::vec> keys[Shape::unroll][Shape::chunks];
  Chunk<T, Shape::vec> values[Shape::unroll][Shape::chunks];
  DecodeScales<Scaled, Shape::unroll> scales;
};

/// Key and value of the place that is not in memory yet, rounded as they are stored. Every group of lanes has them.
template <class T, class Shape>
struct DecodeFresh {
  Chunk<T, Shape::vec> keys[Shape::chunks], values[Shape::chunks];

  /// Reads both for sequence b.
  template <bool Whole, class Slots>
  __device__ __forceinline__ void read(const Slots& slots, const DecodeColumns<Shape, Whole>& key_columns,
                                       const DecodeColumns<Shape, Whole>& value_columns, int b, int h) {
    key_columns.each([&](int chunk, int c, int valid) {
      float elements[Shape::vec];
      slots.template fresh_key<Shape::vec, Whole>(b, h, c, valid, elements);
      keys[chunk] = rounded(elements);
    });
    value_columns.each([&](int chunk, int c, int valid) {
      float elements[Shape::vec];
      slots.template fresh_value<Shape::vec, Whole>(b, h, c, valid, elements);
      values[chunk] = rounded(elements);
    });
  }

  /// Stores both at place j of sequence b; one group of lanes does so.
  template <bool Whole, class Slots>
  __device__ __forceinline__ void store(const Slots& slots, const DecodeColumns<Shape, Whole>& key_columns,
                                        const DecodeColumns<Shape, Whole>& value_columns, int b, int h, int j, int lane,
                                        const Out<T>& key_cache, const Out<T>& value_cache) const {
    if (lane >= Shape::lanes) return;
    const int64_t key_row = slots.fresh_key_row(b, h, j), value_row = slots.fresh_value_row(b, h, j);
    key_columns.each([&](int chunk, int c, int valid) { store_stored<Whole>(key_cache, key_row + c, valid, keys[chunk]); });
    value_columns.each([&](int chunk, int c, int valid) { store_stored<Whole>(value_cache, value_row + c, valid, values[chunk]); });
  }

 private:
  __device__ __forceinline__ static Chunk<T, Shape::vec> rounded(const float (&elements)[Shape::vec]) {
    Pack<T, Shape::vec> pack;
    round_into(pack, elements);
    Chunk<T, Shape::vec> chunk;
    static_assert(sizeof chunk == sizeof pack, "a chunk of a shape is one pack");
    memcpy(&chunk, &pack, sizeof pack);
    return chunk;
  }

  template <bool Whole>
  __device__ __forceinline__ static void store_stored(const Out<T>& cache, int64_t offset, int valid,
                                                      const Chunk<T, Shape::vec>& chunk) {
    float elements[Shape::vec];
    HEDDLE_UNROLL
    for (int e = 0; e < Shape::vec; ++e) elements[e] = chunk[e];
    store_chunk<Shape::vec, Whole>(cache, offset, valid, elements);
  }
};

/// Weighted values of some places and the softmax they are relative to, separately for each group of lanes.
template <class Shape, bool KeepsPeak>
struct DecodeSum {
  OnlineSoftmax softmax;
  float peak = -INFINITY;  // the largest score, if a Slots needs it
  float output[Shape::chunks][Shape::vec] = {};

  /// Adds a piece. Scores are the same on all lanes of a group, and -INFINITY where there is no place.
  template <class T, bool Scaled>
  __device__ __forceinline__ void add(const float (&scores)[Shape::unroll], const DecodePiece<T, Shape, Scaled>& piece) {
    float largest = scores[0];
    HEDDLE_UNROLL
    for (int u = 1; u < Shape::unroll; ++u) largest = fmaxf(largest, scores[u]);
    if constexpr (KeepsPeak) peak = fmaxf(peak, largest);
    const float factor = softmax.admit(largest);
    HEDDLE_UNROLL
    for (int chunk = 0; chunk < Shape::chunks; ++chunk) {
      HEDDLE_UNROLL
      for (int e = 0; e < Shape::vec; ++e) output[chunk][e] *= factor;
    }
    HEDDLE_UNROLL
    for (int u = 0; u < Shape::unroll; ++u) {
      const float weight = softmax.weight(scores[u]);
      softmax.total += weight;
      weigh(piece.scales.value(weight, u), piece.values[u]);
    }
  }

  /// Adds one place, whose weight counts in one group of lanes.
  template <class T>
  __device__ __forceinline__ void add(float score, const Chunk<T, Shape::vec> (&values)[Shape::chunks], bool counts) {
    if constexpr (KeepsPeak) peak = score;
    softmax.admit(score);
    const float weight = counts ? softmax.weight(score) : 0.0f;
    softmax.total += weight;
    weigh(weight, values);
  }

  /// Adds up the groups of the warp and sends the sum to its row's place in a slot of the cluster's first block.
  __device__ __forceinline__ void send(const ClusterExchange& exchange, bool is_clustered, Shared16 slot, int lane) const {
    const float top = across_groups<Max<float>>(softmax.top), largest = KeepsPeak ? across_groups<Max<float>>(peak) : top;
    const float factor = exp2_flushed((softmax.top - top) * OnlineSoftmax::log2_e);
    const float total = across_groups<Sum<float>>(softmax.total * factor);
    const auto to = exchange.destination(slot, 0);
    const auto give = [&](int place, const Pack<float, 4>& pack) {
      if (is_clustered) {
        exchange.send<true>(to, static_cast<uint32_t>(place) * 4, pack);
      } else {
        exchange.send<false>(to, static_cast<uint32_t>(place) * 4, pack);
      }
    };
    HEDDLE_UNROLL
    for (int chunk = 0; chunk < Shape::chunks; ++chunk) {
      HEDDLE_UNROLL
      for (int e = 0; e < Shape::vec; e += 4) {
        Pack<float, 4> pack;
        HEDDLE_UNROLL
        for (int k = 0; k < 4; ++k) pack.v[k] = across_groups<Sum<float>>(output[chunk][e + k] * factor);
        if (lane < Shape::lanes) give((chunk * Shape::lanes + lane) * Shape::vec + e, pack);
      }
    }
    if (lane == 0) give(Shape::size, {{top, total, largest, 0.0f}});
  }

 private:
  template <class T>
  __device__ __forceinline__ void weigh(float weight, const Chunk<T, Shape::vec> (&values)[Shape::chunks]) {
    HEDDLE_UNROLL
    for (int chunk = 0; chunk < Shape::chunks; ++chunk) {
      HEDDLE_UNROLL
      for (int e = 0; e < Shape::vec; ++e) output[chunk][e] = fmaf(weight, values[chunk][e], output[chunk][e]);
    }
  }

  /// Combines a lane's value with those of the lanes of other groups that have the same columns: a butterfly, so that all lanes get the
  /// same bits.
  template <class Monoid>
  __device__ __forceinline__ static float across_groups(float value) {
    HEDDLE_UNROLL
    for (int distance = warp_lanes / 2; distance >= Shape::lanes; distance /= 2) {
      value = Monoid::combine(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
    return value;
  }
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
