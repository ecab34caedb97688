// Batched int8 matmuls, in any of the orders of int8_order.cuh, with a compiled epilogue:
//
//   acc[i, r, c] = sum over k of a_i[r, k] * b_i[c, k]
//
// The sums are int32 and exact. Epilogues are those of matmul.cuh, with sums of int; their row counts through the batch, i * m + r.
#ifndef HEDDLE_MATMUL_INT8_CUH
#define HEDDLE_MATMUL_INT8_CUH

#include "mma.cuh"

#if defined(HEDDLE_SIMT)
// As in simt.hpp: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif
#include "matmul_int8_kernel.cuh"
#include "matmul_int8_simple.cuh"
#include "matmul_int8_wgmma.cuh"

namespace heddle {

/// Number of multiprocessors. The CPU device chooses tiles as a large GPU would.
inline int64_t int8_multiprocessors() {
#if !defined(HEDDLE_HOPPER)
  return 132;
#else
  return device_attribute(cudaDevAttrMultiProcessorCount);
#endif
}

/// Refuses more blocks than a grid has. `blocks`: those of all batches.
inline int32_t check_int8_grid(heddle_error* error, const char* name, Count blocks) {
  if (blocks.value <= INT32_MAX) return HEDDLE_OK;
  return fail(error, HEDDLE_INVALID, "kernel %s: %lld blocks exceed the 2147483647 of a launch", name,
              static_cast<long long>(blocks.value));
}

/// Enqueues `kernel`, which computes one Tile per block.
template <class Tile, class Kernel, class Epilogue>
int32_t launch_int8_tiles(const heddle_launch* queue, heddle_error* error, const char* name, int64_t batches,
                          const Int8Shape& shape, const Int8Operands& operands, const Epilogue& epilogue, bool constant_b,
                          Kernel kernel) {
  const int64_t tiles_m = (shape.m + Tile::rows - 1) / Tile::rows, tiles_n = (shape.n + Tile::columns - 1) / Tile::columns;
  const Count blocks = Count(tiles_m) * Count(tiles_n) * Count(batches);
  const int32_t status = check_int8_grid(error, name, blocks);
  if (status != HEDDLE_OK) return status;
  LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks.value)), dim3(Tile::threads), Tile::shared_bytes(shape.k),
                      Sync::block};
  config.starts_early = true;
  return launch(queue, error, config, kernel, shape, static_cast<uint32_t>(tiles_m), static_cast<uint32_t>(tiles_n), constant_b,
                operands, epilogue);
}

/// True if no step of k and no chunk of columns is cut off.
template <class Epilogue>
bool is_int8_whole(int64_t n, int64_t k, const Epilogue& epilogue) {
  return k % int8_step == 0 && n % 8 == 0 && EpilogueCall<Epilogue>::whole_chunks(epilogue);
}

/// Enqueues the matmul with one tile. Both operands consist of aligned 16-byte words. `Whole`: is_int8_whole().
template <class OrderA, class OrderB, class Tile, bool Whole, class Epilogue>
int32_t launch_matmul_int8_tile(const heddle_launch* queue, heddle_error* error, const char* name, int64_t batches,
                                const Int8Shape& shape, const Int8Operands& operands, Epilogue epilogue, bool constant_b) {
  return launch_int8_tiles<Tile>(queue, error, name, batches, shape, operands, epilogue, constant_b,
                                 matmul_int8<OrderA, OrderB, Tile, Whole, Epilogue>);
}

#if defined(HEDDLE_HOPPER)
/// Enqueues the matmul with wgmma on Hopper, for shapes that are is_int8_whole().
template <class OrderA, class OrderB, class Tile, class Epilogue>
int32_t launch_matmul_int8_wgmma(const heddle_launch* queue, heddle_error* error, const char* name, int64_t batches,
                                 const Int8Shape& shape, const Int8Operands& operands, Epilogue epilogue, bool constant_b) {
  return launch_int8_tiles<Tile>(queue, error, name, batches, shape, operands, epilogue, constant_b,
                                 matmul_int8_wgmma<OrderA, OrderB, Tile, Epilogue>);
}
#endif

/// Enqueues the matmul for operands of any alignment.
template <class OrderA, class OrderB, class Epilogue>
int32_t launch_matmul_int8_simple(const heddle_launch* queue, heddle_error* error, const char* name, int64_t batches,
                                  const Int8Shape& shape, const Int8Operands& operands, Epilogue epilogue) {
  const Count chunks = Count(batches) * Count(shape.m) * Count((shape.n + 7) / 8);
  const Count blocks = (chunks + Count(int8_simple_threads - 1)) / Count(int8_simple_threads);
  const int32_t status = check_int8_grid(error, name, blocks);
  if (status != HEDDLE_OK) return status;
  LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks.value)), dim3(int8_simple_threads), 0, Sync::none};
  config.starts_early = true;
  return launch(queue, error, config, matmul_int8_simple<OrderA, OrderB, Epilogue>, shape, batches * shape.m, operands, epilogue);
}

/// Enqueues epilogue(a_i x b_i transposed) for `batches` pairs of matrices. a_i: m x k, `a_batch` elements after the previous one; b_i: n x
/// k, likewise; pitches as the orders define them. Does nothing if one of the sizes is zero. The padding of the matrices to the sizes of
/// their orders may hold anything. `constant_b`: no launch writes b, so that b may be read while earlier launches run. Tiles are chosen
/// from timings of a 768 wide layer on a GPU of 132 multiprocessors. Refuses k beyond 133,144, whose sums might overflow int32, n beyond
/// int32 and more blocks than a grid has.
template <class OrderA, class OrderB, class Epilogue>
int32_t launch_matmul_int8(const heddle_launch* queue, heddle_error* error, const char* name, int64_t batches, int64_t m,
                           int64_t n, int64_t k, In<signed char> a, int64_t a_batch, int64_t a_pitch, In<signed char> b,
                           int64_t b_batch, int64_t b_pitch, Epilogue epilogue, bool constant_b = false) {
  static_assert(Epilogue::VEC == 8, "an epilogue takes eight columns");
  if (batches <= 0 || m <= 0 || n <= 0 || k <= 0) return HEDDLE_OK;
  const int32_t terms = check_int8_terms(error, name, k);
  if (terms != HEDDLE_OK) return terms;
  if (n > INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "kernel %s: n is %lld, expected at most 2147483647", name, static_cast<long long>(n));
  }
  const Int8Shape shape = {m, n, static_cast<int>(k)};
  const Int8Operands operands = {a, b, a_batch, a_pitch, b_batch, b_pitch};
  constexpr int word = 16;
  const bool words = OrderA::in_words(a_pitch, k) && OrderB::in_words(b_pitch, k) && a.aligned(0, word) && b.aligned(0, word) &&
                     (batches == 1 || (a_batch % word == 0 && b_batch % word == 0));
  if (!words) return launch_matmul_int8_simple<OrderA, OrderB>(queue, error, name, batches, shape, operands, epilogue);

  const bool whole = is_int8_whole(n, k, epilogue);
  const auto tiles = [&](auto tile) {
    return (m + tile.rows - 1) / tile.rows * ((n + tile.columns - 1) / tile.columns) * batches;
  };
  const bool short_k = k <= 128;
  const int64_t multiprocessors = int8_multiprocessors();
#if defined(HEDDLE_HOPPER)
  if (whole && !short_k && device_attribute(cudaDevAttrComputeCapabilityMajor) == 9) {
    // Short reads of rows, or the conversion of words to rows, cost a tile so much that a larger tile is faster.
    constexpr bool turned = OrderB::mixes_rows;
    constexpr bool costly = turned || std::is_same_v<OrderA, RowOrder> || std::is_same_v<OrderB, RowOrder>;
    using Tile = std::conditional_t<costly, Int8WgmmaTile<256, 2, 8, 1, turned>, Int8WgmmaTile<128, 1, 6, 2, turned>>;
    // Smaller tiles are faster where so few tiles leave a third of the GPU idle.
    if (3 * tiles(Tile()) >= 2 * multiprocessors) {
      return launch_matmul_int8_wgmma<OrderA, OrderB, Tile>(queue, error, name, batches, shape, operands, epilogue, constant_b);
    }
  }
#endif
  using Small = Int8Tile<64, 64, 2, 2, 3, 4>;
  using Large = Int8Tile<128, 128, 2, 2, 4, 2>;
  const auto run = [&](auto tile, auto all_whole) {
    return launch_matmul_int8_tile<OrderA, OrderB, decltype(tile), decltype(all_whole)::value>(
        queue, error, name, batches, shape, operands, epilogue, constant_b);
  };
  // Tails are rare: one tile serves them, so that a kernel file does not compile every tile twice.
  if (!whole) return run(Small(), Constant<false>());
  if (!short_k && tiles(Large()) >= multiprocessors) return run(Large(), Constant<true>());
  return run(Small(), Constant<true>());
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
