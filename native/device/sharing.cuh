// The number of blocks of a launch that share a multiprocessor. A launch that starts early (LaunchConfig) places its blocks where those of
// the launch in front leave room: the first multiprocessors that have some take several, and others end up with none. Shared memory that
// nobody uses prevents that. It costs something where the next launch is to start beside this one, so each launcher asks for itself.
#ifndef HEDDLE_SHARING_CUH
#define HEDDLE_SHARING_CUH

#include "launcher.cuh"

namespace heddle {

/// Multiprocessors of this device. The CPU device chooses as a large GPU would.
inline int64_t multiprocessors_of_device() {
#if !defined(HEDDLE_HOPPER)
  return 132;
#else
  return longest(device_attribute(cudaDevAttrMultiProcessorCount), int64_t{1});
#endif
}

/// Shared memory of a multiprocessor, in bytes.
inline int64_t shared_of_multiprocessor() {
#if !defined(HEDDLE_HOPPER)
  return 228 << 10;
#else
  return device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
#endif
}

constexpr int64_t shared_of_system = 1024;  // bytes that each block takes beside its own

/// Number of blocks that share a multiprocessor, if all run at once and are evenly divided.
inline int64_t even_share(int64_t blocks) { return (blocks + multiprocessors_of_device() - 1) / multiprocessors_of_device(); }

/// True if even shares fill three quarters of the places on all multiprocessors.
inline bool fills_shares(int64_t blocks) { return 4 * blocks >= 3 * even_share(blocks) * multiprocessors_of_device(); }

/// Bytes of shared memory of a block with which at most `sharing` blocks fit a multiprocessor.
inline int64_t memory_of_sharing(int64_t sharing) {
  constexpr int64_t alignment = 128;
  const int64_t beyond = shared_of_multiprocessor() / (sharing + 1) - shared_of_system;
  return (beyond / alignment + 1) * alignment;
}

/// The shared memory of a block that needs `bytes`: so much that a multiprocessor takes no more than its even share of the blocks, unless
/// that is more than `most`.
inline uint32_t bytes_of_even_share(int64_t blocks, uint32_t bytes, int64_t most) {
  const int64_t sharing = even_share(blocks);
  return sharing > most ? bytes : static_cast<uint32_t>(longest(int64_t{bytes}, memory_of_sharing(sharing)));
}

/// The same for launches that start early. The CPU device runs one block after another, and checks what they access.
inline uint32_t evenly_shared([[maybe_unused]] int64_t blocks, uint32_t bytes, [[maybe_unused]] int64_t most) {
#if defined(HEDDLE_SIMT)
  return bytes;
#else
  return device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 ? bytes : bytes_of_even_share(blocks, bytes, most);
#endif
}

}  // namespace heddle

#endif
