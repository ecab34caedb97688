// Matmuls in cuBLASLt's terms: a problem becomes column-major layouts and an algorithm.
#include "matmul_plan.hpp"

#include <algorithm>
#include <iterator>

namespace heddle {

namespace {

struct Operands {
  Matrix first, second, out;
  bool swapped;
};

// A bias has one element per row of d, so these have to be the columns of out. An output of one row or column could be either.
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

// Without the residual, which is the c of alpha * first x second + beta * c. Some of the library's kernels round that to out's type before the bias
// is added.
CublasLtEpilogue epilogue_of(const heddle_matmul& p) {
  const uint32_t parts = (p.bias.data == nullptr ? 0u : CUBLASLT_EPILOGUE_BIAS) | (p.relu == 0 ? 0u : CUBLASLT_EPILOGUE_RELU);
  return static_cast<CublasLtEpilogue>(parts == 0 ? CUBLASLT_EPILOGUE_DEFAULT : parts);
}

}  // namespace

cublasStatus_t list_algorithms(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, const MatmulPlan& plan,
                               uint32_t capacity, std::vector<cublasLtMatmulHeuristicResult_t>* found) {
  cublasLtMatmulPreference_t preference = nullptr;
  cublasStatus_t status = lt.preference_create(&preference);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const auto set = [&](int attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS) status = lt.preference_set(preference, attribute, &value, sizeof value);
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, matmul_workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(plan.swapped ? p.b.data : p.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(plan.swapped ? p.a.data : p.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p.residual.data == nullptr ? p.out.data : p.residual.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p.out.data));

  found->assign(capacity, cublasLtMatmulHeuristicResult_t{});
  int returned = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.heuristic(handle, plan.description, plan.first, plan.second, plan.out, plan.out, preference,
                          static_cast<int>(capacity), found->data(), &returned);
  }
  lt.preference_destroy(preference);
  found->resize(status == CUBLAS_STATUS_SUCCESS ? static_cast<size_t>(returned) : 0);
  return status;
}

cublasStatus_t describe_plan(const CublasLt& lt, const heddle_matmul& p, const Types& types, MatmulPlan* plan) {
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
  // The algorithm may rely on the alignment of the bias, which it takes from the pointer.
  if (p.bias.data != nullptr) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias.data);
  const auto layout = [&](cudaDataType_t type, const Matrix& matrix, cublasLtMatrixLayout_t* created) {
    if (status == CUBLAS_STATUS_SUCCESS) status = create_layout(lt, type, matrix, p.batch, created);
  };
  layout(types.in, operands.first, &plan->first);
  layout(types.in, operands.second, &plan->second);
  layout(types.out, operands.out, &plan->out);
  return status;
}

cublasStatus_t prepare_plan(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, const Types& types,
                            MatmulPlan* plan) {
  cublasStatus_t status = describe_plan(lt, p, types, plan);
  if (!plan->expressible) return status;
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  if (status == CUBLAS_STATUS_SUCCESS) status = list_algorithms(lt, handle, p, *plan, 1, &found);
  if (status == CUBLAS_STATUS_SUCCESS) status = found.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : found.front().state;
  // Some epilogues are not supported at every alignment, and sums of int8 only for multiples of four.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) {
    plan->expressible = false;
    return CUBLAS_STATUS_SUCCESS;
  }
  if (status == CUBLAS_STATUS_SUCCESS) plan->algorithm = found.front().algo;
  return status;
}

cublasStatus_t prepare_plan_by(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, const Types& types,
                               const cublasLtMatmulAlgo_t& algorithm, MatmulPlan* plan) {
  cublasStatus_t status = describe_plan(lt, p, types, plan);
  if (!plan->expressible) return CUBLAS_STATUS_NOT_SUPPORTED;
  cublasLtMatmulHeuristicResult_t checked = {};
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = lt.algo_check(handle, plan->description, plan->first, plan->second, plan->out, plan->out, &algorithm, &checked);
  }
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (checked.state != CUBLAS_STATUS_SUCCESS) return checked.state;
  if (checked.workspaceSize > matmul_workspace_bytes) return CUBLAS_STATUS_NOT_SUPPORTED;
  plan->algorithm = algorithm;
  return CUBLAS_STATUS_SUCCESS;
}

MatmulKey key_of(const heddle_matmul& p, const cublasLtMatmulAlgo_t* algorithm) {
  MatmulKey key = {{p.dtype_a, p.dtype_b, p.dtype_out, p.allow_tf32, p.batch, p.m, p.n, p.k, p.a_batch, p.a_m, p.a_k, p.b_batch, p.b_n,
                    p.b_k, p.out_batch, p.out_m, p.out_n, alignment(p.a.data), alignment(p.b.data), alignment(p.out.data),
                    p.bias.data == nullptr ? 0 : alignment(p.bias.data), p.residual.data == nullptr ? 0 : alignment(p.residual.data),
                    p.relu}};
  if (algorithm != nullptr) std::copy(std::begin(algorithm->data), std::end(algorithm->data), key.values.end() - 8);
  return key;
}

}  // namespace heddle
