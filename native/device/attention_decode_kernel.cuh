// The kernels of attention_decode.cuh: a block, or a cluster of blocks, for each query row and the heads that share its keys. Places are
// dealt in pieces to a fixed number of workers, each of which sums its own. Warps process workers in turn, and at the end the sums of all
// workers are combined in their order. Neither the number of warps and blocks nor the rest of the batch changes a bit of a result.
#ifndef HEDDLE_ATTENTION_DECODE_KERNEL_CUH
#define HEDDLE_ATTENTION_DECODE_KERNEL_CUH

#include "attention_decode_pieces.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The lanes of a group read one place together; a piece is a few places for each group.
template <class Shape, bool Whole, class Pieces, class T, class O, class Slots, class... Caches>
__device__ __forceinline__ void attend_places(const DecodeExtents& extents, const In<T>& key, const In<T>& value, const Out<O>& out,
                                              const Out<float>& parts, const Slots& slots, const Caches&... caches) {
  if (!extents.settled) begin_kernel();
  using Sums = DecodeSum<Shape, needs_peak<Slots>>;
  static_assert(!scales_rows<Slots> || !Slots::has_fresh, "a fresh place has no step of its own");
  constexpr int vec = Shape::vec, unroll = Shape::unroll;
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / Shape::lanes;
  const int own_warps = static_cast<int>(blockDim.x) / 32;
  const int rank = static_cast<int>(blockIdx.x) % extents.cluster;
  const int warp = rank * own_warps + static_cast<int>(threadIdx.x) / 32, warps = own_warps * extents.cluster;
  // Query rows of a sequence are innermost: they read the same places.
  int64_t item = static_cast<int>(blockIdx.x) / extents.cluster;
  const int i = peel(item, extents.queries), part = peel(item, (extents.shared + Shape::rows - 1) / Shape::rows) * Shape::rows;
  const int h = peel(item, extents.heads / extents.shared), b = static_cast<int>(item);
  // Rows beyond the last head are computed as copies of it and dropped.
  const int first_head = h * extents.shared + part, heads = min(extents.shared - part, Shape::rows);
  const auto head_of = [&](int r) { return Shape::rows == 1 ? first_head : first_head + min(r, heads - 1); };
  const DecodeColumns<Shape, Whole> columns{lane % Shape::lanes * vec, extents.head_dim};
  const DecodeColumns<Shape, Whole> value_columns{lane % Shape::lanes * vec, extents.value_dim};

  const DecodeRange range = DecodeRange::of<Shape::rows>(slots, extents.places, b, first_head, heads, i);
  const DecodeSplit split = DecodeSplit::of(range.stored - range.begin);
  const int segment = static_cast<int>(blockIdx.y);
  if (segment >= split.count) {
    if (extents.settled) begin_kernel();
    return;
  }
  // The last segment also attends the fresh place.
  const bool is_last = segment + 1 == split.count;
  const int begin = range.begin + segment * split.length, fresh_at = range.fresh_at;
  const int stored = is_last ? range.stored : begin + split.length;
  const auto is_in_range = [&](int r, int j) {
    return Shape::rows == 1 ||
           (j >= lower_of(slots, b, head_of(r), i) && j < upper_of(slots, b, head_of(r), i, extents.places));
  };
  const int pieces = (stored - begin + Shape::piece - 1) / Shape::piece;

  HEDDLE_DYNAMIC_SHARED(memory);
  const Shared16 slots_at = memory + Pieces::shared_bytes(own_warps);
  const ClusterExchange exchange(slots_at + (Shape::shared_bytes(extents.places) - ClusterExchange::barrier_bytes), extents.cluster);
  const int workers = split.workers<Shape>(), sums = min(pieces, workers);
  const bool attends_fresh = is_last && fresh_at >= range.begin && fresh_at < range.end;
  exchange.announce(rank == 0 ? static_cast<uint32_t>(sums + (attends_fresh ? 1 : 0)) * Shape::slot_bytes : 0);

  // Keys and values in memory are loaded while the previous launch ends.
  const DecodeRows<Slots> rows(extents, slots, b, h, begin);
  const DecodePlaces<T, Shape, Whole, Slots> places = {slots, rows,  key,            value, columns, value_columns, b,
                                                       h,     group, extents.places, begin, stored,  fresh_at};
  const DecodeWalk<Shape> first(warp, warps, workers, pieces);
  Pieces held(places, first, memory);
  if (extents.settled) begin_kernel();

  DecodeQuery<Shape> query[Shape::rows];
  HEDDLE_UNROLL
  for (int r = 0; r < Shape::rows; ++r) {
    columns.each([&](int chunk, int c, int valid) {
      slots.template query<vec, Whole>(b, i, head_of(r), c, valid, query[r].values[chunk]);
    });
  }
  [[maybe_unused]] DecodeFresh<T, Shape> fresh;
  const bool takes_fresh = Slots::has_fresh && warp == own_warps - 1;
  if constexpr (Slots::has_fresh) {
    if (takes_fresh) fresh.read(slots, columns, value_columns, b, h);
  }
  exchange.ready();
  const auto slot_of = [&](int slot, int r) {
    return slots_at + (static_cast<uint32_t>(slot) * Shape::slot_bytes + static_cast<uint32_t>(r) * Shape::row_bytes);
  };
  if constexpr (Slots::has_fresh) {
    if (takes_fresh) {
      // Of the blocks that share the place, one stores it.
      const bool stores = is_last && part == 0 && fresh_at >= 0 && fresh_at < extents.places;
      if (stores) fresh.store(slots, columns, value_columns, b, h, fresh_at, lane, caches...);
      if (attends_fresh) {
        const int owner = slots.owner(b, fresh_at);
        if (owner != b) fresh.read(slots, columns, value_columns, owner, h);
        HEDDLE_UNROLL
        for (int r = 0; r < Shape::rows; ++r) {
          Sums sum;
          const float raw = query[r].product(fresh.keys);
          const float score = is_in_range(r, fresh_at) ? slots.score(raw, b, i, head_of(r), fresh_at) : -INFINITY;
          sum.add(score, fresh.values, group == 0);
          sum.send(exchange, extents.cluster > 1, slot_of(sums, r), lane);
        }
      }
    }
  }

  Sums sum[Shape::rows];
  held.each(first, [&](DecodeWalk<Shape> at, const DecodePiece<T, Shape, scales_rows<Slots>>& piece) {
    HEDDLE_UNROLL
    for (int r = 0; r < Shape::rows; ++r) {
      float scores[unroll];
      HEDDLE_UNROLL
      for (int u = 0; u < unroll; ++u) {
        const float raw = piece.scales.key(query[r].product(piece.keys[u]), u);
        const int j = places.place_of(at.piece, u);
        scores[u] = places.is_attended(j) && is_in_range(r, j) ? slots.score(raw, b, i, head_of(r), j) : -INFINITY;
      }
      sum[r].add(scores, piece);
    }
    if (!at.ends_worker()) return;
    HEDDLE_UNROLL
    for (int r = 0; r < Shape::rows; ++r) {
      sum[r].send(exchange, extents.cluster > 1, slot_of(at.worker, r), lane);
      sum[r] = Sums();
    }
  });
  if (rank != 0) return;
  exchange.receive();
  const DecodeItem item_of = {b, i, first_head, heads, segment, split.count};
  finish_decode<Shape, Whole>(extents, item_of, sums + (attends_fresh ? 1 : 0), slot_of, out, parts, slots);
}

/// Kernel with pieces in registers.
template <class T, class O, class Shape, bool Whole, class Slots, class... Caches>
__global__ void __launch_bounds__(256, decode_resident<Shape>)
    attention_decode(const DecodeExtents extents, const In<T> key, const In<T> value, const Out<O> out, const Out<float> parts,
                     const Slots slots, Caches... caches) {
  using Pieces = HeldPieces<T, Shape, Whole, Slots, decode_held<Shape, Whole, Slots>>;
  attend_places<Shape, Whole, Pieces>(extents, key, value, out, parts, slots, caches...);
}

/// Kernel with pieces in shared memory.
template <class T, class O, class Shape, class Slots, class... Caches>
__global__ void __launch_bounds__(256, ring_resident<Shape, Slots>)
    attention_decode_ring(const DecodeExtents extents, const In<T> key, const In<T> value, const Out<O> out, const Out<float> parts,
                          const Slots slots, Caches... caches) {
  attend_places<Shape, true, RingPieces<T, Shape, Slots>>(extents, key, value, out, parts, slots, caches...);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
