#include "constants.hpp"

#include <algorithm>

namespace heddle {

void ConstantFinder::begin_step(bool launches) { steps_.push_back({launches, {}}); }

void ConstantFinder::write(const Slice& slice) {
  if (slice.bytes == 0) return;
  written_[slice.memory.get()].push_back({slice.offset, slice.offset + slice.bytes});
  steps_.back().written.push_back(slice);
}

std::shared_ptr<const Constants> ConstantFinder::launch(const std::vector<Slice>& buffers, std::vector<bool> changing) {
  launches_.push_back({steps_.size() - 1, buffers, std::move(changing), std::make_shared<Constants>(buffers.size(), uint8_t{HEDDLE_CHANGING})});
  return launches_.back().constants;
}

void ConstantFinder::find() {
  // Overlapping and adjacent ranges are merged, so that a search finds the only one that can hold a byte.
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
    for (size_t i = 0; i < launch.buffers.size(); ++i) {
      if (!launch.changing[i]) (*launch.constants)[i] = static_cast<uint8_t>(of(launch.buffers[i], launch.step));
    }
  }
  launches_.clear();
  steps_.clear();
}

heddle_constancy ConstantFinder::of(const Slice& slice, size_t step) const {
  if (!is_written(slice)) return HEDDLE_CONSTANT;
  const auto meets = [&](const Slice& other) {
    return other.memory == slice.memory && other.offset < slice.offset + slice.bytes && slice.offset < other.offset + other.bytes;
  };
  while (step-- > 0) {
    const std::vector<Slice>& written = steps_[step].written;
    if (std::any_of(written.begin(), written.end(), meets)) return HEDDLE_CHANGING;
    if (steps_[step].launches && !written.empty()) return HEDDLE_SETTLED;
  }
  // Work before the first step is unknown to the program.
  return HEDDLE_CHANGING;
}

bool ConstantFinder::is_written(const Slice& slice) const {
  const auto found = written_.find(slice.memory.get());
  if (found == written_.end() || slice.bytes == 0) return false;
  const std::vector<Range>& ranges = found->second;
  const auto after = std::partition_point(ranges.begin(), ranges.end(), [&](const Range& range) { return range.end <= slice.offset; });
  return after != ranges.end() && after->begin < slice.offset + slice.bytes;
}

}  // namespace heddle
