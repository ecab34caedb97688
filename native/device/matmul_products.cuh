// Matmuls of a common left factor and one or several right factors, with factors that slots read or compute and a compiled epilogue:
//
//   acc[p][i, r, c] = sum over k of a_i[r, k] * b(p)_i[c, k]
//
// for matrices i of a batch. Slots are an epilogue as in matmul.cuh, with two differences: its row counts through the batch, i * m + r, and
// it takes `const Sum (&acc)[PRODUCTS][8]` where there are several matmuls. They also have, for each factor f, 0 the left one,
//
//   using Sum; using Element; static constexpr int PRODUCTS
//   struct Row<f>                                                      precomputed values of a row, such as a reduction over it
//   Row<f> row_of(Factor<f>, team, matrix, at)                         computed by the lanes of a team together
//   void chunk_of<Whole>(Factor<f>, row, matrix, at, k, valid, Sum (&values)[8])     elements [k, k + valid) of row `at`; others undefined
//   bool whole_rows(Factor<f>, k)      host: true if rows of k elements are read in whole, aligned chunks (Whole)
//   CopiedRows<Element> or NotCopied copy_of(Factor<f>, matrix)        rows that may be copied unchanged
//   bool copies(Factor<f>, k)                                          host: true if they may be copied in aligned words
//   CopiedRows<T> or NotCopied stored_of(Factor<f>, matrix)            rows as stored, of any type
//   with_rows(const In<Element> (&rows)[1 + PRODUCTS], length)         optional, host: the slots with other memory of all factors
//   static constexpr bool PARTS; keep_parts(row, column, valid, acc)   stores partial reductions of each 32 columns, if any
#ifndef HEDDLE_MATMUL_PRODUCTS_CUH
#define HEDDLE_MATMUL_PRODUCTS_CUH

#include "mma.cuh"

#if defined(HEDDLE_SIMT)
// As in simt.hpp: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif
#include "matmul.cuh"
#include "matmul_products_few.cuh"
#include "matmul_products_left.cuh"
#include "matmul_products_mma.cuh"
#include "matmul_products_one.cuh"
#include "matmul_products_rows.cuh"
#include "matmul_products_simple.cuh"
#include "matmul_products_stored.cuh"
#include "matmul_products_wgmma.cuh"
#include "matmul_stream.cuh"

namespace heddle {

/// Enqueues matmuls of more than eight rows, or of several matrices.
template <class Slots>
int32_t launch_products_many(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m, int64_t n,
                             int64_t k, const Slots& slots, [[maybe_unused]] bool constant) {
  if constexpr (multiplies_by_mma<Slots>) {
    using Factors = std::make_integer_sequence<int, Slots::PRODUCTS + 1>;
    if (copies_all(slots, k, Factors())) {
#if defined(HEDDLE_HOPPER)
      if constexpr (multiplies_by_wgmma<Slots>) {
        if (matrices == 1 && streams_products(m, n, k, slots)) return launch_products_stream(queue, error, name, m, n, k, slots, constant);
        const MatmulTile tile = matrices == 1 ? choose_products_wgmma(m, n, k, slots) : MatmulTile::none;
        if (tile != MatmulTile::none) return launch_products_wgmma(tile, queue, error, name, m, n, k, slots, constant);
      }
#endif
      return launch_products_mma(queue, error, name, matrices, m, n, k, slots);
    }
    constexpr bool by_words = sizeof(typename Slots::Element) == 2 && copies_any<Slots>(Factors());
    if constexpr (by_words) return launch_products_unaligned(queue, error, name, matrices, m, n, k, slots);
  }
  if constexpr (fma::multiplies<Slots>) {
    return launch_fma(queue, error, name, matrices, m, n, k, slots, constant);
  } else {
    return launch_products_simple(queue, error, name, matrices, m, n, k, slots);
  }
}

/// Enqueues matmuls of a left factor that is computed and has whole rows: a kernel of its own stores it first.
template <class Slots>
int32_t launch_products_stored(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                               const Slots& slots, bool constant) {
  using T = typename Slots::Element;
  constexpr int64_t floats_of_chunk = 8 * sizeof(T) / sizeof(float);
  const Count floats = Count(m) * (k / 8) * floats_of_chunk;
  if (floats.is_overflow()) return fail(error, HEDDLE_INVALID, "kernel %s: the size of the left factor exceeds 64 bits", name);
  const Scratch scratch(queue, error, name, floats.value);
  if (scratch.status != HEDDLE_OK) return scratch.status;
  const int32_t status = launch_store_left(queue, error, name, m, k, scratch, slots);
  if (status != HEDDLE_OK) return status;
  const auto left = scratch.template in_as<T>();
  if constexpr (Slots::PRODUCTS == 1 && !Slots::PARTS && has_copied_right<Slots>) {
    if (slots.copies(Factor<1>(), k)) {
      const auto right = slots.copy_of(Factor<1>(), 0);
      if (right.first == 0) return launch_matmul<T>(queue, error, name, m, n, k, left, right.tensor, slots, constant);
    }
  }
  const StoredLeft<Slots> stored{slots, left, static_cast<int>(k)};
  if constexpr (std::is_same_v<typename Slots::Sum, float> && !Slots::PARTS) {
    if (m <= few::most_rows && has_whole_rows(stored, k)) return launch_products_few(queue, error, name, m, n, k, constant, stored);
  }
  return launch_products_many(queue, error, name, 1, m, n, k, stored, constant);
}

/// True if all factors are in memory as they are multiplied, so that copies may take their place.
template <class Slots, class = void>
constexpr bool takes_rows = false;
template <class Slots>
constexpr bool takes_rows<Slots, std::void_t<decltype(&Slots::with_rows)>> = multiplies_by_mma<Slots>;

/// Enqueues `run(slots, k)` with aligned copies of the factors of one matrix.
template <class Slots, class Run, int... P>
int32_t with_aligned_factors(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                             const Slots& slots, Run run, std::integer_sequence<int, P...>) {
  using T = typename Slots::Element;
  const auto rows_of = [&](auto which) {
    const CopiedRows<T> rows = slots.copy_of(which, 0);
    return tensor_from(rows.tensor, rows.first);
  };
  const auto run_copies = [&](const In<T>(&factors)[1 + sizeof...(P)], int64_t own_k) { return run(slots.with_rows(factors, own_k), own_k); };
  const auto columns = [&](int) { return n; };
  return with_aligned_rows(queue, error, name, {m, columns(P)...}, k, {rows_of(Factor<0>()), rows_of(Factor<1 + P>())...}, run_copies);
}

/// Enqueues matmuls of positive sizes whose sums fit.
template <class Slots>
int32_t launch_any_products(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m, int64_t n,
                            int64_t k, const Slots& slots, bool constant) {
  if constexpr (multiplies_by_mma<Slots> && std::is_same_v<typename Slots::Sum, float> && !Slots::PARTS) {
    if constexpr (takes_one_row<Slots>()) {
      if (matrices == 1 && m == 1 && k % OneTile<Slots>::vec == 0 && has_whole_rows(slots, k)) {
        return launch_products_one(queue, error, name, n, k, constant, slots);
      }
    }
    // Without storing the left factor, every block would need the precomputed values of all rows before it multiplies.
    if constexpr (computes_left<Slots> && !std::is_empty_v<typename Slots::Row0>) {
      if (matrices == 1 && m > 1 && m <= few::most_rows && has_whole_rows(slots, k)) {
        return launch_products_stored(queue, error, name, m, n, k, slots, constant);
      }
    }
    if (matrices == 1 && m <= few::most_rows && has_whole_rows(slots, k)) {
      return launch_products_few(queue, error, name, m, n, k, constant, slots);
    }
    if (matrices == 1 && m <= RowsTile::most_rows) return launch_products_rows(queue, error, name, m, n, k, slots);
  }
  if constexpr (multiplies_by_mma<Slots> && has_byte_factors<Slots>()) {
    if (matrices == 1 && has_whole_rows(slots, k) && slots.copies(Factor<0>(), k)) {
      return launch_products_bytes(queue, error, name, m, n, k, slots, [&](const auto& factors) {
        return launch_products_many(queue, error, name, 1, m, factors.n, k, factors, false);
      });
    }
  }
  if constexpr (multiplies_by_mma<Slots> && computes_left<Slots>) {
    if (matrices == 1 && m > few::most_rows && slots.whole_rows(Factor<0>(), k)) {
      return launch_products_stored(queue, error, name, m, n, k, slots, constant);
    }
  }
  return launch_products_many(queue, error, name, matrices, m, n, k, slots, constant);
}

/// Enqueues epilogue(a_i x b_i transposed, ...) for `matrices` of them. `constant`: no launch writes a right factor meanwhile, so that
/// right factors may be read while earlier launches run. Does nothing if one of the sizes is zero. Refuses int8 sums that might overflow
/// int32, and a launch of more blocks than a grid has.
template <class Slots>
int32_t launch_matmul_products(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m,
                               int64_t n, int64_t k, Slots slots, bool constant) {
  static_assert(Slots::VEC == 8, "an epilogue takes eight columns");
  if (matrices <= 0 || m <= 0 || n <= 0 || k <= 0) return HEDDLE_OK;
  if constexpr (std::is_same_v<typename Slots::Sum, int>) {
    const int32_t terms = check_int8_terms(error, name, k);
    if (terms != HEDDLE_OK) return terms;
  }
  if constexpr (takes_rows<Slots>) {
    // A copy takes as long as a few steps of k.
    constexpr int64_t short_k = 64;
    const bool copies = matrices == 1 && k > short_k && !copies_all(slots, k, std::make_integer_sequence<int, Slots::PRODUCTS + 1>());
    const auto run = [&](const Slots& own, int64_t own_k) { return launch_any_products(queue, error, name, 1, m, n, own_k, own, false); };
    if (copies) return with_aligned_factors(queue, error, name, m, n, k, slots, run, std::make_integer_sequence<int, Slots::PRODUCTS>());
  }
  return launch_any_products(queue, error, name, matrices, m, n, k, slots, constant);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
