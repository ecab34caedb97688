#include "matmul_problem.hpp"

#include <cinttypes>
#include <cstdio>

namespace heddle {

bool resolve_types(const heddle_matmul& p, Types* types) {
  if (p.dtype_a != p.dtype_b) return false;
  const bool to_f32 = p.dtype_out == HEDDLE_F32;
  switch (p.dtype_a) {
    case HEDDLE_F32:
      *types = {CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, p.allow_tf32 != 0 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
      return to_f32;
    case HEDDLE_F16:
      *types = {CUDA_R_16F, to_f32 ? CUDA_R_32F : CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return to_f32 || p.dtype_out == HEDDLE_F16;
    case HEDDLE_BF16:
      *types = {CUDA_R_16BF, to_f32 ? CUDA_R_32F : CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
      return to_f32 || p.dtype_out == HEDDLE_BF16;
    case HEDDLE_I8:
      *types = {CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I};
      return p.dtype_out == HEDDLE_I32;
    default:
      return false;
  }
}

bool describe(int64_t rows, int64_t row_stride, int64_t columns, int64_t column_stride, int64_t batch_stride, Matrix* matrix) {
  const auto fits = [](int64_t inner, int64_t inner_stride, int64_t outer, int64_t outer_stride) {
    return (inner_stride == 1 || inner == 1) && (outer_stride >= inner || outer == 1);
  };
  if (fits(rows, row_stride, columns, column_stride)) {
    *matrix = {rows, columns, columns == 1 ? rows : column_stride, batch_stride, false};
    return true;
  }
  if (fits(columns, column_stride, rows, row_stride)) {
    *matrix = {columns, rows, rows == 1 ? columns : row_stride, batch_stride, true};
    return true;
  }
  return false;
}

uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256;
  return static_cast<uint32_t>(address & (~address + 1));
}

std::string describe_problem(const heddle_matmul& p) {
  static constexpr const char* names[] = {"f32", "f16", "bf16", "i32", "i8", "u8", "f8e4m3", "f8e5m2", "i16", "u32", "i64"};
  const auto name = [](int32_t dtype) { return dtype >= 0 && dtype <= HEDDLE_I64 ? names[dtype] : "?"; };
  char text[400];
  snprintf(text, sizeof text,
           "matmul %s x %s -> %s, batch %" PRId64 ", m %" PRId64 ", n %" PRId64 ", k %" PRId64                //
           ", strides a (%" PRId64 ", %" PRId64 ", %" PRId64 "), b (%" PRId64 ", %" PRId64 ", %" PRId64 ")"  //
           ", out (%" PRId64 ", %" PRId64 ", %" PRId64 ")%s%s%s",
           name(p.dtype_a), name(p.dtype_b), name(p.dtype_out), p.batch, p.m, p.n, p.k, p.a_batch, p.a_m, p.a_k, p.b_batch, p.b_n,
           p.b_k, p.out_batch, p.out_m, p.out_n, p.bias.data == nullptr ? "" : ", bias",
           p.residual.data == nullptr ? "" : ", residual", p.relu == 0 ? "" : ", relu");
  return text;
}

bool is_aligned(const heddle_matmul& p) {
  for (const void* data : {p.a.data, p.b.data, p.out.data, p.bias.data, p.residual.data}) {
    if (alignment(data) < 256) return false;
  }
  return true;
}

bool has_epilogue(const heddle_matmul& p) {
  return p.bias.data != nullptr || p.residual.data != nullptr || p.relu != 0;
}

}  // namespace heddle
