// Matmuls of many rows whose right factors are stored as bytes, such as those of a prompt with int8 weights. The main loops for many rows
// copy factors unchanged, and a loop that converted them on the way would wait for each of its loads. A kernel of its own stores the
// converted factors of some columns, and the matmuls after it read them. Then the next columns follow, in the same memory.
#ifndef HEDDLE_MATMUL_PRODUCTS_STORED_CUH
#define HEDDLE_MATMUL_PRODUCTS_STORED_CUH

#include "matmul_aligned.cuh"
#include "matmul_few_tile.cuh"
#include "matmul_products_left.cuh"

namespace heddle {

/// Slots of which all factors are in memory: rows of the left one from element `first_left` of its tensor on, and `n` rows of each right
/// one, with the right factors concatenated. Columns count from `first_column` of the whole matmul on. Everything else is as in `Slots`.
template <class Slots>
struct StoredFactors {
  using Sum = typename Slots::Sum;
  using Element = typename Slots::Element;
  using Loaded = typename Slots::Loaded;
  static constexpr int VEC = Slots::VEC, PRODUCTS = Slots::PRODUCTS;
  static constexpr bool PARTS = Slots::PARTS, HOLDS_FACTORS = true;
  struct Row {};

  Slots slots;
  In<Element> left, right;
  int64_t first_left, n;
  int k, first_column;

  bool whole_chunks() const { return slots.whole_chunks(); }
  __device__ __forceinline__ void prefetch(int column) const { slots.prefetch(first_column + column); }
  template <bool Whole>
  __device__ __forceinline__ Loaded load(int64_t row, int column, int valid) const {
    return slots.template load<Whole>(row, first_column + column, valid);
  }
  template <bool Whole, class Sums>
  __device__ __forceinline__ void finish(int64_t row, int column, int valid, const Sums& sums, const Loaded& loaded) const {
    slots.template finish<Whole>(row, first_column + column, valid, sums, loaded);
  }
  template <class Sums>
  __device__ __forceinline__ void keep_parts(int64_t row, int column, int valid, const Sums& sums) const {
    slots.keep_parts(row, first_column + column, valid, sums);
  }
  template <int Which, class Team>
  __device__ __forceinline__ Row row_of(Factor<Which>, Team, int64_t, int) const {
    return {};
  }
  template <bool Whole, int Which>
  __device__ __forceinline__ void chunk_of(Factor<Which> which, const Row&, int64_t, int at, int along, int valid,
                                           Sum (&values)[VEC]) const {
    const auto rows = copy_of(which, 0);
    const auto chunk = load_chunk<VEC, Whole>(rows.tensor, rows.first + static_cast<int64_t>(at) * k + along, valid);
    HEDDLE_UNROLL
    for (int i = 0; i < VEC; ++i) values[i] = chunk[i];
  }
  template <int Which>
  bool whole_rows(Factor<Which>, int64_t) const {
    return true;
  }
  template <int Which>
  bool copies(Factor<Which>, int64_t) const {
    return true;
  }
  template <int Which>
  __host__ __device__ __forceinline__ CopiedRows<Element> stored_of(Factor<Which> which, int64_t matrix) const {
    return copy_of(which, matrix);
  }
  template <int Which>
  __host__ __device__ __forceinline__ CopiedRows<Element> copy_of(Factor<Which>, int64_t) const {
    if constexpr (Which == 0) {
      return {left, first_left};
    } else {
      return {right, (Which - 1) * n * k};
    }
  }
};

/// True if right factors are bytes in memory that are multiplied as 16-bit elements.
template <class Slots>
constexpr bool has_byte_factors() {
  if constexpr (sizeof(typename Slots::Element) == 2 && few_stored<Slots>()) {
    return FewFactor<Slots, 1>::vec > 8;
  } else {
    return false;
  }
}

namespace stored {
constexpr int threads = 256;
/// Bytes of factors stored at once; tests have smaller panels. A step of 64 rows of 7B takes 15.8 ms with panels of 32 MiB, which fit the
/// L2 cache, and 13.5 ms with these (H200).
#if defined(HEDDLE_PANEL_BYTES)
constexpr int64_t panel_bytes = HEDDLE_PANEL_BYTES;
#else
constexpr int64_t panel_bytes = int64_t{96} << 20;
#endif
/// Panels consist of whole tiles of any body, and of whole groups of columns of partial reductions.
constexpr int64_t step = 256;
}  // namespace stored

/// One block per column, which stores its row of every right factor.
template <class Slots>
__global__ void __launch_bounds__(stored::threads)
    store_right(const int k, const int first_column, const int64_t first, const Out<typename Slots::Element> right, const Slots slots) {
  begin_kernel();
  const int column = static_cast<int>(blockIdx.x), at = first_column + column;
  for_each_product<Slots>([&](auto p) {
    constexpr int which = decltype(p)::value + 1;
    const int64_t start = first + ((which - 1) * static_cast<int64_t>(gridDim.x) + column) * k;
    RightRows<Slots> known = {};
    HEDDLE_UNROLL_FEW
    for (int along = static_cast<int>(threadIdx.x) * 8; along < k; along += stored::threads * 8) {
      float values[8];
      factor_chunk<which, true>(slots, known.template of<which>(), true, 0, at, along, k, values);
      store_chunk<8, true>(right, start + along, 8, values);
    }
  });
}

/// Enqueues the matmuls with some columns of right factors that are in memory.
template <class Slots, class Run>
int32_t launch_products_panel(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t k,
                              const StoredFactors<Slots>& factors, Run run_many) {
  using T = typename Slots::Element;
  if constexpr (Slots::PRODUCTS == 1 && !Slots::PARTS) {
    const auto left = tensor_from(factors.left, factors.first_left);
    return launch_matmul<T>(queue, error, name, m, factors.n, k, left, factors.right, factors);
  } else {
    return run_many(factors);
  }
}

/// Enqueues matmuls of one matrix and byte factors, where the rows of all factors are whole, those of the left one too. `run_many(factors)`
/// enqueues those of a StoredFactors.
template <class Slots, class Run>
int32_t launch_products_bytes(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                              const Slots& slots, Run run_many) {
  using T = typename Slots::Element;
  constexpr int64_t floats_of_chunk = 8 * sizeof(T) / sizeof(float), most_n = INT32_MAX - stored::step;
  if (n > most_n || k > INT32_MAX - stored::threads * 8) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld and k is %lld: too large for a launch", name, static_cast<long long>(n),
                static_cast<long long>(k));
  }
  // Panels of about equal size, of which the last may be smaller.
  const int64_t column_bytes = Slots::PRODUCTS * k * static_cast<int64_t>(sizeof(T));
  const int64_t most = longest(stored::panel_bytes / column_bytes, stored::step), panels = (n + most - 1) / most;
  const int64_t columns = ((n + panels - 1) / panels + stored::step - 1) / stored::step * stored::step;
  const int64_t right_rows = Slots::PRODUCTS * (columns < n ? columns : n), left_rows = computes_left<Slots> ? m : 0;
  const Count floats = (Count(right_rows) + left_rows) * (k / 8) * floats_of_chunk;
  if (floats.is_overflow()) return fail(error, HEDDLE_INVALID, "kernel %s: the size of the factors exceeds 64 bits", name);
  const Scratch scratch(queue, error, name, floats.value);
  if (scratch.status != HEDDLE_OK) return scratch.status;
  const int64_t first_right = left_rows * k;
  CopiedRows<T> left = {scratch.template in_as<T>(), 0};
  if constexpr (computes_left<Slots>) {
    const int32_t status = launch_store_left(queue, error, name, m, k, scratch, slots);
    if (status != HEDDLE_OK) return status;
  } else {
    left = slots.copy_of(Factor<0>(), 0);
  }
  const auto right = tensor_from(scratch.template in_as<T>(), first_right);
  for (int64_t first = 0; first < n; first += columns) {
    const int64_t own = n - first < columns ? n - first : columns;
    const LaunchConfig config{name, dim3(static_cast<unsigned int>(own)), dim3(stored::threads), 0, Sync::none, true};
    int32_t status = launch(queue, error, config, store_right<Slots>, static_cast<int>(k), static_cast<int>(first), first_right,
                            scratch.template out_as<T>(), slots);
    if (status != HEDDLE_OK) return status;
    const StoredFactors<Slots> factors{slots, left.tensor, right, left.first, own, static_cast<int>(k), static_cast<int>(first)};
    status = launch_products_panel(queue, error, name, m, k, factors, run_many);
    if (status != HEDDLE_OK) return status;
  }
  return HEDDLE_OK;
}

}  // namespace heddle

#endif
