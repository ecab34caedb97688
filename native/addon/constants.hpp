// Which buffers of a program's launches are constant: no step of the program writes them. Of a device only one program runs at a time,
// and it is waited for before the next begins, so that no other program's steps count. Plain C++: no JavaScript values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "device.hpp"

namespace heddle {

// For each buffer of a launch 1 if it is constant, else 0: what heddle_launch.constants points to.
using Constants = std::vector<uint8_t>;

// Collects what steps write and which launches want to know.
class ConstantFinder {
 public:
  void write(const Slice& slice);
  // Remembers the buffers of a launch; the result is filled by find().
  std::shared_ptr<const Constants> launch(const std::vector<Slice>& buffers);
  // Fills what was asked for, once all steps are known.
  void find();

 private:
  struct Launch {
    std::vector<Slice> buffers;
    std::shared_ptr<Constants> constants;
  };
  struct Range {
    uint64_t begin, end;
  };

  bool is_written(const Slice& slice) const;

  std::vector<Launch> launches_;
  std::map<const Memory*, std::vector<Range>> written_;
};

}  // namespace heddle
