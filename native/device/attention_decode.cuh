// Attention of one query at a time to places that are in memory already: softmax(score(query x key^T)) x value for each query row and
// head. A decoder attends like this to its own past, step by step, and to the memory of its encoder. Generated files include this
// header, compile a `Slots` from the bodies of a group and call launch_attention_decode.
//
// A launch has `batch` sequences of `queries` query rows each. Members of Slots are device functions and const:
//   int lower(int b, int h, int i), upper(b, h, i)
//                                           places [lower, upper) are attended by a query, none where that range is empty; other places
//                                           are not read
//   int owner(int b, int j)                sequence whose keys and values are place j of b: a table, where beams share their past
//   int64_t key_row(int owner, int h, int j), value_row(owner, h, j), out_row(b, i, h)
//                                           element offset of a head's contiguous row
//   void query<Vec, Whole>(int b, int i, int h, int c, int valid, float (&values)[Vec])
//                                           elements of a query row from c on; `valid` of them exist, the others are zero
//   float score(float raw, int b, int i, int h, int j)
//                                           input of softmax, from the raw dot product of a query with the key of place j
//   bool aligned()                          true if rows begin at multiples of 16 bytes, where heads have a multiple of 8 elements;
//                                           for the host
//   static constexpr bool has_steps         optional: the places of a sequence are all its own, at a stride that the host knows:
//                                           int64_t key_step(), value_step() are elements from one place to the next
//   static constexpr int shared_rows        number of adjacent heads whose keys and values are read together. Heads that share them
//                                           have another numbering: `h` of key_row, value_row and of fresh_* counts those
//   static constexpr bool folds_rows        optional: elements of a query or of the fresh place are computed from their whole row
//   static constexpr bool has_fresh         true if one place of a sequence is not in memory yet: that of the present step
// and if so, for queries == 1,
//   int fresh_place(int b)                  its index; if the tensors have no such place, nothing is stored
//   void fresh_key<Vec, Whole>(int b, int h, int c, int valid, float (&values)[Vec]), fresh_value
//                                           elements of sequence b at that place
//   int64_t fresh_key_row(int b, int h, int j), fresh_value_row
//                                           offsets to store them at, in the outputs that the launch gives last
// If rows of keys and values have scales of their own, as those of int8 do, a Slots without a fresh place may define
//   float key_scale(int owner, int h, int j), value_scale
//                                           factor of all elements of a row
// The fresh place is attended as it is stored, but never read from memory: blocks need not wait for one another. A Slots may define
// the divisor of sums and the stored value of a result, as in attention.cuh.
#ifndef HEDDLE_ATTENTION_DECODE_CUH
#define HEDDLE_ATTENTION_DECODE_CUH

#include "attention_decode_heads.cuh"
#include "scratch.cuh"
#include "sharing.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Division of a launch. No result depends on it.
struct DecodeGrid {
  int warps;    // per block
  int cluster;  // blocks that share a segment's places
};

inline int64_t decode_shared_limit() {
#if !defined(HEDDLE_HOPPER)
  return 227 << 10;
#else
  return device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
#endif
}

/// True if pieces of a shape are on their way through shared memory.
template <bool Whole, class Slots>
constexpr bool has_ring = Whole && !scales_rows<Slots>;

/// Warps of a multiprocessor at once, by registers.
template <class Shape, bool Whole, class Slots>
constexpr int64_t resident_warps =
    has_ring<Whole, Slots> && decode_resident<Shape> == 2 ? (Slots::has_fresh ? 20 : 24) : 8 * decode_resident<Shape>;

/// Shared memory of a block that needs `bytes`, so that few blocks lie evenly. `alone`: the launch has one query row. The matmul of one row after it
/// needs the cache that shared memory takes: blocks of more than half of the multiprocessors lie in pairs, which leaves it the others.
inline uint32_t decode_bytes(int64_t blocks, uint32_t bytes, bool alone) {
  constexpr int64_t most_sharing = 3;
  return evenly_shared(blocks, bytes, alone && 2 * blocks > multiprocessors_of_device() ? 0 : most_sharing);
}

/// `items`: query rows times heads, of which a multiprocessor computes `resident` warps at once; further blocks wait. `ring_bytes` and `sums`:
/// shared memory of a warp and of a block. Only an upper limit of the number of places is known, so a block may find that it has none.
template <class Shape>
DecodeGrid decode_grid(int64_t items, int64_t places, int64_t resident, int64_t ring_bytes, int64_t sums) {
  const int64_t multiprocessors = multiprocessors_of_device();
#if !defined(HEDDLE_HOPPER)
  constexpr bool has_clusters = false;
#else
  const bool has_clusters = device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
#endif
  constexpr int64_t most_cluster = 8, worthwhile = 4;
  const int64_t segments = DecodeSplit::most_of(places), blocks = items * segments;
  const int64_t pieces = (DecodeSplit::longest_of(places) + Shape::piece - 1) / Shape::piece;
  const int64_t workers = segments > 1 ? Shape::split_workers : Shape::workers, useful = pieces < workers ? pieces : workers;
  const int64_t by_memory = shared_of_multiprocessor() / (Shape::warps * ring_bytes + sums + shared_of_system);
  const int64_t by_registers = resident / Shape::warps;
  const bool is_crowded = even_share(blocks) > (by_memory < by_registers ? by_memory : by_registers);
  const int64_t most_warps = is_crowded ? Shape::crowded_warps : Shape::warps;
  DecodeGrid grid = {1, 1};
  // Most blocks of split rows may have no places: those that have some are not made smaller for the others.
  const auto fits = [&](int64_t warps) { return segments > 1 || ring_bytes > 0 || items * warps <= resident * multiprocessors; };
  while (grid.warps < most_warps && grid.warps < useful && fits(2 * grid.warps)) grid.warps *= 2;
  // A device with less shared memory than the pieces of all warps take.
  while (grid.warps > 1 && grid.warps * ring_bytes + sums > decode_shared_limit()) grid.warps /= 2;
  // Each further block of a cluster costs a microsecond, about the time of four consecutive pieces.
  while (has_clusters && grid.cluster < most_cluster && grid.cluster * grid.warps * 2 <= useful &&
         blocks * grid.cluster * 2 <= multiprocessors && pieces >= worthwhile * grid.warps * grid.cluster) {
    grid.cluster *= 2;
  }
  return grid;
}

/// Enqueues a kernel of one shape for `items` groups of query rows and heads, and the kernel that combines segments, for `rows` query rows
/// times heads.
template <class Shape, bool Whole, class T, class O, class Slots, class... Caches>
int32_t launch_decode_kernel(const heddle_launch* queue, heddle_error* error, const char* name, int64_t items, int64_t rows, DecodeGrid grid,
                             uint32_t shared_bytes, void (*kernel)(DecodeExtents, In<T>, In<T>, Out<O>, Out<float>, Slots, Caches...),
                             DecodeExtents extents, In<T> key, In<T> value, Out<O> out, Slots slots, Caches... caches) {
  extents.cluster = grid.cluster;
  if constexpr (has_steps<Slots>) {
    extents.key_step = slots.key_step();
    extents.value_step = slots.value_step();
  }
  extents.segments = static_cast<int>(DecodeSplit::most_of(extents.places));
  const bool is_split = extents.segments > 1;
  const Scratch scratch(queue, error, name, is_split ? DecodeSums<Shape>::rows(rows, extents.segments) : 0);
  if (scratch.status != HEDDLE_OK) return scratch.status;
  const int64_t blocks = items * grid.cluster * extents.segments;
  LaunchConfig config{name, dim3(static_cast<unsigned int>(items * grid.cluster), static_cast<unsigned int>(extents.segments)),
                      dim3(static_cast<unsigned int>(32 * grid.warps)), decode_bytes(blocks, shared_bytes, rows == extents.heads), Sync::block, true};
  config.cluster = static_cast<uint32_t>(grid.cluster);
  const int32_t status = launch(queue, error, config, kernel, extents, key, value, out, scratch.out(), slots, caches...);
  if (status != HEDDLE_OK || !is_split) return status;
  constexpr int64_t most_threads = 256;
  const int64_t threads = ((extents.value_dim + 3) / 4) << chain_bits, warps = (threads + warp_lanes - 1) / warp_lanes;
  const unsigned int block = static_cast<unsigned int>(warps * warp_lanes < most_threads ? warps * warp_lanes : most_threads);
  const LaunchConfig join{name, dim3(static_cast<unsigned int>(rows)), dim3(block), 0, Sync::warp, true};
  return launch(queue, error, join, attention_decode_join<O, Shape, Whole, Slots>, extents, scratch.in(), out, slots);
}

/// Shared memory of a warp's pieces, 0 where they are in registers.
template <class T, class Shape, bool Whole, class Slots>
uint32_t decode_ring_bytes() {
  if constexpr (has_ring<Whole, Slots>) {
    return RingPieces<T, Shape, Slots>::shared_bytes(1);
  } else {
    return 0;
  }
}

/// Enqueues a kernel of one shape.
template <class Shape, bool Whole, class T, class O, class Slots, class... Caches>
int32_t launch_decode_shape(const heddle_launch* queue, heddle_error* error, const char* name, int64_t items, int64_t rows, DecodeGrid grid,
                            DecodeExtents extents, In<T> key, In<T> value, Out<O> out, Slots slots, Caches... caches) {
  const uint32_t bytes = static_cast<uint32_t>(grid.warps) * decode_ring_bytes<T, Shape, Whole, Slots>() + Shape::shared_bytes(extents.places);
  const auto start = [&](auto kernel) {
    return launch_decode_kernel<Shape, Whole, T, O, Slots, Caches...>(queue, error, name, items, rows, grid, bytes, kernel, extents, key, value, out,
                                                                      slots, caches...);
  };
  if constexpr (has_ring<Whole, Slots>) {
    return start(attention_decode_ring<T, O, Shape, Slots, Caches...>);
  } else {
    return start(attention_decode<T, O, Shape, Whole, Slots, Caches...>);
  }
}

/// Pieces on their way to a warp, where heads share keys: fewer if the sums of many heads would otherwise leave no room for a second block, and blocks
/// wait. `sums`: bytes of a block for them.
template <class Shape>
int pieces_ahead(DecodeGrid grid, int64_t blocks, uint32_t sums) {
  const int64_t bytes = grid.warps * int64_t{Shape::ring_bytes(Shape::most_ahead)} + sums + shared_of_system;
  return !Shape::has_room && 2 * bytes > shared_of_multiprocessor() && blocks > multiprocessors_of_device() ? 1 : Shape::most_ahead;
}

/// Enqueues the kernel of one shape for heads that share keys.
template <class Shape, class T, class O, class Slots, class... Caches>
int32_t launch_decode_heads(const heddle_launch* queue, heddle_error* error, const char* name, int64_t items, int64_t rows, DecodeGrid grid,
                            DecodeExtents extents, In<T> key, In<T> value, Out<O> out, Slots slots, Caches... caches) {
  const uint32_t sums = Shape::shared_bytes(extents.places, extents.shared), bytes = static_cast<uint32_t>(grid.warps) * Shape::ring_bytes(extents.ahead);
  return launch_decode_kernel<Shape, true, T, O, Slots, Caches...>(queue, error, name, items, rows, grid, bytes + sums,
                                                                   attention_decode_heads<T, O, Shape, Slots, Caches...>, extents, key, value, out,
                                                                   slots, caches...);
}

/// Extents of a launch: `shared` adjacent heads have the same keys and values, `places` is the number of places of each sequence in memory.
struct DecodeLaunch {
  int64_t batch, heads, shared, queries, head_dim, value_dim, places;
  bool settled;  // true if the previous launch writes neither keys and values nor what selects the attended ones
};

/// Rows a block computes together: limited by shared memory and by registers. Chunks of int8 take twice as many registers once they are
/// floats.
template <class T>
constexpr int decode_rows(int wanted, int size) {
  const int most = sizeof(T) == 1 ? (size <= 256 ? 2 : 1) : size <= 64 ? 8 : size <= 256 ? 4 : 1;
  return wanted < most ? wanted : most;
}

/// Chunks per lane of a row of `size` elements over `lanes` lanes, and the number of lanes: at least one chunk.
constexpr int decode_lanes(int size, int vec) { return size < 32 * vec ? size / vec : 32; }
constexpr int decode_chunks(int size, int vec) { return size / (decode_lanes(size, vec) * vec); }

/// out[b, i, h, :] = sum over j of softmax over j of score(query[b, i, h, :] . key[owner(b, j), j, h, :]) times the same row of value, or
/// the value that Slots stores for it. `caches`: the outputs for keys and values of the fresh place, if there is one. HEDDLE_INVALID for
/// heads beyond 1024 elements, or heads that do not share evenly.
template <class T, class O, class Slots, class... Caches>
int32_t launch_attention_decode(const heddle_launch* launch, heddle_error* error, const char* name, const DecodeLaunch& given,
                                In<T> key, In<T> value, Out<O> out, Slots slots, Caches... caches) {
  static_assert(sizeof...(Caches) == (Slots::has_fresh ? 2 : 0), "a fresh place is stored in two caches");
  constexpr int64_t most_items = INT32_MAX / 8;
  if (given.shared < 1 || given.heads % given.shared != 0) {
    return fail(error, HEDDLE_INVALID, "kernel %s: got %lld heads in groups of %lld, expected whole groups", name,
                static_cast<long long>(given.heads), static_cast<long long>(given.shared));
  }
  const Count items = Count(given.batch) * given.queries * given.heads;
  if (items.is_overflow() || items.value > most_items) {
    return fail(error, HEDDLE_INVALID, "kernel %s: got %lld sequences of %lld queries with %lld heads, expected at most %lld heads in total", name,
                static_cast<long long>(given.batch), static_cast<long long>(given.queries), static_cast<long long>(given.heads),
                static_cast<long long>(most_items));
  }
  const DecodeExtents extents = {static_cast<int>(given.heads),     static_cast<int>(given.shared),
                                 static_cast<int>(given.queries),   static_cast<int>(given.head_dim),
                                 static_cast<int>(given.value_dim), static_cast<int>(given.places), 1, 1, given.settled};
  const bool aligned = key.aligned(0, 16) && value.aligned(0, 16) && out.aligned(0, 16) && (... && caches.aligned(0, 16)) &&
                       slots.aligned();
  const bool alike = aligned && given.head_dim == given.value_dim;
  if constexpr (tensor_core_type<T> && sizeof(T) == 2 && Slots::shared_rows > 1) {
    // Depends on properties of heads alone, so that a row's bits do not depend on the number of rows.
    const auto start_heads = [&](auto size) {
      using Shape = DecodeHeads<T, decltype(size)::value>;
      const int64_t groups = items.value / given.shared * ((given.shared + Shape::rows - 1) / Shape::rows);
      const uint32_t sums = Shape::shared_bytes(given.places, extents.shared);
      const DecodeGrid grid = decode_grid<Shape>(groups, given.places, Shape::resident_warps, Shape::ring_bytes(Shape::most_ahead), sums);
      DecodeExtents own = extents;
      own.ahead = pieces_ahead<Shape>(grid, groups * grid.cluster * DecodeSplit::most_of(given.places), sums);
      return launch_decode_heads<Shape>(launch, error, name, groups, items.value, grid, own, key, value, out, slots, caches...);
    };
    if (alike && given.shared > 1 && given.head_dim == 64) return start_heads(Integer<64>{});
    if (alike && given.shared > 1 && given.head_dim == 128) return start_heads(Integer<128>{});
  }
  // Few groups would leave multiprocessors idle: their heads are then separate items, and read their keys and values from the L2 cache.
  constexpr int64_t few_groups = 32;
  const auto start_rows = [&](auto lanes, auto chunks, auto whole, auto rows) {
    using Shape = DecodeShape<T, decltype(lanes)::value, decltype(chunks)::value, decltype(rows)::value>;
    const int64_t groups = items.value / given.shared * ((given.shared + Shape::rows - 1) / Shape::rows);
    const DecodeGrid grid = decode_grid<Shape>(groups, given.places, resident_warps<Shape, decltype(whole)::value, Slots>,
                                               decode_ring_bytes<T, Shape, decltype(whole)::value, Slots>(), Shape::shared_bytes(given.places));
    return launch_decode_shape<Shape, decltype(whole)::value>(launch, error, name, groups, items.value, grid, extents, key, value, out, slots,
                                                              caches...);
  };
  const auto start = [&](auto lanes, auto chunks, auto whole) {
    constexpr int size = decltype(lanes)::value * decltype(chunks)::value * 16 / static_cast<int>(sizeof(T));
    constexpr int rows = decode_rows<T>(Slots::shared_rows, size);
    if constexpr (rows > 1) {
      // Heads with keys and values of their own would be computed as copies of each other.
      const bool is_shared = given.shared > 1;
      if (is_shared && items.value / given.shared * DecodeSplit::most_of(given.places) >= few_groups) {
        return start_rows(lanes, chunks, whole, Integer<rows>{});
      }
    }
    return start_rows(lanes, chunks, whole, Integer<1>{});
  };
  constexpr int vec = 16 / static_cast<int>(sizeof(T));
  const int64_t wider = given.head_dim > given.value_dim ? given.head_dim : given.value_dim;
  if (alike) {
    if (wider == 32) return start(Integer<32 / vec>{}, Integer<1>{}, Constant<true>{});
    if (wider == 64) return start(Integer<64 / vec>{}, Integer<1>{}, Constant<true>{});
    if (wider == 128) return start(Integer<128 / vec>{}, Integer<1>{}, Constant<true>{});
  }
  if (wider <= 64) return start(Integer<64 / vec>{}, Integer<1>{}, Constant<false>{});
  if (wider <= 256) return start(Integer<decode_lanes(256, vec)>{}, Integer<decode_chunks(256, vec)>{}, Constant<false>{});
  if (wider <= 1024) return start(Integer<32>{}, Integer<decode_chunks(1024, vec)>{}, Constant<false>{});
  return fail(error, HEDDLE_INVALID, "kernel %s: expected heads of 1 to 1024 elements, got %lld", name, static_cast<long long>(wider));
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
