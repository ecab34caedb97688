// The instructions that tensor-core bodies use, one named wrapper each: warp-level mma, matrix loads and asynchronous copies. The CPU
// device has counterparts of exactly these names. Included after kernel.cuh by the bodies that use them. All require sm_80.
//
// Dynamic shared memory is addressed in units of 16 bytes and has the size LaunchConfig.shared_bytes:
//
//   HEDDLE_DYNAMIC_SHARED(tiles);                     // a Shared16: its first 16 bytes, aligned to 1024
//   copy_async_16(tiles + 16 * i, x, offset, true);   // `+` counts bytes; only multiples of 16 may be accessed,
//                                                     // and parts of 16 bytes by copy_async_part() and store_shared_2() alone
#ifndef HEDDLE_MMA_CUH
#define HEDDLE_MMA_CUH

#include "hopper_loops.cuh"
#include "kernel.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#include "simt/mma.hpp"
#pragma GCC visibility pop
#else

/// Declares `name` as the launch's dynamic shared memory; every declaration in a kernel names the same bytes.
#define HEDDLE_DYNAMIC_SHARED(name)                                      \
  extern __shared__ __align__(1024) unsigned char heddle_dynamic_bytes[]; \
  const heddle::Shared16 name = heddle::shared_16_of(heddle_dynamic_bytes)

namespace heddle {

/// The address of 16 bytes in shared memory.
struct Shared16 {
  uint32_t address;  // in the shared window, as PTX takes it

  __device__ __forceinline__ Shared16 operator+(uint32_t bytes) const { return {address + bytes}; }
};

__device__ __forceinline__ Shared16 shared_16_of(const void* generic) {
  return {static_cast<uint32_t>(__cvta_generic_to_shared(generic))};
}

/// d += a x b for a warp: a is 16 x 16, b 16 x 8, d 16 x 8 in float32. With g = l / 4 and p = 2 (l % 4), lane l holds, in pairs with the
/// lower column (of b: row) in the lower half:
///   a[0..3]: a(g, p..), a(g + 8, p..), a(g, p + 8..), a(g + 8, p + 8..)    b[0..1]: b(p.., g), b(p + 8.., g)
///   d[0..3]: d(g, p), d(g, p + 1), d(g + 8, p), d(g + 8, p + 1)
template <class T>
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

template <>
__device__ __forceinline__ void mma_m16n8k16<__half>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void mma_m16n8k16<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// d += a x b for a warp: a is 16 x 32, b 32 x 8, both int8, d 16 x 8 in int32, which wraps around. With g = l / 4 and q = 4 (l % 4),
/// lane l holds four elements per register, the lowest column (of b: row) in the lowest byte:
///   a[0..3]: a(g, q..), a(g + 8, q..), a(g, q + 16..), a(g + 8, q + 16..)    b[0..1]: b(q.., g), b(q + 16.., g)
///   d[0..3]: d(g, q / 2), d(g, q / 2 + 1), d(g + 8, q / 2), d(g + 8, q / 2 + 1)
/// In bytes it is the layout of mma_m16n8k16(): load_matrix_x4() of rows of bytes, and of b's columns, returns such fragments.
__device__ __forceinline__ void mma_m16n8k32(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Loads four 8 x 8 matrices of 16-bit elements. Lane l provides the address of row l % 8 of matrix l / 8. It receives elements
/// (l / 4, 2 (l % 4)) and the one to its right of matrix i in r[i]. A barrier must come first, so that the warp sees earlier writes.
__device__ __forceinline__ void load_matrix_x4(uint32_t (&r)[4], Shared16 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.address));
}

/// Loads the same matrices, each transposed: the lane receives elements (2 (l % 4), l / 4) and the one below.
__device__ __forceinline__ void load_matrix_x4_transposed(uint32_t (&r)[4], Shared16 row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row.address));
}

/// Loads 16 bytes of shared memory as elements, and stores elements as 16 bytes.
template <class T>
__device__ __forceinline__ Pack<T, 16 / sizeof(T)> load_shared_16(Shared16 from) {
  uint4 word;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "r"(from.address)
               : "memory");
  Pack<T, 16 / sizeof(T)> pack;
  memcpy(&pack, &word, sizeof pack);
  return pack;
}

template <class T, int N>
__device__ __forceinline__ void store_shared_16(Shared16 to, const Pack<T, N>& pack) {
  static_assert(sizeof pack == 16, "16 bytes");
  uint4 word;
  memcpy(&word, &pack, sizeof word);
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to.address), "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}

/// Starts copying 16 bytes of `from`, beginning with element `offset` (aligned to 16 bytes), bypassing the L1 cache. If not `valid`, writes
/// zeros and does not read `from`.
template <class T>
__device__ __forceinline__ void copy_async_16(Shared16 to, const In<T>& from, int64_t offset, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to.address), "l"(from.data + (valid ? offset : 0)),
               "r"(valid ? 16 : 0)
               : "memory");
}

/// The same for Elements elements of 4 or 8 bytes in total, at an address in shared memory that is a multiple of these bytes.
template <int Elements, class T>
__device__ __forceinline__ void copy_async_part(Shared16 to, const In<T>& from, int64_t offset, bool valid) {
  constexpr int bytes = Elements * static_cast<int>(sizeof(T));
  static_assert(bytes == 4 || bytes == 8, "sizes of copies through the L1 cache");
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to.address), "l"(from.data + (valid ? offset : 0)), "n"(bytes),
               "r"(valid ? bytes : 0)
               : "memory");
}

/// Stores an element of 2 bytes in shared memory.
template <class T>
__device__ __forceinline__ void store_shared_2(Shared16 to, T element) {
  static_assert(sizeof(T) == 2, "2 bytes");
  uint16_t bits;
  memcpy(&bits, &element, sizeof bits);
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to.address), "h"(bits) : "memory");
}

/// Starts copying 4 or 16 bytes of `from`, beginning with element `offset`, which exists even if it is not `valid`. Several threads may copy
/// 4 bytes each to the same 16 bytes.
template <int Bytes, class T>
__device__ __forceinline__ void copy_async(Shared16 to, const In<T>& from, int64_t offset, bool valid) {
  static_assert(Bytes == 4 || Bytes == 16, "a word or four");
  if constexpr (Bytes == 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to.address), "l"(from.data + offset), "r"(valid ? 4 : 0) : "memory");
  } else {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to.address), "l"(from.data + offset), "r"(valid ? 16 : 0)
                 : "memory");
  }
}

/// Commits the thread's copies since the last commit as one group.
__device__ __forceinline__ void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits until at most the `Pending` newest groups of the thread are in flight. Other threads see the copies after a barrier.
template <int Pending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

}  // namespace heddle

#endif

#endif
