// Chunks whose elements lie apart. Rows whose length is no multiple of the width cannot be moved in packs. Moved one by one, consecutive
// elements of a lane would lie 16 bytes from those of its neighbours, and each store would write parts of sectors. There, the elements of a
// chunk lie as far apart as a warp has lanes, so that neighbouring lanes move neighbouring elements. A tile, which the lanes of a warp share,
// has the elements of their chunks, whatever the team: the orders of a whole warp and of a block agree as before (team.cuh). In rows of an even
// length, neighbours may stay together in pairs (`paired`), which one instruction moves.
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
__device__ __forceinline__ int chunks_apart(int length, bool paired = false) {
  if constexpr (Step == 1) {
    return chunks_of<Vec>(length);
  } else {
    constexpr int tile = Vec * Step;
    const int rest = paired ? length % tile / 2 : length % tile;
    return length / tile * Step + (rest < Step ? rest : Step);
  }
}

/// The first element of a chunk.
template <int Vec, int Step>
__device__ __forceinline__ int first_apart(int chunk, bool paired = false) {
  if constexpr (Step == 1) return chunk * Vec;
  const unsigned int at = static_cast<unsigned int>(chunk), place = at % Step;
  return static_cast<int>(at / Step * (Vec * Step) + (paired ? 2 * place : place));
}

/// Elements of a chunk that exist, and more where it is full, if `left` elements of the row are left from its first on.
template <int Step>
__device__ __forceinline__ int left_apart(int left, bool paired = false) {
  if constexpr (Step == 1) return left;
  const unsigned int all = static_cast<unsigned int>(left < 0 ? 0 : left);
  return static_cast<int>(paired ? (all + (2 * Step - 2)) / (2 * Step) * 2 : (all + (Step - 1)) / Step);
}

/// Distance of element i from the first of its chunk.
template <int Step>
__device__ __forceinline__ int place_apart(int i, bool paired) {
  return Step == 1 ? i : paired ? i / 2 * (2 * Step) + i % 2 : i * Step;
}

/// Reads the elements of a chunk, of which the first is at `offset` and `valid` exist; the others become zero.
template <int Vec, int Step, bool Whole = Step == 1, template <class> class Tensor, class T>
__device__ __forceinline__ Chunk<T, Vec> load_apart(const Tensor<T>& tensor, int64_t offset, int valid, [[maybe_unused]] bool paired = false) {
  using Loaded = Chunk<T, Vec>;
  if constexpr (Step == 1) {
    return load_chunk<Vec, Whole>(tensor, offset, valid);
  } else {
    Loaded chunk;
    HEDDLE_UNROLL
    for (int w = 0; w < Vec / Loaded::per_word; ++w) chunk.words[w] = typename Loaded::Words::Type();
    if (paired) {
      HEDDLE_UNROLL
      for (int i = 0; i < Vec; i += 2) {
        if (i >= valid) continue;
        const auto pair = tensor.template get_pack<2>(offset + i * Step);
        if constexpr (Loaded::per_word == 2) {
          memcpy(&chunk.words[i / 2], &pair, sizeof pair);
        } else {
          HEDDLE_UNROLL
          for (int j = 0; j < 2; ++j) Loaded::Words::set(chunk.words[(i + j) / Loaded::per_word], (i + j) % Loaded::per_word, pair.v[j]);
        }
      }
    } else {
      HEDDLE_UNROLL
      for (int i = 0; i < Vec; ++i) {
        if (i < valid) Loaded::Words::set(chunk.words[i / Loaded::per_word], i % Loaded::per_word, tensor.get(offset + i * Step));
      }
    }
    return chunk;
  }
}

/// Writes them.
template <int Vec, int Step, bool Whole = Step == 1, class T>
__device__ __forceinline__ void store_apart(const Out<T>& tensor, int64_t offset, int valid, const Scalar<T> (&values)[Vec],
                                            [[maybe_unused]] bool paired = false) {
  if constexpr (Step == 1) {
    store_chunk<Vec, Whole>(tensor, offset, valid, values);
  } else if (paired) {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; i += 2) {
      if (i >= valid) continue;
      Pack<T, 2> pair;
      round_into(pair, values + i);
      tensor.template set_pack<2>(offset + i * Step, pair);
    }
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
                                               Offset offset, [[maybe_unused]] bool paired = false) {
  HEDDLE_UNROLL
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int first = first_apart<Vec, Step>(chunk * Team::lanes + team.lane(), paired);
    if (first < length) {
      chunks[chunk] = load_apart<Vec, Step, Whole>(tensor, offset(first), left_apart<Step>(length - first, paired), paired);
    }
  }
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
