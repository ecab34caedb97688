// A program: a list of steps, each ready to be enqueued, and the methods to run it. Plain C++: no JavaScript values. Every method except `abort`
// belongs to the device's worker thread.
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
  // Enqueues the step; it keeps the buffers and the library that it needs alive.
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
  // Runs that `begin` started, and those of them that arrived while the previous one was running.
  uint64_t begun() const { return begun_; }
  uint64_t begun_ahead() const { return begun_ahead_; }

  // A ticket is taken when work is requested; `abort` ends all work with an older ticket.
  uint64_t ticket() const { return aborts_; }
  void abort() { ++aborts_; }

  // Runs the steps `repeats` times between the inputs and the outputs. All repeats are enqueued before waiting for the first.
  void run(const std::vector<CopyIn>& inputs, const std::vector<CopyOut>& outputs, uint32_t repeats, uint64_t ticket);
  // Enqueues the steps without waiting for them; outputs are complete when the fence is done. `busy`: earlier work is still running.
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
