// Exported programs on the CPU device: work is done when a call returns, so streams are ignored and may be null.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "backend.hpp"
#include "fail.hpp"
#include "matmul.hpp"
#include "workers.hpp"

namespace heddle::exported {

namespace {

unsigned int threads() {
  const unsigned int cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : cores;
}

class Simt : public Backend {
 public:
  Simt() : workers_(threads()) {}

  const std::string& architecture() const override { return architecture_; }
  void* queue(void*) override { return &executor_; }
  int32_t fence(void*, heddle_error*) override { return HEDDLE_OK; }
  int32_t matmul(const heddle_matmul& matmul, void*, heddle_error* error) override {
    return simt::run_matmul(matmul, workers_, error);
  }
  int32_t run(const RunKey&, void* stream, const Enqueue& enqueue, heddle_error* error) override { return enqueue(stream, error); }

 private:
  static int32_t parallel_for(void* self, int64_t count, int32_t (*run)(void*, int64_t, heddle_error*), void* data,
                              heddle_error* error) {
    try {
      return static_cast<Simt*>(self)->workers_.parallel_for(count, run, data, error);
    } catch (const std::exception& exception) {
      return refuse(error, HEDDLE_DEVICE, "a loop of the CPU device failed: %s", exception.what());
    }
  }

  const std::string architecture_ = "simt";
  simt::Workers workers_;
  heddle_simt_executor executor_ = {this, parallel_for};
};

}  // namespace

int32_t Backend::open(std::unique_ptr<Backend>* backend, heddle_error*) {
  *backend = std::make_unique<Simt>();
  return HEDDLE_OK;
}

Launching::Launching() = default;
Launching::~Launching() = default;

const char* target() { return "simt"; }

int32_t allocate(uint64_t bytes, void** data, heddle_error* error) {
  constexpr uint64_t alignment = 256;
  *data = bytes > UINT64_MAX - alignment ? nullptr : std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  if (*data != nullptr) return HEDDLE_OK;
  return refuse(error, HEDDLE_MEMORY, "no memory for %llu bytes", static_cast<unsigned long long>(bytes));
}

int32_t release(void* data, heddle_error*) {
  std::free(data);
  return HEDDLE_OK;
}

int32_t copy(void* to, const void* from, uint64_t bytes, void*, heddle_error*) {
  if (bytes > 0) std::memmove(to, from, bytes);
  return HEDDLE_OK;
}

int32_t fill(void* data, uint8_t value, uint64_t bytes, void*, heddle_error*) {
  if (bytes > 0) std::memset(data, value, bytes);
  return HEDDLE_OK;
}

int32_t wait(void*, heddle_error*) { return HEDDLE_OK; }

}  // namespace heddle::exported
