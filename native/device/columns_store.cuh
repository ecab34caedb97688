// Stores of eight neighbouring columns by a matmul's epilogue. Where rows are not aligned, as those of an odd number of columns, a chunk of 16-bit
// elements is stored in the largest words that its address allows: element by element it would take eight writes of the L2 cache, which
// bound the time of a matmul of a short k.
#ifndef HEDDLE_COLUMNS_STORE_CUH
#define HEDDLE_COLUMNS_STORE_CUH

#include "vector.cuh"

namespace heddle {

/// Writes eight elements of 16 bits at any address: an element at either end if the first is not at a word of four bytes, and in between
/// words of four and eight bytes.
template <class T>
__device__ __forceinline__ void store_eight(const Out<T>& tensor, int64_t offset, const Pack<T, 8>& pack) {
  static_assert(sizeof(T) == 2, "two elements make a word");
  const auto store = [&](int64_t at, auto words) {
    constexpr int count = static_cast<int>(sizeof words / sizeof(T));
    Pack<T, count> part;
    memcpy(&part, &words, sizeof part);
    tensor.template set_pack<count>(at, part);
  };
  struct Two {
    uint32_t first, second;
  };
  uint32_t words[4];
  memcpy(words, &pack, sizeof words);
  const bool is_odd = !tensor.aligned(offset, 4);
  if (is_odd) {
    tensor.set(offset, pack.v[0]);
    tensor.set(offset + 7, pack.v[7]);
    HEDDLE_UNROLL
    for (int i = 0; i < 3; ++i) words[i] = words[i] >> 16 | words[i + 1] << 16;
  }
  const int64_t first = offset + (is_odd ? 1 : 0);
  if (tensor.aligned(first, 8)) {
    store(first, Two{words[0], words[1]});
    if (is_odd) {
      store(first + 4, words[2]);
    } else {
      store(first + 4, Two{words[2], words[3]});
    }
  } else {
    store(first, words[0]);
    store(first + 2, Two{words[1], words[2]});
    if (!is_odd) store(first + 6, words[3]);
  }
}

/// Writes the first `valid` of Vec values to elements offset, offset + 1, ... as store_chunk() does.
template <int Vec, bool Whole = false, class T>
__device__ __forceinline__ void store_columns(const Out<T>& tensor, int64_t offset, int valid, const Scalar<T> (&values)[Vec]) {
  if constexpr (!Whole && Vec == 8 && sizeof(T) == 2) {
    if (valid >= Vec && !is_aligned<Vec>(tensor, offset)) {
      Pack<T, 8> pack;
      round_into(pack, values);
      store_eight(tensor, offset, pack);
      return;
    }
  }
  store_chunk<Vec, Whole>(tensor, offset, valid, values);
}

}  // namespace heddle

#endif
