// Host side of the copy engine: tensor maps of matrices for copy_box(). The driver's encoder is looked up at run time, so that a kernel
// library needs no driver library to be linked or loaded.
#ifndef HEDDLE_TENSOR_MAP_CUH
#define HEDDLE_TENSOR_MAP_CUH

#include "hopper_loops.cuh"
#include "kernel.cuh"

#if defined(HEDDLE_HOPPER)
#if !defined(HEDDLE_SIMT)
#include <cuda.h>
#endif

namespace heddle {

/// Width of a box, per type in elements: 128 bytes, the row size of the swizzle.
constexpr int box_row_bytes = 128;
template <class T>
constexpr int box_columns = box_row_bytes / static_cast<int>(sizeof(T));

/// Rows in a group of a permuted map; see permuted_map().
constexpr int permuted_rows = 32;

#if !defined(HEDDLE_SIMT)
namespace tensor_maps {

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                            const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                            CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// The driver's cuTensorMapEncodeTiled, or null.
inline Encode encoder() {
  static const Encode found = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult result;
    constexpr unsigned int since = 12000;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, since, cudaEnableDefault, &result) != cudaSuccess) {
      cudaGetLastError();
      return Encode{nullptr};
    }
    return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(entry) : Encode{nullptr};
  }();
  return found;
}

template <class T>
constexpr CUtensorMapDataType type_of = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
template <>
inline constexpr CUtensorMapDataType type_of<__nv_bfloat16> = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;

template <>
inline constexpr CUtensorMapDataType type_of<signed char> = CU_TENSOR_MAP_DATA_TYPE_UINT8;

/// `strides` are in elements and begin with that of the second dimension.
template <class T, int Rank>
int32_t encode(CUtensorMap* map, heddle_error* error, const char* name, const In<T>& tensor, const cuuint64_t (&extents)[Rank],
               const cuuint64_t (&strides)[Rank - 1], const cuuint32_t (&box)[Rank]) {
  const Encode encode_tiled = encoder();
  if (encode_tiled == nullptr) return fail(error, HEDDLE_UNAVAILABLE, "kernel %s: the driver has no tensor maps", name);
  cuuint64_t bytes[Rank - 1];
  cuuint32_t steps[Rank];
  for (int i = 0; i < Rank - 1; ++i) bytes[i] = strides[i] * sizeof(T);
  for (int i = 0; i < Rank; ++i) steps[i] = 1;
  const CUresult status = encode_tiled(map, type_of<T>, Rank, const_cast<T*>(tensor.data), extents, bytes, box, steps,
                                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                       CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status == CUDA_SUCCESS) return HEDDLE_OK;
  return fail(error, HEDDLE_DEVICE, "kernel %s: the driver rejected a tensor map of %llu columns with status %d", name,
              static_cast<unsigned long long>(extents[0]), static_cast<int>(status));
}

}  // namespace tensor_maps
#endif

/// Describes a rows x k row-major matrix in boxes of box_rows x 128 bytes. Rows are aligned to 16 bytes.
template <class T>
int32_t row_map(CUtensorMap* map, heddle_error* error, const char* name, const In<T>& tensor, int64_t rows, int64_t k,
                int box_rows) {
  const auto width = static_cast<cuuint64_t>(k);
  return tensor_maps::encode<T, 2>(map, error, name, tensor, {width, static_cast<cuuint64_t>(rows)}, {width},
                                   {box_columns<T>, static_cast<cuuint32_t>(box_rows)});
}

/// Describes likewise a factor whose rows become the columns of a wgmma. In every 32 rows, row 8 q + 2 j + e of the matrix arrives as row
/// 8 j + 2 q + e of the box. Thread q of a quad, which holds columns 8 j + 2 q + e of the result, then holds 8 neighbours of the output, so
/// that no exchange between threads is needed. The matrix has a multiple of 8 rows. If that is no multiple of 32, rows are counted in eights
/// from the first one to the last, so that the copy engine fills what lies beyond them with zeros, and a box has 32 rows.
template <class T>
int32_t permuted_map(CUtensorMap* map, heddle_error* error, const char* name, const In<T>& tensor, int64_t rows, int64_t k,
                     int box_rows) {
  const auto width = static_cast<cuuint64_t>(k);
  if (rows % permuted_rows != 0) {
    return tensor_maps::encode<T, 5>(map, error, name, tensor, {width, 2, static_cast<cuuint64_t>(rows / 8), 4, 1},
                                     {width, 8 * width, 2 * width, permuted_rows * width}, {box_columns<T>, 2, 4, 4, 1});
  }
  return tensor_maps::encode<T, 5>(
      map, error, name, tensor, {width, 2, 4, 4, static_cast<cuuint64_t>(rows / permuted_rows)},
      {width, 8 * width, 2 * width, permuted_rows * width},
      {box_columns<T>, 2, 4, 4, static_cast<cuuint32_t>(box_rows / permuted_rows)});
}

/// Describes a right factor for copy_right().
template <bool Permuted, class T>
int32_t right_map(CUtensorMap* map, heddle_error* error, const char* name, const In<T>& tensor, int64_t rows, int64_t k, int box_rows) {
  return Permuted ? permuted_map(map, error, name, tensor, rows, k, box_rows) : row_map(map, error, name, tensor, rows, k, box_rows);
}

}  // namespace heddle

#endif

#endif
