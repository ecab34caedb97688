// Swizzled shared tiles of 16-bit rows, and the fragments of warp matmuls read from them. A row's 16-byte chunks are permuted by its
// number, so that reading one chunk of eight rows, or copying along a row, has no bank conflicts. Rows of other lengths are padded for the
// same purpose.
#ifndef HEDDLE_ATTENTION_TILES_CUH
#define HEDDLE_ATTENTION_TILES_CUH

#include "mma.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Rows of Width elements (32, 64 or 128) of T, a 16-bit type.
template <class T, int Width>
struct SwizzledRows {
  static_assert(sizeof(T) == 2 && (Width == 32 || Width == 64 || Width == 128), "one, two or four rows of chunks a bank cycle");
  static constexpr int chunk = 8;  // elements of 16 bytes
  static constexpr int chunks = Width / chunk;
  static constexpr uint32_t row_bytes = Width * sizeof(T);

  /// Bytes from a tile's start to a chunk of a row. Rows 8 apart have the same permutation.
  static __device__ __forceinline__ uint32_t place(int row, int column_chunk) {
    const int permutation = chunks >= 8 ? row % 8 : row / 2 % 4;
    return static_cast<uint32_t>(row) * row_bytes + static_cast<uint32_t>(column_chunk ^ permutation) * 16;
  }

  /// Calls `act(first, later, column_chunk, place)` for the calling thread's share of the chunks of Rows rows, of Threads threads. The row
  /// is first + later, of which `later` is known at compile time, and the chunk is `place` bytes from the tile's start.
  template <int Rows, int Threads, class Act>
  static __device__ __forceinline__ void each_chunk(Act act) {
    constexpr int step = Threads / chunks;
    static_assert(Threads % chunks == 0 && step % 8 == 0 && Rows % step == 0, "every step covers rows that are permuted alike");
    const int row = static_cast<int>(threadIdx.x) / chunks, column_chunk = static_cast<int>(threadIdx.x) % chunks;
    const uint32_t to = place(row, column_chunk);
    HEDDLE_UNROLL
    for (int i = 0; i < Rows / step; ++i) act(row, i * step, column_chunk, to + static_cast<uint32_t>(i * step) * row_bytes);
  }

  /// Offset from which lane `lane` reads its row of four adjacent 8 x 8 matrices. Matrices 0 and 1 are below one another if `ColumnMajor`,
  /// else side by side; so are 2 and 3, across. `fragment` gives the other fragments of the tile.
  template <bool ColumnMajor>
  static __device__ __forceinline__ uint32_t corner(int lane) {
    const int low = lane / 8 % 2, high = lane / 16;
    return ColumnMajor ? place(low * 8 + lane % 8, high) : place(high * 8 + lane % 8, low);
  }

  /// Offset of the 16 x 16 elements that begin 16 * row16 rows below and 16 * column16 elements right of a lane's corner.
  static __device__ __forceinline__ uint32_t fragment(uint32_t corner, int row16, int column16) {
    return (corner ^ static_cast<uint32_t>(column16) * 32) + static_cast<uint32_t>(row16) * 16 * row_bytes;
  }
};

/// Rows of Width elements of T, a multiple of 16 that no swizzle suits. A row is followed by 16 bytes if that makes an odd number of
/// chunks, so that reading one chunk of eight rows has no bank conflicts.
template <class T, int Width>
struct PaddedRows {
  static_assert(sizeof(T) == 2 && Width % 16 == 0, "whole fragments of a type of 16 bits");
  static constexpr int chunk = 8;
  static constexpr int chunks = Width / chunk;
  static constexpr uint32_t row_bytes = (chunks | 1) * 16;

  static __device__ __forceinline__ uint32_t place(int row, int column_chunk) {
    return static_cast<uint32_t>(row) * row_bytes + static_cast<uint32_t>(column_chunk) * 16;
  }

  template <int Rows, int Threads, class Act>
  static __device__ __forceinline__ void each_chunk(Act act) {
    constexpr int all = Rows * chunks;
    HEDDLE_UNROLL
    for (int i = 0; i < (all + Threads - 1) / Threads; ++i) {
      const int at = static_cast<int>(threadIdx.x) + i * Threads;
      if (all % Threads == 0 || at < all) act(at / chunks, 0, at % chunks, place(at / chunks, at % chunks));
    }
  }

  template <bool ColumnMajor>
  static __device__ __forceinline__ uint32_t corner(int lane) {
    const int low = lane / 8 % 2, high = lane / 16;
    return ColumnMajor ? place(low * 8 + lane % 8, high) : place(high * 8 + lane % 8, low);
  }

  static __device__ __forceinline__ uint32_t fragment(uint32_t corner, int row16, int column16) {
    return corner + static_cast<uint32_t>(row16) * 16 * row_bytes + static_cast<uint32_t>(column16) * 32;
  }
};

/// Starts copying Rows rows to `tile` with Threads threads: row i begins at element first + i * stride. Rows from `valid` on and
/// columns from `width` on arrive as zeros.
template <class Layout, int Rows, int Threads, class T>
__device__ __forceinline__ void copy_rows(Shared16 tile, const In<T>& tensor, int64_t first, int64_t stride, int valid, int width) {
  // One form for whole tiles and others: a kernel that runs for microseconds also waits for its code.
  Layout::template each_chunk<Rows, Threads>([&](int row, int later, int column_chunk, uint32_t place) {
    const bool exists = row + later < valid && column_chunk * Layout::chunk < width;
    copy_async_16(tile + place, tensor, first + row * stride + column_chunk * Layout::chunk + later * stride, exists);
  });
}

/// Zeroes `bytes` bytes of shared memory, a multiple of 16. A barrier has to follow.
template <class T, int Threads>
__device__ __forceinline__ void zero_tiles(Shared16 tiles, uint32_t bytes) {
  const Pack<T, 8> zeros = {};
  for (uint32_t at = threadIdx.x * 16; at < bytes; at += Threads * 16) store_shared_16(tiles + at, zeros);
}

/// A thread's share of rows of `width` elements that can be moved only `unit` at a time: 4, 2 or 1, a divisor of the width. That is one
/// part of every few rows. Divides once, for all tiles.
template <class Layout, int Threads>
struct RowParts {
  int width, unit;
  int row, column, step;  // the first part, and the distance of rows

  __device__ __forceinline__ RowParts(int width_, int unit_) : width(width_), unit(unit_) {
    const int across = max(min(width / unit, Threads), 1), own = static_cast<int>(threadIdx.x);
    step = Threads / across, row = own / across, column = own % across * unit;
    // Threads beyond the last whole row of parts have nothing to do.
    if (row >= step) column = width;
  }

  /// Element from which the thread copies, of rows that are `stride` elements apart: computed once, since offsets take long.
  __device__ __forceinline__ int64_t own(int64_t stride) const { return row * stride + column; }

  /// Like copy_rows(), where `first` is the thread's own element of the first row. Columns from `width` on are not written.
  template <int Rows, class T>
  __device__ __forceinline__ void copy(Shared16 tile, const In<T>& tensor, int64_t first, int64_t stride, int valid) const {
    const int64_t next = step * stride;
    for (int at = column; at < width; at += Threads * unit) {
      const int64_t from = first + (at - column);
      const auto place = [&](int each) {
        return tile + (Layout::place(each, at / Layout::chunk) + static_cast<uint32_t>(at % Layout::chunk) * 2);
      };
      if (unit == 4) {
        copy_parts<Rows, 4>(tensor, from, next, valid, place);
      } else if (unit == 2) {
        copy_parts<Rows, 2>(tensor, from, next, valid, place);
      } else {
        store_parts<Rows>(tensor, from, next, valid, place);
      }
    }
  }

 private:
  template <int Rows, int Unit, class T, class Place>
  __device__ __forceinline__ void copy_parts(const In<T>& tensor, int64_t from, int64_t next, int valid, Place place) const {
    for (int each = row; each < Rows; each += step, from += next) copy_async_part<Unit>(place(each), tensor, from, each < valid);
  }

  /// Not asynchronous: several loads are in flight before the first is stored.
  template <int Rows, class T, class Place>
  __device__ __forceinline__ void store_parts(const In<T>& tensor, int64_t from, int64_t next, int valid, Place place) const {
    constexpr int batch = 8;
    for (int each = row; each < Rows; each += batch * step, from += batch * next) {
      T elements[batch];
      HEDDLE_UNROLL
      for (int i = 0; i < batch; ++i) {
        const int at = each + i * step;
        elements[i] = at < Rows && at < valid ? tensor.get(from + i * next) : Storage<T>::store(0.0f);
      }
      HEDDLE_UNROLL
      for (int i = 0; i < batch; ++i) {
        if (each + i * step < Rows) store_shared_2(place(each + i * step), elements[i]);
      }
    }
  }
};

/// The same for computed rows: `elements(row, column, count, values)` gives eight columns, of which `count` exist.
template <class T, class Layout, int Rows, int Threads, class Elements>
__device__ __forceinline__ void compute_rows(Shared16 tile, Elements elements, int valid, int width) {
  constexpr int chunk = Layout::chunk;
  Layout::template each_chunk<Rows, Threads>([&](int row, int later, int column_chunk, uint32_t place) {
    const int column = column_chunk * chunk;
    float values[chunk] = {};
    if (row + later < valid && column < width) elements(row + later, column, min(width - column, chunk), values);
    Pack<T, chunk> pack;
    round_into(pack, values);
    store_shared_16(tile + place, pack);
  });
}

/// Two floats rounded to a pair of T, the first in the lower half.
template <class T>
__device__ __forceinline__ uint32_t round_pair(float low, float high) {
  const float values[2] = {low, high};
  Pack<T, 2> pack;
  round_into(pack, values);
  uint32_t word;
  memcpy(&word, &pack, sizeof word);
  return word;
}

/// Transposes 4 x 4 words among the four lanes of a quad: lane l gives words[i] to lane i and ends with the word of each.
__device__ __forceinline__ void transpose_quad(uint32_t (&words)[4], int lane) {
  HEDDLE_UNROLL
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = (lane & distance) != 0;
    HEDDLE_UNROLL
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      const uint32_t received = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | distance], distance);
      if (upper) {
        words[i] = received;
      } else {
        words[i | distance] = received;
      }
    }
  }
}

/// The same for four halves of two words: lane l gives half i % 2 of words[i / 2] to lane i and ends with the half of each, in the order of
/// lanes.
__device__ __forceinline__ void transpose_quad(uint32_t (&words)[2], int lane) {
  const bool upper = (lane & 2) != 0, odd = (lane & 1) != 0;
  const uint32_t word = __shfl_xor_sync(0xffffffffu, upper ? words[0] : words[1], 2);
  words[0] = upper ? word : words[0];
  words[1] = upper ? words[1] : word;
  const uint32_t low = (words[0] & 0xffffu) | words[1] << 16, high = words[0] >> 16 | (words[1] & 0xffff0000u);
  const uint32_t received = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
  const uint32_t first = odd ? received : low, second = odd ? high : received;
  words[0] = (first & 0xffffu) | second << 16;
  words[1] = first >> 16 | (second & 0xffff0000u);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
