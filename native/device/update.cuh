// Outputs that replace elements of an input in its memory. For launchers of generated text whose op says `updates`.
#ifndef HEDDLE_UPDATE_CUH
#define HEDDLE_UPDATE_CUH

#include "launcher.cuh"

namespace heddle {

/// Refuses a launch whose output `name` is not the memory of the input it updates: elements beside the place would be undefined.
inline void check_update(Arguments& arguments, const heddle_launch* launch, heddle_error* error, const char* kernel, uint32_t index,
                         const char* name, uint32_t before, const char* before_name) {
  if (arguments.status != HEDDLE_OK || launch->buffers[index].data == launch->buffers[before].data) return;
  arguments.status =
      fail(error, HEDDLE_INVALID, "kernel %s: %s updates %s and must have its memory", kernel, name, before_name);
}

}  // namespace heddle

#endif
