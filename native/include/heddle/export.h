/*
 * Common C interface of all exported programs: names of weights, and errors of calls. A program's own header includes this one; both need nothing but
 * a C compiler. All data pointers are of the device that the program was exported for.
 */
#ifndef HEDDLE_EXPORT_H
#define HEDDLE_EXPORT_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses in addition to heddle_status; the message of the heddle_error gives the tensor or size, the value found and the values allowed. */
typedef enum heddle_export_status {
  HEDDLE_WEIGHT_MISSING = 100,
  HEDDLE_WEIGHT_UNKNOWN = 101,
  HEDDLE_WEIGHT_DTYPE = 102,
  HEDDLE_WEIGHT_SHAPE = 103,
  HEDDLE_DIMS = 104,     /* a dimension is no valid size, or sizes contradict each other */
  HEDDLE_POINTER = 105,  /* null, or not aligned to 16 bytes */
  HEDDLE_WORKSPACE = 106 /* too small */
} heddle_export_status;

/*
 * A weight by name: row-major, aligned to 16 bytes. It is used in place and must outlive the program, except for parts that a plan concatenates:
 * those are copied.
 */
typedef struct heddle_weight {
  const char* name;
  const void* data;
  int32_t dtype; /* heddle_dtype */
  uint32_t rank;
  const int64_t* shape;
} heddle_weight;

#ifdef __cplusplus
}
#endif

#endif
