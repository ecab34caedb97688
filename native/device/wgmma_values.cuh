// wgmma with the left factor in registers and the rows of the right one unchanged from memory: attention weights times a tile of values,
// for values of up to 256 elements. Exists only in passes for sm_90a.
#ifndef HEDDLE_WGMMA_VALUES_CUH
#define HEDDLE_WGMMA_VALUES_CUH

#include "attention_tiles.cuh"

#if defined(HEDDLE_HOPPER)
#include "wgmma.cuh"
#endif

#if defined(HEDDLE_HOPPER_CODE)

namespace heddle {

/// wgmma descriptor of a right factor whose rows run along k: blocks of 64 columns, `block_bytes` apart, of 128-byte rows that are swizzled
/// as in swizzled_rows(). `+` of 128 moves 16 rows down.
__device__ __forceinline__ uint64_t swizzled_columns(Shared16 tile, uint32_t block_bytes) {
  constexpr uint64_t swizzle_128 = uint64_t{1} << 62, next_eight_rows = uint64_t{1024 / 16} << 32;
  return swizzle_128 | next_eight_rows | static_cast<uint64_t>(block_bytes / 16) << 16 | ((tile.address & 0x3ffff) >> 4);
}

#if !defined(HEDDLE_SIMT)

#define HEDDLE_VALUES_NAMES_0 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22," \
  " %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HEDDLE_VALUES_NAMES_40 \
  "%32, %33, %34, %35, %36, %37, %38, %39"
#define HEDDLE_VALUES_NAMES_48 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define HEDDLE_VALUES_NAMES_64 \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52," \
  " %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define HEDDLE_VALUES_NAMES_96 \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84," \
  " %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define HEDDLE_VALUES_NAMES_128 \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113," \
  " %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define HEDDLE_VALUES_8(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HEDDLE_VALUES_32(i) HEDDLE_VALUES_8(i), HEDDLE_VALUES_8(i + 8), HEDDLE_VALUES_8(i + 16), HEDDLE_VALUES_8(i + 24)
/// One instruction: `names` lists the registers of the sums, the operands after them are the left factor and the right one.
#define HEDDLE_WGMMA_VALUES(type, columns, names, a0, a1, a2, a3, b, ...)                                                 \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" names "}, {%" a0 ", %" a1 ", %" a2 \
               ", %" a3 "}, %" b ", 1, 1, 1, 1;"                                                                          \
               : __VA_ARGS__                                                                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(rows_b))
#define HEDDLE_WGMMA_VALUES_OF(...)             \
  do {                                          \
    if constexpr (std::is_same_v<T, __half>) {  \
      HEDDLE_WGMMA_VALUES("f16", __VA_ARGS__);  \
    } else {                                    \
      HEDDLE_WGMMA_VALUES("bf16", __VA_ARGS__); \
    }                                           \
  } while (false)

/// d += a x b, asynchronously: a is 64 x 16, 16 rows per warp as in mma_m16n8k16; b is 16 x Columns, described by swizzled_columns(). Sums
/// are laid out as in multiply_rows().
template <class T, int Columns>
__device__ __forceinline__ void multiply_values(float (&d)[Columns / 2], const uint32_t (&a)[4], uint64_t rows_b) {
  static_assert(Columns == 64 || Columns == 80 || Columns == 96 || Columns == 128 || Columns == 192 || Columns == 256,
                "the widths in use");
  if constexpr (Columns == 64) {
    HEDDLE_WGMMA_VALUES_OF("64", HEDDLE_VALUES_NAMES_0, "32", "33", "34", "35", "36", HEDDLE_VALUES_32(0));
  } else if constexpr (Columns == 80) {
    HEDDLE_WGMMA_VALUES_OF("80", HEDDLE_VALUES_NAMES_0 ", " HEDDLE_VALUES_NAMES_40, "40", "41", "42", "43", "44", HEDDLE_VALUES_32(0), HEDDLE_VALUES_8(32));
  } else if constexpr (Columns == 96) {
    HEDDLE_WGMMA_VALUES_OF("96", HEDDLE_VALUES_NAMES_0 ", " HEDDLE_VALUES_NAMES_48, "48", "49", "50", "51", "52", HEDDLE_VALUES_32(0), HEDDLE_VALUES_8(32), HEDDLE_VALUES_8(40));
  } else if constexpr (Columns == 128) {
    HEDDLE_WGMMA_VALUES_OF("128", HEDDLE_VALUES_NAMES_0 ", " HEDDLE_VALUES_NAMES_64, "64", "65", "66", "67", "68", HEDDLE_VALUES_32(0), HEDDLE_VALUES_32(32));
  } else if constexpr (Columns == 192) {
    HEDDLE_WGMMA_VALUES_OF("192", HEDDLE_VALUES_NAMES_0 ", " HEDDLE_VALUES_NAMES_64 ", " HEDDLE_VALUES_NAMES_96, "96", "97", "98", "99", "100", HEDDLE_VALUES_32(0), HEDDLE_VALUES_32(32), HEDDLE_VALUES_32(64));
  } else {
    HEDDLE_WGMMA_VALUES_OF("256", HEDDLE_VALUES_NAMES_0 ", " HEDDLE_VALUES_NAMES_64 ", " HEDDLE_VALUES_NAMES_96 ", " HEDDLE_VALUES_NAMES_128, "128", "129", "130", "131", "132", HEDDLE_VALUES_32(0), HEDDLE_VALUES_32(32), HEDDLE_VALUES_32(64), HEDDLE_VALUES_32(96));
  }
}

#undef HEDDLE_WGMMA_VALUES_OF
#undef HEDDLE_WGMMA_VALUES
#undef HEDDLE_VALUES_32
#undef HEDDLE_VALUES_8
#undef HEDDLE_VALUES_NAMES_128
#undef HEDDLE_VALUES_NAMES_96
#undef HEDDLE_VALUES_NAMES_64
#undef HEDDLE_VALUES_NAMES_48
#undef HEDDLE_VALUES_NAMES_40
#undef HEDDLE_VALUES_NAMES_0

#endif

}  // namespace heddle

#endif

#endif
