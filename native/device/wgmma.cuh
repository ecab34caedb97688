// The matrix product of a Hopper warpgroup (wgmma): both factors in shared memory, sums in registers, under way while the threads
// go on. Apart from hopper.cuh because its register lists are long.
#ifndef HEDDLE_WGMMA_CUH
#define HEDDLE_WGMMA_CUH

#include <type_traits>

#include "hopper.cuh"

#if defined(HEDDLE_HOPPER_CODE)

namespace heddle {

/// What wgmma takes for rows of 64 16-bit elements in shared memory, written by the copy engine with its 128-byte swizzle at an
/// address aligned to 1024: eight rows, then the next eight 1024 bytes on. `+` moves along the row, in units of 16 bytes.
__device__ __forceinline__ uint64_t swizzled_rows(Shared16 tile) {
  constexpr uint64_t swizzle_128 = uint64_t{1} << 62, next_eight_rows = uint64_t{1024 / 16} << 32, unused = uint64_t{1} << 16;
  return swizzle_128 | next_eight_rows | unused | ((tile.address & 0x3ffff) >> 4);
}

/// Orders the warpgroup's earlier register accesses before the products that follow.
__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Makes the products since the last commit one group.
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/// Waits until at most `Pending` of the newest groups are under way.
template <int Pending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// Keeps the compiler from moving uses of the sums over this place.
template <int Count>
__device__ __forceinline__ void pin(float (&sums)[Count]) {
  HEDDLE_UNROLL
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

#define HEDDLE_SUMS_8(d, i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HEDDLE_SUMS_32(d, i) HEDDLE_SUMS_8(d, i), HEDDLE_SUMS_8(d, i + 8), HEDDLE_SUMS_8(d, i + 16), HEDDLE_SUMS_8(d, i + 24)
#define HEDDLE_NAMES_0                                                                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25," \
  " %26, %27, %28, %29, %30, %31"
#define HEDDLE_NAMES_48 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_NAMES_32                                                                                                       \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55," \
  " %56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_NAMES_64                                                                                                       \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87," \
  " %88, %89, %90, %91, %92, %93, %94, %95"

/// One instruction: `names` lists the registers of the sums, which come last; `a`, `b` and `add` number the operands after them.
#define HEDDLE_WGMMA(type, columns, names, a, b, add, ...)                                                                  \
  asm volatile("{\n.reg .pred adds;\nsetp.ne.b32 adds, %" add ", 0;\nwgmma.mma_async.sync.aligned.m64n" columns "k16.f32." \
               type "." type " {" names "}, %" a ", %" b ", adds, 1, 1, 0, 0;\n}\n"                                         \
               : __VA_ARGS__                                                                                                \
               : "l"(rows_a), "l"(rows_b), "r"(adds))

/// d = a x b transposed, plus d when `adds` is not 0: a is 64 x 16, b Columns x 16. Thread t of the warpgroup holds, with
/// row = 16 (t / 32) + t % 32 / 4, for every j: d[4 j], d[4 j + 1] = columns 8 j + 2 (t % 4) and the next of `row`, d[4 j + 2],
/// d[4 j + 3] those of `row + 8`.
template <class T, int Columns>
__device__ __forceinline__ void multiply_rows(float (&d)[Columns / 2], uint64_t rows_a, uint64_t rows_b, int adds) {
  static_assert(Columns == 64 || Columns == 96 || Columns == 128 || Columns == 192, "the widths in use");
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "the types of the instruction in use");
  if constexpr (Columns == 64 && std::is_same_v<T, __half>) {
    HEDDLE_WGMMA("f16", "64", HEDDLE_NAMES_0, "32", "33", "34", HEDDLE_SUMS_32(d, 0));
  } else if constexpr (Columns == 64) {
    HEDDLE_WGMMA("bf16", "64", HEDDLE_NAMES_0, "32", "33", "34", HEDDLE_SUMS_32(d, 0));
  } else if constexpr (Columns == 96 && std::is_same_v<T, __half>) {
    HEDDLE_WGMMA("f16", "96", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_48, "48", "49", "50", HEDDLE_SUMS_32(d, 0), HEDDLE_SUMS_8(d, 32),
                 HEDDLE_SUMS_8(d, 40));
  } else if constexpr (Columns == 96) {
    HEDDLE_WGMMA("bf16", "96", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_48, "48", "49", "50", HEDDLE_SUMS_32(d, 0), HEDDLE_SUMS_8(d, 32),
                 HEDDLE_SUMS_8(d, 40));
  } else if constexpr (Columns == 128 && std::is_same_v<T, __half>) {
    HEDDLE_WGMMA("f16", "128", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_32, "64", "65", "66", HEDDLE_SUMS_32(d, 0),
                 HEDDLE_SUMS_32(d, 32));
  } else if constexpr (Columns == 128) {
    HEDDLE_WGMMA("bf16", "128", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_32, "64", "65", "66", HEDDLE_SUMS_32(d, 0),
                 HEDDLE_SUMS_32(d, 32));
  } else if constexpr (std::is_same_v<T, __half>) {
    HEDDLE_WGMMA("f16", "192", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_32 ", " HEDDLE_NAMES_64, "96", "97", "98", HEDDLE_SUMS_32(d, 0),
                 HEDDLE_SUMS_32(d, 32), HEDDLE_SUMS_32(d, 64));
  } else {
    HEDDLE_WGMMA("bf16", "192", HEDDLE_NAMES_0 ", " HEDDLE_NAMES_32 ", " HEDDLE_NAMES_64, "96", "97", "98", HEDDLE_SUMS_32(d, 0),
                 HEDDLE_SUMS_32(d, 32), HEDDLE_SUMS_32(d, 64));
  }
}

#undef HEDDLE_WGMMA
#undef HEDDLE_NAMES_64
#undef HEDDLE_NAMES_48
#undef HEDDLE_NAMES_32
#undef HEDDLE_NAMES_0
#undef HEDDLE_SUMS_32
#undef HEDDLE_SUMS_8

}  // namespace heddle

#endif

#endif
