// A matmul as input of cuBLASLt: its types and matrices, and its description for errors.
#pragma once

#include <string>

#include "device.hpp"

namespace heddle {

struct Types {
  cudaDataType_t in, out, scale;
  int compute;
};

// The supported combinations of storage types: float inputs of one type with float or equal output, int8 to int32.
bool resolve_types(const heddle_matmul& p, Types* types);

// A column-major matrix for cuBLASLt; `transposed` if it has to be read as its transpose.
struct Matrix {
  int64_t rows, columns, ld, batch_stride;
  bool transposed;
};

// Describes a rows x columns operand with the given strides. False if neither direction has stride 1 and a leading dimension of at least its length.
bool describe(int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride, int64_t batch_stride, Matrix* matrix);

// The largest power of two up to 256 that divides an address: the alignment that the algorithm may rely on.
uint32_t alignment(const void* data);

// True if every operand has the alignment that an algorithm may rely on.
bool is_aligned(const heddle_matmul& p);

bool has_epilogue(const heddle_matmul& p);

std::string describe_problem(const heddle_matmul& p);

}  // namespace heddle
