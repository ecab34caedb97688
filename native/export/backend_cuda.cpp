// Exported programs on CUDA: everything is enqueued on the caller's stream, of the device that is current.
#include "backend.hpp"
#include "device.hpp"

namespace heddle::exported {

namespace {

class Cuda : public Backend {
 public:
  ~Cuda() override {
    if (workspace_ != nullptr) cudaFree(workspace_);
    if (mark_ != nullptr) cudaFree(mark_);
  }

  int32_t prepare(heddle_error* error) {
    HEDDLE_TRY(cudaMalloc(&mark_, 1));
    if (!plans_.library().loaded()) return HEDDLE_OK;
    HEDDLE_TRY(cudaMalloc(&workspace_, matmul_workspace_bytes));
    return HEDDLE_OK;
  }
  void* queue(void* stream) override { return stream; }
  // Early starts are between launches: a launch behind a fill waits for it, and the fill for all before.
  int32_t fence(void* stream, heddle_error* error) override {
    HEDDLE_TRY(cudaMemsetAsync(mark_, 0, 1, static_cast<cudaStream_t>(stream)));
    return HEDDLE_OK;
  }
  int32_t matmul(const heddle_matmul& matmul, void* stream, heddle_error* error) override {
    return plans_.run(matmul, workspace_, static_cast<cudaStream_t>(stream), error);
  }

 private:
  MatmulPlans plans_;
  void* workspace_ = nullptr;
  void* mark_ = nullptr;
};

cudaStream_t native(void* stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

int32_t Backend::open(std::unique_ptr<Backend>* backend, heddle_error* error) {
  auto opened = std::make_unique<Cuda>();
  const int32_t status = opened->prepare(error);
  if (status == HEDDLE_OK) *backend = std::move(opened);
  return status;
}

// Loading a kernel and growing its scratch memory are allowed while capturing in the relaxed mode only.
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
