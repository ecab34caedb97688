/*
 * The algorithms that a device's matmul library offers for a matmul, and a matmul with one of them, so that they can be timed and the best one
 * stored. A plugin exports heddle_device_algorithms() beside its table of functions; kernels do not use it.
 */
#ifndef HEDDLE_ALGORITHMS_H
#define HEDDLE_ALGORITHMS_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_ALGORITHM_BYTES 64

/* An algorithm with its configuration, in the library's own format: the same library version reads it back on the same kind of device. */
typedef struct heddle_algorithm {
  uint8_t bytes[HEDDLE_ALGORITHM_BYTES];
  /* Parts of the configuration, for display; 0 if the library does not provide them. */
  uint32_t id;
  uint32_t tile;
  uint32_t stages;
  uint32_t split; /* parts of k that are summed separately */
  uint32_t swizzle;
  uint32_t custom;
  uint32_t cluster;
  uint64_t workspace_bytes;
} heddle_algorithm;

typedef struct heddle_algorithms_api {
  /*
   * Writes at most `capacity` algorithms for a matmul: those that the library suggests, its default first, then other configurations. *count is 0 if the device has no library, or the library does not
   * support the matmul.
   */
  int32_t (*list)(heddle_queue* queue, const heddle_matmul* matmul, uint32_t capacity, heddle_algorithm* algorithms, uint32_t* count,
                  heddle_error* error);
  /*
   * Enqueues a matmul with an algorithm of HEDDLE_ALGORITHM_BYTES bytes, which needs operands aligned to 256 bytes. HEDDLE_INVALID if the library
   * does not support the algorithm for it.
   */
  int32_t (*matmul)(heddle_queue* queue, const heddle_matmul* matmul, const uint8_t* algorithm, heddle_error* error);
} heddle_algorithms_api;

typedef const heddle_algorithms_api* (*heddle_device_algorithms_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
