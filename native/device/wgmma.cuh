// The matrix multiplication of a Hopper warpgroup (wgmma): both factors in shared memory, sums in registers, asynchronous to the threads.
// Separate from hopper.cuh because its register lists are long.
#ifndef HEDDLE_WGMMA_CUH
#define HEDDLE_WGMMA_CUH

#include <type_traits>

#include "hopper.cuh"

#if defined(HEDDLE_HOPPER_CODE)

namespace heddle {

/// wgmma descriptor of 128-byte rows in shared memory, written by the copy engine with its 128-byte swizzle at an address aligned to 1024:
/// eight rows, then the next eight 1024 bytes on. `+` moves along the row, in units of 16 bytes.
__device__ __forceinline__ uint64_t swizzled_rows(Shared16 tile) {
  constexpr uint64_t swizzle_128 = uint64_t{1} << 62, next_eight_rows = uint64_t{1024 / 16} << 32, unused = uint64_t{1} << 16;
  return swizzle_128 | next_eight_rows | unused | ((tile.address & 0x3ffff) >> 4);
}

#if !defined(HEDDLE_SIMT)

/// Orders the warpgroup's earlier register accesses before the wgmmas that follow.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Commits the wgmmas since the last commit as one group.
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most the `Pending` newest groups are in flight.
template <int Pending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// Prevents the compiler from moving uses of the sums across this point.
template <int Count>
__device__ __forceinline__ void pin(float (&sums)[Count]) {
  HEDDLE_UNROLL
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
template <int Count>
__device__ __forceinline__ void pin(int (&sums)[Count]) {
  HEDDLE_UNROLL
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(sums[i])::"memory");
}

// Sums as operands, where `c` is "+f" for floats and "+r" for integers.
#define HEDDLE_SUMS_8(c, i) c(d[i]), c(d[i + 1]), c(d[i + 2]), c(d[i + 3]), c(d[i + 4]), c(d[i + 5]), c(d[i + 6]), c(d[i + 7])
#define HEDDLE_SUMS_32(c, i) HEDDLE_SUMS_8(c, i), HEDDLE_SUMS_8(c, i + 8), HEDDLE_SUMS_8(c, i + 16), HEDDLE_SUMS_8(c, i + 24)
#define HEDDLE_SUMS_48(c, i) HEDDLE_SUMS_32(c, i), HEDDLE_SUMS_8(c, i + 32), HEDDLE_SUMS_8(c, i + 40)
#define HEDDLE_SUMS_64(c, i) HEDDLE_SUMS_32(c, i), HEDDLE_SUMS_32(c, i + 32)
#define HEDDLE_SUMS_80(c, i) HEDDLE_SUMS_64(c, i), HEDDLE_SUMS_8(c, i + 64), HEDDLE_SUMS_8(c, i + 72)
#define HEDDLE_SUMS_96(c, i) HEDDLE_SUMS_64(c, i), HEDDLE_SUMS_32(c, i + 64)
#define HEDDLE_NAMES_0 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25," \
  " %26, %27, %28, %29, %30, %31"
#define HEDDLE_NAMES_48 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_NAMES_32 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55," \
  " %56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_NAMES_64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define HEDDLE_NAMES_80 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

/// One instruction: `types` names the slice and the types, `flags` the signs of the factors and their order, where it has those. `names`
/// lists the registers of the sums, which are the last arguments; `a`, `b` and `add` number the operands after the sums.
#define HEDDLE_WGMMA(types, flags, columns, names, a, b, add, ...)                                                \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" add ", 0;\nwgmma.mma_async.sync.aligned.m64n" columns \
               types " {" names "}, %" a ", %" b ", adds" flags ";\n}\n"                                          \
               : __VA_ARGS__                                                                                      \
               : "l"(rows_a), "l"(rows_b), "r"(adds))
#define HEDDLE_WGMMA_INT8(...) HEDDLE_WGMMA("k32.s32.s8.s8", "", __VA_ARGS__)
#define HEDDLE_WGMMA_FLOATS(...)                                          \
  do {                                                                    \
    if constexpr (std::is_same_v<T, __half>) {                            \
      HEDDLE_WGMMA("k16.f32.f16.f16", ", 1, 1, 0, 0", __VA_ARGS__);       \
    } else {                                                              \
      HEDDLE_WGMMA("k16.f32.bf16.bf16", ", 1, 1, 0, 0", __VA_ARGS__);     \
    }                                                                     \
  } while (false)
/// Selects the instruction for the widths in use, issued by the macro `wgmma`.
#define HEDDLE_WGMMA_OF_WIDTH(wgmma, c)                                                                                      \
  static_assert(Columns == 64 || Columns == 96 || Columns == 128 || Columns == 160 || Columns == 192, "the widths in use");  \
  if constexpr (Columns == 64) {                                                                                             \
    wgmma("64", HEDDLE_NAMES_0, "32", "33", "34", HEDDLE_SUMS_32(c, 0));                                                     \
  } else if constexpr (Columns == 96) {                                                                                      \
    wgmma("96", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_48, "48", "49", "50", HEDDLE_SUMS_48(c, 0));                                \
  } else if constexpr (Columns == 128) {                                                                                     \
    wgmma("128", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_32, "64", "65", "66", HEDDLE_SUMS_64(c, 0));                               \
  } else if constexpr (Columns == 160) {                                                                                     \
    wgmma("160", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_32 ", " HEDDLE_NAMES_64, "80", "81", "82", HEDDLE_SUMS_80(c, 0));          \
  } else {                                                                                                                   \
    wgmma("192", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_32 ", " HEDDLE_NAMES_64 ", " HEDDLE_NAMES_80, "96", "97", "98",            \
          HEDDLE_SUMS_96(c, 0));                                                                                             \
  }

/// d = a x b transposed, plus d when `adds` is not 0, of one 32-byte slice of k: 16 elements, or 32 of int8. a has 64 rows, b Columns. With
/// row = 16 (t / 32) + t % 32 / 4, thread t of the warpgroup holds for every j: in d[4 j], d[4 j + 1] columns 8 j + 2 (t % 4) and the next
/// of `row`, in d[4 j + 2], d[4 j + 3] those of `row + 8`.
template <class T, int Columns>
__device__ __forceinline__ void multiply_rows(float (&d)[Columns / 2], uint64_t rows_a, uint64_t rows_b, int adds) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "the types summed in float");
  HEDDLE_WGMMA_OF_WIDTH(HEDDLE_WGMMA_FLOATS, "+f")
}
template <class T, int Columns>
__device__ __forceinline__ void multiply_rows(int (&d)[Columns / 2], uint64_t rows_a, uint64_t rows_b, int adds) {
  static_assert(std::is_same_v<T, signed char>, "the type summed in int");
  HEDDLE_WGMMA_OF_WIDTH(HEDDLE_WGMMA_INT8, "+r")
}

#undef HEDDLE_WGMMA_OF_WIDTH
#undef HEDDLE_WGMMA_FLOATS
#undef HEDDLE_WGMMA_INT8
#undef HEDDLE_WGMMA
#undef HEDDLE_NAMES_80
#undef HEDDLE_NAMES_64
#undef HEDDLE_NAMES_48
#undef HEDDLE_NAMES_32
#undef HEDDLE_NAMES_0
#undef HEDDLE_SUMS_96
#undef HEDDLE_SUMS_80
#undef HEDDLE_SUMS_64
#undef HEDDLE_SUMS_48
#undef HEDDLE_SUMS_32
#undef HEDDLE_SUMS_8

#endif

}  // namespace heddle

#endif

#endif
