/*
 * Fences behind a queue's work: whether all of it up to there is done, asked without waiting, so that more may be enqueued behind work that is
 * still under way. A plugin exports heddle_device_fences() beside its table of functions; kernels know nothing of it. A queue's fences are
 * made, asked and destroyed by the thread that the queue belongs to.
 */
#ifndef HEDDLE_FENCES_H
#define HEDDLE_FENCES_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_fence heddle_fence;

typedef struct heddle_fences_api {
  /* A fence behind what was enqueued so far. What was to be copied out since the last fence or wait reaches the host when this fence, or a
     wait before it, is found done: host memory must stay valid until then. */
  int32_t (*create)(heddle_queue* queue, heddle_fence** fence, heddle_error* error);
  /* Sets *done to whether all work in front of the fence is done; reports errors of that work. Fences of a queue are asked in their order,
     and not again once they are done. */
  int32_t (*query)(heddle_fence* fence, int32_t* done, heddle_error* error);
  void (*destroy)(heddle_fence* fence);
} heddle_fences_api;

typedef const heddle_fences_api* (*heddle_device_fences_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
