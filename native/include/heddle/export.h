/*
 * What every exported program has in common, in C: how weights are named, and which errors a call may end with. A program's own header
 * includes this one; both need nothing but a C compiler. All pointers to data are of the device that the program was exported for.
 */
#ifndef HEDDLE_EXPORT_H
#define HEDDLE_EXPORT_H

#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Statuses beside heddle_status; the message of the heddle_error says which tensor or size, what was found and what is allowed. */
typedef enum heddle_export_status {
  HEDDLE_WEIGHT_MISSING = 100,
  HEDDLE_WEIGHT_UNKNOWN = 101,
  HEDDLE_WEIGHT_DTYPE = 102,
  HEDDLE_WEIGHT_SHAPE = 103,
  HEDDLE_DIMS = 104,     /* a dimension is no size, or sizes do not go together */
  HEDDLE_POINTER = 105,  /* null, or not aligned to 16 bytes */
  HEDDLE_WORKSPACE = 106 /* too small */
} heddle_export_status;

/* A weight by its name: row-major, aligned to 16 bytes. It stays where it is and must live as long as the program, but for parts that a
   plan lays one behind the other: those are copied. */
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
