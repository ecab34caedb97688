// The int8 matmul for operands that do not consist of aligned 16-byte words: one thread computes a chunk of eight columns, element by
// element.
#ifndef HEDDLE_MATMUL_INT8_SIMPLE_CUH
#define HEDDLE_MATMUL_INT8_SIMPLE_CUH

#include "matmul_int8_kernel.cuh"

namespace heddle {

constexpr int int8_simple_threads = 128;

/// `rows`: those of all batches.
template <class OrderA, class OrderB, class Epilogue>
__global__ void __launch_bounds__(int8_simple_threads)
    matmul_int8_simple(const Int8Shape shape, const int64_t rows, const Int8Operands operands, const Epilogue epilogue) {
  using Call = EpilogueCall<Epilogue>;
  begin_kernel();
  int64_t position = static_cast<int64_t>(blockIdx.x) * int8_simple_threads + threadIdx.x;
  const int64_t column = peel(position, chunks_of<8>(static_cast<int>(shape.n))) * int64_t{8};
  if (position >= rows) return;
  const int64_t batch = position / shape.m, row = position % shape.m;
  const int valid = static_cast<int>(shape.n - column < 8 ? shape.n - column : 8);
  int sums[8] = {};
  for (int i = 0; i < shape.k; ++i) {
    const int a = operands.a.get(batch * operands.a_batch + OrderA::offset(row, i, operands.a_pitch));
    HEDDLE_UNROLL
    for (int c = 0; c < 8; ++c) {
      if (c < valid) sums[c] += a * operands.b.get(batch * operands.b_batch + OrderB::offset(column + c, i, operands.b_pitch));
    }
  }
  const auto loaded = Call::template load<false>(epilogue, position, static_cast<int>(column), valid);
  Call::template finish<false>(epilogue, position, static_cast<int>(column), valid, sums, loaded);
}

}  // namespace heddle

#endif
