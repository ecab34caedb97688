// Matmul with a compiled epilogue: the one function generated text calls, and the choice of how to run it.
//
//   acc[m, n] = sum over k of a[m, k] * b[n, k]; rows of a and b are k long: b is a weight as checkpoints store it. Sums are
//   float32, of int8 int32: exact; a k whose sums int32 might not hold is refused.
//
// An epilogue is a struct with `static constexpr int VEC = 8` and, const and __device__,
//
//   operator()(int64_t row, int column, int valid, const float (&acc)[8])       of int8: const int (&acc)[8], also in finish()
//
// which is given the first `valid` of eight neighbouring columns of a row, every one of them exactly once. One that reads tensors
// does better in two steps, so that its loads are under way during the product:
//
//   struct Loaded;                                                             what it loads for one chunk
//   bool whole_chunks()                                                        host: all its chunks can be moved whole
//   template <bool Whole> Loaded load(row, column, valid)
//   template <bool Whole> void finish(row, column, valid, acc, loaded)
//   void prefetch(int column)       may be left out: heddle::prefetch() of what it reads of a column and no launch writes
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
#include "matmul_cluster.cuh"
#include "matmul_mma.cuh"
#include "matmul_rows.cuh"
#include "matmul_simple.cuh"
#include "matmul_wgmma.cuh"

namespace heddle {

/// What the choice depends on.
struct MatmulDevice {
  int64_t multiprocessors;
  int64_t shared_bytes;  // a block can have
  bool clusters;
};

/// The CPU device chooses as a large GPU without clusters would, so that it runs the tiles that one runs.
inline MatmulDevice matmul_device() {
#if defined(HEDDLE_SIMT)
  return {132, simt::kMaxSharedBytes, false};
#else
  return {device_attribute(cudaDevAttrMultiProcessorCount), device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
          device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9};
#endif
}

/// Enqueues the matmul on tensor cores; rows of both operands are aligned to 16 bytes. The rules come from
/// timing all tiles and splits for the matmuls of a 768 wide layer, 8 to 1024 rows, on a GPU of 132 multiprocessors.
template <class T, class Epilogue>
int32_t launch_matmul_mma(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k,
                          In<T> a, In<T> b, Epilogue epilogue, bool constant_b) {
#if !defined(HEDDLE_SIMT)
  bool taken = false;
  const int32_t status = try_matmul_cluster(&taken, queue, error, name, m, n, k, a, b, epilogue, constant_b);
  if (taken) return status;
#endif
  // Deep pipelines hold all of a short k, so that nothing is waited for twice; shallow ones let more blocks share a
  // multiprocessor.
  using DeepNarrow = MmaTile<64, 32, 4, 1, 1, 8, 2>;
  using Narrow = MmaTile<64, 32, 4, 1, 1, 6, 2>;
  using Square = MmaTile<64, 64, 4, 1, 1, 6, 2>;
  using Large = MmaTile<128, 96, 8, 1, 1, 7, 1>;
  const MatmulDevice device = matmul_device();
  const int64_t steps = steps_of<T>(k);
  const auto tiles = [&](auto tile) {
    return (m + tile.rows - 1) / tile.rows * ((n + tile.columns - 1) / tile.columns);
  };
  const auto fits = [&](auto tile, int64_t split) {
    return decltype(tile)::shared_bytes(m, steps, static_cast<int>(split)) <= device.shared_bytes;
  };
  // Tails are rare: one tile serves them, so that a kernel file does not compile every tile twice.
  const bool whole = is_whole<T>(n, k, epilogue);
  const auto run = [&](auto tile, int64_t split) {
    const int parts = static_cast<int>(split);
    return whole ? launch_matmul_tile<decltype(tile), true>(queue, error, name, m, n, k, a, b, epilogue, constant_b, parts)
                 : launch_matmul_tile<Narrow, false>(queue, error, name, m, n, k, a, b, epilogue, constant_b, parts);
  };
  const int64_t squares = tiles(Square()), narrows = tiles(Narrow());

  if (device.clusters) {
    // A quarter of the device stays free for blocks of the next launch, which fetch its weights. A share of k below three steps
    // is not worth the exchange of its sums.
    constexpr int64_t fewest_steps = 3, most_blocks = 8, long_k = 24;
    const int64_t wanted = std::min(device.multiprocessors * 3 / 4 / squares, steps / fewest_steps);
    const int64_t split = std::min(wanted, most_blocks);
    if (split > 1) return run(Square(), split);
    if (steps >= long_k && 4 * squares <= 3 * device.multiprocessors) return run(Square(), 2);
    if (steps >= long_k && 2 * tiles(Large()) <= device.multiprocessors && fits(Large(), 2)) return run(Large(), 2);
  }
  // Where all rows fit one tile, weights are read once whatever the tile, and small ones keep more of them on the way.
  const bool few_rows = m <= DeepNarrow::rows || 3 * narrows <= 5 * device.multiprocessors;
  if (few_rows && fits(DeepNarrow(), 1)) return run(DeepNarrow(), 1);
  if (narrows <= 3 * device.multiprocessors) return run(Narrow(), 1);
  if (squares > 2 * device.multiprocessors && fits(Large(), 1)) return run(Large(), 1);
  return fits(Square(), 1) ? run(Square(), 1) : run(Narrow(), 1);
}

/// Enqueues epilogue(a x b transposed). a: m x k, b: n x k, row-major; m, n and k at least 1, or nothing happens. `constant_b`:
/// no launch writes b, so that it may be read while earlier launches run. Results do not depend on timing. Refuses a launch of
/// more blocks than a grid has, and of int8 one whose sums int32 might not hold.
template <class T, class Epilogue>
int32_t launch_matmul(const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n, int64_t k, In<T> a,
                      In<T> b, Epilogue epilogue, bool constant_b = false) {
  static_assert(Epilogue::VEC == 8, "an epilogue takes eight columns");
  if (m <= 0 || n <= 0 || k <= 0) return HEDDLE_OK;
  if constexpr (std::is_same_v<T, signed char>) {
    const int32_t terms = check_int8_terms(error, name, k);
    if (terms != HEDDLE_OK) return terms;
  }
  if constexpr (tensor_core_type<T>) {
    constexpr int word = 16;
    if (k * static_cast<int64_t>(sizeof(T)) % word == 0 && a.aligned(0, word) && b.aligned(0, word)) {
      if constexpr (!std::is_same_v<T, signed char>) {
        if (m <= RowsTile::most_rows) return launch_matmul_rows(queue, error, name, m, n, k, a, b, epilogue, constant_b);
      }
#if !defined(HEDDLE_SIMT)
      if (wgmma_applies(m, n, k, a, b, epilogue)) {
        return launch_matmul_wgmma(queue, error, name, m, n, k, a, b, epilogue, constant_b);
      }
#endif
      return launch_matmul_mma(queue, error, name, m, n, k, a, b, epilogue, constant_b);
    }
  }
  return launch_matmul_simple(queue, error, name, m, n, k, a, b, epilogue);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
