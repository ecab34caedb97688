/*
 * Fences after a queue's work: they report without waiting if all work up to them is done, so that more may be enqueued while work is still under
 * way. A plugin exports heddle_device_fences() beside its table of functions; kernels do not use it. A queue's fences are created, queried and
 * destroyed by the thread that the queue belongs to.
 */
#ifndef HEDDLE_FENCES_H
#define HEDDLE_FENCES_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_fence heddle_fence;

typedef struct heddle_fences_api {
  /*
   * Creates a fence after the work enqueued so far. Copies to the host since the last fence or wait are complete when this fence, or an earlier wait,
   * is found done: host memory must stay valid until then.
   */
  int32_t (*create)(heddle_queue* queue, heddle_fence** fence, heddle_error* error);
  /*
   * Sets *done to 1 if all work before the fence is done, else 0; reports errors of that work. Fences of a queue are queried in their order, and not
   * again once they are done.
   */
  int32_t (*query)(heddle_fence* fence, int32_t* done, heddle_error* error);
  void (*destroy)(heddle_fence* fence);
} heddle_fences_api;

typedef const heddle_fences_api* (*heddle_device_fences_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
