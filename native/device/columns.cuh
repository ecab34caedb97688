// Launches of reductions across rows: the threads of a tile of columns, and how blocks divide the rows, by the sizes. What threads do, and the order in
// which they combine, stands in column_totals.cuh. Files whose kernels reduce no columns do not include this one.
#ifndef HEDDLE_COLUMNS_CUH
#define HEDDLE_COLUMNS_CUH

#include "column_totals.cuh"
#include "launcher.cuh"

#if defined(HEDDLE_SIMT)
// As in kernel.cuh: two kernel libraries in one process share nothing.
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Launches `kernel` with a tile a team. `shared`: bytes of all its walks.
template <class Team, class Kernel, class... Args>
int32_t launch_columns(const heddle_launch* queue, heddle_error* error, const char* name, int64_t tiles, uint32_t shared, Kernel kernel,
                       Args... args) {
  const dim3 grid(static_cast<unsigned int>(tiles * Team::blocks));
  const LaunchConfig config{name, grid, dim3(Team::threads), shared, Sync::block, true, Team::blocks};
  return launch(queue, error, config, kernel, args...);
}

/// The same of a kernel with one walk, whose rows `sections` blocks divide. `words`: of the results of a tile.
template <class Team, class Kernel, class... Args>
int32_t launch_sections(const heddle_launch* queue, heddle_error* error, const char* name, int64_t tiles, int64_t sections, int words,
                        uint32_t shared, Kernel kernel, Args... args) {
  const Scratch left(queue, error, name, Team::is_sectioned ? tiles * sections * words : 0);
  if (left.status != HEDDLE_OK) return left.status;
  const Scratch counters(queue, error, name, Team::is_sectioned ? tiles : 0, ScratchOf::counters);
  if (counters.status != HEDDLE_OK) return counters.status;
  const dim3 grid(static_cast<unsigned int>(tiles * Team::blocks), static_cast<unsigned int>(sections));
  const LaunchConfig config{name, grid, dim3(Team::threads), shared, Sync::block, true, Team::blocks};
  return launch(queue, error, config, kernel, left.out(), counters.out_as<int>(), args...);
}

/// Picks the team for so many columns of each of `outer` matrices, and has `run` launch it. Chunks of a tile fill whole cache lines; where
/// such tiles and their clusters leave multiprocessors without work, tiles are half as wide. Where there are tiles for all of them,
/// a block reduces all rows of its own.
template <int Vec, int Parts, int Each = 1, class Run>
int32_t choose_columns(Count outer, int64_t columns, Arguments& arguments, Run run) {
  using Wide = ColumnTeam<8, Parts, RowsOf::block, 32, Each>;
  using Narrow = ColumnTeam<4, Parts, RowsOf::block, 32, Each>;
  const int64_t wide = arguments.work(outer * column_tiles<Wide, Vec>(static_cast<int>(columns)), 1);
  const int64_t narrow = arguments.work(outer * column_tiles<Narrow, Vec>(static_cast<int>(columns)), 1);
  if (arguments.status != HEDDLE_OK || wide == 0) return arguments.status;
#if defined(HEDDLE_SIMT)
  // No device to fill: both are there so that both are checked.
  return wide >= 2 ? run(Wide{}, wide) : run(Narrow{}, narrow);
#else
  const int64_t at_once = device_attribute(cudaDevAttrMultiProcessorCount);
  if (wide >= 2 * at_once) return run(Wide{}, wide);
  if (narrow >= at_once || device_attribute(cudaDevAttrComputeCapabilityMajor) < 9) return run(Narrow{}, narrow);
  if (wide * Parts >= at_once + at_once / 4) return run(ColumnTeam<8, Parts, RowsOf::cluster, 32, Each>{}, wide);
  return run(ColumnTeam<4, Parts, RowsOf::cluster, 32, Each>{}, narrow);
#endif
}

/// Most rows that clusters divide in kernels with one walk: for more, the whole grid is faster by more than its blocks take to leave their results to the
/// last. The CPU device divides earlier, so that few rows test it.
#if defined(HEDDLE_SIMT)
constexpr int64_t rows_of_cluster = 48;
#else
constexpr int64_t rows_of_cluster = 4096;
#endif
/// Rows of a thread that are worth a section, and the sections of fewer than `rows_of_many` rows: one block combines their results.
constexpr int64_t rows_of_section = 8;
constexpr int64_t most_sections = 128;
constexpr int64_t rows_of_many = 1024 * most_sections;

/// Has `run` launch the team of few rows: a thread has all rows of its chunk, and waits for nobody.
template <int Vec, int Parts, class Run>
int32_t run_few_rows(Count outer, int64_t columns, Arguments& arguments, Run run) {
  using Few = ColumnTeam<64, Parts, RowsOf::block, 1>;
  const int64_t tiles = arguments.work(outer * column_tiles<Few, Vec>(static_cast<int>(columns)), 1);
  return arguments.status != HEDDLE_OK || tiles == 0 ? arguments.status : run(Few{}, tiles);
}
/// Most rows of that team. Their number alone decides, since the order of sums follows from it.
template <int Parts>
constexpr int64_t few_rows = 4 * Parts;

/// The same for a kernel with one walk over `rows` rows, which blocks of the grid divide where tiles would not fill the device twice.
template <int Vec, int Parts, int Each = 1, class Run>
int32_t choose_sections(Count outer, int64_t columns, int64_t rows, Arguments& arguments, Run run) {
  using Sections = ColumnTeam<8, Parts, RowsOf::grid, 32, Each>;
  const auto whole = [&](auto team, int64_t tiles) -> int32_t { return run(team, tiles, int64_t{1}); };
  if (rows <= few_rows<Parts>) return run_few_rows<Vec, Parts>(outer, columns, arguments, whole);
  if (rows <= rows_of_cluster) return choose_columns<Vec, Parts, Each>(outer, columns, arguments, whole);
  const int64_t tiles = arguments.work(outer * column_tiles<Sections, Vec>(static_cast<int>(columns)), 1);
  if (arguments.status != HEDDLE_OK || tiles == 0) return arguments.status;
#if defined(HEDDLE_SIMT)
  int64_t sections = 3;
#else
  int64_t sections = 2 * device_attribute(cudaDevAttrMultiProcessorCount) / tiles;
  const int64_t many = rows < rows_of_many ? most_sections : rows / (rows_of_many / most_sections);
  const int64_t most = rows / (Sections::slots * rows_of_section);
  if (sections > many) sections = many;
  if (sections > most) sections = most;
#endif
  if (sections < 2) return run(ColumnTeam<8, Parts, RowsOf::block, 32, Each>{}, tiles, int64_t{1});
  return run(Sections{}, tiles, sections);
}

/// The same for kernels that store every row, whose number alone tells how they are divided. Of some, parts that none belongs to would cost
/// registers, and so blocks at once.
template <int Vec, int Parts, int Each = 1, class Run>
int32_t choose_stored_columns(Count outer, int64_t columns, int64_t rows, Arguments& arguments, Run run) {
  constexpr int some = Parts < 2 ? Parts : 2;
  if (rows > 32 * some) return choose_columns<Vec, Parts, Each>(outer, columns, arguments, run);
  if (rows > few_rows<Parts>) return choose_columns<Vec, some, some == Parts ? Each : 1>(outer, columns, arguments, run);
  return run_few_rows<Vec, Parts>(outer, columns, arguments, run);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
