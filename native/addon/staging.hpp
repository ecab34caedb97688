// Bytes for a device: copied, because JavaScript may transfer or overwrite its array while the worker reads. The memory of long writes is reused by
// later ones, since fresh memory costs a page fault every 4 KiB, which takes longer than the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace heddle {

class Staging {
 public:
  using Block = std::vector<uint8_t>;

  // A copy of the bytes. Its last owner may be any thread, and may outlive this object.
  std::shared_ptr<const Block> copy(const uint8_t* data, size_t size) {
    std::unique_ptr<Block> block = idle_->take(size);
    block->assign(data, data + size);
    return {block.release(), [idle = idle_](const Block* used) { idle->give(std::unique_ptr<Block>(const_cast<Block*>(used))); }};
  }

 private:
  // Loading a model has at most two writes under way.
  static constexpr size_t most_blocks = 2;
  static constexpr size_t least_bytes = size_t{1} << 20;
  static constexpr size_t most_bytes = size_t{16} << 20;

  class Idle {
   public:
    std::unique_ptr<Block> take(size_t size) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (size < least_bytes || blocks_.empty()) return std::make_unique<Block>();
      std::unique_ptr<Block> block = std::move(blocks_.back());
      blocks_.pop_back();
      return block;
    }

    void give(std::unique_ptr<Block> block) {
      const std::lock_guard<std::mutex> lock(mutex_);
      const size_t bytes = block->capacity();
      if (bytes >= least_bytes && bytes <= most_bytes && blocks_.size() < most_blocks) blocks_.push_back(std::move(block));
    }

   private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<Block>> blocks_;
  };

  std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();
};

}  // namespace heddle
