// Loading of keys and values by a warp of attention_decode_kernel.cuh: pieces in registers, some prefetched, or pieces that the copy engine
// brings to shared memory for all warps of a block. The choice changes no bit of a result.
#ifndef HEDDLE_ATTENTION_DECODE_PIECES_CUH
#define HEDDLE_ATTENTION_DECODE_PIECES_CUH

#include "attention_decode_split.cuh"
#include "bulk_copy.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The pieces a warp computes, in order: those of its first worker, then those of the next.
template <class Shape>
struct DecodeWalk {
  int warps, pieces;  // in total
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
  /// True if the piece is its worker's last.
  __device__ __forceinline__ bool ends_worker() const { return piece + Shape::workers >= pieces; }
};

/// The places of a sequence that a block, or a cluster, attends, and the addresses of a lane's part of their keys and values.
template <class T, class Shape, bool Whole, class Slots>
struct DecodePlaces {
  const Slots& slots;
  const In<T>&key, &value;
  DecodeColumns<Shape, Whole> columns, value_columns;
  int b, h, group;
  int most;  // number of places of a sequence in memory
  int begin, stored, fresh_at;

  __device__ __forceinline__ int place_of(int piece, int u) const { return begin + piece * Shape::piece + u * Shape::groups + group; }
  __device__ __forceinline__ bool is_attended(int j) const { return j < stored && j != fresh_at; }
};

/// Pieces in registers, `Count` of them. The rows of a piece are looked up one piece ahead.
template <class T, class Shape, bool Whole, class Slots, int Count>
class HeldPieces {
 public:
  using Places = DecodePlaces<T, Shape, Whole, Slots>;
  using Piece = DecodePiece<T, Shape, scales_rows<Slots>>;
  using Walk = DecodeWalk<Shape>;

  static __host__ __device__ __forceinline__ uint32_t shared_bytes(int) { return 0; }

  /// Starts loading the first pieces of a warp.
  __device__ __forceinline__ HeldPieces(const Places& places, const Walk& first, int, Shared16, int) : places_(places), next_(first) {
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
    for (int u = 0; u < Shape::unroll; ++u) {
      // The table is as long as the tensors, so it can be read before the number of places is known.
      const int j = places_.place_of(next_.piece, u);
      owners_[u] = j < places_.most ? places_.slots.owner(places_.b, j) : 0;
    }
  }

  __device__ __forceinline__ void load_next(Piece& piece) {
    HEDDLE_UNROLL
    for (int u = 0; u < Shape::unroll; ++u) {
      const int j = places_.place_of(next_.piece, u), h = places_.h;
      const bool attended = !next_.is_done() && places_.is_attended(j);
      const int64_t key_row = attended ? places_.slots.key_row(owners_[u], h, j) : 0;
      const int64_t value_row = attended ? places_.slots.value_row(owners_[u], h, j) : 0;
      places_.columns.each([&](int chunk, int c, int valid) {
        piece.keys[u][chunk] = places_.columns.load(places_.key, key_row + c, attended ? valid : 0);
      });
      places_.value_columns.each([&](int chunk, int c, int valid) {
        piece.values[u][chunk] = places_.columns.load(places_.value, value_row + c, attended ? valid : 0);
      });
      if constexpr (scales_rows<Slots>) {
        piece.scales.keys[u] = attended ? places_.slots.key_scale(owners_[u], h, j) : 0.0f;
        piece.scales.values[u] = attended ? places_.slots.value_scale(owners_[u], h, j) : 0.0f;
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

/// Pieces in a ring of shared memory: a chunk of it has the next piece of every warp of the block. These are adjacent, so that one copy
/// brings all of their keys. Rows of a head are contiguous and do not end inside of a chunk.
template <class T, class Shape, class Slots>
class StreamedPieces {
 public:
  using Places = DecodePlaces<T, Shape, true, Slots>;
  using Piece = DecodePiece<T, Shape, false>;
  using Walk = DecodeWalk<Shape>;
  static constexpr int warps = Shape::warps;
  static constexpr uint32_t row_bytes = Shape::size * sizeof(T), piece_bytes = Shape::piece * row_bytes, chunk_bytes = warps * piece_bytes;

  /// Bytes of a ring of `chunks` chunks.
  static __host__ __device__ __forceinline__ uint32_t shared_bytes(int chunks) {
    return static_cast<uint32_t>(chunks) * (2 * chunk_bytes + CopyCounter::bytes);
  }

  /// Starts loading the first chunks of a block of `warps` warps, of which this is number `warp`.
  __device__ __forceinline__ StreamedPieces(const Places& places, const Walk& first, int warp, Shared16 ring, int chunks)
      : places_(places), warp_(warp), chunks_(chunks), ring_(ring), at_(0, warps, first.pieces), next_(at_) {
    if (threadIdx.x != 0) return;
    for (int i = 0; i < chunks; ++i) counter(i).initialise();
    CopyCounter::publish();
    for (int i = 0; i < chunks; ++i) copy_next(i);
  }

  template <class Take>
  __device__ __forceinline__ void each(Walk at, Take take) {
    int slot = 0, behind = chunks_ - 1;
    uint32_t parity = 0;
    for (bool is_first = true; !at_.is_done(); is_first = false, at_.advance()) {
      // Every warp has read the previous chunk, whose place the next one takes.
      __syncthreads();
      if (threadIdx.x == 0 && !is_first) copy_next(behind);
      counter(slot).wait(parity);
      if (at_.piece + warp_ < at.pieces) {
        Piece piece;
        read(slot, at_.piece + warp_, piece);
        take(at, piece);
        at.advance();
      }
      behind = slot++;
      if (slot == chunks_) {
        slot = 0;
        parity ^= 1;
      }
    }
  }

 private:
  __device__ __forceinline__ CopyCounter counter(int chunk) const {
    return CopyCounter(keys_of(chunks_) + static_cast<uint32_t>(chunk) * CopyCounter::bytes);
  }
  __device__ __forceinline__ Shared16 keys_of(int chunk) const { return ring_ + static_cast<uint32_t>(chunk) * 2 * chunk_bytes; }

  /// Starts a copy, by the first thread. Places that are not attended are copied with the others, and ignored.
  __device__ __forceinline__ void copy_next(int chunk) {
    if (next_.is_done()) return;
    const int first = places_.begin + next_.piece * Shape::piece, rows = min(warps * Shape::piece, places_.stored - first);
    const int owner = places_.slots.owner(places_.b, first), elements = rows * Shape::size;
    const CopyCounter arrived = counter(chunk);
    arrived.expect(2 * static_cast<uint32_t>(rows) * row_bytes);
    arrived.copy(keys_of(chunk), places_.key, places_.slots.key_row(owner, places_.h, first), elements);
    arrived.copy(keys_of(chunk) + chunk_bytes, places_.value, places_.slots.value_row(owner, places_.h, first), elements);
    next_.advance();
  }

  __device__ __forceinline__ void read(int chunk, int number, Piece& piece) const {
    const Shared16 own = keys_of(chunk) + static_cast<uint32_t>(warp_) * piece_bytes;
    HEDDLE_UNROLL
    for (int u = 0; u < Shape::unroll; ++u) {
      const uint32_t row = static_cast<uint32_t>(u * Shape::groups + places_.group) * row_bytes;
      // Memory that other kernels left there may hold NaN.
      const bool attended = places_.is_attended(places_.place_of(number, u));
      places_.columns.each([&](int i, int c, int) {
        const Shared16 from = own + (row + static_cast<uint32_t>(c) * static_cast<uint32_t>(sizeof(T)));
        piece.keys[u][i] = {};
        piece.values[u][i] = {};
        if (!attended) return;
        put(piece.keys[u][i], load_shared_16<T>(from));
        put(piece.values[u][i], load_shared_16<T>(from + chunk_bytes));
      });
    }
  }

  static __device__ __forceinline__ void put(Chunk<T, Shape::vec>& chunk, const Pack<T, Shape::vec>& pack) {
    static_assert(sizeof chunk == sizeof pack, "a chunk of a shape is one pack");
    memcpy(&chunk, &pack, sizeof pack);
  }

  const Places& places_;
  int warp_, chunks_;
  Shared16 ring_;
  Walk at_, next_;  // of the block's first warp
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
