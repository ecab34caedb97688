// Which buffers of a program's launches are constant: no step of the program writes them. Others are settled where the step in front does
// not write them: kernels let the next start only once they themselves were allowed to, so that all in front of that step are complete.
// Of a device only one program runs at a time, and it is waited for before the next begins, so that no other program's steps
// count. Plain C++: no JavaScript values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device.hpp"

namespace heddle {

// For each buffer of a launch a heddle_constancy: what heddle_launch.constants points to.
using Constants = std::vector<uint8_t>;

// Collects what steps write and which launches want to know.
class ConstantFinder {
 public:
  // What follows is about the next step. `launches`: kernels are sure to be enqueued for it if it writes anything. Where nothing is, what
  // lies in front of the step is in front of the next.
  void begin_step(bool launches);
  void write(const Slice& slice);
  // Remembers the buffers of a launch; the result is filled by find().
  std::shared_ptr<const Constants> launch(const std::vector<Slice>& buffers);
  // Fills what was asked for, once all steps are known.
  void find();

 private:
  struct Step {
    bool launches;
    std::vector<Slice> written;
  };
  struct Launch {
    size_t step;
    std::vector<Slice> buffers;
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
