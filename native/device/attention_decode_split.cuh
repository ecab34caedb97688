// Division of a long row of attention_decode_kernel.cuh: places beyond what one block reads are divided into segments, each with a block of
// its own. The sums of segments are in memory until a second kernel combines them. The number of segments of a row depends only on the
// number of places it attends, so its bits are the same alone, in any batch and in a cache of any size.
#ifndef HEDDLE_ATTENTION_DECODE_SPLIT_CUH
#define HEDDLE_ATTENTION_DECODE_SPLIT_CUH

#include "attention_decode_output.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

struct DecodeExtents {
  int heads, shared;  // query heads, and the number of adjacent heads that share keys and values
  int queries, head_dim, value_dim;
  int places;    // per sequence in memory
  int cluster;   // blocks for each segment of a query row and Shape::rows of the heads that share keys, adjacent along x
  int segments;  // most segments of a row with that many places, along y; rows of one segment need no second kernel
  bool settled;  // true if the previous launch writes neither the attended memory nor its addresses
  int64_t key_step = 0, value_step = 0;  // elements from one place to the next, where a Slots has steps
  int ahead = 1;  // pieces on their way to a warp, where heads share keys
};

/// The segments of a row.
struct DecodeSplit {
  static constexpr int whole = 1024;  // places that stay together: one block, or a cluster, reads them fast enough
  static constexpr int least = 512;   // places per segment: their keys and values outweigh its sums fifty times and more
  static constexpr int most = 32;     // segments, so that four heads fill the largest devices; clusters help where there are fewer

  int length, count;

  /// Workers of a segment: fewer where a row has several segments, so that a block combines few sums and a worker has many pieces.
  template <class Shape>
  __device__ __forceinline__ int workers() const {
    return count == 1 ? Shape::workers : Shape::split_workers;
  }

  /// Segments of a row that attends `places` places.
  static __host__ __device__ __forceinline__ DecodeSplit of(int places) {
    if (places <= whole) return {whole, 1};
    constexpr int step = 64;
    const int even = (places - 1) / most + 1, length = even <= least ? least : (even - 1) / step * step + step;
    return {length, (places - 1) / length + 1};
  }

  /// Most segments of any row of at most `places` places.
  static int64_t most_of(int64_t places) {
    const int64_t full = (places - 1) / least + 1;
    return places <= whole ? 1 : full < most ? full : most;
  }

  /// Most places of a segment of any such row.
  static int64_t longest_of(int64_t places) {
    return places <= whole ? places : longest(int64_t{whole}, int64_t{of(static_cast<int>(places)).length});
  }
};

/// The places that some of `heads` adjacent rows attend: those of one row, unless heads differ.
struct DecodeRange {
  int begin, end;
  int stored;    // the end of those in memory
  int fresh_at;  // the place that is not in memory, or -1

  template <int Rows, class Slots>
  static __device__ __forceinline__ DecodeRange of(const Slots& slots, int places, int b, int first_head, int heads, int i) {
    DecodeRange range = {lower_of(slots, b, first_head, i), upper_of(slots, b, first_head, i, places), 0, -1};
    HEDDLE_UNROLL
    for (int r = 1; r < Rows; ++r) {
      const int head = first_head + min(r, heads - 1);
      range.begin = min(range.begin, lower_of(slots, b, head, i));
      range.end = max(range.end, upper_of(slots, b, head, i, places));
    }
    range.end = max(range.end, range.begin);
    range.stored = range.end;
    if constexpr (Slots::has_fresh) {
      range.fresh_at = slots.fresh_place(b);
      if (range.fresh_at == range.end - 1 && range.fresh_at >= range.begin) range.stored = range.fresh_at;
    }
    return range;
  }
};

/// Offsets of the rows of a head. Where a sequence owns evenly spaced places, they take two instructions.
template <class Slots>
struct DecodeRows {
  const Slots& slots;
  int b, h, begin;
  int64_t key_step, value_step, first_key = 0, first_value = 0;

  __device__ __forceinline__ DecodeRows(const DecodeExtents& extents, const Slots& slots_, int b_, int h_, int begin_)
      : slots(slots_), b(b_), h(h_), begin(begin_), key_step(extents.key_step), value_step(extents.value_step) {
    if constexpr (has_steps<Slots>) {
      first_key = slots.key_row(slots.owner(b, begin), h, begin);
      first_value = slots.value_row(slots.owner(b, begin), h, begin);
    }
  }
  /// `owner` is the sequence that owns the place.
  __device__ __forceinline__ int64_t key([[maybe_unused]] int owner, int j) const {
    if constexpr (has_steps<Slots>) {
      return first_key + static_cast<uint32_t>(j - begin) * key_step;
    } else {
      return slots.key_row(owner, h, j);
    }
  }
  __device__ __forceinline__ int64_t value([[maybe_unused]] int owner, int j) const {
    if constexpr (has_steps<Slots>) {
      return first_value + static_cast<uint32_t>(j - begin) * value_step;
    } else {
      return slots.value_row(owner, h, j);
    }
  }
};

/// Layout of the sums of a segment: `size` columns, then the score they are relative to, their total and the largest score.
template <class Shape>
struct DecodeSums {
  static constexpr int64_t floats = Shape::row_bytes / 4;

  static __host__ __device__ __forceinline__ int64_t rows(int64_t row, int segments) { return row * segments * floats; }
};

/// Stores four columns of a result, from their sums over all places.
template <bool Whole, class O, class Slots>
__device__ __forceinline__ void store_decoded(const Out<O>& out, const Slots& slots, const DecodeTotals& all, int b, int head, int i, int c,
                                              int value_dim) {
  const Quotient quotient = quotient_of(slots, all.total, all.top, all.peak, b, head, i);
  if (stores_rows<Slots> && c == 0) store_row_of(slots, all.total, all.top, all.peak, b, head, i);
  float results[4];
  HEDDLE_UNROLL
  for (int e = 0; e < 4; ++e) {
    results[e] = Whole || c + e < value_dim ? stored_of(slots, quotient(all.sums[e]), b, head, i, c + e) : 0.0f;
  }
  store_chunk<4, Whole>(out, slots.out_row(b, i, head) + c, value_dim - c, results);
}

/// The sums of a block, or a cluster: those of a segment of some adjacent heads of a query row.
struct DecodeItem {
  int b, i, first_head, heads, segment, segments;
};

/// Combines the sums of `received` workers, those of row r in `slot_of(worker, r)`, to results if a row has one segment, otherwise to the
/// input of attention_decode_join.
template <class Shape, bool Whole, class SlotOf, class O, class Slots>
__device__ __forceinline__ void finish_decode(const DecodeExtents& extents, const DecodeItem& item, int received, SlotOf slot_of,
                                              const Out<O>& out, const Out<float>& parts, const Slots& slots) {
  const int columns4 = (extents.value_dim + 3) / 4;
  // The few workers of a segment are not worth several lanes a column.
  const DecodeChains chains = {item.segments == 1 ? chain_bits : 0};
  // Warps stay together in the loop, since lanes exchange values.
  for (int at = 0; at < columns4 * item.heads; at += chains.groups()) {
    const int place = min(at + chains.group(), columns4 * item.heads - 1), r = place / columns4, c = place % columns4 * 4;
    const DecodeTotals all = put_together(chains, received, Shape::size, c, [&](int slot, int column) {
      return load_shared_16<float>(slot_of(slot, r) + static_cast<uint32_t>(column) * 4);
    });
    if (at + chains.group() != place || chains.own() != 0) continue;
    const int head = item.first_head + r;
    if (item.segments == 1) {
      store_decoded<Whole>(out, slots, all, item.b, head, item.i, c, extents.value_dim);
      continue;
    }
    const int64_t row = (static_cast<int64_t>(item.b) * extents.queries + item.i) * extents.heads + head;
    const int64_t start = DecodeSums<Shape>::rows(row, extents.segments) + item.segment * DecodeSums<Shape>::floats;
    parts.set_pack(start + c, Pack<float, 4>{{all.sums[0], all.sums[1], all.sums[2], all.sums[3]}});
    if (c == 0) parts.set_pack(start + Shape::size, Pack<float, 4>{{all.top, all.total, all.peak, 0.0f}});
  }
}

/// Combines the segments of rows that have several: one block for each query row of each head.
template <class O, class Shape, bool Whole, class Slots>
__global__ void __launch_bounds__(256) attention_decode_join(const DecodeExtents extents, const In<float> sums, const Out<O> out, const Slots slots) {
  begin_kernel();
  int64_t item = static_cast<int>(blockIdx.x);
  const int i = peel(item, extents.queries), head = peel(item, extents.heads), b = static_cast<int>(item);
  // Rows that were computed together were divided together.
  const int part = head % extents.shared / Shape::rows * Shape::rows;
  const DecodeRange range = DecodeRange::of<Shape::rows>(slots, extents.places, b, head - head % extents.shared + part,
                                                         min(extents.shared - part, Shape::rows), i);
  const int count = DecodeSplit::of(range.stored - range.begin).count;
  if (count == 1) return;
  const int64_t row = (static_cast<int64_t>(b) * extents.queries + i) * extents.heads + head;
  const int64_t start = DecodeSums<Shape>::rows(row, extents.segments);
  const int columns4 = (extents.value_dim + 3) / 4;
  constexpr DecodeChains chains = {chain_bits};
  // Warps stay together in the loop, since lanes exchange values.
  for (int at = 0; at < columns4; at += chains.groups()) {
    const int place = min(at + chains.group(), columns4 - 1);
    const DecodeTotals all = put_together(chains, count, Shape::size, place * 4, [&](int segment, int column) {
      return sums.template get_pack<4>(start + segment * DecodeSums<Shape>::floats + column);
    });
    if (at + chains.group() != place || chains.own() != 0) continue;
    store_decoded<Whole>(out, slots, all, b, head, i, place * 4, extents.value_dim);
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
