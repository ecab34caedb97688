// Search of all algorithms that cuBLASLt has for a matmul. Its heuristic returns at most eight.
#pragma once

#include <functional>

#include "matmul_plan.hpp"

namespace heddle {

// Calls `keep` with each supported configuration of every algorithm, until it returns false, or until `most_checked` configurations were checked.
cublasStatus_t search_algorithms(const CublasLt& lt, cublasLtHandle_t handle, const Types& types, const MatmulPlan& plan,
                                 const std::function<bool(const cublasLtMatmulHeuristicResult_t&)>& keep);

}  // namespace heddle
