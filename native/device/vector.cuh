// Chunks: Vec consecutive elements of a row, read and written as 16-byte packs where the chunk is whole and its address
// allows, element by element otherwise.
#ifndef HEDDLE_VECTOR_CUH
#define HEDDLE_VECTOR_CUH

namespace heddle {

/// Elements one instruction moves: as many of a chunk as fit 16 bytes.
template <class T, int Vec>
constexpr int pack_elements = Vec * static_cast<int>(sizeof(T)) <= 16 ? Vec : 16 / static_cast<int>(sizeof(T));

/// Vec elements in their storage type; reading one converts it. A chunk of halves takes half the registers of its floats.
template <class T, int Vec>
struct Chunk {
  static constexpr int width = pack_elements<T, Vec>;
  Pack<T, width> packs[Vec / width];

  __device__ __forceinline__ Scalar<T> operator[](int i) const { return Storage<T>::load(packs[i / width].v[i % width]); }
};

template <int Vec, class Tensor>
__device__ __forceinline__ bool is_whole(const Tensor& tensor, int64_t offset, int valid, int pack_bytes) {
  return valid >= Vec && tensor.aligned(offset, pack_bytes);
}

/// The whole-chunk half of a load.
template <int Vec, class T>
__device__ __forceinline__ void load_packs(const In<T>& tensor, int64_t offset, Chunk<T, Vec>& chunk) {
  constexpr int width = Chunk<T, Vec>::width;
  HEDDLE_UNROLL
  for (int p = 0; p < Vec / width; ++p) chunk.packs[p] = tensor.template get_pack<width>(offset + p * width);
}

/// The element by element half: the first `valid` elements; the others are not read.
template <int Vec, class T>
__device__ __forceinline__ void load_elements(const In<T>& tensor, int64_t offset, int valid, Chunk<T, Vec>& chunk) {
  constexpr int width = Chunk<T, Vec>::width;
  HEDDLE_UNROLL
  for (int i = 0; i < Vec; ++i) {
    if (i < valid) chunk.packs[i / width].v[i % width] = tensor.get(offset + i);
  }
}

/// Reads elements offset .. offset + valid - 1; the rest of the chunk is zero.
template <int Vec, class T>
__device__ __forceinline__ Chunk<T, Vec> load_chunk(const In<T>& tensor, int64_t offset, int valid) {
  Chunk<T, Vec> chunk = {};
  if (is_whole<Vec>(tensor, offset, valid, sizeof chunk.packs[0])) {
    load_packs<Vec>(tensor, offset, chunk);
  } else {
    load_elements<Vec>(tensor, offset, valid, chunk);
  }
  return chunk;
}

/// Reads a lane's chunks of a row of `length` elements; `offset(c)` is the place of element c. The packs of all chunks are
/// requested before anything waits for one, so the memory latency of a row is paid once.
template <int Vec, int Chunks, class Team, class T, class Offset>
__device__ __forceinline__ void load_row(const Team& team, const In<T>& tensor, int length, Chunk<T, Vec> (&chunks)[Chunks],
                                         Offset offset) {
  HEDDLE_UNROLL
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int first = (chunk * Team::lanes + team.lane()) * Vec;
    chunks[chunk] = {};
    if (length - first >= Vec && tensor.aligned(offset(first), sizeof chunks[chunk].packs[0])) {
      load_packs<Vec>(tensor, offset(first), chunks[chunk]);
    }
  }
  HEDDLE_UNROLL
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int first = (chunk * Team::lanes + team.lane()) * Vec;
    const int valid = length - first;
    if (valid > 0 && !is_whole<Vec>(tensor, offset(first), valid, sizeof chunks[chunk].packs[0])) {
      load_elements<Vec>(tensor, offset(first), valid, chunks[chunk]);
    }
  }
}

/// Writes the first `valid` of Vec values to elements offset, offset + 1, ...
template <int Vec, class T>
__device__ __forceinline__ void store_chunk(const Out<T>& tensor, int64_t offset, int valid, const Scalar<T> (&values)[Vec]) {
  constexpr int width = pack_elements<T, Vec>;
  if (is_whole<Vec>(tensor, offset, valid, width * sizeof(T))) {
    HEDDLE_UNROLL
    for (int p = 0; p < Vec / width; ++p) {
      Pack<T, width> pack;
      round_into(pack, values + p * width);
      tensor.template set_pack<width>(offset + p * width, pack);
    }
  } else {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      if (i < valid) tensor.set(offset + i, Storage<T>::store(values[i]));
    }
  }
}

}  // namespace heddle

#endif
