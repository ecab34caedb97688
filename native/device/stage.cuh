// Tiles in shared memory: loads of an elementwise kernel that are contiguous along another axis than its stores. A block loads a tile along
// the one axis and reads it along the other. Files whose kernels stage no loads do not include this one.
#ifndef HEDDLE_STAGE_CUH
#define HEDDLE_STAGE_CUH

#include "launcher.cuh"
#include "tuned.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

constexpr int stage_threads = 256;

/// Shape of a tile: places along the contiguous axis of the loads, and along that of the stores.
template <int Rows, int Columns>
struct TileShape {
  static constexpr int rows = Rows;
  static constexpr int columns = Columns;
};

/// A tile of elements as words of at least four bytes. One more word per column puts adjacent columns in different banks.
template <class T, int Rows>
struct TileWords {
  using Words = ChunkWord<T, (sizeof(T) < 4)>;
  using Word = typename Words::Type;
  static constexpr int per_word = static_cast<int>(sizeof(Word) / sizeof(T));
  static constexpr int stride = Rows / per_word + 1;
};

template <class T>
using TileWord = typename TileWords<T, 4>::Word;

template <class T, class Shape>
constexpr int tile_words = TileWords<T, Shape::rows>::stride * Shape::columns;

/// Elements per chunk of loads that are not aligned: one word of the tile.
template <class T>
constexpr int word_width = TileWords<T, 4>::per_word;

/// Stores a chunk that begins at `row` of a column into a tile.
template <class Shape, class Array, class T, int Vec>
__device__ __forceinline__ void put_chunk(Array& tile, int column, int row, const Chunk<T, Vec>& chunk) {
  using Tile = TileWords<T, Shape::rows>;
  static_assert(Chunk<T, Vec>::per_word == Tile::per_word && Vec % Tile::per_word == 0, "a chunk has whole words");
  HEDDLE_UNROLL
  for (int i = 0; i < Vec / Tile::per_word; ++i) tile[column * Tile::stride + row / Tile::per_word + i] = chunk.words[i];
}

/// One element of a tile, converted as a chunk's are.
template <class T, class Shape, class Array>
__device__ __forceinline__ Scalar<T> tile_element(Array& tile, int column, int row) {
  using Tile = TileWords<T, Shape::rows>;
  const typename Tile::Word word = tile[column * Tile::stride + row / Tile::per_word];
  return Storage<T>::load(Tile::Words::get(word, row % Tile::per_word));
}

/// Launches one block for each tile of `rows` times `columns` places, of `others` such planes.
template <class Shape, class Kernel, class... Args>
int32_t launch_tiles(const heddle_launch* queue, heddle_error* error, Arguments& arguments, const char* name, Count others, int64_t rows,
                     int64_t columns, Kernel kernel, Args... args) {
  const auto tiles = [](int64_t places, int64_t side) { return Count(places / side + (places % side != 0 ? 1 : 0)); };
  const int64_t blocks = arguments.work(others * tiles(rows, Shape::rows) * tiles(columns, Shape::columns), 1);
  if (arguments.status != HEDDLE_OK || blocks == 0) return arguments.status;
  const LaunchConfig config{name, dim3(static_cast<unsigned int>(blocks)), dim3(stage_threads), 0, Sync::block, true};
  return launch(queue, error, config, kernel, args...);
}

/// Elements per chunk of stores that are not aligned: stores of adjacent threads are then coalesced.
template <int Vec>
constexpr int narrow_width = Vec < 4 ? 1 : Vec / 4;

/// Lanes of a warp that store adjacent chunks of one line: 128 bytes of the widest chunks. Fewer lanes, which read a tile without bank
/// conflicts, measured slower (51.3 for 47.5 us, NCHW to NHWC of 32 x 320 x 64 x 64 on an H200).
template <int Vec, int Chunks>
constexpr int lanes_of_line = Chunks < (Vec < 4 ? 32 : 8) ? Chunks : Vec < 4 ? 32 : 8;

/// Calls `run` with a tile shape that leaves few places of a short axis idle, and with the width of the chunks of stores.
template <int Vec, class Run>
int32_t choose_tiles(int64_t rows, int64_t columns, Run run) {
  constexpr int narrow = narrow_width<Vec>;
  const bool whole = columns % Vec == 0;
  if (columns <= 4) return run(TileShape<256, 4>{}, Width<narrow>{});
  if (columns <= 16) return whole ? run(TileShape<256, 16>{}, Width<Vec>{}) : run(TileShape<256, 16>{}, Width<narrow>{});
  if (columns <= 32 && whole) return run(TileShape<128, 32>{}, Width<Vec>{});
  if (rows <= 4) return run(TileShape<4, 256>{}, Width<Vec>{});
  if (rows <= 16) return run(TileShape<16, 256>{}, Width<Vec>{});
  if (rows <= 32 && whole) return run(TileShape<32, 128>{}, Width<Vec>{});
  return whole ? run(TileShape<64, 64>{}, Width<Vec>{}) : run(TileShape<64, 64>{}, Width<narrow>{});
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
