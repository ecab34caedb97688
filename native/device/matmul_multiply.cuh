// The main loop of a matmul's block: multiplies the stages of the pipeline. Two versions of one interface, chosen by the tile and the
// architecture: mma with fragments in registers, and wgmma directly from shared memory. The latter saves the matrix loads that bound the
// former when a tile has few rows.
#ifndef HEDDLE_MATMUL_MULTIPLY_CUH
#define HEDDLE_MATMUL_MULTIPLY_CUH

#include "matmul_tile.cuh"
#include "wgmma_narrow.cuh"

namespace heddle {

#if defined(HEDDLE_HOPPER_CODE)
constexpr bool warpgroup_code = true;
#else
constexpr bool warpgroup_code = false;
#endif

/// Multiplies the steps of the pipeline as they arrive. This version loads fragments for mma: while one slice of k is multiplied the next
/// slice's fragments load, also across steps.
template <class T, class Tile, bool Warpgroup = warpgroup_code && Tile::warpgroup>
struct Multiplier {
  static constexpr int ahead = Tile::stages - 1;  // steps whose copies are in flight
  SumOf<T> sums[Tile::row_pieces][2 * Tile::column_pieces][4] = {};

  __device__ __forceinline__ explicit Multiplier(Shared16 shared) {
    // Lanes provide addresses of matrix rows; the low bits of a row, which are the lane's, permute its words.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_m = warp % Tile::warps_m, warp_n = warp / Tile::warps_m % Tile::warps_n;
    const int word0 = 2 * slices * (warp / (Tile::warps_m * Tile::warps_n));
    a_row_ = shared + (warp_m * Tile::warp_rows + lane % 16) * step_row_bytes;
    b_row_ = shared + (Tile::rows + warp_n * Tile::warp_columns + lane / 16 * 8 + lane % 8) * step_row_bytes;
    HEDDLE_UNROLL
    for (int i = 0; i < slices; ++i) {
      a_word_[i] = ((word0 + 2 * i + lane / 16) ^ lane % 8) * 16;
      b_word_[i] = ((word0 + 2 * i + lane / 8 % 2) ^ lane % 8) * 16;
    }
  }

  /// `refill(s, stage)` starts the copies of step s.
  template <class Refill>
  __device__ __forceinline__ void run(int count, Refill refill) {
    Fragments<Tile::row_pieces, Tile::column_pieces> fragments[2];
    int stage = 0, free_stage = ahead;
    copy_async_wait<ahead - 1>();
    __syncthreads();
    load(fragments[0], 0, 0);
    for (int s = 0; s < count; ++s) {
      HEDDLE_UNROLL
      for (int slice = 0; slice < slices; ++slice) {
        if (slice + 1 < slices) {
          load(fragments[(slice + 1) % 2], stage, slice + 1);
        } else {
          copy_async_wait<ahead - 1>();
          __syncthreads();
          free_stage = stage;
          stage = stage + 1 == Tile::stages ? 0 : stage + 1;
          if (s + 1 < count) load(fragments[0], stage, 0);
        }
        multiply<T>(sums, fragments[slice % 2]);
        if (slice == 0) {
          if (s + ahead < count) refill(s + ahead, free_stage);
          copy_async_commit();
        }
      }
    }
  }

 private:
  static constexpr int slices = step_slices / Tile::warps_k;

  __device__ __forceinline__ void load(Fragments<Tile::row_pieces, Tile::column_pieces>& fragments, int stage, int slice) const {
    fragments.load(a_row_ + (stage * Tile::stage_bytes + a_word_[slice]), b_row_ + (stage * Tile::stage_bytes + b_word_[slice]));
  }

  Shared16 a_row_, b_row_;
  uint32_t a_word_[slices], b_word_[slices];
};

#if defined(HEDDLE_HOPPER_CODE)
/// The wgmma version: warpgroups multiply directly from shared memory. A stage is refilled two steps after its wgmmas were issued, so that
/// one step's wgmmas are always in flight.
template <class T, class Tile>
struct Multiplier<T, Tile, true> {
  static constexpr int ahead = Tile::stages - 2;
  SumOf<T> sums[1][2 * Tile::column_pieces][4] = {};

  __device__ __forceinline__ explicit Multiplier(Shared16 shared) {
    const int group = Tile::warps_m == 4 ? 0 : __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
    a_rows_ = swizzled_rows(shared + group * 64 * step_row_bytes);
    b_rows_ = swizzled_rows(shared + Tile::rows * step_row_bytes);
  }

  template <class Refill>
  __device__ __forceinline__ void run(int count, Refill refill) {
    // If all steps fit the stages, one wait for all of them is shorter than one wait per step.
    const bool resident = count <= ahead;
    if (resident) arrive<0>();
    int stage = 0, free_stage = ahead;
    for (int s = 0; s < count; ++s) {
      wait_products<1>();
      if (!resident) arrive<ahead - 1>();
      begin_products();
      HEDDLE_UNROLL
      for (int slice = 0; slice < step_slices; ++slice) {
        const uint64_t place = stage * (Tile::stage_bytes / 16) + 2 * slice;
        multiply_narrow<T>(sums[0], a_rows_ + place, b_rows_ + place);
      }
      commit_products();
      if (s + ahead < count) refill(s + ahead, free_stage);
      if (!resident) copy_async_commit();
      stage = stage + 1 == Tile::stages ? 0 : stage + 1;
      free_stage = free_stage + 1 == Tile::stages ? 0 : free_stage + 1;
    }
    wait_products<0>();
    pin(sums[0]);
  }

 private:
  /// Waits until all but the newest Pending groups of copies have arrived, for all threads and for wgmma.
  template <int Pending>
  __device__ __forceinline__ void arrive() const {
    copy_async_wait<Pending>();
    publish_to_products();
    __syncthreads();
  }

  uint64_t a_rows_, b_rows_;
};
#endif

}  // namespace heddle

#endif
