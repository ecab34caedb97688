// Launches of kernels that store rows by columns and reduce nothing: values of columns, such as the mean of a group, are computed before the walk
// over rows, and each thread stores its columns of many rows. Files without such kernels do not include this one.
#ifndef HEDDLE_STORED_COLUMNS_CUH
#define HEDDLE_STORED_COLUMNS_CUH

#include "columns.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Fewest elements for which launches over the columns of groups are worth what they leave and read again: on an H200, groups of 10 and of 4 f16
/// columns take a third of the time of blocks that walk groups at 10 and 8 million elements, and as long at about half a million. The CPU
/// device takes them at any size, so that small tensors test both forms.
#if defined(HEDDLE_SIMT)
constexpr int64_t fewest_of_columns = 0;
#else
constexpr int64_t fewest_of_columns = 1 << 20;
#endif

/// True if launches reduce the columns of groups of `columns`: of at most `most`, which are no whole chunks of `width`. Blocks that walk whole
/// chunks of a group read aligned packs.
inline bool suit_columns(int64_t columns, int64_t most, int64_t width, Count elements) {
  return columns <= most && columns % width != 0 && elements.value >= fewest_of_columns;
}

/// Launches `kernel` with a tile a block, whose rows `sections` blocks divide.
template <class Team, class Kernel, class... Args>
int32_t launch_stored(const heddle_launch* queue, heddle_error* error, const char* name, int64_t tiles, int64_t sections, Kernel kernel,
                      Args... args) {
  const dim3 grid(static_cast<unsigned int>(tiles), static_cast<unsigned int>(sections));
  const LaunchConfig config{name, grid, dim3(Team::threads), 0, Sync::block, true};
  return launch(queue, error, config, kernel, args...);
}

/// Rows of a thread in one section, at least: fewer are not worth the values of its columns. The CPU device divides earlier.
#if defined(HEDDLE_SIMT)
constexpr int64_t rows_of_thread = 1;
#else
constexpr int64_t rows_of_thread = 8;
#endif
constexpr int64_t most_stored_sections = 65535;

/// Picks the threads of a tile for so many columns of each of `outer` matrices of `rows` rows, and has `run` launch it. Few rows are a thread's;
/// otherwise threads of a block divide them, and sections of the grid as far as two blocks fit on every multiprocessor.
template <int Vec, int Parts, class Run>
int32_t choose_stored_sections(Count outer, int64_t columns, int64_t rows, Arguments& arguments, Run run) {
  using Few = ColumnTeam<64, Parts, RowsOf::block, 1>;
  using Sections = ColumnTeam<8, Parts, RowsOf::grid>;
  const bool is_few = rows <= 4 * Parts;
  const int tiles_of_row = is_few ? column_tiles<Few, Vec>(static_cast<int>(columns)) : column_tiles<Sections, Vec>(static_cast<int>(columns));
  const int64_t tiles = arguments.work(outer * tiles_of_row, 1);
  if (arguments.status != HEDDLE_OK || tiles == 0) return arguments.status;
  if (is_few) return run(Few{}, tiles, int64_t{1});
#if defined(HEDDLE_SIMT)
  int64_t sections = 3;
#else
  int64_t sections = 2 * device_attribute(cudaDevAttrMultiProcessorCount) / tiles;
#endif
  const int64_t most = rows / (Sections::slots * rows_of_thread);
  if (sections > most) sections = most;
  if (sections > most_stored_sections) sections = most_stored_sections;
  return run(Sections{}, tiles, sections < 1 ? int64_t{1} : sections);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
