// CPU twins of Hopper's PTX wrappers in hopper.cuh, cluster.cuh and the wgmma headers, whose comments describe each. Compiled where HEDDLE_SIMT_HOPPER is
// defined: tests run the main loops written for that GPU. Misuse is reported with the kernel and the source line.
//
//   clocks.hpp     order of accesses                 descriptors.hpp                      matrices in shared memory
//   cluster.hpp    blocks that run together          async_products.hpp, warpgroups.hpp   wgmma
//   phases.hpp     phase barriers                    registers.hpp                        setmaxnreg, ends of threads
//   meetings.hpp   named and cluster barriers        launch_clusters.hpp                  launches
//   boxes.hpp      the copy engine, st.async
#ifndef HEDDLE_SIMT_HOPPER_HPP
#define HEDDLE_SIMT_HOPPER_HPP

#include "registers.hpp"

#define __grid_constant__

namespace heddle::simt {

inline void order_in_cluster(uint32_t word, bool writes, Site site) {
  const Cluster& cluster = *current->cluster;
  const SharedHistory& history = cluster.history[current->rank];
  const Access access = cluster.access(Proxy::generic, site);
  if (writes) {
    history.write(word, access, cluster.mine());
  } else {
    history.read(word, access, cluster.mine());
  }
}

/// Properties that the CPU device pretends to have; tests have fewer multiprocessors, so that blocks take several tiles.
inline int multiprocessors = 132;

}  // namespace heddle::simt

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor
};

namespace heddle {

inline int device_attribute(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      return simt::multiprocessors;
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 232448;
    default:
      return 233472;
  }
}

using cuuint64_t = uint64_t;
using cuuint32_t = uint32_t;

// The defaulted arguments are the caller's source line.
#define HEDDLE_SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

struct PhaseBarrier {
  uint32_t address;

  void initialise(uint32_t arrivals, HEDDLE_SIMT_HERE) const { simt::initialise_phase(address, arrivals, {file, line}); }
  void arrive(HEDDLE_SIMT_HERE) const { simt::arrive_at_phase(address, 0, {file, line}); }
  void arrive_expecting(uint32_t bytes, HEDDLE_SIMT_HERE) const { simt::arrive_at_phase(address, bytes, {file, line}); }
  void arrive_at(uint32_t rank, HEDDLE_SIMT_HERE) const { simt::arrive_at_phase(address | (rank + 1) << simt::kRankShift, 0, {file, line}); }
  bool has_ended(uint32_t parity, HEDDLE_SIMT_HERE) const { return simt::try_phase(address, parity, false, {file, line}); }
  void wait(uint32_t parity, HEDDLE_SIMT_HERE) const { simt::wait_for_phase(address, parity, false, {file, line}); }
  void wait_across_blocks(uint32_t parity, HEDDLE_SIMT_HERE) const { simt::wait_for_phase(address, parity, true, {file, line}); }
};

inline void publish_barriers(HEDDLE_SIMT_HERE) { simt::publish_phases({file, line}); }

inline void publish_to_products(HEDDLE_SIMT_HERE) {
  const simt::Cluster& cluster = simt::cluster_of({file, line});
  const simt::Knowledge mine = cluster.mine();
  mine.join({mine.happened, mine.happened}, 0, cluster.agents);
}

inline uint32_t cluster_rank() { return simt::current->rank; }
inline void announce_to_cluster(HEDDLE_SIMT_HERE) { simt::arrive_at_cluster({file, line}); }
inline void wait_for_cluster(HEDDLE_SIMT_HERE) { simt::wait_for_cluster_meeting({file, line}); }
inline void cluster_barrier(HEDDLE_SIMT_HERE) {
  simt::arrive_at_cluster({file, line});
  simt::wait_for_cluster_meeting({file, line});
}

inline uint32_t address_in_block(uint32_t here, int rank, HEDDLE_SIMT_HERE) {
  simt::block_at(static_cast<uint32_t>(rank), {file, line});
  return here | static_cast<uint32_t>(rank + 1) << simt::kRankShift;
}

template <class T>
inline void send_16(uint32_t to, uint32_t counter, const Pack<T, 4>& pack, HEDDLE_SIMT_HERE) {
  static_assert(sizeof pack == 16, "16 bytes");
  simt::send_bytes_16(to, counter, &pack, {file, line});
}

inline void expect_from_cluster(uint32_t counter, uint32_t bytes, HEDDLE_SIMT_HERE) {
  const PhaseBarrier barrier{counter};
  barrier.initialise(1, file, line);
  simt::publish_phases({file, line});
  barrier.arrive_expecting(bytes, file, line);
}
inline void await_from_cluster(uint32_t counter, HEDDLE_SIMT_HERE) { simt::wait_for_phase(counter, 0, true, {file, line}); }

inline void prefetch_map(const CUtensorMap&) {}

inline void copy_box(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row, HEDDLE_SIMT_HERE) {
  simt::start_box(1u << simt::current->rank, to.address, done.address, map, {column, row}, {file, line});
}
template <int Blocks>
inline void copy_box_to_all(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row, HEDDLE_SIMT_HERE) {
  simt::start_box((1u << Blocks) - 1, to.address, done.address, map, {column, row}, {file, line});
}
inline void copy_box_to_pair(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int row, uint32_t first, HEDDLE_SIMT_HERE) {
  simt::start_box(3u << first, to.address, done.address, map, {column, row}, {file, line});
}
inline void copy_permuted(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int eight, int group, HEDDLE_SIMT_HERE) {
  simt::start_box(1u << simt::current->rank, to.address, done.address, map, {column, 0, eight, 0, group}, {file, line});
}
inline void copy_permuted_to_both(Shared16 to, const CUtensorMap& map, PhaseBarrier done, int column, int eight, int group, HEDDLE_SIMT_HERE) {
  simt::start_box(3, to.address, done.address, map, {column, 0, eight, 0, group}, {file, line});
}

template <int Registers>
inline void shrink_registers(HEDDLE_SIMT_HERE) {
  simt::set_registers(Registers, false, {file, line});
}
template <int Registers>
inline void grow_registers(HEDDLE_SIMT_HERE) {
  simt::set_registers(Registers, true, {file, line});
}

inline void signal_warpgroup(int id, HEDDLE_SIMT_HERE) { simt::meet_by_name(id, 2 * simt::kWarpgroup, false, {file, line}); }
inline void await_warpgroup(int id, HEDDLE_SIMT_HERE) { simt::meet_by_name(id, 2 * simt::kWarpgroup, true, {file, line}); }

inline void begin_products(HEDDLE_SIMT_HERE) { simt::own_products({file, line}).is_fenced = true; }
inline void commit_products(HEDDLE_SIMT_HERE) { simt::own_products({file, line}).commits++; }
template <int Pending>
inline void wait_products(HEDDLE_SIMT_HERE) {
  simt::wait_for_products(Pending, {file, line});
}

template <class S, int Count>
inline void pin(S (&sums)[Count], HEDDLE_SIMT_HERE) {
  simt::use_sums(&sums, sizeof sums, {file, line});
}

template <class T>
constexpr simt::Multiplicand multiplicand = sizeof(T) == 1 ? simt::Multiplicand::int8 : simt::Multiplicand::bfloat;
template <>
inline constexpr simt::Multiplicand multiplicand<__half> = simt::Multiplicand::half;

template <class T, int Columns, class S>
inline void multiply_rows(S (&d)[Columns / 2], uint64_t rows_a, uint64_t rows_b, int adds, HEDDLE_SIMT_HERE) {
  simt::issue_product({rows_a, rows_b, Columns, multiplicand<T>, false, false, adds != 0}, d, nullptr, {file, line});
}
template <class T, int Columns>
inline void multiply_tall_rows(float (&d)[Columns / 2], uint64_t rows_a, uint64_t rows_b, int adds, HEDDLE_SIMT_HERE) {
  multiply_rows<T, Columns>(d, rows_a, rows_b, adds, file, line);
}
template <class T, int Pieces, class S>
inline void multiply_narrow(S (&d)[Pieces][4], uint64_t rows_a, uint64_t rows_b, HEDDLE_SIMT_HERE) {
  simt::issue_product({rows_a, rows_b, 8 * Pieces, multiplicand<T>, false, false, true}, d, nullptr, {file, line});
}
template <class T, int Columns>
inline void multiply_values(float (&d)[Columns / 2], const uint32_t (&a)[4], uint64_t rows_b, HEDDLE_SIMT_HERE) {
  simt::issue_product({0, rows_b, Columns, multiplicand<T>, true, true, true}, d, a, {file, line});
}
template <class T, bool InRows, bool Adds>
inline void multiply_64(float (&d)[8][4], const uint32_t (&a)[4], uint64_t b, HEDDLE_SIMT_HERE) {
  static_assert(Adds || !InRows, "the combinations in use");
  simt::issue_product({0, b, 64, multiplicand<T>, true, InRows, Adds}, d, a, {file, line});
}

#undef HEDDLE_SIMT_HERE

}  // namespace heddle

#endif
