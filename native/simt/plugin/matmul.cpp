// Blocking: the output is cut into rectangles, one task each. A task walks k in steps; each step packs a strip of b once, and multiplies it with
// packed strips of a. Strips are packed into dense panels of the accumulator's type, so that the inner loop reads memory in order.
#include "matmul.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "matmul_epilogue.hpp"
#include "matmul_tile.hpp"
#include "simt/fault.hpp"
#include "simt/half.hpp"

namespace heddle::simt {
namespace {

constexpr int64_t kDepth = 256;       // of k in a panel
constexpr int64_t kMaxRows = 384;     // of a task; a multiple of every tile's rows
constexpr int64_t kMaxColumns = 256;  // of a task; a multiple of every tile's columns
constexpr int64_t kStripRows = 96;    // of a packed at a time
constexpr int64_t kMinRows = 48, kMinColumns = 32;

void narrow(float value, float& to) { to = value; }
void narrow(float value, __half& to) { to = __float2half_rn(value); }
void narrow(float value, __nv_bfloat16& to) { to = __float2bfloat16_rn(value); }
void narrow(int32_t value, int32_t& to) { to = value; }

/// Packs lines of an operand (rows of a, or of b) into panels of `width` lines: to[panel][i][line], zero beyond the last line.
template <class From, class T>
void pack(const void* from, int64_t line_stride, int64_t k_stride, int64_t lines, int64_t depth, int width, T* to) {
  const auto* source = static_cast<const From*>(from);
  for (int64_t panel = 0; panel < lines; panel += width, to += depth * width) {
    const int64_t used = std::min<int64_t>(width, lines - panel);
    const From* first = source + panel * line_stride;
    if (used < width) std::fill(to, to + depth * width, T{0});
    if (line_stride == 1) {
      for (int64_t i = 0; i < depth; i++) {
        for (int64_t line = 0; line < used; line++) to[i * width + line] = widen(first[i * k_stride + line], T{});
      }
    } else {
      for (int64_t line = 0; line < used; line++) {
        for (int64_t i = 0; i < depth; i++) to[i * width + line] = widen(first[line * line_stride + i * k_stride], T{});
      }
    }
  }
}

template <class T>
using PackFunction = void (*)(const void*, int64_t, int64_t, int64_t, int64_t, int, T*);

PackFunction<float> packer(int32_t dtype, float) {
  if (dtype == HEDDLE_F16) return pack<__half, float>;
  return dtype == HEDDLE_BF16 ? pack<__nv_bfloat16, float> : pack<float, float>;
}
PackFunction<int32_t> packer(int32_t, int32_t) { return pack<int8_t, int32_t>; }

/// Writes a task's sums, tile by tile, to the output. `to` is the task's first element.
template <class To, class T>
void store(const T* sums, const Tile<T>& tile, int64_t rows, int64_t columns, To* to, int64_t row_stride, int64_t column_stride) {
  for (int64_t row = 0; row < rows; row += tile.rows) {
    for (int64_t column = 0; column < columns; column += tile.columns, sums += tile.rows * tile.columns) {
      const int64_t used_rows = std::min<int64_t>(tile.rows, rows - row);
      const int64_t used_columns = std::min<int64_t>(tile.columns, columns - column);
      for (int64_t r = 0; r < used_rows; r++) {
        To* line = to + (row + r) * row_stride + column * column_stride;
        for (int64_t c = 0; c < used_columns; c++) narrow(sums[r * tile.columns + c], line[c * column_stride]);
      }
    }
  }
}

void store_as(int32_t dtype, const float* sums, const Tile<float>& tile, int64_t rows, int64_t columns, char* to, int64_t at,
              int64_t row_stride, int64_t column_stride) {
  if (dtype == HEDDLE_F16) {
    store(sums, tile, rows, columns, reinterpret_cast<__half*>(to) + at, row_stride, column_stride);
  } else if (dtype == HEDDLE_BF16) {
    store(sums, tile, rows, columns, reinterpret_cast<__nv_bfloat16*>(to) + at, row_stride, column_stride);
  } else {
    store(sums, tile, rows, columns, reinterpret_cast<float*>(to) + at, row_stride, column_stride);
  }
}
void store_as(int32_t, const int32_t* sums, const Tile<int32_t>& tile, int64_t rows, int64_t columns, char* to, int64_t at,
              int64_t row_stride, int64_t column_stride) {
  store(sums, tile, rows, columns, reinterpret_cast<int32_t*>(to) + at, row_stride, column_stride);
}

/// Memory for one task's panels and sums, reused by each worker thread.
struct Scratch {
  static constexpr int64_t kElements = kDepth * (kMaxColumns + kStripRows) + kMaxRows * kMaxColumns;
  std::unique_ptr<void, decltype(&std::free)> memory{nullptr, &std::free};

  void* get() {
    if (memory == nullptr) memory.reset(std::aligned_alloc(64, kElements * 4));
    return memory.get();
  }
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <class T>
struct Product {
  const heddle_matmul& matmul;
  Tile<T> tile;
  int64_t rows, columns;              // of a task
  int64_t row_blocks, column_blocks;  // tasks per batch entry
  int a_bytes, b_bytes;

  static int32_t run(void* self, int64_t index, heddle_error* error) {
    thread_local Scratch scratch;
    T* memory = static_cast<T*>(scratch.get());
    if (memory == nullptr) return fail(error, HEDDLE_MEMORY, "matmul: no memory for its panels");
    static_cast<const Product*>(self)->run_task(index, memory);
    return HEDDLE_OK;
  }

  void run_task(int64_t index, T* memory) const {
    const int64_t column = index % column_blocks * columns;
    const int64_t row = index / column_blocks % row_blocks * rows;
    const int64_t batch = index / column_blocks / row_blocks;
    const int64_t used_rows = std::min(rows, matmul.m - row), used_columns = std::min(columns, matmul.n - column);
    const int64_t panels = ceil_div(used_columns, tile.columns);
    T* b_panels = memory;
    T* a_panels = b_panels + kDepth * kMaxColumns;
    T* sums = a_panels + kDepth * kStripRows;
    std::fill(sums, sums + ceil_div(used_rows, tile.rows) * tile.rows * panels * tile.columns, T{0});
    const char* a = static_cast<const char*>(matmul.a.data) + (batch * matmul.a_batch + row * matmul.a_m) * a_bytes;
    const char* b = static_cast<const char*>(matmul.b.data) + (batch * matmul.b_batch + column * matmul.b_n) * b_bytes;
    const PackFunction<T> pack_a = packer(matmul.dtype_a, T{}), pack_b = packer(matmul.dtype_b, T{});
    for (int64_t at = 0; at < matmul.k; at += kDepth) {
      const int64_t depth = std::min(kDepth, matmul.k - at);
      pack_b(b + at * matmul.b_k * b_bytes, matmul.b_n, matmul.b_k, used_columns, depth, tile.columns, b_panels);
      for (int64_t strip = 0; strip < used_rows; strip += kStripRows) {
        const int64_t strip_rows = std::min(kStripRows, used_rows - strip);
        pack_a(a + (strip * matmul.a_m + at * matmul.a_k) * a_bytes, matmul.a_m, matmul.a_k, strip_rows, depth, tile.rows,
               a_panels);
        for (int64_t panel = 0; panel < panels; panel++) {
          for (int64_t r = 0; r < strip_rows; r += tile.rows) {
            T* tile_sums = sums + ((strip + r) / tile.rows * panels + panel) * tile.rows * tile.columns;
            tile.run(depth, a_panels + r * depth, b_panels + panel * tile.columns * depth, tile_sums);
          }
        }
      }
    }
    finish(matmul, {batch, row, column, used_rows, used_columns}, tile, sums);
    const int64_t first = batch * matmul.out_batch + row * matmul.out_m + column * matmul.out_n;
    store_as(matmul.dtype_out, sums, tile, used_rows, used_columns, static_cast<char*>(matmul.out.data), first, matmul.out_m,
             matmul.out_n);
  }
};

template <class T>
int32_t run_as(const heddle_matmul& matmul, int bytes, Workers& workers, heddle_error* error) {
  Product<T> product{matmul, best_tile<T>(), kMaxRows, kMaxColumns, 0, 0, bytes, bytes};
  const auto tasks = [&] {
    product.row_blocks = ceil_div(matmul.m, product.rows);
    product.column_blocks = ceil_div(matmul.n, product.columns);
    return matmul.batch * product.row_blocks * product.column_blocks;
  };
  // Halves the tasks until each worker has a few, so that no worker waits for the last task.
  const int64_t wanted = workers.count() == 1 ? 1 : 4 * int64_t{workers.count()};
  while (tasks() < wanted && (product.rows > kMinRows || product.columns > kMinColumns)) {
    const bool split_rows =
        product.rows > kMinRows && (product.columns <= kMinColumns || product.row_blocks <= product.column_blocks);
    (split_rows ? product.rows : product.columns) /= 2;
  }
  return workers.parallel_for(tasks(), Product<T>::run, &product, error);
}

}  // namespace

int32_t run_matmul(const heddle_matmul& matmul, Workers& workers, heddle_error* error) {
  if (matmul.batch == 0 || matmul.m == 0 || matmul.n == 0) return HEDDLE_OK;
  if (matmul.dtype_a == HEDDLE_I8) return run_as<int32_t>(matmul, 1, workers, error);
  return run_as<float>(matmul, matmul.dtype_a == HEDDLE_F32 ? 4 : 2, workers, error);
}

}  // namespace heddle::simt
