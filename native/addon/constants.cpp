#include "constants.hpp"

#include <algorithm>

namespace heddle {

void ConstantFinder::write(const Slice& slice) {
  if (slice.bytes > 0) written_[slice.memory.get()].push_back({slice.offset, slice.offset + slice.bytes});
}

std::shared_ptr<const Constants> ConstantFinder::launch(const std::vector<Slice>& buffers) {
  launches_.push_back({buffers, std::make_shared<Constants>(buffers.size(), uint8_t{0})});
  return launches_.back().constants;
}

void ConstantFinder::find() {
  // Ranges that meet become one, so that a search finds the only one that can hold a byte.
  for (auto& [memory, ranges] : written_) {
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range& range : ranges) {
      if (merged.empty() || range.begin > merged.back().end) merged.push_back(range);
      else merged.back().end = std::max(merged.back().end, range.end);
    }
    ranges = std::move(merged);
  }
  for (const Launch& launch : launches_) {
    for (size_t i = 0; i < launch.buffers.size(); ++i) (*launch.constants)[i] = is_written(launch.buffers[i]) ? 0 : 1;
  }
  launches_.clear();
}

bool ConstantFinder::is_written(const Slice& slice) const {
  const auto found = written_.find(slice.memory.get());
  if (found == written_.end() || slice.bytes == 0) return false;
  const std::vector<Range>& ranges = found->second;
  const auto after = std::partition_point(ranges.begin(), ranges.end(), [&](const Range& range) { return range.end <= slice.offset; });
  return after != ranges.end() && after->begin < slice.offset + slice.bytes;
}

}  // namespace heddle
