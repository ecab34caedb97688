// Loading of keys and values by a warp of attention_decode_kernel.cuh: pieces in registers, or on their way through shared memory. The
// choice changes no bit of a result.
#ifndef HEDDLE_ATTENTION_DECODE_PIECES_CUH
#define HEDDLE_ATTENTION_DECODE_PIECES_CUH

#include "attention_decode_ring.cuh"
#include "attention_decode_split.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The pieces a warp computes, in order: those of its first worker, then those of the next.
template <class Shape>
struct DecodeWalk {
  int warps, workers, pieces;  // in total
  int worker, piece;

  __device__ __forceinline__ DecodeWalk(int warp, int warps_, int workers_, int pieces_)
      : warps(warps_), workers(workers_), pieces(pieces_), worker(warp), piece(warp) {}
  __device__ __forceinline__ bool is_done() const { return worker >= workers || piece >= pieces; }
  __device__ __forceinline__ void advance() {
    piece += workers;
    if (piece < pieces) return;
    worker += warps;
    piece = worker;
  }
  /// True if the piece is its worker's last.
  __device__ __forceinline__ bool ends_worker() const { return piece + workers >= pieces; }
};

/// The places of a sequence that a block, or a cluster, attends, and the addresses of a lane's part of their keys and values.
template <class T, class Shape, bool Whole, class Slots>
struct DecodePlaces {
  const Slots& slots;
  const DecodeRows<Slots>& rows;
  const In<T>&key, &value;
  DecodeColumns<Shape, Whole> columns, value_columns;
  int b, h, group;
  int most;  // number of places of a sequence in memory
  int begin, stored, fresh_at;

  __device__ __forceinline__ int place_of(int piece, int u) const { return begin + piece * Shape::piece + u * Shape::groups + group; }
  /// The table is as long as the tensors, so it can be read before the number of places is known.
  __device__ __forceinline__ int owner_of(int j) const { return j < most ? slots.owner(b, j) : 0; }
  __device__ __forceinline__ bool is_attended(int j) const { return j < stored && (!Slots::has_fresh || j != fresh_at); }
};

/// Pieces in registers, `Count` of them: of rows that end inside of a chunk, or have scales. The rows of a piece are looked up one piece
/// ahead.
template <class T, class Shape, bool Whole, class Slots, int Count>
class HeldPieces {
 public:
  using Places = DecodePlaces<T, Shape, Whole, Slots>;
  using Piece = DecodePiece<T, Shape, scales_rows<Slots>>;
  using Walk = DecodeWalk<Shape>;

  /// Bytes of shared memory of a block.
  static __host__ __device__ __forceinline__ uint32_t shared_bytes(int) { return 0; }

  /// Starts loading the first pieces of a warp.
  __device__ __forceinline__ HeldPieces(const Places& places, const Walk& first, Shared16) : places_(places), next_(first) {
    find();
    HEDDLE_UNROLL
    for (int at = 0; at < Count; ++at) load_next(held_[at]);
  }

  /// Calls `take(at, piece)` for each piece of the warp, starting with `at`, and starts loading those ahead.
  template <class Take>
  __device__ __forceinline__ void each(Walk at, Take take) {
    while (!at.is_done()) {
      HEDDLE_UNROLL
      for (int i = 0; i < Count; ++i) {
        if (at.is_done()) break;
        take(at, held_[i]);
        at.advance();
        load_next(held_[i]);
      }
    }
  }

 private:
  __device__ __forceinline__ void find() {
    HEDDLE_UNROLL
    for (int u = 0; u < Shape::unroll; ++u) owners_[u] = places_.owner_of(places_.place_of(next_.piece, u));
  }

  __device__ __forceinline__ void load_next(Piece& piece) {
    HEDDLE_UNROLL
    for (int u = 0; u < Shape::unroll; ++u) {
      const int j = places_.place_of(next_.piece, u);
      const bool attended = !next_.is_done() && places_.is_attended(j);
      const int64_t key_row = attended ? places_.rows.key(owners_[u], j) : 0;
      const int64_t value_row = attended ? places_.rows.value(owners_[u], j) : 0;
      places_.columns.each([&](int chunk, int c, int valid) {
        piece.keys[u][chunk] = places_.columns.load(places_.key, key_row + c, attended ? valid : 0);
      });
      places_.value_columns.each([&](int chunk, int c, int valid) {
        piece.values[u][chunk] = places_.columns.load(places_.value, value_row + c, attended ? valid : 0);
      });
      if constexpr (scales_rows<Slots>) {
        piece.scales.keys[u] = attended ? places_.slots.key_scale(owners_[u], places_.h, j) : 0.0f;
        piece.scales.values[u] = attended ? places_.slots.value_scale(owners_[u], places_.h, j) : 0.0f;
      }
    }
    next_.advance();
    find();
  }

  const Places& places_;
  Walk next_;
  int owners_[Shape::unroll];
  Piece held_[Count];
};

/// Pieces on their way through shared memory, `Shape::ahead` of them: of whole rows without scales.
template <class T, class Shape, class Slots>
class RingPieces {
 public:
  using Places = DecodePlaces<T, Shape, true, Slots>;
  using Piece = DecodePiece<T, Shape, false>;
  using Walk = DecodeWalk<Shape>;
  using Ring = LaneRing<T, 2 * Shape::unroll * Shape::chunks, Shape::ahead>;

  /// Bytes of the rings of a block of `warps` warps.
  static __host__ __device__ __forceinline__ uint32_t shared_bytes(int warps) { return static_cast<uint32_t>(warps) * Ring::bytes; }

  /// Starts loading the first pieces of a warp.
  __device__ __forceinline__ RingPieces(const Places& places, const Walk& first, Shared16 rings)
      : places_(places), ring_(rings + threadIdx.x / warp_lanes * Ring::bytes, static_cast<int>(threadIdx.x) % warp_lanes), next_(first) {
    find();
    HEDDLE_UNROLL
    for (int slot = 0; slot < Shape::ahead; ++slot) copy_next(slot);
  }

  template <class Take>
  __device__ __forceinline__ void each(Walk at, Take take) {
    for (int slot = 0; !at.is_done(); slot = slot + 1 == Shape::ahead ? 0 : slot + 1) {
      copy_async_wait<Shape::ahead - 1>();
      Piece piece;
      HEDDLE_UNROLL
      for (int u = 0; u < Shape::unroll; ++u) {
        HEDDLE_UNROLL
        for (int i = 0; i < Shape::chunks; ++i) {
          put(piece.keys[u][i], ring_.read(slot, place(u, i)));
          put(piece.values[u][i], ring_.read(slot, place(u, i) + 1));
        }
      }
      take(at, piece);
      at.advance();
      copy_next(slot);
    }
    copy_async_wait<0>();
  }

 private:
  static constexpr __device__ __forceinline__ int place(int u, int chunk) { return (u * Shape::chunks + chunk) * 2; }

  __device__ __forceinline__ void find() {
    HEDDLE_UNROLL
    for (int u = 0; u < Shape::unroll; ++u) owners_[u] = places_.owner_of(places_.place_of(next_.piece, u));
  }

  __device__ __forceinline__ void copy_next(int slot) {
    HEDDLE_UNROLL
    for (int u = 0; u < Shape::unroll && !next_.is_done(); ++u) {
      const int j = places_.place_of(next_.piece, u);
      const bool attended = places_.is_attended(j);
      const int64_t key_row = attended ? places_.rows.key(owners_[u], j) : 0;
      const int64_t value_row = attended ? places_.rows.value(owners_[u], j) : 0;
      places_.columns.each([&](int i, int c, int) {
        ring_.copy(slot, place(u, i), places_.key, key_row + c, attended);
        ring_.copy(slot, place(u, i) + 1, places_.value, value_row + c, attended);
      });
    }
    copy_async_commit();
    next_.advance();
    find();
  }

  static __device__ __forceinline__ void put(Chunk<T, Shape::vec>& chunk, const Pack<T, Shape::vec>& pack) {
    static_assert(sizeof chunk == sizeof pack, "a chunk of a shape is one pack");
    memcpy(&chunk, &pack, sizeof pack);
  }

  const Places& places_;
  Ring ring_;
  Walk next_;
  int owners_[Shape::unroll];
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
