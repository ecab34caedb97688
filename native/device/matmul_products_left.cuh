// Storage of a left factor that is computed, such as a norm of rows, where there are many rows: otherwise each tile of columns would
// compute it again. A kernel of its own computes and stores it in the type that is multiplied, and the matmuls after it read it from
// memory.
#ifndef HEDDLE_MATMUL_PRODUCTS_LEFT_CUH
#define HEDDLE_MATMUL_PRODUCTS_LEFT_CUH

#include "matmul_row_scale.cuh"
#include "scratch.cuh"

namespace heddle {

namespace left {
constexpr int threads = 256, warps = threads / 32;
}

/// Slots whose left factor is in memory: m contiguous rows of k elements. Everything else is as in `Slots`.
template <class Slots>
struct StoredLeft {
  using Sum = typename Slots::Sum;
  using Element = typename Slots::Element;
  using Loaded = typename Slots::Loaded;
  static constexpr int VEC = Slots::VEC, PRODUCTS = Slots::PRODUCTS;
  static constexpr bool PARTS = Slots::PARTS;
  struct Row0 {};

  Slots slots;
  In<Element> left;
  int k;

  bool whole_chunks() const { return slots.whole_chunks(); }
  __device__ __forceinline__ void prefetch(int column) const { slots.prefetch(column); }
  template <bool Whole>
  __device__ __forceinline__ Loaded load(int64_t row, int column, int valid) const {
    return slots.template load<Whole>(row, column, valid);
  }
  template <bool Whole, class Sums>
  __device__ __forceinline__ void finish(int64_t row, int column, int valid, const Sums& sums, const Loaded& loaded) const {
    slots.template finish<Whole>(row, column, valid, sums, loaded);
  }
  template <class Sums>
  __device__ __forceinline__ void keep_parts(int64_t row, int column, int valid, const Sums& sums) const {
    slots.keep_parts(row, column, valid, sums);
  }
  template <int Which, class Team>
  __device__ __forceinline__ auto row_of(Factor<Which> which, Team team, int64_t matrix, int at) const {
    if constexpr (Which == 0) {
      return Row0();
    } else {
      return slots.row_of(which, team, matrix, at);
    }
  }
  template <bool Whole, int Which, class Row>
  __device__ __forceinline__ void chunk_of(Factor<Which> which, const Row& row, int64_t matrix, int at, int along, int valid,
                                           Sum (&values)[VEC]) const {
    if constexpr (Which == 0) {
      const auto chunk = load_chunk<VEC, Whole>(left, static_cast<int64_t>(at) * k + along, valid);
      HEDDLE_UNROLL
      for (int i = 0; i < VEC; ++i) values[i] = chunk[i];
    } else {
      slots.template chunk_of<Whole>(which, row, matrix, at, along, valid, values);
    }
  }
  template <int Which>
  bool whole_rows(Factor<Which> which, int64_t length) const {
    return Which == 0 || slots.whole_rows(which, length);
  }
  template <int Which>
  bool copies(Factor<Which> which, int64_t length) const {
    return Which == 0 || slots.copies(which, length);
  }
  template <int Which>
  __host__ __device__ __forceinline__ auto stored_of(Factor<Which> which, int64_t matrix) const {
    if constexpr (Which == 0) {
      return CopiedRows<Element>{left, 0};
    } else {
      return slots.stored_of(which, matrix);
    }
  }
  template <int Which>
  __host__ __device__ __forceinline__ auto copy_of(Factor<Which> which, int64_t matrix) const {
    if constexpr (Which == 0) {
      return CopiedRows<Element>{left, 0};
    } else {
      return slots.copy_of(which, matrix);
    }
  }
};

/// True if the left factor is computed and its elements are of a type that tensor cores take.
template <class Slots>
constexpr bool computes_left =
    std::is_same_v<decltype(std::declval<const Slots&>().copy_of(Factor<0>(), int64_t())), NotCopied> && sizeof(typename Slots::Element) == 2;

/// True if the only right factor is in memory in the type that is multiplied.
template <class Slots>
constexpr bool has_copied_right =
    std::is_same_v<decltype(std::declval<const Slots&>().copy_of(Factor<1>(), int64_t())), CopiedRows<typename Slots::Element>>;

/// One block per row. `Kept`: number of chunks that a thread holds in registers, so that a row which is scaled by a function of its sums is
/// read once. With 0, such a row is read for these sums and again for its elements.
template <int Kept, class Slots>
__global__ void __launch_bounds__(left::threads) store_left(const int k, const Out<typename Slots::Element> left, const Slots slots) {
  constexpr int step = left::threads * 8;
  const int row = static_cast<int>(blockIdx.x), own = static_cast<int>(threadIdx.x) * 8;
  const int64_t start = static_cast<int64_t>(row) * k;
  if constexpr (Kept > 0) {
    constexpr int commons = row_commons<Slots>, kinds = commons > 0 ? commons : 1;
    for (int at = own; at < k; at += step) slots.prefetch_of(Factor<0>(), at);
    begin_kernel();
    UnscaledRow<Slots> unscaled = {};
    unscaled.find(slots, row);
    float values[Kept][8], common[Kept][kinds][8];
    HEDDLE_UNROLL
    for (int i = 0; i < Kept; ++i) {
      if (own + i * step >= k) break;
      unscaled.read(slots, row, own + i * step, values[i]);
      unscaled.read_common(slots, own + i * step, common[i]);
    }
    HEDDLE_SHARED(float, sums, left::warps * Slots::FOLDS);
    leave_folds<Slots>(unscaled.folds, sums);
    __syncthreads();
    float factors[kinds];
    const float scale = unscaled.template scale<left::warps>(slots, row, sums, factors);
    HEDDLE_UNROLL
    for (int i = 0; i < Kept; ++i) {
      if (own + i * step >= k) break;
      HEDDLE_UNROLL
      for (int e = 0; e < 8; ++e) {
        values[i][e] *= scale;
        HEDDLE_UNROLL
        for (int p = 0; p < commons; ++p) values[i][e] += common[i][p][e] * factors[p];
      }
      store_chunk<8, true>(left, start + own + i * step, 8, values[i]);
    }
  } else {
    begin_kernel();
    LeftRow<Slots> known = {};
    known.find(slots, BlockTeam<left::threads>(), 0, row);
    for (int at = own; at < k; at += step) {
      float values[8];
      factor_chunk<0, true>(slots, known.template of<0>(), true, 0, row, at, k, values);
      store_chunk<8, true>(left, start + at, 8, values);
    }
  }
}

/// Enqueues the kernel that computes m rows of the left factor, whose rows are whole, into memory of the queue.
template <class Slots>
int32_t launch_store_left(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t k, const Scratch& scratch,
                          const Slots& slots) {
  if (m > INT32_MAX) return fail(error, HEDDLE_INVALID, "kernel %s: m is %lld, expected at most 2147483647", name, static_cast<long long>(m));
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(m)), dim3(left::threads), 0, Sync::block, true};
  const auto run = [&](auto kernel) { return launch(queue, error, config, kernel, static_cast<int>(k), scratch.out_as<typename Slots::Element>(), slots); };
  if constexpr (row_folds<Slots> > 0) {
    constexpr int kept = 4;
    if (k <= kept * left::threads * 8) return run(store_left<kept, Slots>);
  }
  return run(store_left<0, Slots>);
}

}  // namespace heddle

#endif
