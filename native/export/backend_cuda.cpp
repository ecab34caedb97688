// Exported programs on CUDA: everything is enqueued on the caller's stream, of the current device.
#include <map>

#include "backend.hpp"
#include "device.hpp"
#include "replays_cuda.hpp"

namespace heddle::exported {

namespace {

cudaStream_t native(void* stream) { return static_cast<cudaStream_t>(stream); }

class Cuda : public Backend {
 public:
  ~Cuda() override {
    for (const auto& [stream, workspace] : workspaces_) cudaFree(workspace);
    if (mark_ != nullptr) cudaFree(mark_);
  }

  int32_t prepare(heddle_error* error) {
    int device = 0, major = 0, minor = 0;
    HEDDLE_TRY(cudaGetDevice(&device));
    HEDDLE_TRY(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
    HEDDLE_TRY(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
    architecture_ = "sm_" + std::to_string(major) + std::to_string(minor);
    HEDDLE_TRY(cudaMalloc(&mark_, 1));
    return HEDDLE_OK;
  }
  const std::string& architecture() const override { return architecture_; }
  void* queue(void* stream) override { return stream; }
  // Early starts happen between launches: a launch after a fill waits for it, and the fill for all earlier work.
  int32_t fence(void* stream, heddle_error* error) override {
    HEDDLE_TRY(cudaMemsetAsync(mark_, 0, 1, native(stream)));
    return HEDDLE_OK;
  }
  int32_t matmul(const heddle_matmul& matmul, void* stream, heddle_error* error) override {
    // One per stream, since streams may run concurrently.
    void*& workspace = workspaces_[native(stream)];
    if (workspace == nullptr && plans_.library().loaded()) HEDDLE_TRY(cudaMalloc(&workspace, matmul_workspace_bytes));
    return plans_.run(matmul, nullptr, workspace, native(stream), error);
  }
  int32_t run(const RunKey& key, void* stream, const Enqueue& enqueue, heddle_error* error) override {
    return replays_.run(key, native(stream), enqueue, error);
  }

 private:
  std::string architecture_;
  MatmulPlans plans_;
  std::map<cudaStream_t, void*> workspaces_;
  void* mark_ = nullptr;
  Replays replays_;
};

}  // namespace

int32_t Backend::open(std::unique_ptr<Backend>* backend, heddle_error* error) {
  auto opened = std::make_unique<Cuda>();
  const int32_t status = opened->prepare(error);
  if (status == HEDDLE_OK) *backend = std::move(opened);
  return status;
}

// Loading a kernel and growing its scratch memory are allowed during capture in the relaxed mode only.
Launching::Launching() {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  mode_ = mode;
}

Launching::~Launching() {
  auto mode = static_cast<cudaStreamCaptureMode>(mode_);
  cudaThreadExchangeStreamCaptureMode(&mode);
}

const char* target() { return "cuda"; }

int32_t allocate(uint64_t bytes, void** data, heddle_error* error) {
  *data = nullptr;
  HEDDLE_TRY(cudaMalloc(data, bytes == 0 ? 1 : bytes));
  return HEDDLE_OK;
}

int32_t release(void* data, heddle_error* error) {
  HEDDLE_TRY(cudaFree(data));
  return HEDDLE_OK;
}

int32_t copy(void* to, const void* from, uint64_t bytes, void* stream, heddle_error* error) {
  HEDDLE_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream)));
  return HEDDLE_OK;
}

int32_t fill(void* data, uint8_t value, uint64_t bytes, void* stream, heddle_error* error) {
  HEDDLE_TRY(cudaMemsetAsync(data, value, bytes, native(stream)));
  return HEDDLE_OK;
}

int32_t wait(void* stream, heddle_error* error) {
  HEDDLE_TRY(cudaStreamSynchronize(native(stream)));
  return HEDDLE_OK;
}

}  // namespace heddle::exported
