// The algorithms of cuBLASLt for a matmul, and a matmul with one of them.
#include "heddle/algorithms.h"

#include "device.hpp"

namespace heddle {

namespace {

int32_t list(heddle_queue* queue, const heddle_matmul* matmul, uint32_t capacity, heddle_algorithm* algorithms, uint32_t* count,
             heddle_error* error) {
  *count = 0;
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  return queue->device->matmuls.list(*matmul, capacity, algorithms, count, error);
}

int32_t matmul_by(heddle_queue* queue, const heddle_matmul* matmul, const uint8_t* algorithm, heddle_error* error) {
  HEDDLE_TRY(cudaSetDevice(queue->device->ordinal));
  return queue->device->matmuls.run(*matmul, algorithm, queue->workspace, queue->stream, error);
}

constexpr heddle_algorithms_api api = {list, matmul_by};

}  // namespace

}  // namespace heddle

extern "C" __attribute__((visibility("default"))) const heddle_algorithms_api* heddle_device_algorithms() { return &heddle::api; }
