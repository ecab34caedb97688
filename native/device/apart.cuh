// Chunks whose elements lie apart. Rows whose length is no multiple of the width cannot be moved in packs. Moved one by one, consecutive
// elements of a lane would lie 16 bytes from those of its neighbours, and each store would write parts of sectors. There, the elements of a
// chunk lie as far apart as a warp has lanes, so that neighbouring lanes move neighbouring elements. A tile, which the lanes of a warp share,
// has the elements of their chunks, whatever the team: the orders of a whole warp and of a block agree as before (team.cuh).
#ifndef HEDDLE_APART_CUH
#define HEDDLE_APART_CUH

#include "team.cuh"
#include "vector.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// True if chunks of Vec elements can be moved in packs from the first element of a tensor on.
template <int Vec, template <class> class Tensor, class T>
__host__ __device__ __forceinline__ bool begins_aligned(const Tensor<T>& tensor) {
  return tensor.aligned(0, pack_elements<T, Vec> * static_cast<int>(sizeof(T)));
}

/// Distance between the elements of a chunk, for the lanes of a team: 1 where a single thread has the row.
template <class Team>
constexpr int lanes_apart = Team::lanes < warp_lanes ? Team::lanes : warp_lanes;

/// Chunks of a row with an element. Correct up to the largest int.
template <int Vec, int Step>
__device__ __forceinline__ int chunks_apart(int length) {
  if constexpr (Step == 1) {
    return chunks_of<Vec>(length);
  } else {
    constexpr int tile = Vec * Step;
    const int rest = length % tile;
    return length / tile * Step + (rest < Step ? rest : Step);
  }
}

/// The first element of a chunk.
template <int Vec, int Step>
__device__ __forceinline__ int first_apart(int chunk) {
  if constexpr (Step == 1) return chunk * Vec;
  const unsigned int at = static_cast<unsigned int>(chunk);
  return static_cast<int>(at / Step * (Vec * Step) + at % Step);
}

/// Elements of a chunk that exist, and more where it is full, if `left` elements of the row are left from its first on.
template <int Step>
__device__ __forceinline__ int left_apart(int left) {
  if constexpr (Step == 1) return left;
  return static_cast<int>((static_cast<unsigned int>(left < 0 ? 0 : left) + (Step - 1)) / Step);
}

/// Reads the elements of a chunk, of which the first is at `offset` and `valid` exist; the others become zero.
template <int Vec, int Step, bool Whole = Step == 1, template <class> class Tensor, class T>
__device__ __forceinline__ Chunk<T, Vec> load_apart(const Tensor<T>& tensor, int64_t offset, int valid) {
  using Loaded = Chunk<T, Vec>;
  if constexpr (Step == 1) {
    return load_chunk<Vec, Whole>(tensor, offset, valid);
  } else {
    Loaded chunk;
    HEDDLE_UNROLL
    for (int w = 0; w < Vec / Loaded::per_word; ++w) chunk.words[w] = typename Loaded::Words::Type();
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      if (i < valid) Loaded::Words::set(chunk.words[i / Loaded::per_word], i % Loaded::per_word, tensor.get(offset + i * Step));
    }
    return chunk;
  }
}

/// Writes them.
template <int Vec, int Step, bool Whole = Step == 1, class T>
__device__ __forceinline__ void store_apart(const Out<T>& tensor, int64_t offset, int valid, const Scalar<T> (&values)[Vec]) {
  if constexpr (Step == 1) {
    store_chunk<Vec, Whole>(tensor, offset, valid, values);
  } else {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      if (i < valid) tensor.set(offset + i * Step, Storage<T>::store(values[i]));
    }
  }
}

/// Reads a lane's chunks of a row of `length` elements; `offset(c)` is the place of element c. Chunks beyond the row are unchanged.
template <int Vec, int Step, bool Whole, int Chunks, class Team, template <class> class Tensor, class T, class Offset>
__device__ __forceinline__ void load_row_apart(const Team& team, const Tensor<T>& tensor, int length, Chunk<T, Vec> (&chunks)[Chunks],
                                               Offset offset) {
  HEDDLE_UNROLL
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int first = first_apart<Vec, Step>(chunk * Team::lanes + team.lane());
    if (first < length) {
      chunks[chunk] = load_apart<Vec, Step, Whole>(tensor, offset(first), left_apart<Step>(length - first));
    }
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
