/*
 * Speed facts of a device. A plugin exports heddle_device_facts() beside its table of functions; kernels do not use it. Unknown facts are 0 or empty.
 */
#ifndef HEDDLE_FACTS_H
#define HEDDLE_FACTS_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_facts {
  uint64_t cache_bytes; /* of the last-level cache before the device's memory */
  uint64_t bandwidth;   /* bytes per second between memory and the device, from the width of the bus and its clock */
  uint64_t clock_hz;    /* maximum of a multiprocessor */
  char id[64];          /* of this device, the same each time it is opened: GPU-<uuid> */
} heddle_facts;

typedef int32_t (*heddle_device_facts_fn)(heddle_device* device, heddle_facts* facts, heddle_error* error);

#ifdef __cplusplus
}
#endif

#endif
