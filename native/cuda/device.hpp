// The plugin's objects behind the opaque handles of abi.h, and the conversion of a failing call to a heddle_error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cublaslt.hpp"
#include "heddle/abi.h"
#include "heddle/algorithms.h"

namespace heddle {

// Fills *error with one line and returns its status.
int32_t fail(heddle_error* error, heddle_status status, const char* format, ...) __attribute__((format(printf, 3, 4)));

// Converts a CUDA result to a status; the message names the call. An error caused by a kernel is a FAULT: it persists until the process ends, which
// the message says.
int32_t check(cudaError_t result, const char* call, heddle_error* error);

struct MatmulCache;
struct MatmulPlan;
struct Types;

// The matmul plans of a device; cuBLASLt chooses an algorithm once per problem.
class MatmulPlans {
 public:
  MatmulPlans();
  ~MatmulPlans();
  MatmulPlans(const MatmulPlans&) = delete;
  MatmulPlans& operator=(const MatmulPlans&) = delete;

  const CublasLt& library() const { return library_; }
  // `chosen` is an algorithm of HEDDLE_ALGORITHM_BYTES bytes; null uses the library's first choice.
  int32_t run(const heddle_matmul& problem, const uint8_t* chosen, void* workspace, cudaStream_t stream, heddle_error* error);
  // Writes at most `capacity` algorithms for a problem, beginning with the library's first choice; none if the library does not support it.
  int32_t list(const heddle_matmul& problem, uint32_t capacity, heddle_algorithm* algorithms, uint32_t* count, heddle_error* error);

 private:
  int32_t refuse(const char* call, cublasStatus_t status, const heddle_matmul& problem, heddle_error* error) const;
  // Members below need the lock.
  int32_t open(const heddle_matmul& problem, heddle_error* error);
  int32_t plan_of(const heddle_matmul& problem, const Types& types, const MatmulPlan** found, heddle_error* error);
  int32_t plan_by(const heddle_matmul& problem, const Types& types, const uint8_t* chosen, const MatmulPlan** found,
                  heddle_error* error);
  int32_t enqueue(const heddle_matmul& problem, const MatmulPlan& plan, void* workspace, cudaStream_t stream, heddle_error* error);

  CublasLt library_;
  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;
  std::unique_ptr<MatmulCache> plans_;
};

// Plain tiled matmul for any strides, used without cuBLASLt, and for operands that it cannot describe.
int32_t fallback_matmul(const heddle_matmul& problem, cudaStream_t stream, heddle_error* error);

constexpr uint64_t matmul_workspace_bytes = 32ull << 20;

}  // namespace heddle

struct heddle_device {
  int ordinal = 0;
  bool pooled = false;            // memory pools are supported
  cudaMemPool_t pool = nullptr;   // the device's default pool; keeps released memory
  cudaStream_t memory = nullptr;  // orders allocations
  heddle::MatmulPlans matmuls;
};

struct heddle_queue {
  // A copy to the host that waits in the pinned staging area. Small copies pass through it, so that they do not block the caller.
  struct Landing {
    void* host;
    const void* staged;
    uint64_t bytes;
  };

  heddle_device* device = nullptr;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;  // for cuBLASLt; captured graphs refer to it
  uint8_t* staging = nullptr;
  uint64_t staged = 0;            // bytes of staging handed out since nothing was under way; the area is used round and round
  uint64_t landed = 0;            // those of them whose copies are done
  uint32_t fences = 0;             // that were not yet destroyed
  std::vector<Landing> landings;  // copies out since the last fence or wait whose bytes are still in staging
  bool capturing = false;
};

struct heddle_graph {
  heddle_device* device = nullptr;
  cudaGraphExec_t exec = nullptr;
};

struct heddle_event {
  heddle_device* device = nullptr;
  cudaEvent_t event = nullptr;
};

namespace heddle {

int32_t device_open(int32_t ordinal, heddle_device** device, heddle_error* error);
void device_close(heddle_device* device);
int32_t device_info(heddle_device* device, heddle_device_info* info, heddle_error* error);
int32_t device_allocate(heddle_device* device, uint64_t bytes, void** data, heddle_error* error);
int32_t device_release(heddle_device* device, void* data, heddle_error* error);

int32_t queue_create(heddle_device* device, heddle_queue** queue, heddle_error* error);
void queue_destroy(heddle_queue* queue);
void* queue_native(heddle_queue* queue);
int32_t queue_wait(heddle_queue* queue, heddle_error* error);
int32_t queue_copy_in(heddle_queue* queue, void* device_data, const void* host, uint64_t bytes, heddle_error* error);
int32_t queue_copy_out(heddle_queue* queue, void* host, const void* device_data, uint64_t bytes, heddle_error* error);
int32_t queue_copy(heddle_queue* queue, void* to, const void* from, uint64_t bytes, heddle_error* error);
int32_t queue_fill(heddle_queue* queue, void* device_data, uint8_t value, uint64_t bytes, heddle_error* error);
int32_t queue_matmul(heddle_queue* queue, const heddle_matmul* matmul, heddle_error* error);

int32_t graph_begin(heddle_queue* queue, heddle_error* error);
int32_t graph_end(heddle_queue* queue, heddle_graph** graph, heddle_error* error);
int32_t graph_launch(heddle_graph* graph, heddle_queue* queue, heddle_error* error);
void graph_destroy(heddle_graph* graph);

int32_t event_create(heddle_device* device, heddle_event** event, heddle_error* error);
int32_t event_record(heddle_event* event, heddle_queue* queue, heddle_error* error);
int32_t event_elapsed(heddle_event* from, heddle_event* to, float* milliseconds, heddle_error* error);
void event_destroy(heddle_event* event);

}  // namespace heddle

// Runs one CUDA call and returns from the enclosing function when it fails.
#define HEDDLE_TRY(call)                                                                 \
  do {                                                                                   \
    const cudaError_t heddle_result = (call);                                            \
    if (heddle_result != cudaSuccess) return heddle::check(heddle_result, #call, error); \
  } while (false)
