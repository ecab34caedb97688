// The kernel behind attention_decode.cuh: a block, or a cluster of blocks, for each query row and the heads that share its keys. Places are dealt out in
// pieces to a fixed number of workers, each of which sums up its own; warps take workers in turn, and in the end the sums of all
// workers are put together in their order. How many warps and blocks do that changes no bit of a result, nor does what else is in
// the batch.
#ifndef HEDDLE_ATTENTION_DECODE_KERNEL_CUH
#define HEDDLE_ATTENTION_DECODE_KERNEL_CUH

#include "attention_decode_split.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The pieces a warp computes, in order: those of its first worker, then those of the next.
template <class Shape>
struct DecodeWalk {
  int warps, pieces;  // in all
  int worker, piece;

  __device__ __forceinline__ DecodeWalk(int warp, int warps_, int pieces_)
      : warps(warps_), pieces(pieces_), worker(warp), piece(warp) {}
  __device__ __forceinline__ bool is_done() const { return worker >= Shape::workers || piece >= pieces; }
  __device__ __forceinline__ void advance() {
    piece += Shape::workers;
    if (piece < pieces) return;
    worker += warps;
    piece = worker;
  }
};

/// Lanes of a group read one place together; a piece is a few places for each group.
template <class T, class O, class Shape, bool Whole, class Slots, class... Caches>
__global__ void __launch_bounds__(256, decode_resident<Shape>)
    attention_decode(const DecodeExtents extents, const In<T> key, const In<T> value, const Out<O> out, const Out<float> parts,
                     const Slots slots, Caches... caches) {
  if (!extents.settled) begin_kernel();
  using Sums = DecodeSum<Shape, has_denominator<Slots>>;
  using Piece = DecodePiece<T, Shape, scales_rows<Slots>>;
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
  // The last segment attends what is not in memory yet.
  const bool is_last = segment + 1 == split.count;
  const int begin = range.begin + segment * split.length, fresh_at = range.fresh_at;
  const int stored = is_last ? range.stored : begin + split.length;
  const auto is_in_range = [&](int r, int j) {
    return Shape::rows == 1 ||
           (j >= lower_of(slots, b, head_of(r), i) && j < upper_of(slots, b, head_of(r), i, extents.places));
  };
  const int pieces = (stored - begin + Shape::piece - 1) / Shape::piece;

  HEDDLE_DYNAMIC_SHARED(memory);
  const uint32_t barrier_at = Shape::shared_bytes(extents.places) - ClusterExchange::barrier_bytes;
  const ClusterExchange exchange(memory + barrier_at, extents.cluster);
  const int sums = min(pieces, Shape::workers);
  const bool attends_fresh = is_last && fresh_at >= range.begin && fresh_at < range.end;
  exchange.announce(rank == 0 ? static_cast<uint32_t>(sums + (attends_fresh ? 1 : 0)) * Shape::slot_bytes : 0);

  const auto place_of = [&](const DecodeWalk<Shape>& at, int u) { return begin + at.piece * Shape::piece + u * Shape::groups + group; };
  const auto is_attended = [&](int j) { return j < stored && j != fresh_at; };
  const auto find = [&](const DecodeWalk<Shape>& at, int (&owners)[unroll]) {
    HEDDLE_UNROLL
    for (int u = 0; u < unroll; ++u) {
      // The table is as long as the tensors, so it can be read before anyone knows how many places there are.
      const int j = place_of(at, u);
      owners[u] = j < extents.places ? slots.owner(b, j) : 0;
    }
  };
  const auto load = [&](const DecodeWalk<Shape>& at, const int (&owners)[unroll], Piece& piece) {
    HEDDLE_UNROLL
    for (int u = 0; u < unroll; ++u) {
      const int j = place_of(at, u);
      const bool attended = !at.is_done() && is_attended(j);
      const int64_t key_row = attended ? slots.key_row(owners[u], h, j) : 0;
      const int64_t value_row = attended ? slots.value_row(owners[u], h, j) : 0;
      columns.each([&](int chunk, int c, int valid) {
        piece.keys[u][chunk] = columns.load(key, key_row + c, attended ? valid : 0);
      });
      value_columns.each([&](int chunk, int c, int valid) {
        piece.values[u][chunk] = columns.load(value, value_row + c, attended ? valid : 0);
      });
      if constexpr (scales_rows<Slots>) {
        piece.scales.keys[u] = attended ? slots.key_scale(owners[u], h, j) : 0.0f;
        piece.scales.values[u] = attended ? slots.value_scale(owners[u], h, j) : 0.0f;
      }
    }
  };

  // What is in memory already is on its way while the launch in front ends.
  DecodeWalk<Shape> here(warp, warps, pieces), next = here;
  int owners[unroll];
  Piece held[decode_held<Shape, Whole, Slots>];
  const auto load_next = [&](Piece& piece) {
    load(next, owners, piece);
    next.advance();
    find(next, owners);
  };
  find(next, owners);
  HEDDLE_UNROLL
  for (int at = 0; at < decode_held<Shape, Whole, Slots>; ++at) load_next(held[at]);
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
    return memory + (static_cast<uint32_t>(slot) * Shape::slot_bytes + static_cast<uint32_t>(r) * Shape::row_bytes);
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
  while (!here.is_done()) {
    HEDDLE_UNROLL
    for (int at = 0; at < decode_held<Shape, Whole, Slots>; ++at) {
      if (here.is_done()) break;
      Piece& piece = held[at];
      HEDDLE_UNROLL
      for (int r = 0; r < Shape::rows; ++r) {
        float scores[unroll];
        HEDDLE_UNROLL
        for (int u = 0; u < unroll; ++u) {
          const float raw = piece.scales.key(query[r].product(piece.keys[u]), u);
          const int j = place_of(here, u);
          scores[u] = is_attended(j) && is_in_range(r, j) ? slots.score(raw, b, i, head_of(r), j) : -INFINITY;
        }
        sum[r].add(scores, piece);
      }
      const int worker = here.worker;
      here.advance();
      if (here.worker != worker) {
        HEDDLE_UNROLL
        for (int r = 0; r < Shape::rows; ++r) {
          sum[r].send(exchange, extents.cluster > 1, slot_of(worker, r), lane);
          sum[r] = Sums();
        }
      }
      load_next(piece);
    }
  }
  if (rank != 0) return;
  exchange.receive();
  const DecodeItem item_of = {b, i, first_head, heads, segment, split.count};
  finish_decode<Shape, Whole>(extents, item_of, sums + (attends_fresh ? 1 : 0), slot_of, out, parts, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
