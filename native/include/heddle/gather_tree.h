/*
 * Texts from the tree that beams leave, in C: FasterTransformer's gather_tree. Each step stores, for every row, its word and the row of the step
 * before that it continues; words are read backwards from the rows after the last step. Words and parents are [steps, rows]; rows are sequence *
 * width + beam, and stay in their sequence.
 */
#ifndef HEDDLE_GATHER_TREE_H
#define HEDDLE_GATHER_TREE_H

#include <stdint.h>

/* Words on the path to row `last`: [steps]. Returns 0, or 1 if a row continues one of another sequence, or none. */
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

/* Words on the paths to all rows: texts are [rows, steps]. */
static inline int heddle_gather_tree(const int32_t* words, const int32_t* parents, uint32_t steps, uint32_t rows, uint32_t width, int32_t* texts) {
  for (uint32_t last = 0; last < rows; ++last) {
    if (heddle_trace_row(words, parents, steps, rows, width, last, texts + (uint64_t)last * steps) != 0) return 1;
  }
  return 0;
}

#endif
