// Loads of tiles of a matmul's operands to shared memory and from there to the tensor cores. A stage of the pipeline holds rows of 128
// bytes of k, with 16-byte words permuted by the low bits of the row, so that neither copies nor matrix loads have bank conflicts. It is
// the layout that wgmma calls a 128-byte swizzle. Sizes are in bytes: a slice of 32 bytes of k, which one instruction multiplies, is 16
// elements of 16 bits or 32 of 8, and its words go to the same lanes.
#ifndef HEDDLE_MATMUL_PIPELINE_CUH
#define HEDDLE_MATMUL_PIPELINE_CUH

#include <utility>

#include "mma.cuh"

namespace heddle {

constexpr int step_row_bytes = 128;                        // of k per stage
constexpr int step_slices = step_row_bytes / 32;

/// Elements of k per stage.
template <class T>
constexpr int step_elements = step_row_bytes / static_cast<int>(sizeof(T));

/// Steps of rows of k elements.
template <class T>
constexpr __host__ __device__ int64_t steps_of(int64_t k) {
  return (k + step_elements<T> - 1) / step_elements<T>;
}

/// Forces a value to be computed here and kept in a register. Work before the wait for the previous launch is free; the compiler would
/// otherwise compute addresses at their use.
template <class Value>
__device__ __forceinline__ void keep([[maybe_unused]] Value& value) {
#if !defined(HEDDLE_SIMT)
  if constexpr (sizeof(Value) == 8) {
    asm volatile("" : "+l"(value));
  } else {
    asm volatile("" : "+r"(value));
  }
#endif
}

__device__ __forceinline__ void keep([[maybe_unused]] Shared16& place) {
#if !defined(HEDDLE_SIMT)
  keep(place.address);
#endif
}

/// Position in a tensor from which copies start.
template <class T>
class CopySource {
 public:
#if defined(HEDDLE_SIMT)
  __device__ __forceinline__ CopySource(const In<T>& tensor, int64_t element) : tensor_(tensor), element_(element) {}
  __device__ __forceinline__ void copy_to(Shared16 to, int64_t offset, bool valid) const {
    copy_async_16(to, tensor_, element_ + offset, valid);
  }

 private:
  In<T> tensor_;
  int64_t element_;
#else
  __device__ __forceinline__ CopySource(const In<T>& tensor, int64_t element) : from_{tensor.data + element} { keep(from_.data); }
  __device__ __forceinline__ void copy_to(Shared16 to, int64_t offset, bool valid) const {
    copy_async_16(to, from_, offset, valid);
  }

 private:
  In<T> from_;
#endif
};

/// One operand's part of the pipeline: this thread's copies of Count rows of `tensor`, from `row0` and k-step `step` on. Rows beyond the
/// last repeat it or stay as they are, since their results are not used; elements beyond k are zero. `Whole`: k is a multiple of a step.
template <class T, int Count, int Threads, bool Whole>
class OperandCopies {
 public:
  __device__ __forceinline__ OperandCopies(const In<T>& tensor, int64_t row0, int64_t rows, int step, int64_t k)
      : OperandCopies(tensor, row0, rows, static_cast<int64_t>(step) * step_elements<T> + threadIdx.x % words * elements, k,
                      std::make_integer_sequence<int, per_thread>()) {}

  /// Starts the copies of the `s`-th step into the stage's part at `to`.
  __device__ __forceinline__ void start(Shared16 to, int s) const {
    const int64_t offset = static_cast<int64_t>(s) * step_elements<T>;
    HEDDLE_UNROLL
    for (int i = 0; i < per_thread; ++i) {
      if (i < groups_) from_[i].copy_to(to + (place_ + i * row_step * step_row_bytes), offset, Whole || offset < left_);
    }
  }

 private:
  static constexpr int words = step_row_bytes / 16;                        // per row of a stage
  static constexpr int elements = 16 / static_cast<int>(sizeof(T));        // per word
  static constexpr int row_step = Threads / words;  // rows between the thread's words
  static constexpr int per_thread = Count / row_step;
  static_assert(Count % row_step == 0 && row_step % 8 == 0, "every thread copies as much, at one place of the permutation");

  template <int... I>
  __device__ __forceinline__ OperandCopies(const In<T>& tensor, int64_t row0, int64_t rows, int64_t k0, int64_t k,
                                           std::integer_sequence<int, I...>)
      : from_{CopySource<T>(tensor, nearest(row0 + static_cast<int>(threadIdx.x) / words + I * row_step, rows) * k +
                                        (k0 < k ? k0 : 0))...},
        left_(k - k0),
        groups_(static_cast<int>((rows - row0 < Count ? rows - row0 : Count) + row_step - 1) / row_step) {
    const int row = threadIdx.x / words, word = threadIdx.x % words;
    place_ = row * step_row_bytes + (word ^ row % 8) * 16;
    keep(place_);
  }

  static __device__ __forceinline__ int64_t nearest(int64_t row, int64_t rows) { return row < rows ? row : rows - 1; }

  CopySource<T> from_[per_thread];  // the thread's words at its first step
  int64_t left_;                    // elements of k from its words on
  int groups_;                      // number of its words whose row exists in some thread
  uint32_t place_;                  // of its first word in a stage
};

/// The operands of one slice of k, as a warp's lanes hold them.
template <int RowPieces, int ColumnPieces>
struct Fragments {
  uint32_t a[RowPieces][4];
  uint32_t b[ColumnPieces][4];  // two pieces of eight columns each

  __device__ __forceinline__ void load(Shared16 a_row, Shared16 b_row) {
    constexpr int piece_bytes = 16 * step_row_bytes;
    HEDDLE_UNROLL
    for (int i = 0; i < RowPieces; ++i) load_matrix_x4(a[i], a_row + i * piece_bytes);
    HEDDLE_UNROLL
    for (int j = 0; j < ColumnPieces; ++j) load_matrix_x4(b[j], b_row + j * piece_bytes);
  }
};

/// d += a x b for one warp and one slice.
template <class T>
__device__ __forceinline__ void multiply_slice(SumOf<T> (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, signed char>) {
    mma_m16n8k32(d, a, b);
  } else {
    mma_m16n8k16<T>(d, a, b);
  }
}

template <class T, int RowPieces, int ColumnPieces>
__device__ __forceinline__ void multiply(SumOf<T> (&sums)[RowPieces][2 * ColumnPieces][4],
                                         const Fragments<RowPieces, ColumnPieces>& fragments) {
  HEDDLE_UNROLL
  for (int i = 0; i < RowPieces; ++i) {
    HEDDLE_UNROLL
    for (int j = 0; j < ColumnPieces; ++j) {
      multiply_slice<T>(sums[i][2 * j], fragments.a[i], {fragments.b[j][0], fragments.b[j][1]});
      multiply_slice<T>(sums[i][2 * j + 1], fragments.a[i], {fragments.b[j][2], fragments.b[j][3]});
    }
  }
}

}  // namespace heddle

#endif
