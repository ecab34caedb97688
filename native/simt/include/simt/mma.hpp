// CPU twins of the PTX wrappers in mma.cuh, whose comments describe each. A warp's operation is one meeting: lanes leave their operands on their
// stacks, the last to arrive computes for all 32, and no lane switches twice. Dynamic shared memory is checked in units of 16 bytes: bounds, races as
// for HEDDLE_SHARED, poison at the start of a block.
#ifndef HEDDLE_SIMT_MMA_HPP
#define HEDDLE_SIMT_MMA_HPP

#include "buffer.hpp"
#include "shared.hpp"
#include "warp.hpp"

namespace heddle {

struct Shared16 {
  uint32_t address;  // from the start of the block's dynamic shared memory

  Shared16 operator+(uint32_t bytes) const { return {address + bytes}; }
};

namespace simt {

inline Shared16 declare_dynamic() {
  static const char key = 0;
  Worker& worker = *current;
  if (worker.dynamic == nullptr) {
    if (worker.shared_bytes == 0) worker.fault("dynamic shared memory is declared but the launch gives none");
    worker.dynamic = worker.shared.find(&key, worker.shared_bytes, (worker.shared_bytes + 15) / 16);
    if (worker.dynamic == nullptr) worker.fault("no memory for %u bytes of dynamic shared memory", worker.shared_bytes);
  }
  return {0};
}

enum class Use { read, write };

#if defined(HEDDLE_SIMT_HOPPER)
/// Checks an access of the running thread against those of the cluster's threads and engines.
inline void order_in_cluster(uint32_t word, bool writes, Site site);
#endif

/// The 16 bytes at `place`, after checks of bounds, alignment and races for the running thread.
inline char* shared_16(Shared16 place, Use use, [[maybe_unused]] Site site) {
  Worker& worker = *current;
  const SharedArena::Array* array = worker.dynamic;
  if (__builtin_expect(array == nullptr || place.address % 16 != 0 || uint64_t{place.address} + 16 > array->bytes, 0)) {
    worker.fault("dynamic shared byte %u is not a place for 16 bytes (%u bytes)", place.address, worker.shared_bytes);
  }
#if defined(HEDDLE_SIMT_HOPPER)
  if (worker.cluster != nullptr) {
    order_in_cluster(place.address / 16, use == Use::write, site);
    return array->data + place.address;
  }
#endif
  Shadow& shadow = array->shadow[place.address / 16];
  if (use == Use::read) {
    AccessOrder(worker).read(shadow, "16-byte word", place.address / 16);
  } else {
    AccessOrder(worker).write(shadow, "16-byte word", place.address / 16);
  }
  return array->data + place.address;
}

/// Bytes from `place` on, to be written by one of several threads that fill 16 bytes in parts. Races are tracked per 16 bytes: parts are ordered
/// against all accesses but one another, like additions.
inline char* shared_part(Shared16 place, uint32_t bytes) {
  Worker& worker = *current;
  const SharedArena::Array* array = worker.dynamic;
  if (__builtin_expect(array == nullptr || place.address % bytes != 0 || uint64_t{place.address} + bytes > array->bytes, 0)) {
    worker.fault("dynamic shared byte %u is not a place for %u bytes (%u bytes)", place.address, bytes, worker.shared_bytes);
  }
  AccessOrder(worker).add(array->shadow[place.address / 16], "16-byte word", place.address / 16);
  return array->data + place.address;
}

/// Meets the whole warp; `operands` begins with the function that serves all lanes.
template <class Operands>
inline void run_collective(Operands& operands, Site site) {
  static_assert(sizeof(void*) <= sizeof(uint64_t), "a lane brings an address");
  meet(Meeting::collective, ~0u, reinterpret_cast<uint64_t>(&operands), 0, site);
}

/// Branchless, so that loops over it are vectorised.
inline float wide(__half value) {
  const uint32_t magnitude = (value.bits & 0x7fffu) << 13;
  const uint32_t special = (value.bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u;
  return bit_cast<float>(bit_cast<uint32_t>(bit_cast<float>(magnitude) * 0x1p112f) | special |
                         static_cast<uint32_t>(value.bits & 0x8000u) << 16);
}
inline float wide(__nv_bfloat16 value) { return float_from_bfloat(value.bits); }

struct MatrixLoad {
  Collective serve;
  uint32_t row[4];  // input: the 8 elements at this lane's address
  uint32_t* to;     // output
};

template <bool Transposed>
inline void serve_load(void* const (&lanes)[kLanes]) {
  for (uint32_t lane = 0; lane < kLanes; lane++) {
    for (uint32_t matrix = 0; matrix < 4; matrix++) {
      const auto row = [&](uint32_t r) { return static_cast<const MatrixLoad*>(lanes[matrix * 8 + r])->row; };
      uint32_t& to = static_cast<MatrixLoad*>(lanes[lane])->to[matrix];
      if (Transposed) {
        const uint32_t column = lane / 4, shift = 16 * (column % 2), first = 2 * (lane % 4);
        const uint32_t low = row(first)[column / 2] >> shift & 0xffffu, high = row(first + 1)[column / 2] >> shift & 0xffffu;
        to = low | high << 16;
      } else {
        to = row(lane / 4)[lane % 4];
      }
    }
  }
}

template <bool Transposed>
inline void load_matrix(uint32_t (&r)[4], Shared16 row, Site site) {
  MatrixLoad load = {serve_load<Transposed>, {}, r};
  memcpy(load.row, shared_16(row, Use::read, site), sizeof load.row);
  run_collective(load, site);
}

/// A lane's operands of a matmul: its fragments of the factors, and of the sums.
template <class Sum>
struct Product {
  Collective serve;
  Sum* d;
  const uint32_t* a;
  const uint32_t* b;
};

template <class T>
inline void serve_product(void* const (&lanes)[kLanes]) {
  T a_bits[16][16], b_bits[16][8];
  float a[16][16], b[16][8];
  for (uint32_t lane = 0; lane < kLanes; lane++) {
    const auto& mine = *static_cast<const Product<float>*>(lanes[lane]);
    const uint32_t group = lane / 4, pair = 2 * (lane % 4);
    for (uint32_t i = 0; i < 4; i++) memcpy(&a_bits[group + i % 2 * 8][pair + i / 2 * 8], mine.a + i, 4);
    for (uint32_t i = 0; i < 4; i++) memcpy(&b_bits[pair + i % 2 + i / 2 * 8][group], reinterpret_cast<const T*>(mine.b) + i, 2);
  }
  for (uint32_t i = 0; i < 16 * 16; i++) a[i / 16][i % 16] = wide(a_bits[i / 16][i % 16]);
  for (uint32_t i = 0; i < 16 * 8; i++) b[i / 8][i % 8] = wide(b_bits[i / 8][i % 8]);
  for (uint32_t row = 0; row < 16; row++) {
    using Sums = float __attribute__((vector_size(32)));
    Sums sums;
    const auto d = [&](uint32_t column) -> float& {
      return static_cast<const Product<float>*>(lanes[row % 8 * 4 + column / 2])->d[row / 8 * 2 + column % 2];
    };
    for (uint32_t column = 0; column < 8; column++) sums[column] = d(column);
    for (uint32_t k = 0; k < 16; k++) {
      Sums terms;
      memcpy(&terms, b[k], sizeof terms);
      sums += a[row][k] * terms;
    }
    for (uint32_t column = 0; column < 8; column++) d(column) = sums[column];
  }
}

/// Adds in unsigned arithmetic, since the device's sums wrap around.
inline void serve_product_int8(void* const (&lanes)[kLanes]) {
  int8_t a[16][32], b[8][32];  // b by columns
  for (uint32_t lane = 0; lane < kLanes; lane++) {
    const auto& mine = *static_cast<const Product<int>*>(lanes[lane]);
    const uint32_t group = lane / 4, four = 4 * (lane % 4);
    for (uint32_t i = 0; i < 4; i++) memcpy(&a[group + i % 2 * 8][four + i / 2 * 16], mine.a + i, 4);
    for (uint32_t i = 0; i < 2; i++) memcpy(&b[group][four + i * 16], mine.b + i, 4);
  }
  for (uint32_t row = 0; row < 16; row++) {
    for (uint32_t column = 0; column < 8; column++) {
      int terms = 0;
      for (uint32_t k = 0; k < 32; k++) terms += a[row][k] * b[column][k];
      int& d = static_cast<const Product<int>*>(lanes[row % 8 * 4 + column / 2])->d[row / 8 * 2 + column % 2];
      d = static_cast<int>(static_cast<uint32_t>(d) + static_cast<uint32_t>(terms));
    }
  }
}

}  // namespace simt

// The defaulted arguments are the caller's source line.
#define HEDDLE_SIMT_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <class T>
inline void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HEDDLE_SIMT_HERE) {
  simt::Product<float> product = {simt::serve_product<T>, d, a, b};
  simt::run_collective(product, {file, line});
}

inline void mma_m16n8k32(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], HEDDLE_SIMT_HERE) {
  simt::Product<int> product = {simt::serve_product_int8, d, a, b};
  simt::run_collective(product, {file, line});
}

inline void load_matrix_x4(uint32_t (&r)[4], Shared16 row, HEDDLE_SIMT_HERE) { simt::load_matrix<false>(r, row, {file, line}); }
inline void load_matrix_x4_transposed(uint32_t (&r)[4], Shared16 row, HEDDLE_SIMT_HERE) {
  simt::load_matrix<true>(r, row, {file, line});
}

template <class T>
inline Pack<T, 16 / sizeof(T)> load_shared_16(Shared16 from, HEDDLE_SIMT_HERE) {
  Pack<T, 16 / sizeof(T)> pack;
  memcpy(&pack, simt::shared_16(from, simt::Use::read, {file, line}), sizeof pack);
  return pack;
}

template <class T, int N>
inline void store_shared_16(Shared16 to, const Pack<T, N>& pack, HEDDLE_SIMT_HERE) {
  static_assert(sizeof pack == 16, "16 bytes");
  memcpy(simt::shared_16(to, simt::Use::write, {file, line}), &pack, sizeof pack);
}

namespace simt {

/// Starts a copy of `Bytes` to a place that was checked.
template <uint32_t Bytes, class T>
inline void start_copy(Shared16 to, const In<T>& from, int64_t offset, bool valid) {
  Worker& worker = *current;
  if (valid) from.buffer().check(offset, Bytes / sizeof(T), sizeof(T), "read");
  if (!worker.copies.reserve(worker.threads)) worker.fault("no memory for asynchronous copies");
  const char* const source = valid ? from.buffer().data + offset * static_cast<int64_t>(sizeof(T)) : nullptr;
  if (!worker.copies.issue(worker.running, to.address, source, Bytes)) {
    worker.fault("more than %u asynchronous copies are under way", AsyncCopies::kMost);
  }
}

}  // namespace simt

template <class T>
inline void copy_async_16(Shared16 to, const In<T>& from, int64_t offset, bool valid, HEDDLE_SIMT_HERE) {
  simt::shared_16(to, simt::Use::write, {file, line});
  simt::start_copy<16>(to, from, offset, valid);
}

template <int Bytes, class T>
inline void copy_async(Shared16 to, const In<T>& from, int64_t offset, bool valid, HEDDLE_SIMT_HERE) {
  static_assert(Bytes == 4 || Bytes == 16, "a word or four");
  if (!valid) from.buffer().check(offset, Bytes / sizeof(T), sizeof(T), "read");
  if (Bytes == 4) {
    simt::shared_part(to, Bytes);
  } else {
    simt::shared_16(to, simt::Use::write, {file, line});
  }
  simt::start_copy<Bytes>(to, from, offset, valid);
}

inline void copy_async_commit() { simt::current->copies.commit(simt::current->running); }

template <int Pending>
inline void copy_async_wait(HEDDLE_SIMT_HERE) {
  simt::current->copies.wait(simt::current->running, Pending, [&](const simt::AsyncCopy& copy) {
    char* const to = copy.bytes == 16 ? simt::shared_16({copy.to}, simt::Use::write, {file, line}) : simt::shared_part({copy.to}, copy.bytes);
    if (copy.from == nullptr) {
      memset(to, 0, copy.bytes);
    } else {
      memcpy(to, copy.from, copy.bytes);
    }
  });
}

template <int Elements, class T>
inline void copy_async_part(Shared16 to, const In<T>& from, int64_t offset, bool valid) {
  constexpr uint32_t bytes = Elements * sizeof(T);
  static_assert(bytes == 4 || bytes == 8, "sizes of copies through the L1 cache");
  const char* const source = from.buffer().data + offset * static_cast<int64_t>(sizeof(T));
  if (valid && reinterpret_cast<uintptr_t>(source) % bytes != 0) simt::current->fault("a copy of %u bytes from an address that is no multiple", bytes);
  simt::shared_part(to, bytes);
  simt::start_copy<bytes>(to, from, offset, valid);
}

template <class T>
inline void store_shared_2(Shared16 to, T element) {
  static_assert(sizeof(T) == 2, "2 bytes");
  memcpy(simt::shared_part(to, 2), &element, 2);
}

inline void store_shared_4(Shared16 to, float sum) { memcpy(simt::shared_part(to, 4), &sum, 4); }

#undef HEDDLE_SIMT_HERE

}  // namespace heddle

#define HEDDLE_DYNAMIC_SHARED(name) const heddle::Shared16 name = heddle::simt::declare_dynamic()

#endif
