// Two matmuls of one left factor for many rows on Hopper, such as a gate and the values that it scales: the body of matmul_wgmma.cuh, whose
// tiles have columns of both. Each block of a pair loads the columns of one matmul for both blocks, and a thread holds the same columns of
// each, so that the epilogue combines them in registers.
#ifndef HEDDLE_MATMUL_PRODUCTS_WGMMA_CUH
#define HEDDLE_MATMUL_PRODUCTS_WGMMA_CUH

#include "matmul_products_mma.cuh"
#include "matmul_products_stored.cuh"
#include "matmul_wgmma.cuh"

#if defined(HEDDLE_HOPPER)

namespace heddle {

/// True if the matmuls have such a body: two of them, of factors that may be copied unchanged, without partial reductions.
template <class Slots>
constexpr bool multiplies_by_wgmma = Slots::PRODUCTS == 2 && !Slots::PARTS && tensor_core_type<typename Slots::Element> &&
                                     all_copied<Slots>(std::make_integer_sequence<int, Slots::PRODUCTS + 1>());

/// A factor of one matrix that may be copied unchanged.
template <class Slots, int Which>
In<typename Slots::Element> copied_factor(const Slots& slots, Factor<Which> which) {
  const CopiedRows<typename Slots::Element> rows = slots.copy_of(which, 0);
  return tensor_from(rows.tensor, rows.first);
}

/// The tile for the matmuls of one matrix whose rows are copied in aligned words; none where another body is faster or this one cannot
/// compute them.
template <class Slots>
MatmulTile choose_products_wgmma(int64_t m, int64_t n, int64_t k, const Slots& slots) {
  using T = typename Slots::Element;
  if (!wgmma::can(m, n, k) || !wgmma::is_whole(n, slots) || !wgmma::fill_pairs<T>(m, Slots::PRODUCTS * n)) return MatmulTile::none;
  return wgmma::choose_pairs<T, Slots, Slots::PRODUCTS>(m, n);
}

/// Enqueues epilogue(a x b transposed, a x b2 transposed) with a tile that was chosen for it. `constant_b`: no launch writes the right
/// factors, so that they may be read while earlier launches run.
template <class Slots>
int32_t launch_products_wgmma(MatmulTile choice, const heddle_launch* queue, heddle_error* error, const char* name, int64_t m, int64_t n,
                              int64_t k, const Slots& slots, bool constant_b) {
  using T = typename Slots::Element;
  const auto run = [&](auto tile) {
    return wgmma::launch_tiles<T, decltype(tile), true>(queue, error, name, m, n, k, copied_factor(slots, Factor<0>()),
                                                        {copied_factor(slots, Factor<1>()), copied_factor(slots, Factor<2>())}, slots,
                                                        constant_b, wgmma::pairs_at_once());
  };
  constexpr int products = Slots::PRODUCTS;
  switch (choice) {
    case MatmulTile::pair_128x128:
      return run(WgmmaTile<128, false, 1, products>());
    case MatmulTile::pair_128x192:
      return run(WgmmaTile<192, false, 1, products>());
    case MatmulTile::turns_128x192:
      if constexpr (wgmma::wide_in_turns<T, Slots>()) return run(WgmmaTile<192, true, 1, products>());
      break;
    default:
      break;
  }
  return run(WgmmaTile<128, true, 1, products>());
}

}  // namespace heddle

#endif

#endif
