// The kernel behind attention_decode.cuh: a block, or a cluster of blocks, for each query row and head. Places are dealt out in
// pieces to a fixed number of workers, each of which sums up its own; warps take workers in turn, and in the end the sums of all
// workers are put together in their order. How many warps and blocks do that changes no bit of a result, nor does what else is in
// the batch.
#ifndef HEDDLE_ATTENTION_DECODE_KERNEL_CUH
#define HEDDLE_ATTENTION_DECODE_KERNEL_CUH

#include "attention_decode_parts.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

struct DecodeExtents {
  int heads, queries, head_dim;
  int places;   // of a sequence in memory
  int cluster;  // blocks for each query row and head, neighbours along x
};

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
    attention_decode(const DecodeExtents extents, const In<T> key, const In<T> value, const Out<O> out, const Slots slots,
                     Caches... caches) {
  begin_kernel();
  constexpr int vec = Shape::vec, unroll = Shape::unroll;
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / Shape::lanes;
  const int own_warps = static_cast<int>(blockDim.x) / 32;
  const int rank = static_cast<int>(blockIdx.x) % extents.cluster;
  const int warp = rank * own_warps + static_cast<int>(threadIdx.x) / 32, warps = own_warps * extents.cluster;
  // Query rows of a sequence are innermost: they read the same places.
  int64_t item = static_cast<int>(blockIdx.x) / extents.cluster;
  const int i = peel(item, extents.queries), h = peel(item, extents.heads), b = static_cast<int>(item);
  const DecodeColumns<Shape, Whole> columns{lane % Shape::lanes * vec, extents.head_dim};

  // Everything that depends on nothing else is asked for at once: the query, the fresh place, the number of places, the table.
  DecodeQuery<Shape> query;
  columns.each([&](int chunk, int c, int valid) { slots.template query<vec, Whole>(b, i, h, c, valid, query.values[chunk]); });
  [[maybe_unused]] DecodeFresh<T, Shape> fresh;
  const bool takes_fresh = Slots::has_fresh && warp == own_warps - 1;
  if constexpr (Slots::has_fresh) {
    if (takes_fresh) fresh.read(slots, columns, b, h);
  }
  const int keys = min(slots.keys(b), extents.places);
  int stored = keys, fresh_at = -1;  // places in memory, and one among them that is not
  if constexpr (Slots::has_fresh) {
    fresh_at = slots.fresh_place(b);
    if (fresh_at == keys - 1) stored = fresh_at;
  }
  const int pieces = (stored + Shape::piece - 1) / Shape::piece;

  HEDDLE_DYNAMIC_SHARED(memory);
  const uint32_t barrier_at = Shape::shared_bytes(extents.places) - ClusterExchange::barrier_bytes;
  const ClusterExchange exchange(memory + barrier_at, extents.cluster);
  const int sums = min(pieces, Shape::workers);
  const bool attends_fresh = fresh_at >= 0 && fresh_at < keys;
  exchange.announce(rank == 0 ? static_cast<uint32_t>(sums + (attends_fresh ? 1 : 0)) * Shape::slot_bytes : 0);

  const auto place_of = [&](const DecodeWalk<Shape>& at, int u) { return at.piece * Shape::piece + u * Shape::groups + group; };
  const auto is_attended = [&](int j) { return j < stored && j != fresh_at; };
  const auto find = [&](const DecodeWalk<Shape>& at, int (&owners)[unroll]) {
    HEDDLE_UNROLL
    for (int u = 0; u < unroll; ++u) {
      // The table is as long as the tensors, so it can be read before anyone knows how many places there are.
      const int j = place_of(at, u);
      owners[u] = j < extents.places ? slots.owner(b, j) : 0;
    }
  };
  const auto load = [&](const DecodeWalk<Shape>& at, const int (&owners)[unroll], DecodePiece<T, Shape>& piece) {
    HEDDLE_UNROLL
    for (int u = 0; u < unroll; ++u) {
      const int j = place_of(at, u);
      const bool attended = !at.is_done() && is_attended(j);
      const int64_t key_row = attended ? slots.key_row(owners[u], h, j) : 0;
      const int64_t value_row = attended ? slots.value_row(owners[u], h, j) : 0;
      columns.each([&](int chunk, int c, int valid) {
        piece.keys[u][chunk] = columns.load(key, key_row + c, attended ? valid : 0);
        piece.values[u][chunk] = columns.load(value, value_row + c, attended ? valid : 0);
      });
    }
  };

  DecodeWalk<Shape> here(warp, warps, pieces), next = here;
  int owners[unroll];
  DecodePiece<T, Shape> piece;
  find(here, owners);
  next.advance();
  load(here, owners, piece);
  find(next, owners);
  exchange.ready();
  if constexpr (Slots::has_fresh) {
    if (takes_fresh) {
      if (fresh_at >= 0 && fresh_at < extents.places) fresh.store(slots, columns, b, h, fresh_at, lane, caches...);
      if (attends_fresh) {
        const int owner = slots.owner(b, fresh_at);
        if (owner != b) fresh.read(slots, columns, owner, h);
        DecodeSum<Shape> sum;
        const float raw = query.product(fresh.keys);
        sum.add(slots.score(raw, b, i, h, fresh_at), fresh.values, group == 0);
        sum.send(exchange, extents.cluster > 1, memory + static_cast<uint32_t>(sums) * Shape::slot_bytes, lane);
      }
    }
  }

  DecodeSum<Shape> sum;
  while (!here.is_done()) {
    DecodePiece<T, Shape> coming;
    load(next, owners, coming);
    DecodeWalk<Shape> after = next;
    after.advance();
    find(after, owners);
    float scores[unroll];
    HEDDLE_UNROLL
    for (int u = 0; u < unroll; ++u) {
      const float raw = query.product(piece.keys[u]);
      const int j = place_of(here, u);
      scores[u] = is_attended(j) ? slots.score(raw, b, i, h, j) : -INFINITY;
    }
    sum.add(scores, piece.values);
    if (next.worker != here.worker) {
      sum.send(exchange, extents.cluster > 1, memory + static_cast<uint32_t>(here.worker) * Shape::slot_bytes, lane);
      sum = DecodeSum<Shape>();
    }
    piece = coming;
    here = next;
    next = after;
  }
  if (rank != 0) return;
  exchange.receive();
  const int received = sums + (attends_fresh ? 1 : 0);
  for (int c = static_cast<int>(threadIdx.x) * 4; c < extents.head_dim; c += static_cast<int>(blockDim.x) * 4) {
    float results[4];
    put_together<Shape>(memory, received, c, results);
    HEDDLE_UNROLL
    for (int e = 0; e < 4; ++e) results[e] = stored_of(slots, results[e]);
    store_chunk<4, Whole>(out, slots.out_row(b, i, h) + c, extents.head_dim - c, results);
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
