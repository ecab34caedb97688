// Finds the constant buffers of a program's launches: those that no step of the program writes. Others are settled if the step before does not write
// them: kernels let the next start only once they themselves were allowed to, so that all steps before that one are complete. A device runs one
// program at a time and waits for it before the next begins, so that steps of other programs do not count. Plain C++: no JavaScript values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device.hpp"

namespace heddle {

// A heddle_constancy per buffer of a launch, for heddle_launch.constants.
using Constants = std::vector<uint8_t>;

// Collects the writes of steps, and the launches whose constants are needed.
class ConstantFinder {
 public:
  // Begins the next step; later calls refer to it. `launches`: kernels are sure to be enqueued for it if it writes anything. If nothing is enqueued,
  // the work before the step directly precedes the next step.
  void begin_step(bool launches);
  void write(const Slice& slice);
  // Records the buffers of a launch; find() fills the result. `changing`: those that count as written by the step before.
  std::shared_ptr<const Constants> launch(const std::vector<Slice>& buffers, std::vector<bool> changing);
  // Fills all results, once all steps are known.
  void find();

 private:
  struct Step {
    bool launches;
    std::vector<Slice> written;
  };
  struct Launch {
    size_t step;
    std::vector<Slice> buffers;
    std::vector<bool> changing;
    std::shared_ptr<Constants> constants;
  };
  struct Range {
    uint64_t begin, end;
  };

  heddle_constancy of(const Slice& slice, size_t step) const;
  bool is_written(const Slice& slice) const;

  std::vector<Step> steps_;
  std::vector<Launch> launches_;
  std::map<const Memory*, std::vector<Range>> written_;
};

}  // namespace heddle
