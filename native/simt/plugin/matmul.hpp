// The simt device's matmul: out[b, m, n] = sum over k of a[b, m, k] * b[b, n, k], in the storage types and strides of abi.h,
// with its bias, residual and relu.
#ifndef HEDDLE_SIMT_PLUGIN_MATMUL_HPP
#define HEDDLE_SIMT_PLUGIN_MATMUL_HPP

#include "memory.hpp"
#include "workers.hpp"

namespace heddle::simt {

/// HEDDLE_INVALID, with the numbers, if types, strides or slices do not form a matmul.
int32_t check_matmul(const heddle_matmul& matmul, Memory& memory, heddle_error* error);

/// Runs a matmul that check_matmul accepts.
int32_t run_matmul(const heddle_matmul& matmul, Workers& workers, heddle_error* error);

}  // namespace heddle::simt

#endif
