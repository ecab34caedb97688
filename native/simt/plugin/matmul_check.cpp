// Refuses matmuls that would read or write outside their slices, with the numbers in the message.
#include <algorithm>

#include "matmul.hpp"
#include "matmul_epilogue.hpp"
#include "simt/fault.hpp"

namespace heddle::simt {
namespace {

using Wide = __int128;  // extents and strides are 64 bits: their products are not

constexpr const char* kNames[] = {"f32", "f16", "bf16", "i32", "i8", "u8", "f8e4m3", "f8e5m2", "i16", "u32", "i64"};
constexpr int kBytes[] = {4, 2, 2, 4, 1, 1, 1, 1, 2, 4, 8};

/// An operand with its extents and strides: batch, outer, inner.
struct Operand {
  const char* name;
  const heddle_slice& slice;
  int32_t dtype;
  int64_t extents[3];
  int64_t strides[3];
};

/// Bytes from the operand's first element to the end of its last, saturated far beyond any slice. No extent is 0.
Wide span(const Operand& operand) {
  constexpr Wide kBeyond = static_cast<Wide>(1) << 70;
  Wide last = 0;
  for (int i = 0; i < 3; i++) last = std::min(kBeyond, last + static_cast<Wide>(operand.extents[i] - 1) * operand.strides[i]);
  return (last + 1) * kBytes[operand.dtype];
}

int32_t check_operand(const Operand& operand, Memory& memory, heddle_error* error) {
  const auto& [name, slice, dtype, extents, strides] = operand;
  for (int i = 0; i < 3; i++) {
    // A batch may share one operand, so only its stride may be 0.
    if (strides[i] > 0 || extents[i] == 1 || (strides[i] == 0 && i == 0)) continue;
    return fail(error, HEDDLE_INVALID, "matmul: %s has stride %lld over an extent of %lld", name,
                static_cast<long long>(strides[i]), static_cast<long long>(extents[i]));
  }
  if (strides[1] != 1 && strides[2] != 1 && extents[1] > 1 && extents[2] > 1) {
    return fail(error, HEDDLE_INVALID, "matmul: one of %s's inner strides must be 1 and they are %lld and %lld", name,
                static_cast<long long>(strides[1]), static_cast<long long>(strides[2]));
  }
  const Wide needed = span(operand);
  if (needed > static_cast<Wide>(slice.bytes)) {
    return fail(error, HEDDLE_INVALID,
                "matmul: %s has %llu bytes; extents (%lld, %lld, %lld) with strides (%lld, %lld, %lld) of %s need %.0f", name,
                static_cast<unsigned long long>(slice.bytes), static_cast<long long>(extents[0]),
                static_cast<long long>(extents[1]), static_cast<long long>(extents[2]), static_cast<long long>(strides[0]),
                static_cast<long long>(strides[1]), static_cast<long long>(strides[2]), kNames[dtype],
                static_cast<double>(needed));
  }
  if (reinterpret_cast<uintptr_t>(slice.data) % static_cast<unsigned>(kBytes[dtype]) != 0) {
    return fail(error, HEDDLE_INVALID, "matmul: %s at %p is not aligned to its %d-byte elements", name, slice.data,
                kBytes[dtype]);
  }
  return memory.check_range(slice.data, static_cast<uint64_t>(needed), name, error);
}

bool overlap(const Operand& left, const Operand& right) {
  const auto begin = [](const Operand& operand) { return reinterpret_cast<uintptr_t>(operand.slice.data); };
  const auto end = [&](const Operand& operand) { return begin(operand) + static_cast<uint64_t>(span(operand)); };
  return begin(left) < end(right) && begin(right) < end(left);
}

bool is_float(int32_t dtype) { return dtype == HEDDLE_F32 || dtype == HEDDLE_F16 || dtype == HEDDLE_BF16; }

/// Bias and residual are read while the result is written, so they must not overlap it.
int32_t check_epilogue(const heddle_matmul& matmul, const Operand& result, Memory& memory, heddle_error* error) {
  if (!has_epilogue(matmul)) return HEDDLE_OK;
  if (!is_float(result.dtype)) return fail(error, HEDDLE_INVALID, "matmul: sums of int8 take no bias, residual or relu");
  const Operand bias = {"bias", matmul.bias, result.dtype, {1, 1, matmul.n}, {0, 0, 1}};
  Operand residual = {"residual", matmul.residual, result.dtype, {}, {}};
  std::copy_n(result.extents, 3, residual.extents);
  std::copy_n(result.strides, 3, residual.strides);
  for (const Operand* operand : {&bias, static_cast<const Operand*>(&residual)}) {
    if (operand->slice.data == nullptr) continue;
    if (const int32_t status = check_operand(*operand, memory, error); status != HEDDLE_OK) return status;
    if (overlap(*operand, result)) return fail(error, HEDDLE_INVALID, "matmul: out overlaps %s", operand->name);
  }
  return HEDDLE_OK;
}

}  // namespace

int32_t check_matmul(const heddle_matmul& matmul, Memory& memory, heddle_error* error) {
  const int32_t a = matmul.dtype_a, b = matmul.dtype_b, out = matmul.dtype_out;
  for (const int32_t dtype : {a, b, out}) {
    if (dtype < HEDDLE_F32 || dtype > HEDDLE_I64) return fail(error, HEDDLE_INVALID, "matmul: %d is not a dtype", dtype);
  }
  if (!(a == b && ((is_float(a) && is_float(out)) || (a == HEDDLE_I8 && out == HEDDLE_I32)))) {
    return fail(error, HEDDLE_INVALID,
                "matmul: %s x %s -> %s is not supported: equal float types to a float type, or i8 x i8 -> i32", kNames[a],
                kNames[b], kNames[out]);
  }
  const int64_t batch = matmul.batch, m = matmul.m, n = matmul.n, k = matmul.k;
  if (batch < 0 || m < 0 || n < 0 || k < 0) {
    return fail(error, HEDDLE_INVALID, "matmul: negative extent in batch %lld, m %lld, n %lld, k %lld",
                static_cast<long long>(batch), static_cast<long long>(m), static_cast<long long>(n), static_cast<long long>(k));
  }
  if (batch == 0 || m == 0 || n == 0) return HEDDLE_OK;
  const Operand result = {"out", matmul.out, out, {batch, m, n}, {matmul.out_batch, matmul.out_m, matmul.out_n}};
  if (batch > 1 && matmul.out_batch == 0) {
    return fail(error, HEDDLE_INVALID, "matmul: out has batch stride 0, so %lld products would share its elements",
                static_cast<long long>(batch));
  }
  if (const int32_t status = check_operand(result, memory, error); status != HEDDLE_OK) return status;
  if (const int32_t status = check_epilogue(matmul, result, memory, error); status != HEDDLE_OK || k == 0) return status;
  const Operand left = {"a", matmul.a, a, {batch, m, k}, {matmul.a_batch, matmul.a_m, matmul.a_k}};
  const Operand right = {"b", matmul.b, b, {batch, n, k}, {matmul.b_batch, matmul.b_n, matmul.b_k}};
  for (const Operand* operand : {&left, &right}) {
    if (const int32_t status = check_operand(*operand, memory, error); status != HEDDLE_OK) return status;
    if (overlap(*operand, result)) return fail(error, HEDDLE_INVALID, "matmul: out overlaps %s", operand->name);
  }
  return HEDDLE_OK;
}

}  // namespace heddle::simt
