// The factors of matmuls as the slots of generated source provide them (documented in matmul_products.cuh).
#ifndef HEDDLE_MATMUL_FACTOR_CUH
#define HEDDLE_MATMUL_FACTOR_CUH

#include <utility>

#include "matmul_epilogue.cuh"
#include "team.cuh"
#include "vector.cuh"

namespace heddle {

/// A factor by its number: 0 is the left one, whose rows are those of the output; the others are right ones, whose rows are its columns.
template <int Which>
struct Factor {
  static constexpr int which = Which;
};

/// Rows of a factor that may be copied unchanged: contiguous from element `first` on.
template <class T>
struct CopiedRows {
  In<T> tensor;
  int64_t first;
};
struct NotCopied {};

/// Register destination of a row program's chunk that is multiplied directly instead of stored.
template <int Vec, class S = float>
struct KeptChunk {
  S (&values)[Vec];
};
template <int Vec, bool Whole = false, class S>
__device__ __forceinline__ void store_chunk(const KeptChunk<Vec, S>& to, int64_t, int, const S (&values)[Vec]) {
  HEDDLE_UNROLL
  for (int i = 0; i < Vec; ++i) to.values[i] = values[i];
}

/// Calls `run` for each matmul, with its number as a type.
template <class Slots, class Run, int... P>
__device__ __forceinline__ void for_each_product(Run run, std::integer_sequence<int, P...>) {
  (run(std::integral_constant<int, P>()), ...);
}
template <class Slots, class Run>
__device__ __forceinline__ void for_each_product(Run run) {
  for_each_product<Slots>(run, std::make_integer_sequence<int, Slots::PRODUCTS>());
}

/// Precomputed values of one row of each of several factors, the first of which is Factor<First>.
template <class Slots, int First, int Count>
struct FactorRows {
  decltype(std::declval<const Slots&>().row_of(Factor<First>(), WarpTeam<1, 32>(), int64_t(), int())) row;
  FactorRows<Slots, First + 1, Count - 1> others;

  template <class Team>
  __device__ __forceinline__ void find(const Slots& slots, Team team, int64_t matrix, int at) {
    row = slots.row_of(Factor<First>(), team, matrix, at);
    others.find(slots, team, matrix, at);
  }
  template <int Which>
  __device__ __forceinline__ const auto& of() const {
    if constexpr (Which == First) {
      return row;
    } else {
      return others.template of<Which>();
    }
  }
};
template <class Slots, int First>
struct FactorRows<Slots, First, 0> {
  template <class Team>
  __device__ __forceinline__ void find(const Slots&, Team, int64_t, int) {}
};

/// Precomputed values of one row of the left factor, and of one row of every right factor.
template <class Slots>
using LeftRow = FactorRows<Slots, 0, 1>;
template <class Slots>
using RightRows = FactorRows<Slots, 1, Slots::PRODUCTS>;

/// Loads or computes eight elements of a factor's row from `k` on. Elements beyond `length` are zero, and all are where the row does not
/// exist. The values are those that a stored factor would have: elements are rounded to 16 bits where tensor cores take 16 bits, in every
/// body. `Whole`: the slots guarantee whole chunks.
template <int Which, bool Whole = false, class Slots, class Row>
__device__ __forceinline__ void factor_chunk(const Slots& slots, const Row& row, bool exists, int64_t matrix, int at, int k,
                                             int length, typename Slots::Sum (&values)[8]) {
  const int valid = !exists || k >= length ? 0 : Whole || length - k >= 8 ? 8 : length - k;
  if (valid > 0) slots.template chunk_of<Whole>(Factor<Which>(), row, matrix, at, k, valid, values);
  HEDDLE_UNROLL
  for (int i = 0; i < 8; ++i) {
    if constexpr (sizeof(typename Slots::Element) == 2) {
      using Store = Storage<typename Slots::Element>;
      values[i] = i < valid ? Store::load(Store::store(values[i])) : 0;
    } else if (i >= valid) {
      values[i] = 0;
    }
  }
}

/// Stores a reduction over a group of 32 columns, of which four neighbouring threads hold eight each. `column` is the thread's first, and
/// `valid` of its columns exist. Each thread reduces its own in ascending order; a butterfly then combines the results.
template <class Monoid, class T>
__device__ __forceinline__ void keep_part(const Out<T>& to, int64_t offset, int column, int valid,
                                          const typename Monoid::Element (&values)[8]) {
  constexpr int threads = 4, group = 8 * threads;
  typename Monoid::Value part = Monoid::identity();
  HEDDLE_UNROLL
  for (int i = 0; i < 8; ++i) {
    if (i < valid) part = Monoid::combine(part, Monoid::lift(values[i], column % group + i));
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  part = combine_lanes<Monoid, threads>(part, 0xfu << (lane / threads * threads));
  // If a group has any column, it has its first.
  if (lane % threads == 0 && valid > 0) write(to, offset, static_cast<Scalar<T>>(Monoid::result(part)));
}

/// Stores the partial reductions over columns, if the kernel has any.
template <class Slots>
__device__ __forceinline__ void keep_products(const Slots& slots, int64_t row, int column, int valid,
                                              const typename Slots::Sum (&sums)[Slots::PRODUCTS][8]) {
  if constexpr (Slots::PARTS) {
    if constexpr (Slots::PRODUCTS == 1) {
      slots.keep_parts(row, column, valid, sums[0]);
    } else {
      slots.keep_parts(row, column, valid, sums);
    }
  }
}

/// Passes sums to the epilogue: those of one matmul directly, those of several as an array.
template <bool Whole, class Slots, class Loaded>
__device__ __forceinline__ void finish_products(const Slots& slots, int64_t row, int column, int valid,
                                                const typename Slots::Sum (&sums)[Slots::PRODUCTS][8], const Loaded& loaded) {
  if constexpr (Slots::PRODUCTS == 1) {
    slots.template finish<Whole>(row, column, valid, sums[0], loaded);
  } else {
    slots.template finish<Whole>(row, column, valid, sums, loaded);
  }
}

}  // namespace heddle

#endif
