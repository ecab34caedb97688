// State of a warpgroup's wgmmas, and the computation of one that all its threads have issued.
#ifndef HEDDLE_SIMT_ASYNC_PRODUCTS_HPP
#define HEDDLE_SIMT_ASYNC_PRODUCTS_HPP

#include "descriptors.hpp"
#include "mma.hpp"

namespace heddle::simt {

constexpr uint32_t kWarpgroup = 128;

enum class Multiplicand : uint8_t { half, bfloat, int8 };

/// One instruction: 64 rows by `columns`, as all threads of the warpgroup give it.
struct ProductForm {
  uint64_t a, b;  // descriptors; a is 0 if it is in registers
  uint32_t columns;
  Multiplicand type;
  bool in_registers, b_columns, adds;

  bool operator==(const ProductForm& other) const {
    return a == other.a && b == other.b && columns == other.columns && type == other.type && in_registers == other.in_registers &&
           b_columns == other.b_columns && adds == other.adds;
  }
};

struct AsyncProduct {
  static constexpr uint32_t kMostSources = 64 * 2 + 256 * 2;
  ProductForm form;
  Site site;
  uint32_t threads, group;  // that have issued it; its group
  uint32_t source_count;
  Access sources[kMostSources];   // writes of its words that differ
  uint32_t source_words[kMostSources];
  uint8_t sums[kWarpgroup];       // by thread
  uint32_t left[kWarpgroup][4];   // factors in registers, and their places
  const uint32_t* left_at[kWarpgroup];
};

/// Sums of a thread in flight.
struct SumsInFlight {
  char* place;            // null if there are none
  uint32_t count, group;  // words; the last group that adds to them
  Site site;
  uint32_t values[128];
};

struct ThreadProducts {
  static constexpr uint32_t kMostSums = 6;
  uint32_t issued, commits;
  bool is_fenced;
  SumsInFlight sums[kMostSums];
};

struct Warpgroup {
  static constexpr uint32_t kMostProducts = 64;
  uint32_t issued, done;
  ThreadProducts threads[kWarpgroup];
  AsyncProduct products[kMostProducts];
  float left[64][16], right[16][256];  // factors of the one that is computed

  void begin() {
    issued = done = 0;
    for (ThreadProducts& thread : threads) {
      thread.issued = thread.commits = 0;
      thread.is_fenced = false;
      for (SumsInFlight& sums : thread.sums) sums.place = nullptr;
    }
  }
};

/// The word of sums that holds an element of the result, of a thread.
inline uint32_t& sum_at(Warpgroup& group, const AsyncProduct& product, uint32_t row, uint32_t column) {
  const uint32_t thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  return group.threads[thread].sums[product.sums[thread]].values[column / 8 * 4 + row % 16 / 8 * 2 + column % 2];
}

template <class T>
inline float element_of(const char* from) {
  T value;
  memcpy(&value, from, sizeof value);
  return wide(value);
}

/// Computes a matmul that all threads have issued.
inline void compute_product(Warpgroup& group, AsyncProduct& product, Site site) {
  const char* const shared = current->dynamic->data;
  const ProductForm& form = product.form;
  alignas(32) char a[64][32], b[256][32];
  if (form.in_registers) {
    for (uint32_t thread = 0; thread < kWarpgroup; thread++) {
      if (memcmp(product.left[thread], product.left_at[thread], sizeof product.left[thread]) != 0) {
        current->fault("registers of the wgmma at %s:%d are changed before it is waited for at %s:%d", product.site.name(), product.site.line, site.name(),
                       site.line);
      }
      const uint32_t row = thread / 32 * 16 + thread % 32 / 4, byte = thread % 4 * 4;
      for (uint32_t i = 0; i < 4; i++) memcpy(&a[row + i % 2 * 8][byte + i / 2 * 16], &product.left[thread][i], 4);
    }
  } else {
    each_word(MatrixPlace(form.a), 64, false, [&](uint32_t address, uint32_t row, uint32_t half) { memcpy(&a[row][16 * half], shared + address, 16); });
  }
  each_word(MatrixPlace(form.b), form.columns, form.b_columns, [&](uint32_t address, uint32_t row, uint32_t half) {
    if (!form.b_columns) return void(memcpy(&b[row][16 * half], shared + address, 16));
    for (uint32_t i = 0; i < 8; i++) memcpy(&b[8 * row + i][2 * half], shared + address + 2 * i, 2);
  });
  if (form.type == Multiplicand::int8) {
    for (uint32_t row = 0; row < 64; row++) {
      for (uint32_t column = 0; column < form.columns; column++) {
        int32_t terms = 0;
        for (uint32_t k = 0; k < 32; k++) terms += static_cast<int8_t>(a[row][k]) * static_cast<int8_t>(b[column][k]);
        uint32_t& sum = sum_at(group, product, row, column);
        sum = (form.adds ? sum : 0) + static_cast<uint32_t>(terms);
      }
    }
    return;
  }
  float(&left)[64][16] = group.left;
  float(&right)[16][256] = group.right;
  const auto element = form.type == Multiplicand::half ? element_of<__half> : element_of<__nv_bfloat16>;
  for (uint32_t i = 0; i < 64 * 16; i++) left[i / 16][i % 16] = element(&a[i / 16][i % 16 * 2]);
  for (uint32_t i = 0; i < form.columns * 16; i++) right[i % 16][i / 16] = element(&b[i / 16][i % 16 * 2]);
  for (uint32_t row = 0; row < 64; row++) {
    float sums[256] = {};
    for (uint32_t k = 0; k < 16; k++) {
      for (uint32_t column = 0; column < form.columns; column++) sums[column] += left[row][k] * right[k][column];
    }
    for (uint32_t column = 0; column < form.columns; column++) {
      uint32_t& sum = sum_at(group, product, row, column);
      sum = bit_cast<uint32_t>((form.adds ? bit_cast<float>(sum) : 0.0f) + sums[column]);
    }
  }
}

}  // namespace heddle::simt

#endif
