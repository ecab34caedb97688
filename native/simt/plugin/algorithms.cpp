// The CPU device has one matmul algorithm: there is nothing to choose.
#include "heddle/algorithms.h"

#include <cstdio>

namespace {

int32_t list(heddle_queue*, const heddle_matmul*, uint32_t, heddle_algorithm*, uint32_t* count, heddle_error*) {
  *count = 0;
  return HEDDLE_OK;
}

int32_t matmul(heddle_queue*, const heddle_matmul*, const uint8_t*, heddle_error* error) {
  error->status = HEDDLE_INVALID;
  snprintf(error->message, sizeof error->message, "the CPU device has no algorithms of a matmul library");
  return HEDDLE_INVALID;
}

constexpr heddle_algorithms_api algorithms = {list, matmul};

}  // namespace

extern "C" __attribute__((visibility("default"))) const heddle_algorithms_api* heddle_device_algorithms() { return &algorithms; }
