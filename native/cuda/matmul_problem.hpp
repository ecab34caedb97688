// What a matmul is to cuBLASLt: its types and its matrices, and itself in words for errors.
#pragma once

#include <string>

#include "device.hpp"

namespace heddle {

struct Types {
  cudaDataType_t in, out, scale;
  int compute;
};

// The combinations of storage types there are: float inputs of one type with float or equal output, int8 to int32.
bool resolve_types(const heddle_matmul& p, Types* types);

// A column-major matrix as cuBLASLt wants it; `transposed` says that it has to be read the other way round.
struct Matrix {
  int64_t rows, columns, ld, batch_stride;
  bool transposed;
};

// Describes a rows x columns operand with the given strides. False when neither direction has stride 1 and room for its rows.
bool describe(int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride, int64_t batch_stride, Matrix* matrix);

// The largest power of two up to 256 that divides an address: what the algorithm may rely on.
uint32_t alignment(const void* data);

// True if every operand is aligned as much as an algorithm may rely on.
bool is_aligned(const heddle_matmul& p);

bool has_epilogue(const heddle_matmul& p);

std::string describe_problem(const heddle_matmul& p);

}  // namespace heddle
