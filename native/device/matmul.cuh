// Matmul with a compiled epilogue: the functions that generated source calls, and the choice among implementations.
//
//   acc[m, n] = sum over k of a[m, k] * b[n, k]
//
// Rows of a and b are k long: b is a weight as checkpoints store it. Sums are float32; those of int8 are int32 and exact. A k whose sums
// might overflow int32 is refused.
//
// An epilogue is a struct with `static constexpr int VEC = 8` and, const and __device__,
//
//   operator()(int64_t row, int column, int valid, const float (&acc)[8])       of int8: const int (&acc)[8], also in finish()
//
// It is called with the first `valid` of eight neighbouring columns of a row, exactly once per column. An epilogue that reads tensors is
// faster in two steps, so that its loads overlap the matmul:
//
//   struct Loaded;                                                             operands loaded for one chunk
//   bool whole_chunks()                                                        host: true if all its chunks are loaded and stored whole
//   template <bool Whole> Loaded load(row, column, valid)
//   template <bool Whole> void finish(row, column, valid, acc, loaded)
//   void prefetch(int column)       optional: heddle::prefetch() of the operands of a column that no launch writes
#ifndef HEDDLE_MATMUL_CUH
#define HEDDLE_MATMUL_CUH

#include <algorithm>
#include <type_traits>
#include <utility>

#include "mma.cuh"

#if defined(HEDDLE_SIMT)
// As in simt.hpp: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif
#include "matmul_aligned.cuh"
#include "matmul_choice.cuh"
#include "matmul_cluster.cuh"
#include "matmul_few.cuh"
#include "matmul_fma_choice.cuh"
#include "matmul_mma_choice.cuh"
#include "matmul_price.cuh"
#include "matmul_rows.cuh"
#include "matmul_simple.cuh"
#include "matmul_wgmma.cuh"

namespace heddle {

/// A matmul to run: epilogue(a x b transposed). a: m x k, b: n x k, row-major. `constant_b`: no launch writes b, so that b may be read
/// while earlier launches run.
template <class T, class Epilogue>
struct Matmul {
  const heddle_launch* queue;
  heddle_error* error;
  const char* name;
  int64_t m, n, k;
  In<T> a, b;
  Epilogue epilogue;
  bool constant_b;

  static constexpr bool is_float = std::is_same_v<T, float>;

  bool aligned() const {
    return tensor_core_type<T> && has_aligned_rows(a, k) && has_aligned_rows(b, k);
  }

  /// True if operands whose rows are not aligned are copied first. The simple loop is faster for a short k and one round of tiles. In float32, rows are
  /// also copied by elements, which costs a sixth of the multiply-adds' time: more than a copy only where each element is multiplied often.
  bool copies() const {
    if (is_float) {
      constexpr int64_t uses = 800, elements = int64_t{1} << 20;
      return !(has_aligned_rows(a, k) && has_aligned_rows(b, k)) && m * n >= uses * (m + n) && (m + n) * k >= elements;
    }
    constexpr int64_t short_k = 64, few_tiles = 128;
    const bool is_small = k <= short_k && m * n <= few_tiles * SimpleTile::edge * SimpleTile::edge;
    return tensor_core_type<T> && !aligned() && !is_small;
  }

  /// Enqueues `run(matmul)` for this matmul, or for one of copies whose rows are aligned.
  template <class Run>
  int32_t with_aligned(Run run) const {
    if constexpr (tensor_core_type<T> || is_float) {
      if (copies()) {
        const bool constant = constant_b && has_aligned_rows(b, k);
        const auto run_copies = [&](const In<T>(&factors)[2], int64_t own_k) {
          return run(Matmul{queue, error, name, m, n, own_k, factors[0], factors[1], epilogue, constant});
        };
        return with_aligned_rows(queue, error, name, {m, n}, k, {a, b}, run_copies);
      }
    }
    return run(*this);
  }

  /// The choice of the rules, improved by prices where tiles have them.
  MatmulChoice choose() const {
#if defined(HEDDLE_HOPPER)
    if constexpr (sizeof(T) == 2) {
      if (aligned()) return prices::improve<T>(choose_by_rules(), m, n, k, epilogue);
    }
#endif
    return choose_by_rules();
  }

  /// The choice of the rules.
  MatmulChoice choose_by_rules() const {
    if constexpr (tensor_core_type<T>) {
      if (!aligned()) return {MatmulTile::simple};
      if (!std::is_same_v<T, signed char> && m <= few::most_rows) {
        // Tensor cores pay off from the second row on; a small matrix has too few blocks for them.
        constexpr int64_t small = int64_t{1} << 20;
        if (m == 1 || (m <= RowsTile::most_rows && n * k <= small)) return {MatmulTile::rows};
        if (n * k > small) return {MatmulTile::few};
      }
#if defined(HEDDLE_HOPPER)
      if (wgmma::can(m, n, k)) {
        const MatmulChoice large = wgmma::choose<T>(m, n, k, epilogue);
        if (large.tile != MatmulTile::none) return large;
      }
      if (clusters::can(m, n, k, epilogue)) {
        const int64_t multiprocessors = matmul_device().multiprocessors;
        const bool streams = streams_weights<T>(m, n, k);
        const MatmulChoice divided = clusters::choose(m, n, steps_of<T>(k), multiprocessors, streams);
        const bool by_warps = sizeof(T) == 2 && streams && (m <= most_streamed_rows || !clusters::fill(divided, n, multiprocessors));
        if (divided.tile != MatmulTile::none && !by_warps) return divided;
      }
#endif
      return choose_mma<T>(m, n, k, is_whole<T>(n, k, epilogue));
    }
    if constexpr (is_float) return fma::choose<1, false>(1, m, n, k);
    return {MatmulTile::simple};
  }

  /// True if this choice can compute the matmul on this device.
  bool can(const MatmulChoice& choice) const {
    const MatmulTile tile = choice.tile;
    const int split = choice.split;
    if (is_float) return fma::can(choice, k);
    if (tile == MatmulTile::simple) return split == 1;
    if (fma::is_tile(tile) || !aligned() || split < 1) return false;
    if (tile == MatmulTile::rows) return split == 1 && !std::is_same_v<T, signed char> && m <= RowsTile::most_rows;
    if (tile == MatmulTile::few) return split == 1 && m <= few::most_rows;
    if (tile <= MatmulTile::mma_128x96) {
      const MatmulDevice device = matmul_device();
      const int64_t steps = steps_of<T>(k);
      const auto fits = [&](auto shape) { return decltype(shape)::shared_bytes(m, steps, split) <= device.shared_bytes; };
      const bool roomy = tile == MatmulTile::mma_64x32_deep ? fits(DeepNarrowTile())
                         : tile == MatmulTile::mma_64x32    ? fits(NarrowTile())
                         : tile == MatmulTile::mma_64x64    ? fits(SquareTile())
                                                            : fits(LargeTile());
      const bool divides = split == 1 || (device.clusters && split <= std::min(steps, most_parts));
      return roomy && divides && (tile == MatmulTile::mma_64x32 || is_whole<T>(n, k, epilogue));
    }
#if defined(HEDDLE_HOPPER)
    if (tile <= MatmulTile::cluster_64x96) return clusters::exists(choice, steps_of<T>(k)) && clusters::can(m, n, k, epilogue);
    if (tall::is_tile(tile)) return tall::can<T>(choice, m, n, k, epilogue);
    return tile != MatmulTile::none && wgmma::exists<T>(choice, n, k, epilogue) && wgmma::can(m, n, k);
#else
    return false;
#endif
  }

  /// Enqueues the matmul with a choice that can() compute it.
  int32_t run(const MatmulChoice& choice) const {
    if constexpr (tensor_core_type<T>) {
      const auto run_mma = [&](auto shape) {
        using Tile = decltype(shape);
        const bool whole = is_whole<T>(n, k, epilogue);
        return whole ? launch_matmul_tile<Tile, true>(queue, error, name, m, n, k, a, b, epilogue, constant_b, choice.split)
                     : launch_matmul_tile<NarrowTile, false>(queue, error, name, m, n, k, a, b, epilogue, constant_b, choice.split);
      };
      switch (choice.tile) {
        case MatmulTile::none:
        case MatmulTile::simple:
        case MatmulTile::fma_16x64:
        case MatmulTile::fma_64x64:
        case MatmulTile::fma_64x128:
        case MatmulTile::fma_128x128:
          break;
        case MatmulTile::rows:
          if constexpr (!std::is_same_v<T, signed char>) {
            return launch_matmul_rows(queue, error, name, m, n, k, a, b, epilogue, constant_b);
          }
          break;
        case MatmulTile::few:
          return launch_matmul_few(queue, error, name, m, n, k, a, b, epilogue, constant_b);
        case MatmulTile::mma_64x32_deep:
          return run_mma(DeepNarrowTile());
        case MatmulTile::mma_64x32:
          return run_mma(NarrowTile());
        case MatmulTile::mma_64x64:
          return run_mma(SquareTile());
        case MatmulTile::mma_128x96:
          return run_mma(LargeTile());
        case MatmulTile::cluster_64x64:
        case MatmulTile::cluster_64x96:
#if defined(HEDDLE_HOPPER)
          return launch_matmul_cluster(choice, queue, error, name, m, n, k, a, b, epilogue, constant_b);
#endif
        case MatmulTile::tall_128x128:
        case MatmulTile::tall_256x128:
#if defined(HEDDLE_HOPPER)
          if constexpr (sizeof(T) == 2) return launch_matmul_tall(choice, queue, error, name, m, n, k, a, b, epilogue, constant_b);
#endif
          break;
        default:
#if defined(HEDDLE_HOPPER)
          return launch_matmul_wgmma(choice, queue, error, name, m, n, k, a, b, epilogue, constant_b);
#endif
          break;
      }
    }
    if constexpr (is_float) {
      return launch_fma(choice, queue, error, name, 1, m, n, k, PlainSlots<T, Epilogue>{a, b, epilogue}, constant_b);
    } else {
      return launch_matmul_simple(queue, error, name, m, n, k, a, b, epilogue);
    }
  }

  /// Refuses int8 sums that might overflow int32.
  int32_t check() const {
    static_assert(Epilogue::VEC == 8, "an epilogue takes eight columns");
    if constexpr (std::is_same_v<T, signed char>) return check_int8_terms(error, name, k);
    return HEDDLE_OK;
  }

  bool empty() const { return m <= 0 || n <= 0 || k <= 0; }
};

/// Enqueues a matmul with the `measured` choice where it can compute the matmul, else with that of the rules. Does nothing unless m, n and
/// k are at least 1. Results do not depend on timing. Refuses a launch of more blocks than a grid has, and an int8 one whose sums might
/// overflow int32.
template <class T, class Epilogue>
int32_t launch_matmul(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k, In<T> a,
                      In<T> b, Epilogue epilogue, bool constant_b = false, MatmulChoice measured = {}) {
  const Matmul<T, Epilogue> matmul{queue, error, name, m, n, k, a, b, epilogue, constant_b};
  if (matmul.empty()) return HEDDLE_OK;
  const int32_t status = matmul.check();
  if (status != HEDDLE_OK) return status;
  return matmul.with_aligned([&](const auto& aligned) {
    const bool known = measured.tile != MatmulTile::none && aligned.can(measured);
    return aligned.run(known ? measured : aligned.choose());
  });
}

/// Enqueues a matmul with exactly this choice; refuses a matmul that it cannot compute.
template <class T, class Epilogue>
int32_t launch_matmul_as(const MatmulChoice& choice, const heddle_launch* queue, heddle_error* error, const char* name, int64_t m,
                         int64_t n, int64_t k, In<T> a, In<T> b, Epilogue epilogue, bool constant_b = false) {
  const Matmul<T, Epilogue> matmul{queue, error, name, m, n, k, a, b, epilogue, constant_b};
  if (matmul.empty()) return HEDDLE_OK;
  const int32_t status = matmul.check();
  if (status != HEDDLE_OK) return status;
  const auto run = [&](const auto& aligned) {
    if (aligned.can(choice)) return aligned.run(choice);
    return fail(error, HEDDLE_INVALID, "kernel %s: the tile %s with k in %d parts cannot compute %lld x %lld x %lld here", name,
                name_of(choice.tile), choice.split, static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k));
  };
  return choice.tile == MatmulTile::simple ? run(matmul) : matmul.with_aligned(run);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
