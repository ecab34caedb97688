// A program: a list of steps, each ready to be enqueued, and the ways to run it. Plain C++: no JavaScript values. Every
// method but `abort` belongs to the device's worker thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device.hpp"

namespace heddle {

struct Step {
  std::string label;
  // Enqueues the step; it holds the buffers and the library it needs.
  std::function<int32_t(const Device& device, heddle_error* error)> enqueue;
};

struct CopyIn {
  Slice to;
  std::vector<uint8_t> data;
};

struct CopyOut {
  Slice from;
  uint8_t* data;  // from.bytes long, valid until the run ends
};

class Program {
 public:
  Program(std::shared_ptr<Device> device, std::vector<Step> steps) : device_(std::move(device)), steps_(std::move(steps)) {}
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  size_t size() const { return steps_.size(); }
  bool captured() const { return graph_ != nullptr; }
  // Runs that `begin` handed over, and those of them that came while the one before was under way.
  uint64_t begun() const { return begun_; }
  uint64_t begun_ahead() const { return begun_ahead_; }

  // A ticket is taken when work is asked for; `abort` ends all work whose ticket is older.
  uint64_t ticket() const { return aborts_; }
  void abort() { ++aborts_; }

  // Runs the steps `repeats` times between the inputs and the outputs. Every repeat is enqueued before the first is waited for.
  void run(const std::vector<CopyIn>& inputs, const std::vector<CopyOut>& outputs, uint32_t repeats, uint64_t ticket);
  // Hands the steps over without waiting for them; outputs are there when the fence is done. `busy`: work begun before is under way.
  std::unique_ptr<Fence> begin(const std::vector<CopyOut>& outputs, uint64_t ticket, bool busy);
  void capture(uint64_t ticket);
  std::vector<double> time(uint32_t repeats, uint32_t warmup, uint64_t ticket);
  std::vector<double> profile(uint32_t repeats, uint64_t ticket);

 private:
  void check_running(uint64_t ticket) const;
  void enqueue(const Step& step) const;
  void enqueue_all(uint64_t ticket) const;
  void enqueue_steps(uint64_t ticket) const;
  void wait() const;
  void copy_out(const std::vector<CopyOut>& outputs) const;
  template <class Work>
  auto waiting_on_failure(Work work) const;
  template <class Work>
  void settled(Work work) const;

  std::shared_ptr<Device> device_;
  std::vector<Step> steps_;
  std::atomic<heddle_graph*> graph_{nullptr};
  std::atomic<uint64_t> aborts_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> begun_ahead_{0};
  bool warm_ = false;  // the steps ran once: kernels are loaded and algorithms chosen
};

}  // namespace heddle
