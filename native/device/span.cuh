// Spans: the chunk of a thread with elements beside it, for windows along a row. Each part is one aligned load, and neighbouring threads find the
// elements beside their chunks in the cache. Elements beyond an end of the row are zero.
#ifndef HEDDLE_SPAN_CUH
#define HEDDLE_SPAN_CUH

#include "vector.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Elements of the smallest pack that holds so many beside a chunk.
constexpr int beside(int elements) {
  int pack = 1;
  while (pack < elements) pack *= 2;
  return pack;
}

/// Vec elements of a row, Before elements in front of them and After that follow. Places are constants once loops are unrolled.
template <class T, int Vec, int Before, int After>
struct Span {
  static constexpr int before = beside(Before), after = beside(After);
  static_assert(before <= Vec && after <= Vec, "a span reaches into the chunks beside its own");

  Chunk<T, Vec> own;
  Chunk<T, before> left;
  Chunk<T, after> right;

  __device__ __forceinline__ Scalar<T> operator[](int i) const {
    if (i < 0) return left[i + before];
    return i < Vec ? own[i] : right[i - Vec];
  }
};

/// The same for a single element: all places in order.
template <class T, int Before, int After>
struct Span<T, 1, Before, After> {
  Chunk<T, 1> all[Before + 1 + After];

  __device__ __forceinline__ Scalar<T> operator[](int i) const { return all[i + Before][0]; }
};

/// Reads the chunk at an offset with the elements beside it. `first` elements of the row lie in front of it, a multiple of Vec; `valid` follow from it on.
template <int Vec, int Before, int After, bool Whole = false, template <class> class Tensor, class T>
__device__ __forceinline__ Span<T, Vec, Before, After> load_span(const Tensor<T>& tensor, int64_t offset, int first, int valid) {
  using Made = Span<T, Vec, Before, After>;
  Made span{};
  if constexpr (Vec == 1) {
    HEDDLE_UNROLL
    for (int i = -Before; i <= After; ++i) span.all[i + Before].load_elements(tensor, offset + i, i < valid && first + i >= 0 ? 1 : 0);
  } else {
    span.own = load_chunk<Vec, Whole>(tensor, offset, valid);
    if constexpr (Before > 0) {
      if (first > 0) span.left = load_chunk<Made::before, Whole>(tensor, offset - Made::before, Made::before);
    }
    if constexpr (After > 0) {
      if (valid > Vec) span.right = load_chunk<Made::after, Whole>(tensor, offset + Vec, valid - Vec);
    }
  }
  return span;
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
