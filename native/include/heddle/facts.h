/*
 * What a device can tell of its own speed. A plugin exports heddle_device_facts() beside its table of functions; kernels know nothing of
 * it. Whatever a device does not know is 0 or empty.
 */
#ifndef HEDDLE_FACTS_H
#define HEDDLE_FACTS_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_facts {
  uint64_t cache_bytes; /* of the last cache in front of the device's memory */
  uint64_t bandwidth;   /* bytes a second between memory and the device, by the width of the bus and its clock */
  uint64_t clock_hz;    /* the highest of a multiprocessor */
  char id[64];          /* of this very device, the same whenever it is opened: GPU-<uuid> */
} heddle_facts;

typedef int32_t (*heddle_device_facts_fn)(heddle_device* device, heddle_facts* facts, heddle_error* error);

#ifdef __cplusplus
}
#endif

#endif
