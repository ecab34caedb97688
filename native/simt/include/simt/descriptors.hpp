// Matrix descriptors of wgmma: the places in shared memory of a factor's 16-byte words, for one slice of 32 bytes of k.
//
//   bits 0 - 13   start / 16                 bits 32 - 45   stride / 16, between groups of eight rows
//   bits 16 - 29  leading / 16               bits 62 - 63   swizzle: none, 128, 64, 32 bytes
//
// A factor is stored as rows along k, or (`columns`) as rows across it, in blocks of 64 elements that lie `leading` bytes apart.
#ifndef HEDDLE_SIMT_DESCRIPTORS_HPP
#define HEDDLE_SIMT_DESCRIPTORS_HPP

#include "boxes.hpp"

namespace heddle::simt {

struct MatrixPlace {
  uint32_t start, leading, stride;
  Swizzle swizzle;

  explicit MatrixPlace(uint64_t descriptor)
      : start(static_cast<uint32_t>(descriptor & 0x3fff) * 16),
        leading(static_cast<uint32_t>(descriptor >> 16 & 0x3fff) * 16),
        stride(static_cast<uint32_t>(descriptor >> 32 & 0x3fff) * 16),
        swizzle(static_cast<Swizzle>(descriptor >> 62)) {}

  /// Bytes from row to row of a group of eight.
  uint32_t pitch() const {
    return swizzle == Swizzle::bytes_128 ? 128 : swizzle == Swizzle::bytes_64 ? 64 : swizzle == Swizzle::bytes_32 ? 32 : 16;
  }
  /// False if the first row is not the first of a swizzle's eight.
  bool is_aligned() const { return start % (8 * pitch()) < pitch(); }

  /// The half of a slice of a row along k.
  uint32_t along(uint32_t row, uint32_t half) const {
    const uint32_t step = swizzle == Swizzle::none ? leading : 16;
    return swizzled(start + row / 8 * stride + row % 8 * pitch() + half * step, swizzle);
  }
  /// Eight elements of 16 bits, of row `k` of a slice, from column 8 `chunk` on.
  uint32_t across(uint32_t k, uint32_t chunk) const {
    return swizzled(start + chunk / 8 * leading + k / 8 * stride + k % 8 * 128 + chunk % 8 * 16, swizzle);
  }
};

/// Calls `visit(address, row, half)` for the words of `rows` rows along k; of columns likewise with (address, chunk, k).
template <class Visit>
void each_word(const MatrixPlace& place, uint32_t rows, bool columns, Visit visit) {
  if (columns) {
    for (uint32_t k = 0; k < 16; k++) {
      for (uint32_t chunk = 0; chunk < rows / 8; chunk++) visit(place.across(k, chunk), chunk, k);
    }
  } else {
    for (uint32_t row = 0; row < rows; row++) {
      for (uint32_t half = 0; half < 2; half++) visit(place.along(row, half), row, half);
    }
  }
}

}  // namespace heddle::simt

#endif
