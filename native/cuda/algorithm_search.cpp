// All algorithms of cuBLASLt: the ids for a combination of types, their capabilities, and a check of each configuration.
#include "algorithm_search.hpp"

#include "algorithm_space.hpp"

namespace heddle {

namespace {

constexpr int most_ids = 512;
// A check takes about a microsecond on the host.
constexpr uint32_t most_checked = 1u << 20;

template <class Value>
Value capability(const CublasLt& lt, const cublasLtMatmulAlgo_t& algorithm, CublasLtAlgoCapability attribute) {
  Value value = 0;
  size_t written = 0;
  const cublasStatus_t status = lt.algo_capability(&algorithm, attribute, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS && written == sizeof value ? value : 0;
}

std::vector<uint32_t> capabilities(const CublasLt& lt, const cublasLtMatmulAlgo_t& algorithm, CublasLtAlgoCapability attribute) {
  size_t bytes = 0;
  if (lt.algo_capability(&algorithm, attribute, nullptr, 0, &bytes) != CUBLAS_STATUS_SUCCESS) return {};
  std::vector<uint32_t> values(bytes / sizeof(uint32_t));
  if (values.empty()) return {};
  const cublasStatus_t status = lt.algo_capability(&algorithm, attribute, values.data(), bytes, &bytes);
  return status == CUBLAS_STATUS_SUCCESS ? values : std::vector<uint32_t>{};
}

AlgorithmSpace space_of(const CublasLt& lt, const cublasLtMatmulAlgo_t& algorithm) {
  AlgorithmSpace space;
  space.tiles = capabilities(lt, algorithm, CUBLASLT_ALGO_CAP_TILE_IDS);
  space.stages = capabilities(lt, algorithm, CUBLASLT_ALGO_CAP_STAGES_IDS);
  space.custom_max = static_cast<uint32_t>(std::max(0, capability<int32_t>(lt, algorithm, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX)));
  space.swizzles = capability<uint32_t>(lt, algorithm, CUBLASLT_ALGO_CAP_CTA_SWIZZLING_SUPPORT) != 0;
  const auto reductions = capability<uint32_t>(lt, algorithm, CUBLASLT_ALGO_CAP_REDUCTION_SCHEME_MASK);
  space.splits = capability<int32_t>(lt, algorithm, CUBLASLT_ALGO_CAP_SPLITK_SUPPORT) != 0 &&
                 (reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
  return space;
}

// False if this version of the library does not have a part of the configuration.
bool configure(const CublasLt& lt, const AlgorithmConfig& config, cublasLtMatmulAlgo_t* algorithm) {
  const auto set = [&](CublasLtAlgoConfigAttribute attribute, const auto& value) {
    return lt.algo_configure(algorithm, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  const uint32_t reduction = config.split == 1 ? 0 : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  return set(CUBLASLT_ALGO_CONFIG_TILE_ID, config.tile) && set(CUBLASLT_ALGO_CONFIG_STAGES_ID, config.stages) &&
         set(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, config.split) && set(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, reduction) &&
         set(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, config.swizzle) && set(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, config.custom) &&
         (config.cluster == 0 || set(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, config.cluster));
}

}  // namespace

cublasStatus_t search_algorithms(const CublasLt& lt, cublasLtHandle_t handle, const Types& types, const MatmulPlan& plan,
                                 const std::function<bool(const cublasLtMatmulHeuristicResult_t&)>& keep) {
  std::vector<int> ids(most_ids);
  int returned = 0;
  const cublasStatus_t status = lt.algo_ids(handle, types.compute, types.scale, types.in, types.in, types.out, types.out, most_ids,
                                            ids.data(), &returned);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  std::vector<AlgorithmSpace> spaces;
  for (int i = 0; i < returned; ++i) {
    cublasLtMatmulAlgo_t algorithm = {};
    // Some ids do not support the types.
    if (lt.algo_init(handle, types.compute, types.scale, types.in, types.in, types.out, types.out, ids[static_cast<size_t>(i)],
                     &algorithm) != CUBLAS_STATUS_SUCCESS) {
      continue;
    }
    algorithms.push_back(algorithm);
    spaces.push_back(space_of(lt, algorithm));
  }
  uint32_t checked = 0;
  for_each_config(spaces, [&](size_t index, const AlgorithmConfig& config) {
    if (++checked > most_checked) return false;
    cublasLtMatmulAlgo_t algorithm = algorithms[index];
    if (!configure(lt, config, &algorithm)) return true;
    cublasLtMatmulHeuristicResult_t result = {};
    const cublasStatus_t found =
        lt.algo_check(handle, plan.description, plan.first, plan.second, plan.out, plan.out, &algorithm, &result);
    if (found != CUBLAS_STATUS_SUCCESS || result.state != CUBLAS_STATUS_SUCCESS) return true;
    if (result.workspaceSize > matmul_workspace_bytes) return true;
    result.algo = algorithm;
    return keep(result);
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace heddle
