// Launches of one op, in order. Values passed between launches are in scratch memory of the queue, apart from the scratch that a launch
// takes for itself.
#ifndef HEDDLE_SPLIT_CUH
#define HEDDLE_SPLIT_CUH

#include "launcher.cuh"
#include "scratch.cuh"

#if defined(HEDDLE_SIMT)
#pragma GCC visibility push(hidden)
#endif

namespace heddle {

/// Part of the sizes for which groups are rows on this device. The CPU device divides earlier, so that small tensors test both forms.
#if defined(HEDDLE_SIMT)
constexpr int64_t rows_part = 64;
#else
constexpr int64_t rows_part = 1;
#endif

/// True if one launch computes `rows` groups of `length` elements as rows: groups of up to `kept` elements stay in registers, and from
/// `many` groups on blocks read longer ones again.
inline bool suit_rows(Count rows, Count length, int64_t kept, int64_t many) {
  if (rows.is_overflow() || length.is_overflow() || length.value > INT32_MAX) return false;
  return length.value <= kept / rows_part || rows.value >= many / rows_part;
}

/// True if rows of `length` elements have a block each: up to `kept` elements. A batch changes no bits of a row, so their number counts not.
inline bool suit_blocks(Count length, int64_t kept) { return !length.is_overflow() && length.value <= kept / rows_part; }

/// Bytes of `N` scratch tensors of 4-byte elements, and the offset of each.
template <int N>
class SplitSizes {
 public:
  explicit SplitSizes(const Count (&elements)[N]) {
    Count all(0);
    for (int i = 0; i < N; ++i) {
      begin[i] = all.value;
      const Count bytes = elements[i] * Count(element_bytes);
      size[i] = bytes.value;
      all = all + bytes + Count(alignment - 1);
      all = Count(all.value / alignment * alignment);
      is_overflow = is_overflow || bytes.is_overflow() || all.is_overflow();
    }
    total = all.value;
  }

  int64_t begin[N];
  int64_t size[N];
  int64_t total = 0;
  bool is_overflow = false;

 private:
  static constexpr int64_t element_bytes = 4;
  static constexpr int64_t alignment = 256;
};

/// The launches of one op with `N` scratch tensors between them.
template <int N>
class Split {
 public:
  Split(const heddle_launch* launch, heddle_error* error, Arguments& arguments, const char* name, const Count (&elements)[N])
      : launch_(launch), error_(error), sizes_(elements), scratch_(launch, error, name, floats(arguments), ScratchOf::op) {
    status = arguments.status != HEDDLE_OK ? arguments.status : scratch_.status;
    if (status == HEDDLE_OK && sizes_.is_overflow)
      status = fail(error, HEDDLE_INVALID, "kernel %s: its scratch memory exceeds 64 bits", name);
  }

  /// Runs one launch with buffers of the op, or for a negative place `p` scratch tensor `-1 - p`. Does nothing after a failure.
  template <class... Places>
  void run(heddle_launcher part, Places... places) {
    if (status != HEDDLE_OK) return;
    const heddle_slice buffers[] = {slice(places)...};
    const uint8_t constants[] = {constancy(places)...};
    heddle_launch launch = *launch_;
    launch.buffers = buffers;
    launch.buffer_count = sizeof...(places);
    launch.constants = launch_->constants == nullptr ? nullptr : constants;
    status = part(&launch, error_);
  }

  int32_t status = HEDDLE_OK;

 private:
  int64_t floats(const Arguments& arguments) const {
    return arguments.status == HEDDLE_OK && !sizes_.is_overflow ? sizes_.total / static_cast<int64_t>(sizeof(float)) : 0;
  }

  heddle_slice slice(int place) const {
    if (place >= 0) return launch_->buffers[place];
    const int at = -1 - place;
    if (sizes_.size[at] == 0) return {nullptr, 0};
    return {static_cast<char*>(scratch_.data()) + sizes_.begin[at], static_cast<uint64_t>(sizes_.size[at])};
  }

  uint8_t constancy(int place) const {
    return place < 0 || launch_->constants == nullptr ? static_cast<uint8_t>(HEDDLE_CHANGING) : launch_->constants[place];
  }

  const heddle_launch* launch_;
  heddle_error* error_;
  SplitSizes<N> sizes_;
  Scratch scratch_;
};

}  // namespace heddle

#if defined(HEDDLE_SIMT)
#pragma GCC visibility pop
#endif

#endif
