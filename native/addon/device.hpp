// A device opened through its plugin, its memory and the kernel libraries loaded for it. Plain C++: no JavaScript values.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>

#include "heddle/abi.h"
#include "heddle/algorithms.h"
#include "heddle/facts.h"
#include "heddle/fences.h"

namespace heddle {

// Owns the plugin's device and queue and everything allocated on it. `allocate`, `free` and `info` may be called from any
// thread; the queue belongs to the worker thread.
class Device {
 public:
  Device(const std::string& plugin_path, int32_t ordinal);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const heddle_device_api& api() const { return *api_; }
  const heddle_fences_api& fences() const { return *fences_; }
  const heddle_algorithms_api& algorithms() const { return *algorithms_; }
  heddle_queue* queue() const { return queue_; }
  heddle_device* handle() const { return device_; }

  // Throws CLOSED once the device is closing.
  void check_open() const;
  bool closed() const { return closed_; }
  void mark_closed() { closed_ = true; }
  // Frees everything, after the current work. Later calls of `free` do nothing.
  void shut();

  heddle_device_info info();
  heddle_facts facts();
  void* allocate(uint64_t bytes);
  void free(void* data);
  void adopt(heddle_graph* graph);
  void free(heddle_graph* graph);

 private:
  const heddle_device_api* api_ = nullptr;
  heddle_device_facts_fn facts_ = nullptr;
  const heddle_fences_api* fences_ = nullptr;
  const heddle_algorithms_api* algorithms_ = nullptr;
  heddle_device* device_ = nullptr;
  heddle_queue* queue_ = nullptr;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;  // guards the two sets and the device's end
  std::unordered_set<void*> allocations_;
  std::unordered_set<heddle_graph*> graphs_;
};

// A buffer's memory; freed with the last program or JavaScript object that refers to it.
class Memory {
 public:
  Memory(std::shared_ptr<Device> device, uint64_t bytes)
      : device_(std::move(device)), data_(device_->allocate(bytes)), bytes_(bytes) {}
  ~Memory() { device_->free(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  const Device* device() const { return device_.get(); }
  uint64_t bytes() const { return bytes_; }
  uint8_t* data() const { return static_cast<uint8_t*>(data_); }

 private:
  std::shared_ptr<Device> device_;
  void* data_;
  uint64_t bytes_;
};

// The end of work that was enqueued without waiting for it. It belongs to the worker thread, as the queue does.
class Fence {
 public:
  explicit Fence(std::shared_ptr<Device> device);
  ~Fence() { device_->fences().destroy(fence_); }
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  // True if all of the work is done, including its copies to the host. Throws the failure of the work.
  bool done() const;

 private:
  std::shared_ptr<Device> device_;
  heddle_fence* fence_ = nullptr;
};

// A range of a buffer, checked to lie inside it.
struct Slice {
  std::shared_ptr<Memory> memory;
  uint64_t offset = 0;
  uint64_t bytes = 0;

  heddle_slice raw() const { return {memory->data() + offset, bytes}; }
};

// A kernel library. It is never unloaded: neither CUDA modules nor thread-local destructors of a library leave a process safely.
class Library {
 public:
  Library(std::shared_ptr<Device> device, const std::string& path);

  const Device* device() const { return device_.get(); }
  const heddle_kernel_library_info& info() const { return *info_; }
  // The kernel of an instance key; null when the library has none.
  const heddle_kernel* find(const std::string& key) const;

 private:
  std::shared_ptr<Device> device_;
  const heddle_kernel_library_info* info_ = nullptr;
};

}  // namespace heddle
