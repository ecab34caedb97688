// Runs matmuls through cuBLASLt: a problem is prepared once, and is only enqueued afterwards, as a captured graph requires.
#include <algorithm>
#include <cstring>
#include <utility>

#include "algorithm_search.hpp"
#include "heddle/algorithms.h"
#include "matmul_plan.hpp"

namespace heddle {

static_assert(sizeof(cublasLtMatmulAlgo_t) == HEDDLE_ALGORITHM_BYTES, "an algorithm is kept as its bytes");

namespace {

// True if the output has no elements.
bool is_empty(const heddle_matmul& p) { return p.batch == 0 || p.m == 0 || p.n == 0; }

int32_t check_problem(const heddle_matmul& problem, Types* types, heddle_error* error) {
  if (!resolve_types(problem, types)) {
    return fail(error, HEDDLE_INVALID, "%s: expected f32, f16 or bf16 to itself or f32, or i8 to i32",
                describe_problem(problem).c_str());
  }
  if (problem.batch < 0 || problem.m < 0 || problem.n < 0 || problem.k < 0 || problem.batch > INT32_MAX) {
    return fail(error, HEDDLE_INVALID, "%s: an extent is out of range", describe_problem(problem).c_str());
  }
  if (types->compute == CUBLAS_COMPUTE_32I && has_epilogue(problem)) {
    return fail(error, HEDDLE_INVALID, "%s: sums of int8 take no bias, residual or relu", describe_problem(problem).c_str());
  }
  return HEDDLE_OK;
}

// Part of an algorithm's configuration; 0 if this version of the library does not have it.
template <class Value>
uint32_t part_of(const CublasLt& lt, const cublasLtMatmulAlgo_t& algorithm, CublasLtAlgoConfigAttribute attribute) {
  Value value = 0;
  size_t written = 0;
  const cublasStatus_t status = lt.algo_config(&algorithm, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS && written == sizeof value ? static_cast<uint32_t>(value) : 0;
}

heddle_algorithm described(const CublasLt& lt, const cublasLtMatmulHeuristicResult_t& found) {
  heddle_algorithm algorithm = {};
  memcpy(algorithm.bytes, &found.algo, sizeof algorithm.bytes);
  algorithm.id = part_of<int32_t>(lt, found.algo, CUBLASLT_ALGO_CONFIG_ID);
  algorithm.tile = part_of<uint32_t>(lt, found.algo, CUBLASLT_ALGO_CONFIG_TILE_ID);
  algorithm.stages = part_of<uint32_t>(lt, found.algo, CUBLASLT_ALGO_CONFIG_STAGES_ID);
  algorithm.split = part_of<int32_t>(lt, found.algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM);
  algorithm.swizzle = part_of<uint32_t>(lt, found.algo, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING);
  algorithm.custom = part_of<uint32_t>(lt, found.algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION);
  algorithm.cluster = part_of<uint16_t>(lt, found.algo, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID);
  algorithm.workspace_bytes = found.workspaceSize;
  return algorithm;
}

}  // namespace

MatmulPlans::MatmulPlans() : plans_(std::make_unique<MatmulCache>()) {}

MatmulPlans::~MatmulPlans() {
  plans_.reset();
  if (handle_ != nullptr) library_.destroy(handle_);
}

int32_t MatmulPlans::refuse(const char* call, cublasStatus_t status, const heddle_matmul& problem, heddle_error* error) const {
  return fail(error, HEDDLE_DEVICE, "%s failed with status %d (%s) for %s", call, status, library_.status_name(status),
              describe_problem(problem).c_str());
}

int32_t MatmulPlans::open(const heddle_matmul& problem, heddle_error* error) {
  if (handle_ != nullptr) return HEDDLE_OK;
  const cublasStatus_t status = library_.create(&handle_);
  return status == CUBLAS_STATUS_SUCCESS ? HEDDLE_OK : refuse("cublasLtCreate", status, problem, error);
}

int32_t MatmulPlans::run(const heddle_matmul& problem, const uint8_t* chosen, void* workspace, cudaStream_t stream,
                         heddle_error* error) {
  Types types;
  const int32_t checked = check_problem(problem, &types, error);
  if (checked != HEDDLE_OK || is_empty(problem)) return checked;
  const bool is_library = library_.loaded() && problem.k > 0;
  if (!is_library && chosen == nullptr) return fallback_matmul(problem, stream, error);
  if (!is_library) return fail(error, HEDDLE_INVALID, "%s: there is no matmul library here", describe_problem(problem).c_str());

  const std::lock_guard<std::mutex> lock(mutex_);
  const int32_t opened = open(problem, error);
  if (opened != HEDDLE_OK) return opened;
  const MatmulPlan* plan = nullptr;
  const int32_t found = chosen == nullptr ? plan_of(problem, types, &plan, error) : plan_by(problem, types, chosen, &plan, error);
  if (found != HEDDLE_OK) return found;
  return plan->expressible ? enqueue(problem, *plan, workspace, stream, error) : fallback_matmul(problem, stream, error);
}

int32_t MatmulPlans::plan_of(const heddle_matmul& problem, const Types& types, const MatmulPlan** found, heddle_error* error) {
  std::unique_ptr<MatmulPlan>& plan = plans_->by_key[key_of(problem, nullptr)];
  if (plan == nullptr) {
    auto prepared = std::make_unique<MatmulPlan>(library_);
    const cublasStatus_t status = prepare_plan(library_, handle_, problem, types, prepared.get());
    if (status != CUBLAS_STATUS_SUCCESS) return refuse("cublasLtMatmulAlgoGetHeuristic", status, problem, error);
    plan = std::move(prepared);
  }
  *found = plan.get();
  return HEDDLE_OK;
}

int32_t MatmulPlans::plan_by(const heddle_matmul& problem, const Types& types, const uint8_t* chosen, const MatmulPlan** found,
                             heddle_error* error) {
  cublasLtMatmulAlgo_t algorithm;
  memcpy(&algorithm, chosen, sizeof algorithm);
  if (!is_aligned(problem)) {
    return fail(error, HEDDLE_INVALID, "%s: an explicit algorithm needs operands aligned to 256 bytes",
                describe_problem(problem).c_str());
  }
  std::unique_ptr<MatmulPlan>& plan = plans_->by_key[key_of(problem, &algorithm)];
  if (plan == nullptr) {
    auto prepared = std::make_unique<MatmulPlan>(library_);
    const cublasStatus_t status = prepare_plan_by(library_, handle_, problem, types, algorithm, prepared.get());
    if (status != CUBLAS_STATUS_SUCCESS) {
      return fail(error, HEDDLE_INVALID, "%s: the library does not support the given algorithm: status %d (%s)",
                  describe_problem(problem).c_str(), status, library_.status_name(status));
    }
    plan = std::move(prepared);
  }
  *found = plan.get();
  return HEDDLE_OK;
}

int32_t MatmulPlans::list(const heddle_matmul& problem, uint32_t capacity, heddle_algorithm* algorithms, uint32_t* count,
                          heddle_error* error) {
  *count = 0;
  Types types;
  const int32_t checked = check_problem(problem, &types, error);
  if (checked != HEDDLE_OK || is_empty(problem) || !library_.loaded() || problem.k == 0 || capacity == 0) return checked;

  const std::lock_guard<std::mutex> lock(mutex_);
  const int32_t opened = open(problem, error);
  if (opened != HEDDLE_OK) return opened;
  MatmulPlan plan(library_);
  cublasStatus_t status = describe_plan(library_, problem, types, &plan);
  if (!plan.expressible) return HEDDLE_OK;
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  if (status == CUBLAS_STATUS_SUCCESS) status = list_algorithms(library_, handle_, problem, plan, capacity, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return HEDDLE_OK;
  if (status != CUBLAS_STATUS_SUCCESS) return refuse("cublasLtMatmulAlgoGetHeuristic", status, problem, error);
  const auto keep = [&](const cublasLtMatmulHeuristicResult_t& each) {
    const auto is_same = [&](const heddle_algorithm& other) { return memcmp(other.bytes, &each.algo, sizeof other.bytes) == 0; };
    if (std::none_of(algorithms, algorithms + *count, is_same)) algorithms[(*count)++] = described(library_, each);
    return *count < capacity;
  };
  for (const cublasLtMatmulHeuristicResult_t& each : found) {
    if (each.state == CUBLAS_STATUS_SUCCESS) keep(each);
  }
  if (*count == 0 || *count == capacity) return HEDDLE_OK;
  const cublasStatus_t searched = search_algorithms(library_, handle_, types, plan, keep);
  return searched == CUBLAS_STATUS_SUCCESS ? HEDDLE_OK : refuse("cublasLtMatmulAlgoGetIds", searched, problem, error);
}

int32_t MatmulPlans::enqueue(const heddle_matmul& problem, const MatmulPlan& plan, void* workspace, cudaStream_t stream,
                             heddle_error* error) {
  // Plans are shared by all problems of a kind, so each sets its own bias.
  if (problem.bias.data != nullptr) {
    const cublasStatus_t status =
        library_.desc_set(plan.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &problem.bias.data, sizeof problem.bias.data);
    if (status != CUBLAS_STATUS_SUCCESS) return refuse("cublasLtMatmulDescSetAttribute", status, problem, error);
  }
  const bool added = problem.residual.data != nullptr;
  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const void* alpha = plan.integer ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = plan.integer ? static_cast<const void*>(&integer_zero) : added ? &one : &zero;
  const void* c = added ? problem.residual.data : problem.out.data;
  const void* first = plan.swapped ? problem.b.data : problem.a.data;
  const void* second = plan.swapped ? problem.a.data : problem.b.data;
  const cublasStatus_t status =
      library_.matmul(handle_, plan.description, alpha, first, plan.first, second, plan.second, beta, c, plan.out,
                      problem.out.data, plan.out, &plan.algorithm, workspace, matmul_workspace_bytes, stream);
  return status == CUBLAS_STATUS_SUCCESS ? HEDDLE_OK : refuse("cublasLtMatmul", status, problem, error);
}

}  // namespace heddle
