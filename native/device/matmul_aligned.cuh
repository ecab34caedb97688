// Operands whose rows do not start at multiples of 16 bytes, such as those of an odd k: tensor cores, asynchronous copies and the copy engine
// take none. One kernel stores them in memory of the queue, with rows padded by zeros to whole steps, and every body multiplies them there.
// A launch reads and writes each operand once more, which costs a matmul of thousands of rows and columns a tenth of its time.
#ifndef HEDDLE_MATMUL_ALIGNED_CUH
#define HEDDLE_MATMUL_ALIGNED_CUH

#include "matmul_pipeline.cuh"
#include "scratch.cuh"

namespace heddle {

/// The tensor from an element on.
template <class T>
In<T> tensor_from(const In<T>& tensor, int64_t first) {
#if defined(HEDDLE_SIMT)
  simt::Buffer rest = tensor.buffer();
  rest.data += first * static_cast<int64_t>(sizeof(T));
  rest.count -= static_cast<uint64_t>(first);
  return In<T>(rest);
#else
  return {tensor.data + first};
#endif
}

namespace aligned_rows {
constexpr int threads = 256, words = 4;  // per thread

/// Elements of an aligned word.
template <class T>
constexpr int elements = 16 / static_cast<int>(sizeof(T));

/// The first element of a tensor that is aligned to a word.
template <class T>
int first_aligned(const In<T>& tensor) {
  int first = 0;
  while (first < elements<T> - 1 && !tensor.aligned(first, 16)) ++first;
  return first;
}

/// Rows to copy, of a matrix of `count` elements. `first`: first_aligned().
template <class T>
struct Source {
  In<T> tensor;
  int64_t rows, count;
  int first;
};
template <class T, int Factors>
struct Sources {
  Source<T> of[Factors];
};
}  // namespace aligned_rows

/// Sixteen bytes from byte `bytes` of two words on.
template <class T, int N>
__device__ __forceinline__ Pack<T, N> shift_words(const Pack<T, N>& lower, const Pack<T, N>& upper, int bytes) {
  uint32_t parts[8], shifted[4];
  memcpy(parts, &lower, 16);
  memcpy(parts + 4, &upper, 16);
  HEDDLE_UNROLL
  for (int by = 2; by > 0; by /= 2) {
    HEDDLE_UNROLL
    for (int i = 0; i + by < 8; ++i) parts[i] = (bytes & 4 * by) != 0 ? parts[i + by] : parts[i];
  }
  HEDDLE_UNROLL
  for (int i = 0; i < 4; ++i) {
    shifted[i] = static_cast<uint32_t>((static_cast<uint64_t>(parts[i + 1]) << 32 | parts[i]) >> bytes % 4 * 8);
  }
  Pack<T, N> pack;
  memcpy(&pack, shifted, 16);
  return pack;
}

/// A word of `valid` elements from `offset` on, the rest of which is zero. It is made of two aligned words, unless one of them is not part of
/// the tensor.
template <class T>
__device__ __forceinline__ Pack<T, aligned_rows::elements<T>> load_word(const aligned_rows::Source<T>& from, int64_t offset, int valid) {
  constexpr int count = aligned_rows::elements<T>;
  Pack<T, count> word = {};
  const int before = static_cast<int>((offset + count - from.first) % count);
  const int64_t start = offset - before;
  if (start >= 0 && start + 2 * count <= from.count) {
    word = shift_words(from.tensor.template get_pack<count>(start), from.tensor.template get_pack<count>(start + count),
                       before * static_cast<int>(sizeof(T)));
    HEDDLE_UNROLL
    for (int i = 0; i < count; ++i) {
      if (i >= valid) word.v[i] = T();
    }
  } else {
    HEDDLE_UNROLL
    for (int i = 0; i < count; ++i) {
      if (i < valid) word.v[i] = from.tensor.get(offset + i);
    }
  }
  return word;
}

/// Stores the rows of all sources, one after the other, of k elements each, as rows of `row_words` words.
template <class T, int Factors>
__global__ void __launch_bounds__(aligned_rows::threads)
    align_rows(const int k, const int row_words, const aligned_rows::Sources<T, Factors> sources, const Out<T> to) {
  begin_kernel();
  constexpr int count = aligned_rows::elements<T>;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (aligned_rows::threads * aligned_rows::words) + threadIdx.x;
  HEDDLE_UNROLL
  for (int i = 0; i < aligned_rows::words; ++i) {
    const int64_t at = first + i * aligned_rows::threads;
    int64_t row = at;
    const int column = peel(row, row_words) * count;
    HEDDLE_UNROLL
    for (int which = 0; which < Factors; ++which) {
      const aligned_rows::Source<T>& source = sources.of[which];
      if (row >= 0 && row < source.rows) {
        const int valid = k - column < count ? k - column : count;
        Pack<T, count> word = {};
        if (valid > 0) word = load_word(source, row * k + column, valid);
        to.template set_pack<count>(at * count, word);
      }
      row -= source.rows;
    }
  }
}

/// True if rows of k elements start at multiples of 16 bytes.
template <class T>
bool has_aligned_rows(const In<T>& tensor, int64_t k) {
  return k % aligned_rows::elements<T> == 0 && tensor.aligned(0, 16);
}

template <class T, int Factors, class Run, int... Which>
int32_t with_aligned_rows(const heddle_launch* queue, heddle_error* error, const char* name, const int64_t (&rows)[Factors], int64_t k,
                          const In<T> (&factors)[Factors], Run run, std::integer_sequence<int, Which...>) {
  constexpr int count = aligned_rows::elements<T>;
  const int64_t stored = k % count == 0 ? k : steps_of<T>(k) * step_elements<T>, row_words = stored / count;
  int64_t copied[Factors], before[Factors], all = 0;
  for (int which = 0; which < Factors; ++which) {
    copied[which] = has_aligned_rows(factors[which], k) ? 0 : rows[which];
    before[which] = all;
    all += copied[which];
  }
  constexpr int64_t floats_of_word = 16 / sizeof(float), of_block = aligned_rows::threads * aligned_rows::words;
  const Count words = Count(all) * row_words, floats = words * floats_of_word;
  if (floats.is_overflow() || stored > INT32_MAX || words.value / of_block >= INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: %lld rows of %lld elements are too many for a launch", name, static_cast<long long>(all),
                static_cast<long long>(k));
  }
  const Scratch scratch(queue, error, name, floats.value);
  if (scratch.status != HEDDLE_OK) return scratch.status;
  const aligned_rows::Sources<T, Factors> sources = {
      {{factors[Which], copied[Which], rows[Which] * k, aligned_rows::first_aligned(factors[Which])}...}};
  const LaunchConfig config{name, dim3(static_cast<unsigned int>((words.value + of_block - 1) / of_block)), dim3(aligned_rows::threads),
                            0, Sync::none, true};
  const int32_t status = launch(queue, error, config, align_rows<T, Factors>, static_cast<int>(k), static_cast<int>(row_words), sources,
                                scratch.template out_as<T>());
  if (status != HEDDLE_OK) return status;
  const In<T> copies = scratch.template in_as<T>();
  return run({copied[Which] > 0 ? tensor_from(copies, before[Which] * stored) : factors[Which]...}, stored);
}

/// Enqueues `run(factors, k)` for factors of these numbers of rows, with aligned rows that represent these, after the copy of those that are
/// not aligned.
template <class T, int Factors, class Run>
int32_t with_aligned_rows(const heddle_launch* queue, heddle_error* error, const char* name, const int64_t (&rows)[Factors], int64_t k,
                          const In<T> (&factors)[Factors], Run run) {
  return with_aligned_rows(queue, error, name, rows, k, factors, run, std::make_integer_sequence<int, Factors>());
}

}  // namespace heddle

#endif
