// Configurations of a matmul library's algorithms, and the order in which they are tried. Independent of the library, to be tested without it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heddle {

// Capabilities of one algorithm. A list without elements has the library's own value 0 only.
struct AlgorithmSpace {
  std::vector<uint32_t> tiles, stages;
  uint32_t custom_max = 0;
  bool swizzles = false;
  bool splits = false;
};

struct AlgorithmConfig {
  uint32_t tile = 0, stages = 0, custom = 0, swizzle = 0;
  int32_t split = 1;     // parts of k that are summed separately
  uint16_t cluster = 0;  // 0: the library's choice
};

constexpr int32_t splits_of_k[] = {2, 3, 4, 5, 6, 8, 12, 16, 32};
// Shapes of up to four blocks: 1 x 1, 2 x 1, 4 x 1, 1 x 2, 2 x 2, 1 x 4.
constexpr uint16_t cluster_shapes[] = {2, 3, 4, 5, 6, 8};

// Everything but tile and stages.
struct AlgorithmVariant {
  uint32_t custom = 0, swizzle = 0;
  int32_t split = 1;
  uint16_t cluster = 0;
  int parts() const { return (custom != 0) + (swizzle != 0) + (split != 1) + (cluster != 0); }
};

// All variants up to the given largest custom option, those with the fewest changed parts first.
inline std::vector<AlgorithmVariant> algorithm_variants(uint32_t custom_max) {
  std::vector<int32_t> splits = {1};
  splits.insert(splits.end(), std::begin(splits_of_k), std::end(splits_of_k));
  std::vector<uint16_t> clusters = {0};
  clusters.insert(clusters.end(), std::begin(cluster_shapes), std::end(cluster_shapes));
  std::vector<AlgorithmVariant> variants;
  for (uint32_t custom = 0; custom <= custom_max; ++custom) {
    for (uint32_t swizzle = 0; swizzle <= 1; ++swizzle) {
      for (int32_t split : splits) {
        for (uint16_t cluster : clusters) variants.push_back({custom, swizzle, split, cluster});
      }
    }
  }
  std::stable_sort(variants.begin(), variants.end(),
                   [](const AlgorithmVariant& a, const AlgorithmVariant& b) { return a.parts() < b.parts(); });
  return variants;
}

inline bool supports(const AlgorithmSpace& space, const AlgorithmVariant& variant) {
  return variant.custom <= space.custom_max && (variant.swizzle == 0 || space.swizzles) && (variant.split == 1 || space.splits);
}

// Calls `attempt(index of the space, configuration)` for every configuration until it returns false. Within a variant, spaces take turns, so that an
// early end covers all of them.
template <class Attempt>
void for_each_config(const std::vector<AlgorithmSpace>& spaces, Attempt&& attempt) {
  const auto at = [](const std::vector<uint32_t>& list, size_t i) { return list.empty() ? 0u : list[i]; };
  const auto count = [](const std::vector<uint32_t>& list) { return std::max<size_t>(list.size(), 1); };
  uint32_t custom_max = 0;
  size_t most = 0;
  for (const AlgorithmSpace& space : spaces) {
    custom_max = std::max(custom_max, space.custom_max);
    most = std::max(most, count(space.tiles) * count(space.stages));
  }
  for (const AlgorithmVariant& variant : algorithm_variants(custom_max)) {
    for (size_t i = 0; i < most; ++i) {
      for (size_t index = 0; index < spaces.size(); ++index) {
        const AlgorithmSpace& space = spaces[index];
        const size_t stages = count(space.stages);
        if (i >= count(space.tiles) * stages || !supports(space, variant)) continue;
        const AlgorithmConfig config = {at(space.tiles, i / stages), at(space.stages, i % stages), variant.custom,
                                        variant.swizzle,             variant.split,                variant.cluster};
        if (!attempt(index, config)) return;
      }
    }
  }
}

}  // namespace heddle
