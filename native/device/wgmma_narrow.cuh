// wgmma for narrow tiles, in addition to the wide ones of wgmma.cuh: matmuls of few rows, where one instruction of a whole warpgroup
// replaces dozens of matrix loads and small mmas. Exists only in passes for sm_90a.
#ifndef HEDDLE_WGMMA_NARROW_CUH
#define HEDDLE_WGMMA_NARROW_CUH

#include "wgmma.cuh"

#if defined(HEDDLE_HOPPER_CODE) && !defined(HEDDLE_SIMT)

namespace heddle {

// Sums as operands, where `c` is "+f" for floats and "+r" for integers.
#define HEDDLE_PIECE(c, j) c(d[j][0]), c(d[j][1]), c(d[j][2]), c(d[j][3])
#define HEDDLE_PIECES_4(c, j) HEDDLE_PIECE(c, j), HEDDLE_PIECE(c, j + 1), HEDDLE_PIECE(c, j + 2), HEDDLE_PIECE(c, j + 3)
#define HEDDLE_PIECES_8(c, j) HEDDLE_PIECES_4(c, j), HEDDLE_PIECES_4(c, j + 4)
#define HEDDLE_NARROW_NAMES_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define HEDDLE_NARROW_NAMES_32 \
  HEDDLE_NARROW_NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HEDDLE_NARROW_NAMES_48 \
  HEDDLE_NARROW_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_NARROW_NAMES_64 \
  HEDDLE_NARROW_NAMES_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_WGMMA_NARROW(types, flags, columns, names, a, b, ...)                                                   \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns types " {" names "}, %" a ", %" b ", 1" flags ";"           \
               : __VA_ARGS__                                                                                           \
               : "l"(rows_a), "l"(rows_b))
#define HEDDLE_WGMMA_NARROW_INT8(...) HEDDLE_WGMMA_NARROW("k32.s32.s8.s8", "", __VA_ARGS__)
#define HEDDLE_WGMMA_NARROW_FLOATS(...)                                        \
  do {                                                                         \
    if constexpr (std::is_same_v<T, __half>) {                                 \
      HEDDLE_WGMMA_NARROW("k16.f32.f16.f16", ", 1, 1, 0, 0", __VA_ARGS__);     \
    } else {                                                                   \
      HEDDLE_WGMMA_NARROW("k16.f32.bf16.bf16", ", 1, 1, 0, 0", __VA_ARGS__);   \
    }                                                                          \
  } while (false)
/// Selects the instruction for the widths in use, issued by the macro `wgmma`.
#define HEDDLE_WGMMA_NARROW_OF_WIDTH(wgmma, c)                                                          \
  static_assert(Pieces == 4 || Pieces == 8 || Pieces == 12 || Pieces == 16, "the widths in use");       \
  if constexpr (Pieces == 4) {                                                                          \
    wgmma("32", HEDDLE_NARROW_NAMES_16, "16", "17", HEDDLE_PIECES_4(c, 0));                             \
  } else if constexpr (Pieces == 8) {                                                                   \
    wgmma("64", HEDDLE_NARROW_NAMES_32, "32", "33", HEDDLE_PIECES_8(c, 0));                             \
  } else if constexpr (Pieces == 12) {                                                                  \
    wgmma("96", HEDDLE_NARROW_NAMES_48, "48", "49", HEDDLE_PIECES_8(c, 0), HEDDLE_PIECES_4(c, 8));      \
  } else {                                                                                              \
    wgmma("128", HEDDLE_NARROW_NAMES_64, "64", "65", HEDDLE_PIECES_8(c, 0), HEDDLE_PIECES_8(c, 8));     \
  }

/// d += a x b transposed, asynchronously, of one 32-byte slice of k: a has 64 rows, b 8 Pieces, both described by swizzled_rows(). d[j]
/// holds the sums of columns 8 j to 8 j + 7, laid out as in mma_m16n8k16 for the 16 rows of each warp.
template <class T, int Pieces>
__device__ __forceinline__ void multiply_narrow(float (&d)[Pieces][4], uint64_t rows_a, uint64_t rows_b) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, "the types summed in float");
  HEDDLE_WGMMA_NARROW_OF_WIDTH(HEDDLE_WGMMA_NARROW_FLOATS, "+f")
}
template <class T, int Pieces>
__device__ __forceinline__ void multiply_narrow(int (&d)[Pieces][4], uint64_t rows_a, uint64_t rows_b) {
  static_assert(std::is_same_v<T, signed char>, "the type summed in int");
  HEDDLE_WGMMA_NARROW_OF_WIDTH(HEDDLE_WGMMA_NARROW_INT8, "+r")
}

#undef HEDDLE_WGMMA_NARROW_OF_WIDTH
#undef HEDDLE_WGMMA_NARROW_FLOATS
#undef HEDDLE_WGMMA_NARROW_INT8
#undef HEDDLE_WGMMA_NARROW
#undef HEDDLE_NARROW_NAMES_64
#undef HEDDLE_NARROW_NAMES_48
#undef HEDDLE_NARROW_NAMES_32
#undef HEDDLE_NARROW_NAMES_16
#undef HEDDLE_PIECES_8
#undef HEDDLE_PIECES_4
#undef HEDDLE_PIECE

/// Prevents the compiler from moving uses of the sums across this point.
template <int Pieces>
__device__ __forceinline__ void pin(float (&d)[Pieces][4]) {
  HEDDLE_UNROLL
  for (int j = 0; j < Pieces; ++j) asm volatile("" : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])::"memory");
}
template <int Pieces>
__device__ __forceinline__ void pin(int (&d)[Pieces][4]) {
  HEDDLE_UNROLL
  for (int j = 0; j < Pieces; ++j) asm volatile("" : "+r"(d[j][0]), "+r"(d[j][1]), "+r"(d[j][2]), "+r"(d[j][3])::"memory");
}

}  // namespace heddle

#endif

#endif
