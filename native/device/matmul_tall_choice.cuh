// The matmuls that tiles of matmul_tall.cuh can compute, and the number of their clusters that run at once. matmul_price.cuh chooses them.
#ifndef HEDDLE_MATMUL_TALL_CHOICE_CUH
#define HEDDLE_MATMUL_TALL_CHOICE_CUH

#include <atomic>

#include "matmul_tall_tile.cuh"
#include "wgmma_choice.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

namespace tall {

constexpr bool is_tile(MatmulTile tile) { return tile == MatmulTile::tall_128x128 || tile == MatmulTile::tall_256x128; }

/// True if there is such a tile with such a split for a matmul of 16 bits.
template <class T>
bool exists(const MatmulChoice& choice, int64_t m, int64_t n, int64_t k) {
  const bool divides = choice.split == 1 || choice.split == 2 || choice.split == 4;
  return sizeof(T) == 2 && divides && choice.split <= steps_of<T>(k) && blocks(work_of<T>(choice, m, n, k)) <= INT32_MAX;
}

/// True if it can compute a matmul whose rows are aligned to 16 bytes: one with whole chunks.
template <class T, class Epilogue>
bool can(const MatmulChoice& choice, int64_t m, int64_t n, int64_t k, const Epilogue& epilogue) {
  return wgmma::can(m, n, k) && wgmma::is_whole(n, epilogue) && exists<T>(choice, m, n, k);
}

/// Number of clusters of so many blocks that run at once on a device of `multiprocessors`. Groups of these (GPC) differ in size from device to device, and a cluster lies
/// in one of them: on many devices of 132 multiprocessors 30 clusters of four run at once, not 33.
template <class Kernel>
int64_t clusters_at_once([[maybe_unused]] Kernel kernel, int blocks, int64_t multiprocessors) {
  const int64_t most = std::max<int64_t>(1, multiprocessors / blocks);
#if !defined(HEDDLE_SIMT)
  constexpr int devices = 16, sizes = 9;
  static std::atomic<int> known[devices][sizes];  // 0: not queried
  const int device = current_device();
  if (blocks <= 2 || blocks >= sizes || device < 0 || device >= devices) return most;
  int found = known[device][blocks].load(std::memory_order_relaxed);
  if (found == 0) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned int>(blocks), 1, 1};
    cudaLaunchConfig_t config = {dim3(static_cast<unsigned int>(blocks)), dim3(TallTile::threads), TallTile::shared_limit, nullptr, &attribute, 1};
    const bool is_known = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, TallTile::shared_limit) == cudaSuccess &&
                          cudaOccupancyMaxActiveClusters(&found, kernel, &config) == cudaSuccess && found > 0;
    if (!is_known) cudaGetLastError(), found = static_cast<int>(most);
    known[device][blocks].store(found, std::memory_order_relaxed);
  }
  return found;
#else
  return most;
#endif
}

}  // namespace tall

}  // namespace heddle

#endif

#endif
