// A matmul in cuBLASLt's terms: descriptors, layouts and an algorithm, created once for all problems of a kind.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "matmul_problem.hpp"

namespace heddle {

// Everything the choice of an algorithm depends on.
struct MatmulKey {
  std::array<int64_t, 31> values;
  bool operator==(const MatmulKey& other) const { return values == other.values; }
};

struct MatmulKeyHash {
  size_t operator()(const MatmulKey& key) const {
    size_t hash = 0;
    for (const int64_t value : key.values) hash = hash * 1000003 + std::hash<int64_t>()(value);
    return hash;
  }
};

// cuBLASLt computes column-major d = first x second. For a row-major output d is its transpose, so b comes first.
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

// All properties except the pointers' values. `algorithm` is null if the library chooses.
MatmulKey key_of(const heddle_matmul& p, const cublasLtMatmulAlgo_t* algorithm);

// Creates the descriptors of a problem; `expressible` is false if it has none.
cublasStatus_t describe_plan(const CublasLt& lt, const heddle_matmul& p, const Types& types, MatmulPlan* plan);

// Lists at most `capacity` algorithms for a described problem, best first by the library's estimate. Passes the pointers' true alignment, since 16
// bytes is assumed otherwise.
cublasStatus_t list_algorithms(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, const MatmulPlan& plan,
                               uint32_t capacity, std::vector<cublasLtMatmulHeuristicResult_t>* found);

// Describes a problem and uses the library's first algorithm for it.
cublasStatus_t prepare_plan(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, const Types& types, MatmulPlan* plan);

// Describes a problem and uses the given algorithm. NOT_SUPPORTED if the library does not support it for the problem.
cublasStatus_t prepare_plan_by(const CublasLt& lt, cublasLtHandle_t handle, const heddle_matmul& p, const Types& types,
                               const cublasLtMatmulAlgo_t& algorithm, MatmulPlan* plan);

}  // namespace heddle
