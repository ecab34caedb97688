// Decode attention of heads that share keys and values, on tensor cores: up to 8 heads of 64 or 128 elements of a 16-bit type are one
// operand of matmuls with 16 places at a time. Keys and values are read in memory order, since a matmul may take the elements of a
// row, and the columns of a result, in any order that both operands agree on. Sums are divided among workers, segments and
// blocks as in attention_decode_kernel.cuh.
#ifndef HEDDLE_ATTENTION_DECODE_HEADS_CUH
#define HEDDLE_ATTENTION_DECODE_HEADS_CUH

#include "attention_decode_kernel.cuh"
#include "attention_tiles.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// With g = l / 4 and p = l % 4, lane l has elements 32 m + 8 p to 32 m + 8 p + 7 of query head g and of key place g, and elements 64 m + 8
/// g to 64 m + 8 g + 7 of value places 2 p and 2 p + 1.
template <class T, int HeadDim>
struct DecodeHeads {
  static_assert(sizeof(T) == 2 && HeadDim % 64 == 0, "whole fragments of a type of 16 bits");
  static constexpr int size = HeadDim, rows = 8, piece = 16;
  static constexpr int workers = 16, split_workers = 8;   // of a row in one segment, and of each segment of one in several
  // Per block at most, and where blocks wait for one another: what waits in two blocks of four warps fills the shared memory.
  static constexpr int warps = 8, crowded_warps = 4;
  static constexpr int resident = HeadDim == 64 ? 2 : 1;  // blocks of so many warps on a multiprocessor, by registers
  static constexpr int resident_warps = resident * warps;
  static constexpr int key_chunks = HeadDim / 32, value_chunks = HeadDim / 64;
  static constexpr uint32_t row_bytes = (size + 4) * 4;  // as in DecodeShape
  static constexpr int most_ahead = 2, row_chunks = HeadDim / 8;        // pieces on their way to a warp, and chunks of 16 bytes of a row
  static constexpr bool has_room = HeadDim == 64;                       // for the most pieces, beside the sums of all heads
  static constexpr uint32_t piece_bytes = piece * HeadDim * sizeof(T);  // of its keys, and of its values

  /// Memory of a warp for pieces on their way.
  static __host__ __device__ __forceinline__ uint32_t ring_bytes(int ahead) { return 2 * static_cast<uint32_t>(ahead) * piece_bytes; }
  static __host__ __device__ __forceinline__ uint32_t slot_bytes(int shared) { return static_cast<uint32_t>(shared < rows ? shared : rows) * row_bytes; }
  /// Memory for the sums of every worker with a piece and of the fresh place, and for the exchange.
  static __host__ __device__ __forceinline__ uint32_t shared_bytes(int64_t places, int shared) {
    const int64_t pieces = (places + piece - 1) / piece;
    return (static_cast<uint32_t>(pieces < workers ? pieces : workers) + 1) * slot_bytes(shared) + ClusterExchange::barrier_bytes;
  }
};

/// Eight elements as the registers of a fragment.
struct DecodeWords {
  uint32_t v[4];
};

template <class T>
__device__ __forceinline__ DecodeWords words_of(const Pack<T, 8>& pack) {
  DecodeWords words;
  memcpy(&words, &pack, sizeof words);
  return words;
}

/// Half `Half` of two words as one word.
template <int Half>
__device__ __forceinline__ uint32_t halves_of(uint32_t first, uint32_t second) {
#if defined(HEDDLE_SIMT)
  return Half == 0 ? (first & 0xffffu) | second << 16 : first >> 16 | (second & 0xffff0000u);
#else
  return __byte_perm(first, second, Half == 0 ? 0x5410u : 0x7632u);
#endif
}

template <class T>
__device__ __forceinline__ DecodeWords rounded_words(const float (&elements)[8]) {
  Pack<T, 8> pack;
  round_into(pack, elements);
  return words_of(pack);
}

/// Weighted values of some places for all heads, and the softmax of head g, which its quad shares.
template <class T, class Shape, bool KeepsPeak>
struct HeadsSum {
  OnlineSoftmax softmax;
  float peak = -INFINITY;
  float output[Shape::value_chunks][4][4] = {};  // heads 2 p and 2 p + 1 of elements 64 m + 8 g + 2 i, then of the next

  /// Adds a piece's keys: `score(raw, place)` is the input of softmax for one of its 16 places, -INFINITY for places that are not attended.
  /// Returns weights as an operand of the matmul with values.
  template <class Keys, class Score>
  __device__ __forceinline__ void weigh(const DecodeWords (&query)[Shape::key_chunks], Keys keys, Score score, int lane,
                                        uint32_t (&weights)[2]) {
    float parts[2][2][4] = {};  // of two sums each, whose additions need not wait for one another
    HEDDLE_UNROLL
    for (int m = 0; m < Shape::key_chunks; ++m) {
      HEDDLE_UNROLL
      for (int half = 0; half < 2; ++half) {
        const DecodeWords words = keys(half, m);
        HEDDLE_UNROLL
        for (int k = 0; k < 4; k += 2) {
          const uint32_t left[4] = {query[m].v[k], 0, query[m].v[k + 1], 0}, right[2] = {words.v[k], words.v[k + 1]};
          mma_m16n8k16<T>(parts[half][k / 2], left, right);
        }
      }
    }
    float scores[4], largest = -INFINITY;
    HEDDLE_UNROLL
    for (int e = 0; e < 4; ++e) {
      scores[e] = score(parts[e / 2][0][e % 2] + parts[e / 2][1][e % 2], e / 2 * 8 + lane % 4 * 2 + e % 2);
      largest = fmaxf(largest, scores[e]);
    }
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
    if constexpr (KeepsPeak) peak = fmaxf(peak, largest);
    const float factor = softmax.admit(largest);
    if (__any_sync(0xffffffffu, factor != 1.0f)) {
      HEDDLE_UNROLL
      for (int e = 0; e < 2; ++e) {
        const float own = __shfl_sync(0xffffffffu, factor, (lane % 4 * 2 + e) * 4);
        HEDDLE_UNROLL
        for (int m = 0; m < Shape::value_chunks; ++m) {
          HEDDLE_UNROLL
          for (int i = 0; i < 4; ++i) {
            output[m][i][e] *= own;
            output[m][i][2 + e] *= own;
          }
        }
      }
    }
    HEDDLE_UNROLL
    for (int e = 0; e < 4; ++e) {
      scores[e] = softmax.weight(scores[e]);
      softmax.total += scores[e];
    }
    weights[0] = round_pair<T>(scores[0], scores[1]);
    weights[1] = round_pair<T>(scores[2], scores[3]);
  }

  /// Adds the piece's values.
  template <class Values>
  __device__ __forceinline__ void add(const uint32_t (&weights)[2], Values values) {
    HEDDLE_UNROLL
    for (int m = 0; m < Shape::value_chunks; ++m) {
      const DecodeWords words[4] = {values(0, m), values(1, m), values(2, m), values(3, m)};
      HEDDLE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const auto low = [&](int e) { return halves_of<0>(words[e].v[i], words[e + 1].v[i]); };
        const auto high = [&](int e) { return halves_of<1>(words[e].v[i], words[e + 1].v[i]); };
        const uint32_t left[4] = {low(0), high(0), low(2), high(2)};
        mma_m16n8k16<T>(output[m][i], left, weights);
      }
    }
  }

  /// Sends the sums of the first `heads` heads to a slot of the cluster's first block.
  __device__ __forceinline__ void send(const ClusterExchange& exchange, bool is_clustered, Shared16 slot, int heads, int lane) const {
    const auto to = exchange.destination(slot, 0);
    const auto give = [&](int head, int place, const Pack<float, 4>& pack) {
      const uint32_t bytes = static_cast<uint32_t>(head) * Shape::row_bytes + static_cast<uint32_t>(place) * 4;
      if (is_clustered) {
        exchange.send<true>(to, bytes, pack);
      } else {
        exchange.send<false>(to, bytes, pack);
      }
    };
    float total = softmax.total;
    total += __shfl_xor_sync(0xffffffffu, total, 1);
    total += __shfl_xor_sync(0xffffffffu, total, 2);
    const int g = lane / 4, p = lane % 4;
    if (p == 0 && g < heads) give(g, Shape::size, {{softmax.top, total, peak, 0.0f}});
    HEDDLE_UNROLL
    for (int e = 0; e < 2; ++e) {
      if (2 * p + e >= heads) continue;
      HEDDLE_UNROLL
      for (int m = 0; m < Shape::value_chunks; ++m) {
        HEDDLE_UNROLL
        for (int i = 0; i < 4; i += 2) {
          give(2 * p + e, m * 64 + g * 8 + i * 2, {{output[m][i][e], output[m][i][2 + e], output[m][i + 1][e], output[m][i + 1][2 + e]}});
        }
      }
    }
  }
};

/// Key and value of the place that is not in memory yet, as the first of a piece.
template <class T, class Shape>
struct HeadsFresh {
  DecodeWords keys[Shape::key_chunks], values[Shape::value_chunks];

  /// Reads both for sequence b.
  template <class Slots>
  __device__ __forceinline__ void read(const Slots& slots, int b, int h, int lane) {
    const int g = lane / 4, p = lane % 4;
    HEDDLE_UNROLL
    for (int m = 0; m < Shape::key_chunks; ++m) {
      float elements[8] = {};
      if (g == 0) slots.template fresh_key<8, true>(b, h, m * 32 + p * 8, 8, elements);
      keys[m] = rounded_words<T>(elements);
    }
    HEDDLE_UNROLL
    for (int m = 0; m < Shape::value_chunks; ++m) {
      float elements[8] = {};
      if (p == 0) slots.template fresh_value<8, true>(b, h, m * 64 + g * 8, 8, elements);
      values[m] = rounded_words<T>(elements);
    }
  }

  /// Stores both at place j of sequence b.
  template <class Slots>
  __device__ __forceinline__ void store(const Slots& slots, int b, int h, int j, int lane, const Out<T>& key_cache,
                                        const Out<T>& value_cache) const {
    const int g = lane / 4, p = lane % 4;
    const auto give = [](const Out<T>& cache, int64_t at, const DecodeWords& words) {
      Pack<T, 8> pack;
      memcpy(&pack, &words, sizeof pack);
      cache.set_pack(at, pack);
    };
    if (g == 0) {
      const int64_t row = slots.fresh_key_row(b, h, j);
      HEDDLE_UNROLL
      for (int m = 0; m < Shape::key_chunks; ++m) give(key_cache, row + m * 32 + p * 8, keys[m]);
    }
    if (p == 0) {
      const int64_t row = slots.fresh_value_row(b, h, j);
      HEDDLE_UNROLL
      for (int m = 0; m < Shape::value_chunks; ++m) give(value_cache, row + m * 64 + g * 8, values[m]);
    }
  }
};

/// Blocks of a multiprocessor that registers must suffice for: owners from a table, and rows that are folded, take those of the second.
template <class Shape, class Slots>
constexpr int heads_resident = has_steps<Slots> && !folds_rows<Slots> ? Shape::resident : 1;

/// A block, or a cluster of blocks, for each segment of a query row and up to 8 heads that share its keys. Rows are whole and aligned.
template <class T, class O, class Shape, class Slots, class... Caches>
__global__ void __launch_bounds__(32 * Shape::warps, heads_resident<Shape, Slots>)
    attention_decode_heads(const DecodeExtents extents, const In<T> key, const In<T> value, const Out<O> out, const Out<float> parts,
                           const Slots slots, Caches... caches) {
  if (!extents.settled) begin_kernel();
  using Sums = HeadsSum<T, Shape, needs_peak<Slots>>;
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, p = lane % 4;
  const int own_warps = static_cast<int>(blockDim.x) / 32;
  const int rank = static_cast<int>(blockIdx.x) % extents.cluster;
  const int warp = rank * own_warps + static_cast<int>(threadIdx.x) / 32, warps = own_warps * extents.cluster;
  int64_t item = static_cast<int>(blockIdx.x) / extents.cluster;
  const int i = peel(item, extents.queries), part = peel(item, (extents.shared + Shape::rows - 1) / Shape::rows) * Shape::rows;
  const int h = peel(item, extents.heads / extents.shared), b = static_cast<int>(item);
  // Rows beyond the last head are computed as copies of it and dropped.
  const int first_head = h * extents.shared + part, heads = min(extents.shared - part, Shape::rows);
  const int head = first_head + min(g, heads - 1);

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
  const int pieces = (stored - begin + Shape::piece - 1) / Shape::piece;

  const DecodeRows<Slots> rows(extents, slots, b, h, begin);
  HEDDLE_DYNAMIC_SHARED(memory);
  const int most_ahead = Shape::has_room ? Shape::most_ahead : extents.ahead;
  const Shared16 key_ring = memory + static_cast<uint32_t>(threadIdx.x) / 32 * Shape::ring_bytes(most_ahead);
  const Shared16 value_ring = key_ring + static_cast<uint32_t>(most_ahead) * Shape::piece_bytes;
  // Places that are not attended become zeros: memory that nobody wrote may hold NaN.
  const auto is_attended = [&](int j) { return j < stored && (!Slots::has_fresh || j != fresh_at); };
  // Eight lanes read from different banks: four chunks of two neighbouring keys, or two chunks of every second of eight values.
  const auto ring_place = [](int slot, int row, int chunk) {
    return static_cast<uint32_t>((slot * Shape::piece + row) * Shape::row_chunks + chunk) * 16;
  };
  const auto key_place = [&](int slot, int row, int chunk) { return key_ring + ring_place(slot, row, chunk ^ row % 2 * 4); };
  const auto value_place = [&](int slot, int row, int chunk) { return value_ring + ring_place(slot, row, chunk ^ row / 2 % 4 * 2); };
  // Eight neighbouring lanes copy a line. Lanes that share a sector and are not neighbours would each ask the L2 cache for it.
  const auto copy_rows = [&](const DecodeWalk<Shape>& at, const In<T>& from, auto row_of, auto place_of) {
    if (!at.is_done()) {
      HEDDLE_UNROLL
      for (int first = 0; first < Shape::piece; first += 4) {
        const int place = first + lane / 8, j = begin + at.piece * Shape::piece + place;
        const bool attended = is_attended(j);
        const int64_t row = attended ? row_of(slots.owner(b, j), j) : 0;
        HEDDLE_UNROLL
        for (int chunk = lane % 8; chunk < Shape::row_chunks; chunk += 8) {
          copy_async<16>(place_of(place, chunk), from, row + chunk * 8, attended);
        }
      }
    }
    copy_async_commit();
  };
  const auto copy_keys = [&](const DecodeWalk<Shape>& at, int slot) {
    copy_rows(
        at, key, [&](int owner, int j) { return rows.key(owner, j); }, [&](int place, int chunk) { return key_place(slot, place, chunk); });
  };
  const auto copy_values = [&](const DecodeWalk<Shape>& at, int slot) {
    copy_rows(
        at, value, [&](int owner, int j) { return rows.value(owner, j); }, [&](int place, int chunk) { return value_place(slot, place, chunk); });
  };
  // Waits for the oldest keys or values on their way.
  const auto await_oldest = [&] {
    if (most_ahead == 1) {
      copy_async_wait<1>();
    } else {
      copy_async_wait<2 * Shape::most_ahead - 1>();
    }
    __syncwarp();
  };
  // Keys and values in memory are loaded while the previous launch ends.
  const int workers = split.workers<Shape>();
  DecodeWalk<Shape> here(warp, warps, workers, pieces), ahead = here;
  HEDDLE_UNROLL
  for (int slot = 0; slot < Shape::most_ahead; ++slot) {
    if (slot == most_ahead) break;
    copy_keys(ahead, slot);
    copy_values(ahead, slot);
    ahead.advance();
  }
  if (extents.settled) begin_kernel();
  DecodeWords query[Shape::key_chunks];
  HEDDLE_UNROLL
  for (int m = 0; m < Shape::key_chunks; ++m) {
    float elements[8];
    slots.template query<8, true>(b, i, head, m * 32 + p * 8, 8, elements);
    query[m] = rounded_words<T>(elements);
  }

  const Shared16 sums_at = memory + static_cast<uint32_t>(own_warps) * Shape::ring_bytes(most_ahead);
  const uint32_t slot_bytes = Shape::slot_bytes(extents.shared);
  const ClusterExchange exchange(sums_at + (Shape::shared_bytes(extents.places, extents.shared) - ClusterExchange::barrier_bytes), extents.cluster);
  const int sums = min(pieces, workers);
  const bool attends_fresh = is_last && fresh_at >= range.begin && fresh_at < range.end;
  const int slots_used = sums + (attends_fresh ? 1 : 0);
  exchange.announce(rank == 0 ? static_cast<uint32_t>(slots_used * heads) * Shape::row_bytes : 0);
  const auto slot_of = [&](int slot, int r) {
    return sums_at + (static_cast<uint32_t>(slot) * slot_bytes + static_cast<uint32_t>(r) * Shape::row_bytes);
  };
  const int own_begin = lower_of(slots, b, head, i), own_end = upper_of(slots, b, head, i, extents.places);
  const auto score_at = [&](float raw, int j) {
    return j >= own_begin && j < own_end ? slots.score(raw, b, i, head, j) : -INFINITY;
  };
  exchange.ready();
  if constexpr (Slots::has_fresh) {
    if (is_last && warp == own_warps - 1) {
      HeadsFresh<T, Shape> fresh;
      fresh.read(slots, b, h, lane);
      // Of the blocks that share the place, one stores it.
      if (part == 0 && fresh_at >= 0 && fresh_at < extents.places) fresh.store(slots, b, h, fresh_at, lane, caches...);
      if (attends_fresh) {
        const int owner = slots.owner(b, fresh_at);
        if (owner != b) fresh.read(slots, owner, h, lane);
        Sums sum;
        uint32_t weights[2];
        sum.weigh(
            query, [&](int half, int m) { return half == 0 ? fresh.keys[m] : DecodeWords{}; },
            [&](float raw, int place) { return place == 0 ? score_at(raw, fresh_at) : -INFINITY; }, lane, weights);
        sum.add(weights, [&](int e, int m) { return e == 0 ? fresh.values[m] : DecodeWords{}; });
        sum.send(exchange, extents.cluster > 1, slot_of(sums, 0), heads, lane);
      }
    }
  }

  for (int slot = 0; !here.is_done();) {
    Sums sum;
    const int worker = here.worker;
    for (bool ends = false; !ends; here.advance()) {
      const int first = begin + here.piece * Shape::piece;
      await_oldest();
      uint32_t weights[2];
      sum.weigh(
          query, [&](int half, int m) { return words_of(load_shared_16<T>(key_place(slot, half * 8 + g, m * 4 + p))); },
          [&](float raw, int place) { return is_attended(first + place) ? score_at(raw, first + place) : -INFINITY; }, lane, weights);
      __syncwarp();
      copy_keys(ahead, slot);
      await_oldest();
      sum.add(weights, [&](int e, int m) {
        return words_of(load_shared_16<T>(value_place(slot, e / 2 * 8 + p * 2 + e % 2, m * 8 + g)));
      });
      __syncwarp();
      copy_values(ahead, slot);
      ahead.advance();
      slot = slot + 1 == most_ahead ? 0 : slot + 1;
      ends = here.ends_worker();
    }
    sum.send(exchange, extents.cluster > 1, slot_of(worker, 0), heads, lane);
  }
  copy_async_wait<0>();
  if (rank != 0) return;
  exchange.receive();
  const DecodeItem item_of = {b, i, first_head, heads, segment, split.count};
  finish_decode<Shape, true>(extents, item_of, slots_used, slot_of, out, parts, slots);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
