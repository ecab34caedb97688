// The plugin's own matmul: 64 x 64 tiles in shared memory, any strides, accumulated in float32 (int32 for int8). It makes a GPU without cuBLASLt
// usable, and applies the epilogues that cuBLASLt offers; it is not meant to be fast.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "device.hpp"

namespace heddle {

namespace {

constexpr int tile = 64;      // rows and columns of the output a block computes
constexpr int depth = 16;     // of k at a time
constexpr int threads = 256;  // 16 x 16, each 4 x 4 outputs
constexpr int per_thread = 4;

struct Shape {
  int64_t m, n, k;
  int64_t a_batch, a_m, a_k, b_batch, b_n, b_k, out_batch, out_m, out_n;
  int64_t tiles_m, tiles_n;
};

__device__ float widen(float value) { return value; }
__device__ float widen(__half value) { return __half2float(value); }
__device__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ int widen(int8_t value) { return value; }

__device__ void narrow(float value, float* out) { *out = value; }
__device__ void narrow(float value, __half* out) { *out = __float2half_rn(value); }
__device__ void narrow(float value, __nv_bfloat16* out) { *out = __float2bfloat16_rn(value); }
__device__ void narrow(int value, int* out) { *out = value; }

// Epilogue of a float matmul: bias of the column, residual of the element, relu.
template <class Out>
struct Epilogue {
  const Out* bias;
  const Out* residual;
  bool relu;
};

template <class Out>
__device__ float finish(float x, const Epilogue<Out>& epilogue, int64_t column, int64_t at) {
  if (epilogue.bias != nullptr) x += widen(epilogue.bias[column]);
  if (epilogue.residual != nullptr) x += widen(epilogue.residual[at]);
  // NaN is preserved, as in maximum(x, 0).
  return epilogue.relu && x < 0 ? 0 : x;
}
// Sums of int8 are stored as they are.
__device__ int finish(int x, const Epilogue<int>&, int64_t, int64_t) { return x; }

// Loads a tile x depth block of an operand, zero outside it. Adjacent threads read along the direction of stride 1.
template <class T, class Sum>
__device__ void load(Sum (&piece)[depth][tile + 1], const T* data, int64_t row0, int64_t rows, int64_t row_stride, int64_t k0,
                     int64_t k, int64_t k_stride) {
  for (int i = threadIdx.x; i < tile * depth; i += threads) {
    const int row = k_stride == 1 ? i / depth : i % tile;
    const int inner = k_stride == 1 ? i % depth : i / tile;
    const bool inside = row0 + row < rows && k0 + inner < k;
    piece[inner][row] = inside ? widen(data[(row0 + row) * row_stride + (k0 + inner) * k_stride]) : Sum(0);
  }
}

template <class In, class Out, class Sum>
__global__ void __launch_bounds__(threads) matmul_kernel(const In* a, const In* b, Out* out, Epilogue<Out> epilogue,
                                                         Shape s) {
  __shared__ Sum a_piece[depth][tile + 1];
  __shared__ Sum b_piece[depth][tile + 1];
  const int64_t block = blockIdx.x;
  const int64_t batch = block / (s.tiles_m * s.tiles_n);
  const int64_t row0 = block / s.tiles_n % s.tiles_m * tile;
  const int64_t column0 = block % s.tiles_n * tile;
  const int row = threadIdx.x / 16 * per_thread;
  const int column = threadIdx.x % 16 * per_thread;
  a += batch * s.a_batch;
  b += batch * s.b_batch;
  out += batch * s.out_batch;
  if (epilogue.residual != nullptr) epilogue.residual += batch * s.out_batch;

  Sum sums[per_thread][per_thread] = {};
  for (int64_t k0 = 0; k0 < s.k; k0 += depth) {
    load(a_piece, a, row0, s.m, s.a_m, k0, s.k, s.a_k);
    load(b_piece, b, column0, s.n, s.b_n, k0, s.k, s.b_k);
    __syncthreads();
    for (int inner = 0; inner < depth; ++inner) {
      for (int i = 0; i < per_thread; ++i) {
        for (int j = 0; j < per_thread; ++j) sums[i][j] += a_piece[inner][row + i] * b_piece[inner][column + j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < per_thread; ++i) {
#pragma unroll
    for (int j = 0; j < per_thread; ++j) {
      const int64_t m = row0 + row + i;
      const int64_t n = column0 + column + j;
      const int64_t at = m * s.out_m + n * s.out_n;
      if (m < s.m && n < s.n) narrow(finish(sums[i][j], epilogue, n, at), out + at);
    }
  }
}

template <class In, class Out, class Sum>
int32_t start(const heddle_matmul& p, const Shape& shape, unsigned blocks, cudaStream_t stream, heddle_error* error) {
  const Epilogue<Out> epilogue = {static_cast<const Out*>(p.bias.data), static_cast<const Out*>(p.residual.data), p.relu != 0};
  matmul_kernel<In, Out, Sum><<<blocks, threads, 0, stream>>>(static_cast<const In*>(p.a.data), static_cast<const In*>(p.b.data),
                                                              static_cast<Out*>(p.out.data), epilogue, shape);
  return check(cudaGetLastError(), "fallback matmul launch", error);
}

}  // namespace

int32_t fallback_matmul(const heddle_matmul& p, cudaStream_t stream, heddle_error* error) {
  const int64_t tiles_m = (p.m + tile - 1) / tile;
  const int64_t tiles_n = (p.n + tile - 1) / tile;
  const Shape shape = {p.m,   p.n,   p.k,         p.a_batch, p.a_m,   p.a_k,   p.b_batch,
                       p.b_n, p.b_k, p.out_batch, p.out_m,   p.out_n, tiles_m, tiles_n};
  const double wanted = static_cast<double>(p.batch) * static_cast<double>(shape.tiles_m) * static_cast<double>(shape.tiles_n);
  if (wanted > INT32_MAX) return fail(error, HEDDLE_INVALID, "matmul: %.0f output tiles are more than a launch holds", wanted);
  const auto blocks = static_cast<unsigned>(wanted);
  const bool to_f32 = p.dtype_out == HEDDLE_F32;
  switch (p.dtype_a) {
    case HEDDLE_F32:
      return start<float, float, float>(p, shape, blocks, stream, error);
    case HEDDLE_F16:
      return to_f32 ? start<__half, float, float>(p, shape, blocks, stream, error)
                    : start<__half, __half, float>(p, shape, blocks, stream, error);
    case HEDDLE_BF16:
      return to_f32 ? start<__nv_bfloat16, float, float>(p, shape, blocks, stream, error)
                    : start<__nv_bfloat16, __nv_bfloat16, float>(p, shape, blocks, stream, error);
    case HEDDLE_I8:
      return start<int8_t, int, int>(p, shape, blocks, stream, error);
    default:
      return fail(error, HEDDLE_INVALID, "matmul: no kernel for dtype %d", p.dtype_a);
  }
}

}  // namespace heddle
