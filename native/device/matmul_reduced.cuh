// Matmuls whose rows are reduced and that are never stored. Slots are those of matmul_products.cuh without results: they keep the reductions of
// each group of neighbouring columns, which a launch after this one combines. They have
//
//   static constexpr bool PARTS = true
//   void keep_groups<Lanes>(row, column, valid, acc)     reduces groups of 8 * Lanes columns, which as many neighbouring lanes hold
//   void keep_parts(row, column, valid, acc)             the same for four lanes
//
// Up to eight rows, whose main loops hold eight columns of a row in one thread, a group is eight columns. On Hopper the large tiles of
// matmul_wgmma.cuh and wgmma_single.cuh take one matmul of 16-bit factors that are copied: four lanes hold 32 columns of a row there.
#ifndef HEDDLE_MATMUL_REDUCED_CUH
#define HEDDLE_MATMUL_REDUCED_CUH

#include "matmul_products.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// The lanes that hold a group of columns: those of which the columns exist.
template <int Lanes>
class GroupLanes {
 public:
  /// `column`: the first of this lane's eight, of `n`.
  __device__ __forceinline__ GroupLanes(int column, int n) : own_(column / vec % Lanes) {
    const int left = (n - column + own_ * vec + vec - 1) / vec, lane = static_cast<int>(threadIdx.x) % 32;
    count_ = left < Lanes ? left : Lanes;
    lanes_ = ((1u << count_) - 1u) << (lane / Lanes * Lanes);
  }
  __device__ __forceinline__ bool is_first() const { return own_ == 0; }

  /// Reduces the columns of the group: each lane its own in ascending order, then the lanes as a butterfly. All of them get the result.
  template <class Monoid>
  __device__ __forceinline__ auto reduce(int valid, const typename Monoid::Element (&values)[8]) const {
    typename Monoid::Value part = Monoid::identity();
    HEDDLE_UNROLL
    for (int i = 0; i < vec; ++i) {
      if (i < valid) part = Monoid::combine(part, Monoid::lift(values[i], own_ * vec + i));
    }
    HEDDLE_UNROLL
    for (int distance = Lanes / 2; distance > 0; distance /= 2) {
      const int other = own_ ^ distance;
      const auto received = from_lane(part, lanes_, other < count_ ? other : own_, Lanes);
      if (other < count_) part = Monoid::combine(part, received);
    }
    // The last of three lanes misses the second.
    if (Lanes > 1 && count_ < Lanes) part = from_lane(part, lanes_, 0, Lanes);
    return Monoid::result(part);
  }

  /// Stores a result of the group.
  template <class T, class V>
  __device__ __forceinline__ void keep(const Out<T>& to, int64_t offset, V value) const {
    if (is_first()) write(to, offset, static_cast<Scalar<T>>(value));
  }

 private:
  static constexpr int vec = 8;
  int own_, count_;
  unsigned int lanes_;
};

/// Slots whose epilogue keeps groups of eight columns, in the main loops that know no parts.
template <class Slots>
struct SmallGroups : Slots {
  static constexpr bool PARTS = false;
  explicit SmallGroups(const Slots& slots) : Slots(slots) {}
  template <bool Whole, class Sums>
  __device__ __forceinline__ void finish(int64_t row, int column, int valid, const Sums& sums, const typename Slots::Loaded&) const {
    Slots::template keep_groups<1>(row, column, valid, sums);
  }
};

/// The same where other memory may take the place of factors.
template <class Slots, class = void>
struct FewReduced : SmallGroups<Slots> {
  using SmallGroups<Slots>::SmallGroups;
};
template <class Slots>
struct FewReduced<Slots, std::void_t<decltype(&Slots::with_rows)>> : SmallGroups<Slots> {
  using SmallGroups<Slots>::SmallGroups;
  FewReduced with_rows(const In<typename Slots::Element> (&rows)[1 + Slots::PRODUCTS], int64_t length) const {
    return FewReduced(Slots::with_rows(rows, length));
  }
};

#if defined(HEDDLE_HOPPER)

/// Epilogue of a Hopper tile that keeps groups of 32 columns.
template <class Slots>
struct WideGroups {
  static constexpr int VEC = Slots::VEC;
  struct Loaded {};
  Slots slots;

  bool whole_chunks() const { return true; }
  __device__ __forceinline__ void prefetch(int) const {}
  template <bool Whole>
  __device__ __forceinline__ Loaded load(int64_t, int, int) const {
    return {};
  }
  template <bool Whole>
  __device__ __forceinline__ void finish(int64_t row, int column, int valid, const typename Slots::Sum (&sums)[8], const Loaded&) const {
    slots.template keep_groups<4>(row, column, Whole ? 8 : valid, sums);
  }
};

#endif

/// True for one matmul of 16-bit factors that are copied.
template <class Slots>
constexpr bool takes_stored_row = Slots::PRODUCTS == 1 && sizeof(typename Slots::Element) == 2 && tensor_core_type<typename Slots::Element> &&
                                  all_copied<Slots>(std::make_integer_sequence<int, Slots::PRODUCTS + 1>());

/// Enqueues the matmul of one row by the main loop of a row that is stored, which has these bits: its blocks are smaller where k is short.
template <class Slots>
int32_t launch_reduced_row(const heddle_launch* queue, heddle_error* error, const char* name, int64_t n, int64_t k, const Slots& slots,
                           bool constant) {
  const auto left = slots.copy_of(Factor<0>(), 0), right = slots.copy_of(Factor<1>(), 0);
  return launch_matmul_rows<typename Slots::Element>(queue, error, name, 1, n, k, tensor_from(left.tensor, left.first),
                                                     tensor_from(right.tensor, right.first), SmallGroups<Slots>(slots), constant);
}

/// Enqueues the matmuls of `matrices` matrices and the reductions of their groups. `constant`: as in launch_matmul_products(). Refuses a k
/// of 0: main loops have nothing to do then.
template <class Slots>
int32_t launch_matmul_reduced(const heddle_launch* queue, heddle_error* error, const char* name, int64_t matrices, int64_t m, int64_t n,
                              int64_t k, Slots slots, bool constant) {
  static_assert(Slots::PRODUCTS <= 3, "four lanes hold a group of each matmul");
  if (k <= 0) return fail(error, HEDDLE_INVALID, "kernel %s: k is 0, and rows of a matmul without terms are not reduced", name);
  using Factors = std::make_integer_sequence<int, Slots::PRODUCTS + 1>;
  if constexpr (takes_stored_row<Slots>) {
    if (matrices == 1 && m == 1 && copies_all(slots, k, Factors())) return launch_reduced_row(queue, error, name, n, k, slots, constant);
  }
  if (matrices * m <= few::most_rows)
    return launch_matmul_products(queue, error, name, matrices, m, n, k, FewReduced<Slots>(slots), constant);
#if defined(HEDDLE_HOPPER)
  if constexpr (Slots::PRODUCTS == 1 && sizeof(typename Slots::Element) == 2 && tensor_core_type<typename Slots::Element> &&
                all_copied<Slots>(Factors())) {
    using T = typename Slots::Element;
    if (matrices == 1 && copies_all(slots, k, Factors()) && wgmma::can(m, n, k)) {
      const WideGroups<Slots> epilogue{slots};
      const MatmulChoice choice = wgmma::choose<T>(m, n, k, epilogue);
      if (choice.tile != MatmulTile::none) {
        return launch_matmul_wgmma(choice, queue, error, name, m, n, k, copied_factor(slots, Factor<0>()), copied_factor(slots, Factor<1>()),
                                   epilogue, constant);
      }
    }
  }
#endif
  return launch_matmul_products(queue, error, name, matrices, m, n, k, slots, constant);
}

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
