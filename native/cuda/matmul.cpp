// Matmul through cuBLASLt: a problem becomes column-major layouts and an algorithm once, and is only enqueued afterwards, which
// is what a captured graph needs.
#include <array>
#include <functional>
#include <unordered_map>
#include <utility>

#include "matmul_problem.hpp"

namespace heddle {

// Everything the choice of an algorithm depends on.
struct MatmulKey {
  std::array<int64_t, 23> values;
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
  bool expressible = true;  // false: the operands' strides or extents, or the epilogue, need the fallback
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

// A bias has an element for each row of d: those have to be the columns of out. An output of one row or column could be either.
bool describe_operands(const heddle_matmul& p, Operands* o) {
  if (p.bias.data != nullptr) {
    if (!describe(p.n, p.out_n, p.m, p.out_m, p.out_batch, &o->out) || o->out.transposed) return false;
    o->swapped = true;
  } else {
    if (!describe(p.m, p.out_m, p.n, p.out_n, p.out_batch, &o->out)) return false;
    o->swapped = o->out.transposed;
  }
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

// The residual is no part of it: it is the c of alpha * first x second + beta * c. Some of the library's kernels round that to out's
// type before the bias is added.
CublasLtEpilogue epilogue_of(const heddle_matmul& p) {
  const uint32_t parts = (p.bias.data == nullptr ? 0u : CUBLASLT_EPILOGUE_BIAS) | (p.relu == 0 ? 0u : CUBLASLT_EPILOGUE_RELU);
  return static_cast<CublasLtEpilogue>(parts == 0 ? CUBLASLT_EPILOGUE_DEFAULT : parts);
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
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.residual.data == nullptr ? p.out.data : p.residual.data));
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
  const auto set = [&](int attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = lt.desc_set(plan->description, attribute, &value, sizeof value);
  };
  const auto operation = [](const Matrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, operation(operands.first));
  set(CUBLASLT_MATMUL_DESC_TRANSB, operation(operands.second));
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p));
  // The algorithm may rely on the alignment of the bias, which it reads off the pointer.
  if (p.bias.data != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
  const auto layout = [&](cudaDataType_t type, const Matrix& matrix, cublasLtMatrixLayout_t* created) {
    if (status == CUBLAS_STATUS_SUCCESS) status = create_layout(lt, type, matrix, p.batch, created);
  };
  layout(types.in, operands.first, &plan->first);
  layout(types.in, operands.second, &plan->second);
  layout(types.out, operands.out, &plan->out);
  if (status == CUBLAS_STATUS_SUCCESS) status = choose(lt, handle, p, plan);
  // Not every epilogue goes with every alignment, and sums of int8 take multiples of four alone.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    plan->expressible = false;
    return CUBLAS_STATUS_SUCCESS;
  }
  return status;
}

MatmulKey key_of(const heddle_matmul& p) {
  return {{p.dtype_a, p.dtype_b, p.dtype_out, p.allow_tf32, p.batch, p.m, p.n, p.k, p.a_batch, p.a_m, p.a_k, p.b_batch, p.b_n,
           p.b_k, p.out_batch, p.out_m, p.out_n, alignment(p.a.data), alignment(p.b.data), alignment(p.out.data),
           p.bias.data == nullptr ? 0 : alignment(p.bias.data), p.residual.data == nullptr ? 0 : alignment(p.residual.data),
           p.relu}};
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
  if (types.compute == CUBLAS_COMPUTE_32I && has_epilogue(problem)) {
    return fail(error, HEDDLE_INVALID, "%s: sums of int8 take no bias, residual or relu", describe_problem(problem).c_str());
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

  // Plans are shared by all problems of a kind: each brings its own bias.
  if (problem.bias.data != nullptr) {
    const cublasStatus_t status =
        library_.desc_set(plan->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &problem.bias.data, sizeof problem.bias.data);
    if (status != CUBLAS_STATUS_SUCCESS) return refuse("cublasLtMatmulDescSetAttribute", status);
  }
  const bool added = problem.residual.data != nullptr;
  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const void* alpha = plan->integer ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = plan->integer ? static_cast<const void*>(&integer_zero) : added ? &one : &zero;
  const void* c = added ? problem.residual.data : problem.out.data;
  const void* first = plan->swapped ? problem.b.data : problem.a.data;
  const void* second = plan->swapped ? problem.a.data : problem.b.data;
  const cublasStatus_t status =
      library_.matmul(handle_, plan->description, alpha, first, plan->first, second, plan->second, beta, c, plan->out,
                      problem.out.data, plan->out, &plan->algorithm, workspace, matmul_workspace_bytes, stream);
  return status == CUBLAS_STATUS_SUCCESS ? HEDDLE_OK : refuse("cublasLtMatmul", status);
}

}  // namespace heddle
