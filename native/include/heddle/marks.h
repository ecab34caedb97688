/*
 * Marks in a queue's work: whether all of it up to a point is done, asked without waiting, so that more may be enqueued behind work that is
 * still under way. A plugin exports heddle_device_marks() beside its table of functions; kernels know nothing of it. A queue's marks are
 * made, asked and destroyed by the thread that the queue belongs to.
 */
#ifndef HEDDLE_MARKS_H
#define HEDDLE_MARKS_H

#include "heddle/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_mark heddle_mark;

typedef struct heddle_marks_api {
  /* Marks the end of what was enqueued so far. What was to be copied out since the last mark or wait reaches the host when this mark, or a
     wait before it, is found done: host memory must stay valid until then. */
  int32_t (*create)(heddle_queue* queue, heddle_mark** mark, heddle_error* error);
  /* Sets *done to whether all work in front of the mark is done; reports errors of that work. Marks of a queue are asked in their order,
     and not again once they are done. */
  int32_t (*query)(heddle_mark* mark, int32_t* done, heddle_error* error);
  void (*destroy)(heddle_mark* mark);
} heddle_marks_api;

typedef const heddle_marks_api* (*heddle_device_marks_fn)(void);

#ifdef __cplusplus
}
#endif

#endif
