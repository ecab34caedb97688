// Chunks: Vec consecutive elements of a row, moved as 16-byte packs if the chunk is whole and its address allows, element by element
// otherwise. Rows with only whole, aligned chunks (`Whole`) are the common case: without a branch between them, all their loads are in
// flight before the first is needed.
#ifndef HEDDLE_VECTOR_CUH
#define HEDDLE_VECTOR_CUH

#include "convert.cuh"

namespace heddle {

/// Elements moved by one instruction: as many of a chunk as fit 16 bytes.
template <class T, int Vec>
constexpr int pack_elements = Vec * static_cast<int>(sizeof(T)) <= 16 ? Vec : 16 / static_cast<int>(sizeof(T));

/// True if a chunk of Vec elements at `offset` can be moved in packs.
template <int Vec, template <class> class Tensor, class T>
__device__ __forceinline__ bool is_aligned(const Tensor<T>& tensor, int64_t offset) {
  return tensor.aligned(offset, pack_elements<T, Vec> * static_cast<int>(sizeof(T)));
}

/// A constant as a type, which selects the instance of a generic lambda.
template <bool Value>
struct Constant {
  static constexpr bool value = Value;
};

/// Storage of a chunk: the machine words that loads deliver. Small elements are extracted at their uses, so no wait for a load is needed
/// before, and a chunk of halves occupies half the registers of its floats.
template <class T, bool InWords>
struct ChunkWord {
  using Type = T;
  static __device__ __forceinline__ T get(T word, int) { return word; }
  static __device__ __forceinline__ void set(T& word, int, T element) { word = element; }
};
template <class T>
struct ChunkWord<T, true> {
  using Type = unsigned int;
  static constexpr int bits = 8 * static_cast<int>(sizeof(T));
  using Bits = typename UnsignedOf<sizeof(T)>::Type;

  static __device__ __forceinline__ T get(unsigned int word, int i) {
    const Bits element_bits = static_cast<Bits>(word >> (i * bits));
    T element;
    memcpy(&element, &element_bits, sizeof element);
    return element;
  }
  /// Sets an element whose bits are still zero.
  static __device__ __forceinline__ void set(unsigned int& word, int i, T element) {
    Bits element_bits;
    memcpy(&element_bits, &element, sizeof element);
    word |= static_cast<unsigned int>(element_bits) << (i * bits);
  }
};

/// Byte `i` of a word of int8 as a float: inserted into a float beyond 2^23, where integers are 1 apart, and shifted back by a subtraction.
/// Conversions of bytes use a unit with a quarter of the throughput.
__device__ __forceinline__ float int8_of_word(unsigned int word, int i) {
  const unsigned int from_zero = word ^ 0x80808080u, beyond = 0x4b000000u;
#if defined(HEDDLE_SIMT)
  const unsigned int bits = beyond | (from_zero >> (8 * i) & 0xffu);
#else
  const unsigned int bits = __byte_perm(from_zero, beyond, 0x7440u + static_cast<unsigned int>(i));
#endif
  float value;
  memcpy(&value, &bits, sizeof value);
  return value - 8388736.0f;
}

/// Vec elements in their storage type; reading one converts it.
template <class T, int Vec>
struct Chunk {
  static constexpr int width = pack_elements<T, Vec>;
  static constexpr bool in_words = sizeof(T) < 4 && Vec * sizeof(T) % 4 == 0;
  using Words = ChunkWord<T, in_words>;
  static constexpr int per_word = static_cast<int>(sizeof(typename Words::Type) / sizeof(T));

  typename Words::Type words[Vec / per_word];

  __device__ __forceinline__ Scalar<T> operator[](int i) const {
    if constexpr (in_words && std::is_same_v<T, signed char>) {
      return int8_of_word(words[i / per_word], i % per_word);
    } else {
      return Storage<T>::load(Words::get(words[i / per_word], i % per_word));
    }
  }

  template <template <class> class Tensor>
  __device__ __forceinline__ void load_packs(const Tensor<T>& tensor, int64_t offset) {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; i += width) {
      const Pack<T, width> pack = tensor.template get_pack<width>(offset + i);
      memcpy(&words[i / per_word], &pack, sizeof pack);
    }
  }

  /// Reads the first `valid` elements; the others become zero.
  template <template <class> class Tensor>
  __device__ __forceinline__ void load_elements(const Tensor<T>& tensor, int64_t offset, int valid) {
    HEDDLE_UNROLL
    for (int w = 0; w < Vec / per_word; ++w) words[w] = typename Words::Type();
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      if (i < valid) Words::set(words[i / per_word], i % per_word, tensor.get(offset + i));
    }
  }
};

/// Reads elements offset .. offset + valid - 1; the rest of the chunk is zero. A chunk of a whole row is full.
template <int Vec, bool Whole = false, template <class> class Tensor, class T>
__device__ __forceinline__ Chunk<T, Vec> load_chunk(const Tensor<T>& tensor, int64_t offset, int valid) {
  Chunk<T, Vec> chunk;
  if (Whole || (valid >= Vec && is_aligned<Vec>(tensor, offset))) {
    chunk.load_packs(tensor, offset);
  } else {
    chunk.load_elements(tensor, offset, valid);
  }
  return chunk;
}

/// Reads a lane's chunks of a row of `length` elements; `offset(c)` is the place of element c. Chunks beyond the row are unchanged.
template <int Vec, bool Whole, int Chunks, class Team, template <class> class Tensor, class T, class Offset>
__device__ __forceinline__ void load_row(const Team& team, const Tensor<T>& tensor, int length, Chunk<T, Vec> (&chunks)[Chunks],
                                         Offset offset) {
  HEDDLE_UNROLL
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    const int first = (chunk * Team::lanes + team.lane()) * Vec;
    if (first < length) chunks[chunk] = load_chunk<Vec, Whole>(tensor, offset(first), length - first);
  }
}

/// Writes the first `valid` of Vec values to elements offset, offset + 1, ...
template <int Vec, bool Whole = false, class T>
__device__ __forceinline__ void store_chunk(const Out<T>& tensor, int64_t offset, int valid, const Scalar<T> (&values)[Vec]) {
  constexpr int width = pack_elements<T, Vec>;
  if (Whole || (valid >= Vec && is_aligned<Vec>(tensor, offset))) {
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; i += width) {
      Pack<T, width> pack;
      round_into(pack, values + i);
      tensor.template set_pack<width>(offset + i, pack);
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
