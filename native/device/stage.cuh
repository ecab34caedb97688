// Tiles in shared memory: loads of an elementwise kernel that are contiguous along another axis than its stores. A block loads a tile along
// the one axis and reads it along the other. Files whose kernels stage no loads do not include this one.
#ifndef HEDDLE_STAGE_CUH
#define HEDDLE_STAGE_CUH

#include "launcher.cuh"
#include "tuned.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

/// Keeps the registers of one iteration from being needed for several.
#if defined(HEDDLE_SIMT)
#define HEDDLE_ROLLED
#else
#define HEDDLE_ROLLED _Pragma("unroll 1")
#endif

namespace heddle {

/// Shape of a tile: places along the contiguous axis of the loads (rows) and along that of the stores (columns), and the threads of its block.
/// Rows of a run are adjacent in the stored tensors: one chunk of stores continues in the next row, so that few columns fill chunks too.
template <int Rows, int Columns, bool Run = false>
struct TileShape {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
  static constexpr bool is_run = Run;
  // Four 16-byte loads per thread for elements of 16 bits: few instructions per byte, and enough bytes in flight.
  static constexpr int threads = 128;
};

/// A tile of elements as words of at least four bytes, with stores of Vec columns per thread. Adjacent columns and adjacent chunks of columns
/// begin in different banks.
template <class T, class Shape, int Vec>
struct TileWords {
  using Words = ChunkWord<T, (sizeof(T) < 4)>;
  using Word = typename Words::Type;
  static constexpr int per_word = static_cast<int>(sizeof(Word) / sizeof(T));
  static constexpr int stride = Shape::rows / per_word + 1;
  // The stride is odd: the chunks of eight lanes are 8 or 24 banks apart without padding, 12 or 28 with it. Chunks of 4 and runs need
  // none.
  static constexpr int padding = Shape::is_run ? 0 : Vec == 8 ? 4 : Vec == 2 ? 1 : 0;
  static constexpr int count = stride * Shape::columns + Shape::columns / Vec * padding;

  static __device__ __forceinline__ int place(int column, int row) {
    return column * stride + static_cast<int>(static_cast<unsigned int>(column) / Vec * padding + static_cast<unsigned int>(row) / per_word);
  }
};

template <class T>
using TileWord = typename ChunkWord<T, (sizeof(T) < 4)>::Type;

/// Elements per chunk of loads that are not aligned: one word of the tile.
template <class T>
constexpr int word_width = static_cast<int>(sizeof(TileWord<T>) / sizeof(T));

/// A thread's part of a tile, in chunks of Wide rows.
template <class T, class Shape, int Vec, int Wide>
struct TileFill {
  using Tile = TileWords<T, Shape, Vec>;
  static constexpr int per_column = Shape::rows / Wide, chunks = Shape::columns * per_column;
  static constexpr int steps = (chunks + Shape::threads - 1) / Shape::threads;
  /// Chunks of a thread in flight: 64 or 128 bytes of registers.
  static constexpr int most = Wide > Tile::per_word ? 8 : 16;
  static constexpr int batch = steps < most ? steps : most;
  static_assert(steps % batch == 0, "a tile has whole batches");
  /// Columns from one step to the next, if all chunks of a thread are in one row. The first column is less than that.
  static constexpr int by = Shape::threads < per_column ? 1 : Shape::threads / per_column;
  static constexpr bool is_steady = Shape::threads % per_column == 0 && (by % Vec == 0 || Vec % by == 0);
  /// True if the block takes several steps per column.
  static constexpr bool is_long = per_column > Shape::threads && per_column % Shape::threads == 0;

  static __device__ __forceinline__ unsigned int chunk(int step) { return step * Shape::threads + threadIdx.x; }
  static __device__ __forceinline__ bool has(int step) { return chunks % Shape::threads == 0 || chunk(step) < chunks; }
  static __device__ __forceinline__ int column(int step) {
    if (is_long) return step * Shape::threads / per_column;
    return is_steady ? column_of(threadIdx.x) + step * by : column_of(chunk(step));
  }
  static __device__ __forceinline__ int row(int step) {
    if (is_long) return row_of(threadIdx.x) + step * Shape::threads % per_column * Wide;
    return row_of(is_steady ? threadIdx.x : chunk(step));
  }
  /// Place in the tile. From step to step it differs by a constant, unless a block takes parts of columns.
  static __device__ __forceinline__ int place(int step) {
    if (is_long) return Tile::place(0, row_of(threadIdx.x)) + Tile::place(column(step), step * Shape::threads % per_column * Wide);
    if (!is_steady) return Tile::place(column(step), row(step));
    return Tile::place(column(0), row(0)) + step * by * Tile::stride + step * by / Vec * Tile::padding;
  }

 private:
  static __device__ __forceinline__ int column_of(unsigned int at) { return static_cast<int>(at / per_column); }
  static __device__ __forceinline__ int row_of(unsigned int at) { return static_cast<int>(at % per_column) * Wide; }
};

/// Loads a tile, zeros where the axes end. The loads of a batch are made before the first is stored to shared memory.
/// @param columns, rows of the tensor from the tile on
/// @param offset of the element at a column and a row of the tile; if Linear, it rises by 1 per row and by the same number per column
template <class Shape, int Vec, int Wide, bool Linear, template <class> class Tensor, class T, class Array, class Offset>
__device__ __forceinline__ void fill_in_chunks(Array& tile, const Tensor<T>& tensor, int columns, int rows, Offset offset) {
  using Fill = TileFill<T, Shape, Vec, Wide>;
  const int64_t origin = offset(Fill::column(0), Fill::row(0)), stride = Linear ? offset(1, 0) - offset(0, 0) : 0;
  HEDDLE_ROLLED
  for (int begin = 0; begin < Fill::steps; begin += Fill::batch) {
    Chunk<T, Wide> chunks[Fill::batch];
    HEDDLE_UNROLL
    for (int i = 0; i < Fill::batch; ++i) {
      const int step = begin + i, column = Fill::column(step), row = Fill::row(step);
      const int valid = Fill::has(step) && column < columns ? rows - row : 0;
      const int64_t at = !Linear           ? offset(column, row)
                         : Fill::is_steady ? origin + step * (Fill::by * stride)
                                           : origin + (column - Fill::column(0)) * stride + (row - Fill::row(0));
      if constexpr (!Linear) {
        chunks[i] = load_chunk<Wide>(tensor, at, valid);
      } else if constexpr (Wide == word_width<T>) {
        chunks[i].load_elements(tensor, at, valid);
      } else {
        // The caller knows that chunks are aligned, and that rows end with one.
        chunks[i] = {};
        if (valid > 0) chunks[i].load_packs(tensor, at);
      }
    }
    HEDDLE_UNROLL
    for (int i = 0; i < Fill::batch; ++i) {
      if (!Fill::has(begin + i)) break;
      HEDDLE_UNROLL
      for (int w = 0; w < Wide / Fill::Tile::per_word; ++w) tile[Fill::place(begin + i) + w] = chunks[i].words[w];
    }
  }
}

/// The same in chunks of Wide elements if every column has them, otherwise word by word.
/// @param length of the rows of the tensor
template <class Shape, int Vec, int Wide, bool Linear, template <class> class Tensor, class T, class Array, class Offset>
__device__ __forceinline__ void fill_tile(Array& tile, const Tensor<T>& tensor, int length, int columns, int rows, Offset offset) {
  if constexpr (Shape::rows >= Wide) {
    const int64_t first = offset(0, 0), second = offset(1, 0);
    if (length % Wide == 0 && (!Linear || (is_aligned<Wide>(tensor, first) && is_aligned<Wide>(tensor, second)))) {
      fill_in_chunks<Shape, Vec, Wide, Linear>(tile, tensor, columns, rows, offset);
      return;
    }
  }
  fill_in_chunks<Shape, Vec, word_width<T>, Linear>(tile, tensor, columns, rows, offset);
}

/// Lanes of a warp that store adjacent chunks of one line: 128 bytes of the widest chunks. Fewer lanes, which read a tile without bank
/// conflicts, measured slower (51.3 for 47.5 us, NCHW to NHWC of 32 x 320 x 64 x 64 on an H200).
template <int Vec, int Chunks>
constexpr int lanes_of_line = Chunks < (Vec < 4 ? 32 : 8) ? Chunks : Vec < 4 ? 32 : 8;

/// The places of one chunk of stores in a tile: Vec columns of a row.
template <class Shape, int Vec, bool = Shape::is_run>
struct TileChunk {
  static constexpr unsigned int per_row = Shape::columns / Vec;
  static constexpr unsigned int chunks = Shape::rows * per_row;
  static constexpr unsigned int lanes = lanes_of_line<Vec, per_row>;

  int row, column, valid;

  /// @param rows, columns of the tensors from the tile on
  __device__ __forceinline__ TileChunk(unsigned int at, int rows, int columns)
      : row(at / lanes % Shape::rows), column((at / (lanes * Shape::rows) * lanes + at % lanes) * Vec) {
    valid = row < rows ? columns - column : 0;
  }

  template <class T, class Array>
  __device__ __forceinline__ Scalar<T> element(Array& tile, int i) const {
    using Tile = TileWords<T, Shape, Vec>;
    // The column is the first of a chunk.
    return Storage<T>::load(Tile::Words::get(tile[Tile::place(column, row) + i * Tile::stride], row % Tile::per_word));
  }
};

/// The same for a run: Vec adjacent places from `column` on, counted from the first row of the tile. A tile has all columns.
template <class Shape, int Vec>
struct TileChunk<Shape, Vec, true> {
  static constexpr unsigned int chunks = Shape::rows * Shape::columns / Vec;

  int row = 0, column, valid;

  __device__ __forceinline__ TileChunk(unsigned int at, int rows, int columns) : column(static_cast<int>(at) * Vec) {
    valid = (rows < Shape::rows ? rows : Shape::rows) * columns - column;
    // One division per chunk.
    const unsigned int first = static_cast<unsigned int>(column), row_of_first = first / static_cast<unsigned int>(columns);
    int next = static_cast<int>(row_of_first), place = static_cast<int>(first - row_of_first * static_cast<unsigned int>(columns));
    HEDDLE_UNROLL
    for (int i = 0; i < Vec; ++i) {
      // Places after the last valid one may be after the last row.
      rows_[i] = next < Shape::rows ? next : Shape::rows - 1;
      columns_[i] = place;
      const bool ends = place + 1 == columns;
      next += ends ? 1 : 0;
      place = ends ? 0 : place + 1;
    }
  }

  template <class T, class Array>
  __device__ __forceinline__ Scalar<T> element(Array& tile, int i) const {
    using Tile = TileWords<T, Shape, Vec>;
    return Storage<T>::load(Tile::Words::get(tile[Tile::place(columns_[i], rows_[i])], static_cast<int>(static_cast<unsigned int>(rows_[i]) % Tile::per_word)));
  }

 private:
  int rows_[Vec], columns_[Vec];
};

/// Launches one block for each tile of `rows` times `columns` places, of `others` such planes.
template <class Shape, class Kernel, class... Args>
int32_t launch_tiles(const heddle_launch* queue, heddle_error* error, Arguments& arguments, const char* name, Count others, int64_t rows,
                     int64_t columns, Kernel kernel, Args... args) {
  const auto tiles = [](int64_t places, int64_t side) { return Count(places / side + (places % side != 0 ? 1 : 0)); };
  const int64_t blocks = arguments.work(others * tiles(rows, Shape::rows) * tiles(columns, Shape::columns), 1);
  if (arguments.status != HEDDLE_OK || blocks == 0) return arguments.status;
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(Shape::threads), 0, Sync::block, true};
  return launch(queue, error, config, kernel, args...);
}

/// Elements per chunk of stores that are not aligned: stores of adjacent threads are then coalesced.
template <int Vec>
constexpr int narrow_width = Vec < 4 ? 1 : Vec / 4;

/// Calls `run` with a tile shape that leaves few places of a short axis idle, and with the width of the chunks of stores.
/// @tparam Run true if adjacent rows are adjacent in the stored tensors
template <int Vec, bool Run, class Launch>
int32_t choose_tiles(int64_t rows, int64_t columns, Launch run) {
  constexpr int narrow = narrow_width<Vec>;
  const bool whole = columns % Vec == 0;
  if constexpr (Run) {
    const bool whole_run = columns * (rows % Vec) % Vec == 0;
    if (columns <= 4) {
      using Shape = TileShape<1024, 4, true>;
      return whole_run ? run(Shape{}, Width<Vec>{}) : run(Shape{}, Width<narrow>{});
    }
    if (columns <= 16 && !whole) {
      using Shape = TileShape<256, 16, true>;
      return whole_run ? run(Shape{}, Width<Vec>{}) : run(Shape{}, Width<narrow>{});
    }
  } else {
    // Planes of two short sides: a larger tile would be almost empty.
    if (rows > 4 && columns > 4 && rows <= 16 && columns <= 16)
      return whole ? run(TileShape<16, 16>{}, Width<Vec>{}) : run(TileShape<16, 16>{}, Width<narrow>{});
    if (rows > 4 && columns > 4 && rows <= 32 && columns <= 32)
      return whole ? run(TileShape<32, 32>{}, Width<Vec>{}) : run(TileShape<32, 32>{}, Width<narrow>{});
    if (columns <= 4) return run(TileShape<256, 4>{}, Width<narrow>{});
    if (columns <= 16 && !whole) return run(TileShape<256, 16>{}, Width<narrow>{});
  }
  if (columns <= 16) return run(TileShape<256, 16>{}, Width<Vec>{});
  if (rows <= 4) return run(TileShape<4, 512>{}, Width<Vec>{});
  if (rows <= 16) return run(TileShape<16, 256>{}, Width<Vec>{});
  if (columns <= 32 && whole) return rows <= 64 ? run(TileShape<64, 32>{}, Width<Vec>{}) : run(TileShape<128, 32>{}, Width<Vec>{});
  if (rows <= 32 && whole) return run(TileShape<32, 128>{}, Width<Vec>{});
  if (columns <= 32) return run(TileShape<128, 32>{}, Width<narrow>{});
  if (rows <= 32) return run(TileShape<32, 128>{}, Width<narrow>{});
  return whole ? run(TileShape<64, 64>{}, Width<Vec>{}) : run(TileShape<64, 64>{}, Width<narrow>{});
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
