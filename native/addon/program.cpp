// Runs, captures and times a program.
#include "program.hpp"

#include <algorithm>

#include "failure.hpp"

namespace heddle {

namespace {

// Device events around the measured parts.
class Events {
 public:
  Events(const Device& device, size_t count) : device_(device) {
    for (size_t i = 0; i < count; ++i) {
      heddle_event* event = nullptr;
      heddle_error error = {};
      const int32_t status = device.api().event_create(device.handle(), &event, &error);
      if (status != HEDDLE_OK) destroy();
      require(status, error);
      events_.push_back(event);
    }
  }
  ~Events() { destroy(); }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  void record(size_t index) const {
    heddle_error error = {};
    require(device_.api().event_record(events_[index], device_.queue(), &error), error);
  }

  // Milliseconds from one event to the next.
  double after(size_t index) const {
    float milliseconds = 0;
    heddle_error error = {};
    require(device_.api().event_elapsed(events_[index], events_[index + 1], &milliseconds, &error), error);
    return milliseconds;
  }

 private:
  void destroy() {
    for (heddle_event* event : events_) device_.api().event_destroy(event);
  }

  const Device& device_;
  std::vector<heddle_event*> events_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Program::~Program() {
  if (graph_ != nullptr) device_->free(graph_.load());
}

void Program::check_running(uint64_t ticket) const {
  device_->check_open();
  if (aborts_ != ticket) throw Failure{"ABORTED", "the run was aborted"};
}

void Program::enqueue(const Step& step) const {
  heddle_error error = {};
  const int32_t status = step.enqueue(*device_, &error);
  if (status != HEDDLE_OK) throw Failure{code_of(status), step.label + ": " + error.message};
}

void Program::enqueue_steps(uint64_t ticket) const {
  for (const Step& step : steps_) {
    check_running(ticket);
    enqueue(step);
  }
}

void Program::enqueue_all(uint64_t ticket) const {
  if (!captured()) return enqueue_steps(ticket);
  check_running(ticket);
  heddle_error error = {};
  require(device_->api().graph_launch(graph_, device_->queue(), &error), error);
}

void Program::wait() const {
  heddle_error error = {};
  require(device_->api().queue_wait(device_->queue(), &error), error);
}

void Program::copy_out(const std::vector<CopyOut>& outputs) const {
  heddle_error error = {};
  for (const CopyOut& output : outputs) {
    const heddle_slice from = output.from.raw();
    require(device_->api().copy_out(device_->queue(), output.data, from.data, from.bytes, &error), error);
  }
}

// Runs work. On failure waits for the queue, since host memory is in use until then. The first failure is reported.
template <class Work>
auto Program::waiting_on_failure(Work work) const {
  try {
    return work();
  } catch (...) {
    heddle_error ignored = {};
    device_->api().queue_wait(device_->queue(), &ignored);
    throw;
  }
}

// Runs work and waits for the queue, also after a failure.
template <class Work>
void Program::settled(Work work) const {
  waiting_on_failure(work);
  wait();
}

void Program::run(const std::vector<CopyIn>& inputs, const std::vector<CopyOut>& outputs, uint32_t repeats, uint64_t ticket) {
  settled([&] {
    heddle_error error = {};
    check_running(ticket);
    for (const CopyIn& input : inputs) {
      const heddle_slice to = input.to.raw();
      require(device_->api().copy_in(device_->queue(), to.data, input.data.data(), to.bytes, &error), error);
    }
    for (uint32_t i = 0; i < repeats; ++i) enqueue_all(ticket);
    copy_out(outputs);
  });
  warm_ = true;
}

std::unique_ptr<Fence> Program::begin(const std::vector<CopyOut>& outputs, uint64_t ticket, bool busy) {
  auto fence = waiting_on_failure([&] {
    enqueue_all(ticket);
    copy_out(outputs);
    return std::make_unique<Fence>(device_);
  });
  warm_ = true;
  ++begun_;
  if (busy) ++begun_ahead_;
  return fence;
}

void Program::capture(uint64_t ticket) {
  check_running(ticket);
  if (captured() || steps_.empty()) return;
  heddle_error error = {};
  // Loading a kernel and choosing an algorithm are not allowed during capture: a first plain run does both.
  if (!warm_) run({}, {}, 1, ticket);
  const int32_t begun = device_->api().graph_begin(device_->queue(), &error);
  if (begun == HEDDLE_UNAVAILABLE) return;
  require(begun, error);
  heddle_graph* graph = nullptr;
  try {
    enqueue_steps(ticket);
  } catch (...) {
    heddle_error ignored = {};
    if (device_->api().graph_end(device_->queue(), &graph, &ignored) == HEDDLE_OK) device_->api().graph_destroy(graph);
    throw;
  }
  require(device_->api().graph_end(device_->queue(), &graph, &error), error);
  device_->adopt(graph);
  graph_ = graph;
}

std::vector<double> Program::time(uint32_t repeats, uint32_t warmup, uint64_t ticket) {
  check_running(ticket);
  const Events events(*device_, repeats + 1);
  settled([&] {
    for (uint32_t i = 0; i < warmup; ++i) enqueue_all(ticket);
    events.record(0);
    for (uint32_t i = 0; i < repeats; ++i) {
      enqueue_all(ticket);
      events.record(i + 1);
    }
  });
  warm_ = true;
  std::vector<double> milliseconds(repeats);
  for (uint32_t i = 0; i < repeats; ++i) milliseconds[i] = events.after(i);
  return milliseconds;
}

std::vector<double> Program::profile(uint32_t repeats, uint64_t ticket) {
  check_running(ticket);
  const Events events(*device_, steps_.size() + 1);
  std::vector<std::vector<double>> samples(steps_.size());
  for (uint32_t repeat = 0; repeat < repeats; ++repeat) {
    settled([&] {
      events.record(0);
      for (size_t i = 0; i < steps_.size(); ++i) {
        check_running(ticket);
        enqueue(steps_[i]);
        events.record(i + 1);
      }
    });
    for (size_t i = 0; i < steps_.size(); ++i) samples[i].push_back(events.after(i));
  }
  warm_ = true;
  std::vector<double> milliseconds;
  for (const std::vector<double>& sample : samples) milliseconds.push_back(median(sample));
  return milliseconds;
}

}  // namespace heddle
