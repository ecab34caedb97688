// Epilogue of a matmul, before sums are rounded: the bias of the column, the residual, relu. It runs over a task's tiles of sums while they are in
// the cache, so that the result is written once.
#ifndef HEDDLE_SIMT_PLUGIN_MATMUL_EPILOGUE_HPP
#define HEDDLE_SIMT_PLUGIN_MATMUL_EPILOGUE_HPP

#include <algorithm>
#include <cmath>

#include "heddle/abi.h"
#include "matmul_tile.hpp"
#include "simt/half.hpp"

namespace heddle::simt {

/// A stored value in the accumulator's type.
inline float widen(float value, float) { return value; }
inline float widen(__half value, float) { return __half2float(value); }
inline float widen(__nv_bfloat16 value, float) { return __bfloat162float(value); }
inline int32_t widen(int8_t value, int32_t) { return value; }

inline bool has_epilogue(const heddle_matmul& matmul) {
  return matmul.bias.data != nullptr || matmul.residual.data != nullptr || matmul.relu != 0;
}

/// A task's part of the output: the position of its first element, and its numbers of rows and columns.
struct Piece {
  int64_t batch, row, column, rows, columns;
};

template <class From>
void finish_as(const heddle_matmul& matmul, const Piece& piece, const Tile<float>& tile, float* sums) {
  const From* bias = matmul.bias.data == nullptr ? nullptr : static_cast<const From*>(matmul.bias.data) + piece.column;
  const From* residual = static_cast<const From*>(matmul.residual.data);
  if (residual != nullptr) {
    residual += piece.batch * matmul.out_batch + piece.row * matmul.out_m + piece.column * matmul.out_n;
  }
  for (int64_t row = 0; row < piece.rows; row += tile.rows) {
    for (int64_t column = 0; column < piece.columns; column += tile.columns, sums += tile.rows * tile.columns) {
      const int64_t used_rows = std::min<int64_t>(tile.rows, piece.rows - row);
      const int64_t used_columns = std::min<int64_t>(tile.columns, piece.columns - column);
      for (int64_t r = 0; r < used_rows; r++) {
        for (int64_t c = 0; c < used_columns; c++) {
          float& sum = sums[r * tile.columns + c];
          if (bias != nullptr) sum += widen(bias[column + c], 0.0f);
          if (residual != nullptr) sum += widen(residual[(row + r) * matmul.out_m + (column + c) * matmul.out_n], 0.0f);
          if (matmul.relu != 0 && sum < 0.0f) sum = 0.0f;  // NaN is preserved, as in maximum(x, 0)
        }
      }
    }
  }
}

inline void finish(const heddle_matmul& matmul, const Piece& piece, const Tile<float>& tile, float* sums) {
  if (!has_epilogue(matmul)) return;
  if (matmul.dtype_out == HEDDLE_F16) return finish_as<__half>(matmul, piece, tile, sums);
  if (matmul.dtype_out == HEDDLE_BF16) return finish_as<__nv_bfloat16>(matmul, piece, tile, sums);
  finish_as<float>(matmul, piece, tile, sums);
}
/// Sums of int8 are stored as they are.
inline void finish(const heddle_matmul&, const Piece&, const Tile<int32_t>&, int32_t*) {}

}  // namespace heddle::simt

#endif
