/*
 * From the tree that beams leave to the texts they found, in C: FasterTransformer's gather_tree. Each step keeps, of every row, the word it took
 * and the row of the step before that it goes on from; words are read backwards from the rows behind the last step. Words and parents are
 * [steps, rows]; rows are sequence * width + beam, and stay in their sequence.
 */
#ifndef HEDDLE_GATHER_TREE_H
#define HEDDLE_GATHER_TREE_H

#include <stdint.h>

/* The words that lead to row `last`: [steps]. Returns 0, or 1 where a row goes on from one of another sequence, or from none. */
static inline int heddle_trace_row(const int32_t* words, const int32_t* parents, uint32_t steps, uint32_t rows, uint32_t width, uint32_t last,
                                   int32_t* text) {
  uint32_t at = last;
  for (uint32_t step = steps; step-- > 0;) {
    const int32_t parent = parents[(uint64_t)step * rows + at];
    if (parent < 0 || (uint32_t)parent >= rows || (uint32_t)parent / width != last / width) return 1;
    text[step] = words[(uint64_t)step * rows + at];
    at = (uint32_t)parent;
  }
  return 0;
}

/* The same of all rows: texts are [rows, steps]. */
static inline int heddle_gather_tree(const int32_t* words, const int32_t* parents, uint32_t steps, uint32_t rows, uint32_t width, int32_t* texts) {
  for (uint32_t last = 0; last < rows; ++last) {
    if (heddle_trace_row(words, parents, steps, rows, width, last, texts + (uint64_t)last * steps) != 0) return 1;
  }
  return 0;
}

#endif
