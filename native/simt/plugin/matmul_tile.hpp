// The inner loop of the matmul: a small tile of the output in vector registers while it runs along k. One body is compiled per instruction set, and
// the best one of the machine is chosen at run time, so the plugin itself runs on any CPU of its architecture. Sums run along k in order for every
// tile: results do not depend on blocking or threads.
#ifndef HEDDLE_SIMT_PLUGIN_MATMUL_TILE_HPP
#define HEDDLE_SIMT_PLUGIN_MATMUL_TILE_HPP

#include <cstdint>
#include <cstring>

namespace heddle::simt {

/// sums[row][column] += sum over i < depth of a[i][row] * b[i][column], with dense panels a[depth][rows], b[depth][columns].
template <class T>
using TileFunction = void (*)(int64_t depth, const T* a, const T* b, T* sums);

template <class T>
struct Tile {
  int rows, columns;
  TileFunction<T> run;
};

template <class T, int Rows, int Vectors, int Lanes>
__attribute__((always_inline)) inline void tile_body(int64_t depth, const T* a, const T* b, T* sums) {
  typedef T Vector __attribute__((vector_size(Lanes * sizeof(T))));
  Vector total[Rows][Vectors];
  std::memcpy(&total, sums, sizeof total);
  for (int64_t i = 0; i < depth; i++, a += Rows, b += Vectors * Lanes) {
    Vector column[Vectors];
    std::memcpy(&column, b, sizeof column);
#pragma GCC unroll 16
    for (int row = 0; row < Rows; row++) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; v++) total[row][v] += a[row] * column[v];
    }
  }
  std::memcpy(sums, &total, sizeof total);
}

template <class T>
inline void tile_portable(int64_t depth, const T* a, const T* b, T* sums) {
  tile_body<T, 4, 2, 4>(depth, a, b, sums);
}

#if defined(__x86_64__)
template <class T>
__attribute__((target("avx2,fma"))) inline void tile_avx2(int64_t depth, const T* a, const T* b, T* sums) {
  tile_body<T, 6, 2, 8>(depth, a, b, sums);
}

template <class T>
__attribute__((target("avx512f,avx512dq,avx512vl"))) inline void tile_avx512(int64_t depth, const T* a, const T* b, T* sums) {
  tile_body<T, 12, 2, 16>(depth, a, b, sums);
}
#endif

/// The largest tile that this machine's registers hold. Rows divide 48 and columns divide 32.
template <class T>
inline Tile<T> best_tile() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return {12, 32, tile_avx512<T>};
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {6, 16, tile_avx2<T>};
#endif
  return {4, 8, tile_portable<T>};
}

}  // namespace heddle::simt

#endif
