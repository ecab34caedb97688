// The memory planner: the largest storage first, each in the tightest gap between those with overlapping lifetimes.
#include <algorithm>

#include "program.hpp"

namespace heddle::exported {

namespace {

constexpr uint64_t alignment = 256;

uint64_t aligned(uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

bool meet(const Storage& a, const Storage& b) { return a.first <= b.last && b.first <= a.last; }

struct Range {
  uint64_t offset, end;
};

uint64_t best_fit(uint64_t bytes, std::vector<Range> taken) {
  std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.offset < b.offset; });
  uint64_t end = 0, best = 0, room = UINT64_MAX;
  for (const Range& range : taken) {
    if (range.offset >= end + bytes && range.offset - end < room) {
      best = end;
      room = range.offset - end;
    }
    end = std::max(end, range.end);
  }
  return room == UINT64_MAX ? end : best;
}

}  // namespace

uint64_t place(const std::vector<Storage>& storages, Bound& bound) {
  std::vector<size_t> order;
  for (size_t i = 0; i < storages.size(); ++i) {
    if (storages[i].home == Home::arena && bound.bytes[i] > 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bound.bytes[a] > bound.bytes[b]; });
  uint64_t peak = 0;
  std::vector<size_t> placed;
  for (const size_t i : order) {
    std::vector<Range> taken;
    for (const size_t other : placed) {
      if (meet(storages[i], storages[other])) taken.push_back({bound.offsets[other], bound.offsets[other] + aligned(bound.bytes[other])});
    }
    bound.offsets[i] = best_fit(aligned(bound.bytes[i]), std::move(taken));
    peak = std::max(peak, bound.offsets[i] + aligned(bound.bytes[i]));
    placed.push_back(i);
  }
  return peak;
}

}  // namespace heddle::exported
