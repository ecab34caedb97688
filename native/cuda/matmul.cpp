// Matmul through cuBLASLt: a problem becomes column-major layouts and an algorithm once, and is only enqueued afterwards, which
// is what a captured graph needs.
#include <array>
#include <cinttypes>
#include <cstdio>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>

#include "device.hpp"

namespace heddle {

namespace {

struct Types {
  cudaDataType_t in, out, scale;
  int compute;
};

// The combinations of storage types there are: float inputs of one type with float or equal output, int8 to int32.
bool resolve_types(const heddle_matmul& p, Types* types) {
  if (p.dtype_a != p.dtype_b) return false;
  const bool to_f32 = p.dtype_out == HEDDLE_F32;
  switch (p.dtype_a) {
    case HEDDLE_F32:
      *types = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, p.allow_tf32 != 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
      return to_f32;
    case HEDDLE_F16:
      *types = {CUDA_R_16F, to_f32 ? CUDA_R_32F : CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return to_f32 || p.dtype_out == HEDDLE_F16;
    case HEDDLE_BF16:
      *types = {CUDA_R_16BF, to_f32 ? CUDA_R_32F : CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return to_f32 || p.dtype_out == HEDDLE_BF16;
    case HEDDLE_I8:
      *types = {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
      return p.dtype_out == HEDDLE_I32;
    default:
      return false;
  }
}

// A column-major matrix as cuBLASLt wants it; `transposed` says that it has to be read the other way round.
struct Matrix {
  int64_t rows, columns, ld, batch_stride;
  bool transposed;
};

// Describes a rows x columns operand with the given strides. False when neither direction has stride 1 and room for its rows.
bool describe(int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride, int64_t batch_stride, Matrix* matrix) {
  const auto fits = [](int64_t inner, int64_t inner_stride, int64_t outer, int64_t outer_stride) {
    return (inner_stride == 1 || inner == 1) && (outer_stride >= inner || outer == 1);
  };
  if (fits(rows, row_stride, columns, column_stride)) {
    *matrix = {rows, columns, columns == 1 ? rows : column_stride, batch_stride, false};
    return true;
  }
  if (fits(columns, column_stride, rows, row_stride)) {
    *matrix = {columns, rows, rows == 1 ? columns : row_stride, batch_stride, true};
    return true;
  }
  return false;
}

// The largest power of two up to 256 that divides an address: what the algorithm may rely on.
uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

std::string describe_problem(const heddle_matmul& p) {
  static constexpr const char* names[] = {"f32", "f16", "bf16", "i32", "i8", "u8"};
  const auto name = [](int32_t dtype) { return dtype >= 0 && dtype < 6 ? names[dtype] : "?"; };
  char text[320];
  snprintf(text, sizeof text,
           "matmul %s x %s -> %s, batch %" PRId64 ", m %" PRId64 ", n %" PRId64 ", k %" PRId64                //
           ", strides a (%" PRId64 ", %" PRId64 ", %" PRId64 "), b (%" PRId64 ", %" PRId64 ", %" PRId64 ")"  //
           ", out (%" PRId64 ", %" PRId64 ", %" PRId64 ")",
           name(p.dtype_a), name(p.dtype_b), name(p.dtype_out), p.batch, p.m, p.n, p.k, p.a_batch, p.a_m, p.a_k, p.b_batch, p.b_n,
           p.b_k, p.out_batch, p.out_m, p.out_n);
  return text;
}

}  // namespace

// Everything the choice of an algorithm depends on.
struct MatmulKey {
  std::array<int64_t, 20> values;
  bool operator==(const MatmulKey& other) const { return values == other.values; }
};

struct MatmulKeyHash {
  size_t operator()(const MatmulKey& key) const {
    size_t hash = 0;
    for (const int64_t value : key.values) hash = hash * 1000003 + std::hash<int64_t>()(value);
    return hash;
  }
};

// cuBLASLt computes column-major d = first x second. Where the output is row-major that is its transpose, so b comes first.
struct MatmulPlan {
  explicit MatmulPlan(const CublasLt& library) : library(library) {}
  ~MatmulPlan() {
    if (description != nullptr) library.desc_destroy(description);
    for (cublasLtMatrixLayout_t layout : {first, second, out}) {
      if (layout != nullptr) library.layout_destroy(layout);
    }
  }
  MatmulPlan(const MatmulPlan&) = delete;
  MatmulPlan& operator=(const MatmulPlan&) = delete;

  const CublasLt& library;
  bool expressible = true;  // false: the operands' strides need the fallback
  bool swapped = false;
  bool integer = false;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, out = nullptr;
  cublasLtMatmulAlgo_t algorithm = {};
};

struct MatmulCache {
  std::unordered_map<MatmulKey, std::unique_ptr<MatmulPlan>, MatmulKeyHash> by_key;
};

namespace {

struct Operands {
  Matrix first, second, out;
  bool swapped;
};

bool describe_operands(const heddle_matmul& p, Operands* o) {
  if (!describe(p.m, p.out_m, p.n, p.out_n, p.out_batch, &o->out)) return false;
  o->swapped = o->out.transposed;
  if (o->swapped) {
    return describe(p.n, p.b_n, p.k, p.b_k, p.b_batch, &o->first) && describe(p.k, p.a_k, p.m, p.a_m, p.a_batch, &o->second);
  }
  return describe(p.m, p.a_m, p.k, p.a_k, p.a_batch, &o->first) && describe(p.k, p.b_k, p.n, p.b_n, p.b_batch, &o->second);
}

cublasStatus_t create_layout(const CublasLt& lt, cudaDataType_t type, const Matrix& m, int64_t batch,
                             cublasLtMatrixLayout_t* layout) {
  const auto count = static_cast<int32_t>(batch);
  cublasStatus_t status = lt.layout_create(layout, type, m.rows, m.columns, m.ld);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.layout_set(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.layout_set(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m.batch_stride, sizeof m.batch_stride);
  }
  return status;
}

// Asks for the algorithm with the pointers' true alignment, since 16 bytes is assumed otherwise.
cublasStatus_t choose(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, MatmulPlan* plan) {
  cublasLtMatmulPreference_t preference = nullptr;
  cublasStatus_t status = lt.preference_create(&preference);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto set = [&](int attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = lt.preference_set(preference, attribute, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, matmul_workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(plan->swapped ? p.b.data : p.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(plan->swapped ? p.a.data : p.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.out.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.out.data));

  cublasLtMatmulHeuristicResult_t result = {};
  int returned = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.heuristic(handle, plan->description, plan->first, plan->second, plan->out, plan->out, preference, 1, &result,
                          &returned);
  }
  if (status == CUBLAS_STATUS_SUCCESS) status = result.state;
  lt.preference_destroy(preference);
  plan->algorithm = result.algo;
  return status;
}

cublasStatus_t prepare(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, const Types& types,
                       MatmulPlan* plan) {
  Operands operands;
  plan->expressible = describe_operands(p, &operands);
  if (!plan->expressible) return CUBLAS_STATUS_SUCCESS;
  plan->swapped = operands.swapped;
  plan->integer = types.compute == CUBLAS_COMPUTE_32I;

  cublasStatus_t status = lt.desc_create(&plan->description, types.compute, types.scale);
  const auto transpose = [&](int attribute, bool transposed) {
    const int32_t operation = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (status == CUBLAS_STATUS_SUCCESS) status = lt.desc_set(plan->description, attribute, &operation, sizeof operation);
  };
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, operands.first.transposed);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, operands.second.transposed);
  const auto layout = [&](cudaDataType_t type, const Matrix& matrix, cublasLtMatrixLayout_t* created) {
    if (status == CUBLAS_STATUS_SUCCESS) status = create_layout(lt, type, matrix, p.batch, created);
  };
  layout(types.in, operands.first, &plan->first);
  layout(types.in, operands.second, &plan->second);
  layout(types.out, operands.out, &plan->out);
  return status == CUBLAS_STATUS_SUCCESS ? choose(lt, handle, p, plan) : status;
}

MatmulKey key_of(const heddle_matmul& p) {
  return {{p.dtype_a, p.dtype_b, p.dtype_out, p.allow_tf32, p.batch, p.m, p.n, p.k, p.a_batch, p.a_m, p.a_k, p.b_batch, p.b_n,
           p.b_k, p.out_batch, p.out_m, p.out_n, alignment(p.a.data), alignment(p.b.data), alignment(p.out.data)}};
}

}  // namespace

MatmulPlans::MatmulPlans() : plans_(std::make_unique<MatmulCache>()) {}

MatmulPlans::~MatmulPlans() {
  plans_.reset();
  if (handle_ != nullptr) library_.destroy(handle_);
}

int32_t MatmulPlans::run(const heddle_matmul& problem, void* workspace, cudaStream_t stream, heddle_error* error) {
  Types types;
  if (!resolve_types(problem, &types)) {
    return fail(error, HEDDLE_INVALID, "%s: allowed are f32, f16 and bf16 to themselves or f32, and i8 to i32",
                describe_problem(problem).c_str());
  }
  if (problem.batch < 0 || problem.m < 0 || problem.n < 0 || problem.k < 0 || problem.batch > INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "%s: an extent is out of range", describe_problem(problem).c_str());
  }
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return HEDDLE_OK;
  if (!library_.loaded() || problem.k == 0) return fallback_matmul(problem, stream, error);

  const auto refuse = [&](const char* call, cublasStatus_t status) {
    return fail(error, HEDDLE_DEVICE, "%s failed with status %d (%s) for %s", call, status, library_.status_name(status),
                describe_problem(problem).c_str());
  };
  const std::lock_guard<std::mutex> lock(mutex_);
  if (handle_ == nullptr) {
    const cublasStatus_t status = library_.create(&handle_);
    if (status != CUBLAS_STATUS_SUCCESS) return refuse("cublasLtCreate", status);
  }
  std::unique_ptr<MatmulPlan>& plan = plans_->by_key[key_of(problem)];
  if (plan == nullptr) {
    auto prepared = std::make_unique<MatmulPlan>(library_);
    const cublasStatus_t status = prepare(library_, handle_, problem, types, prepared.get());
    if (status != CUBLAS_STATUS_SUCCESS) return refuse("cublasLtMatmulAlgoGetHeuristic", status);
    plan = std::move(prepared);
  }
  if (!plan->expressible) return fallback_matmul(problem, stream, error);

  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const void* alpha = plan->integer ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = plan->integer ? static_cast<const void*>(&integer_zero) : &zero;
  const void* first = plan->swapped ? problem.b.data : problem.a.data;
  const void* second = plan->swapped ? problem.a.data : problem.b.data;
  const cublasStatus_t status =
      library_.matmul(handle_, plan->description, alpha, first, plan->first, second, plan->second, beta, problem.out.data,
                      plan->out, problem.out.data, plan->out, &plan->algorithm, workspace, matmul_workspace_bytes, stream);
  return status == CUBLAS_STATUS_SUCCESS ? HEDDLE_OK : refuse("cublasLtMatmul", status);
}

}  // namespace heddle
