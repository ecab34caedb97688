// cuBLASLt, opened at run time. Only the matmul's part of its interface is declared, with the numeric values of cuBLAS 12 and 13; cuBLAS headers are
// not needed to build.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace heddle {

using cublasStatus_t = int;
constexpr cublasStatus_t CUBLAS_STATUS_SUCCESS = 0;
constexpr cublasStatus_t CUBLAS_STATUS_NOT_SUPPORTED = 15;

using cublasLtHandle_t = struct CublasLtContext*;
using cublasLtMatmulDesc_t = struct CublasLtMatmulDescription*;
using cublasLtMatrixLayout_t = struct CublasLtMatrixLayout*;
using cublasLtMatmulPreference_t = struct CublasLtMatmulPreference*;

enum CublasOperation : int32_t { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum CublasCompute : int { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_32I = 72 };
enum CublasLtMatmulDescAttribute : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,     // uint32_t
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8  // one element for each row of d, of d's type
};
// Parts of an epilogue, in this order: the bias is added, then relu applied.
enum CublasLtEpilogue : uint32_t {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4
};
enum CublasLtMatrixLayoutAttribute : int {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          // int32_t
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6  // int64_t, elements
};
enum CublasLtMatmulPreferenceAttribute : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,    // uint64_t
  CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK = 3,  // uint32_t
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,  // uint32_t; B, C and D follow
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};
// Parts of an algorithm's configuration.
enum CublasLtAlgoConfigAttribute : int {
  CUBLASLT_ALGO_CONFIG_ID = 0,              // int32_t
  CUBLASLT_ALGO_CONFIG_TILE_ID = 1,         // uint32_t
  CUBLASLT_ALGO_CONFIG_SPLITK_NUM = 2,      // int32_t
  CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME = 3,  // uint32_t
  CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING = 4,   // uint32_t
  CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION = 5,   // uint32_t
  CUBLASLT_ALGO_CONFIG_STAGES_ID = 6,       // uint32_t
  CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID = 8  // uint16_t
};
// Capabilities of an algorithm.
enum CublasLtAlgoCapability : int {
  CUBLASLT_ALGO_CAP_SPLITK_SUPPORT = 0,         // int32_t
  CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK = 1,  // uint32_t
  CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT = 2,  // uint32_t
  CUBLASLT_ALGO_CAP_TILE_IDS = 6,               // uint32_t each
  CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX = 7,      // int32_t
  CUBLASLT_ALGO_CAP_STAGES_IDS = 13             // uint32_t each
};
// Split-K partial sums are added in the compute type: never in the output's, which would sum in float16.
constexpr uint32_t CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE = 2;

struct cublasLtMatmulAlgo_t {
  uint64_t data[8];
};

struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "cuBLASLt writes an array of these");

// The library's functions, or none of them. HEDDLE_CUBLASLT names the library file, or is `off`.
class CublasLt {
 public:
  CublasLt();

  bool loaded() const { return loaded_; }
  // 130100 for 13.1; 0 when not loaded.
  int32_t version() const;

  cublasStatus_t (*create)(cublasLtHandle_t*) = nullptr;
  cublasStatus_t (*destroy)(cublasLtHandle_t) = nullptr;
  size_t (*get_version)() = nullptr;
  const char* (*status_name)(cublasStatus_t) = nullptr;
  cublasStatus_t (*desc_create)(cublasLtMatmulDesc_t*, int compute, cudaDataType_t scale) = nullptr;
  cublasStatus_t (*desc_destroy)(cublasLtMatmulDesc_t) = nullptr;
  cublasStatus_t (*desc_set)(cublasLtMatmulDesc_t, int attribute, const void*, size_t) = nullptr;
  cublasStatus_t (*layout_create)(cublasLtMatrixLayout_t*, cudaDataType_t, uint64_t rows, uint64_t columns, int64_t ld) = nullptr;
  cublasStatus_t (*layout_destroy)(cublasLtMatrixLayout_t) = nullptr;
  cublasStatus_t (*layout_set)(cublasLtMatrixLayout_t, int attribute, const void*, size_t) = nullptr;
  cublasStatus_t (*preference_create)(cublasLtMatmulPreference_t*) = nullptr;
  cublasStatus_t (*preference_destroy)(cublasLtMatmulPreference_t) = nullptr;
  cublasStatus_t (*preference_set)(cublasLtMatmulPreference_t, int attribute, const void*, size_t) = nullptr;
  cublasStatus_t (*heuristic)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t, int requested,
                              cublasLtMatmulHeuristicResult_t*, int* returned) = nullptr;
  // Checks if a stored algorithm can be used for a problem, and the workspace that it then needs.
  cublasStatus_t (*algo_check)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t*,
                               cublasLtMatmulHeuristicResult_t*) = nullptr;
  // Ids of the algorithms for a combination of types, at most `requested`.
  cublasStatus_t (*algo_ids)(cublasLtHandle_t, int compute, cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b, cudaDataType_t c,
                             cudaDataType_t d, int requested, int* ids, int* returned) = nullptr;
  cublasStatus_t (*algo_init)(cublasLtHandle_t, int compute, cudaDataType_t scale, cudaDataType_t a, cudaDataType_t b,
                              cudaDataType_t c, cudaDataType_t d, int id, cublasLtMatmulAlgo_t*) = nullptr;
  cublasStatus_t (*algo_capability)(const cublasLtMatmulAlgo_t*, int attribute, void*, size_t, size_t* written) = nullptr;
  cublasStatus_t (*algo_configure)(cublasLtMatmulAlgo_t*, int attribute, const void*, size_t) = nullptr;
  cublasStatus_t (*algo_config)(const cublasLtMatmulAlgo_t*, int attribute, void*, size_t, size_t* written) = nullptr;
  cublasStatus_t (*matmul)(cublasLtHandle_t, cublasLtMatmulDesc_t, const void* alpha, const void* a, cublasLtMatrixLayout_t,
                           const void* b, cublasLtMatrixLayout_t, const void* beta, const void* c, cublasLtMatrixLayout_t,
                           void* d, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void* workspace,
                           size_t workspace_bytes, cudaStream_t) = nullptr;

 private:
  bool bind(void* library);
  bool loaded_ = false;
};

}  // namespace heddle
