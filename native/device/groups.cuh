// Chunks of interleaved accesses: groups of elements, such as the channels of a pixel, of which a thread moves several at once. As chunks
// (vector.cuh), they are moved in packs if they are whole and their address allows. A pack is the largest one that divides them: 24 bytes
// are three packs of 8.
#ifndef HEDDLE_GROUPS_CUH
#define HEDDLE_GROUPS_CUH

#include "vector.cuh"

namespace heddle {

/// Elements of a pack of `Elements`: the largest power of two that divides them and fits 16 bytes.
template <class T, int Elements>
constexpr int group_pack = pack_elements<T, (Elements & -Elements)>;

/// True if groups of together `Elements` at `offset` can be moved in packs.
template <int Elements, template <class> class Tensor, class T>
__device__ __forceinline__ bool groups_aligned(const Tensor<T>& tensor, int64_t offset) {
  return is_aligned<group_pack<T, Elements>>(tensor, offset);
}

/// Consecutive elements in their storage type; reading one converts it.
template <class T, int Elements>
struct Groups {
  static constexpr int width = group_pack<T, Elements>;

  Chunk<T, width> packs[Elements / width];

  __device__ __forceinline__ Scalar<T> operator[](int i) const { return packs[i / width][i % width]; }
};

/// Reads elements offset .. offset + valid - 1; the others become zero. Groups of a whole row are all there.
template <int Elements, bool Whole = false, template <class> class Tensor, class T>
__device__ __forceinline__ Groups<T, Elements> load_groups(const Tensor<T>& tensor, int64_t offset, int valid) {
  constexpr int width = group_pack<T, Elements>;
  Groups<T, Elements> groups;
  if (Whole || (valid >= Elements && groups_aligned<Elements>(tensor, offset))) {
    HEDDLE_UNROLL
    for (int i = 0; i < Elements; i += width) groups.packs[i / width].load_packs(tensor, offset + i);
  } else {
    HEDDLE_UNROLL
    for (int i = 0; i < Elements; i += width) groups.packs[i / width].load_elements(tensor, offset + i, valid - i);
  }
  return groups;
}

/// Writes the first `valid` of the values to elements offset, offset + 1, ...
template <int Elements, bool Whole = false, class T>
__device__ __forceinline__ void store_groups(const Out<T>& tensor, int64_t offset, int valid, const Scalar<T> (&values)[Elements]) {
  constexpr int width = group_pack<T, Elements>;
  if (Whole || (valid >= Elements && groups_aligned<Elements>(tensor, offset))) {
    HEDDLE_UNROLL
    for (int i = 0; i < Elements; i += width) {
      Pack<T, width> pack;
      round_into(pack, values + i);
      tensor.template set_pack<width>(offset + i, pack);
    }
  } else {
    HEDDLE_UNROLL
    for (int i = 0; i < Elements; ++i) {
      if (i < valid) tensor.set(offset + i, Storage<T>::store(values[i]));
    }
  }
}

}  // namespace heddle

#endif
