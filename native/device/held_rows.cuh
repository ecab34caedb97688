// Rows of a thread's columns in shared memory. A kernel that walks rows several times, such as a softmax of columns, loads them in its first
// walk, leaves them, and takes them from there afterwards. Each thread reads what it wrote itself, so nobody waits.
#ifndef HEDDLE_HELD_ROWS_CUH
#define HEDDLE_HELD_ROWS_CUH

#include "column_team.cuh"
#include "sharing.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Rows of Vec columns a thread, each in words of 16 bytes. `holds`: the launch has memory for them.
template <class Team, int Vec, class T>
class HeldRows {
 public:
  using Held = Chunk<T, Vec>;

  /// Bytes of a block for `rows` rows.
  static __host__ __device__ __forceinline__ int64_t bytes(int64_t rows) {
    return (rows + apart - 1) / apart * (int64_t{Team::threads} * words * 16);
  }

  __device__ __forceinline__ HeldRows(Shared16 rows, bool holds) : first_(rows + static_cast<uint32_t>(threadIdx.x) * 16), holds_(holds) {}

  /// Leaves the chunk of a row, if the launch holds rows.
  __device__ __forceinline__ void leave(int row, const Held& chunk) const {
    if (!holds_) return;
    Pack<int, 4> packs[words] = {};
    memcpy(packs, &chunk, sizeof chunk);
    HEDDLE_UNROLL
    for (int word = 0; word < words; ++word) store_shared_16(place(row, word), packs[word]);
  }
  /// The chunk of a row that was left.
  __device__ __forceinline__ Held take(int row) const {
    Pack<int, 4> packs[words];
    HEDDLE_UNROLL
    for (int word = 0; word < words; ++word) packs[word] = load_shared_16<int>(place(row, word));
    Held chunk;
    memcpy(&chunk, packs, sizeof chunk);
    return chunk;
  }

 private:
  static constexpr int words = static_cast<int>((sizeof(Held) + 15) / 16);
  /// Rows from one of a thread to the next.
  static constexpr int apart = Team::slots * Team::blocks;

  __device__ __forceinline__ Shared16 place(int row, int word) const {
    return first_ + static_cast<uint32_t>((row / apart * words + word) * Team::threads) * 16;
  }

  Shared16 first_;
  bool holds_;
};

/// Bytes of a block beside `others` with which it holds its `rows` rows of all tensors, of Ts: 0 if they would leave less than two blocks a multiprocessor.
template <class Team, int Vec, class... Ts>
uint32_t held_bytes(int64_t rows, uint32_t others) {
  const int64_t bytes = (int64_t{0} + ... + HeldRows<Team, Vec, Ts>::bytes(rows));
  return 2 * (bytes + others + shared_of_system) <= shared_of_multiprocessor() ? static_cast<uint32_t>(bytes) : 0;
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
