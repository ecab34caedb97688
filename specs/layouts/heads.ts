/**
 * Layouts of attention operands over (batch, seq, heads, headDim): head by head, each a matrix in its own order. In the transposed ones the matrix of
 * a head is headDim x seq, which the matmul with the probabilities takes as its second operand.
 */
import { layout } from 'heddle'
import {
  col4Offset,
  col4Size,
  col32Offset,
  col32Size,
  col32TwoRowsOffset,
  col32TwoRowsSize,
  rows16Offset,
  rows16Size,
} from './orders.js'

const axes = ['b', 's', 'h', 'd'] as const

export const headsRows16 = layout('heads_rows16', axes, {
  offset: (i, n) => (i.b * n.h + i.h) * rows16Size(n.s, n.d) + rows16Offset(i.s, i.d, n.d),
  size: (n) => n.b * n.h * rows16Size(n.s, n.d),
})

export const headsCol32 = layout('heads_col32', axes, {
  offset: (i, n) => (i.b * n.h + i.h) * col32Size(n.s, n.d) + col32Offset(i.s, i.d, n.s),
  size: (n) => n.b * n.h * col32Size(n.s, n.d),
})

export const headsCol4 = layout('heads_col4_4r2_8c', axes, {
  offset: (i, n) => (i.b * n.h + i.h) * col4Size(n.s, n.d) + col4Offset(i.s, i.d, n.s),
  size: (n) => n.b * n.h * col4Size(n.s, n.d),
})

export const headsCol32TwoRows = layout('heads_col32_2r_4r4', axes, {
  offset: (i, n) => (i.b * n.h + i.h) * col32TwoRowsSize(n.s, n.d) + col32TwoRowsOffset(i.s, i.d, n.s),
  size: (n) => n.b * n.h * col32TwoRowsSize(n.s, n.d),
})

export const transposedHeadsRows16 = layout('transposed_heads_rows16', axes, {
  offset: (i, n) => (i.b * n.h + i.h) * rows16Size(n.d, n.s) + rows16Offset(i.d, i.s, n.s),
  size: (n) => n.b * n.h * rows16Size(n.d, n.s),
})

export const transposedHeadsCol4 = layout('transposed_heads_col4_4r2_8c', axes, {
  offset: (i, n) => (i.b * n.h + i.h) * col4Size(n.d, n.s) + col4Offset(i.d, i.s, n.d),
  size: (n) => n.b * n.h * col4Size(n.d, n.s),
})

export const transposedHeadsCol32TwoRows = layout('transposed_heads_col32_2r_4r4', axes, {
  offset: (i, n) => (i.b * n.h + i.h) * col32TwoRowsSize(n.d, n.s) + col32TwoRowsOffset(i.d, i.s, n.d),
  size: (n) => n.b * n.h * col32TwoRowsSize(n.d, n.s),
})

/** One matrix per index of two outer axes, as for scores and probabilities: (batch, heads, query, key). */
export const matricesCol32 = layout('matrices_col32', ['b', 'h', 's', 't'], {
  offset: (i, n) => (i.b * n.h + i.h) * col32Size(n.s, n.t) + col32Offset(i.s, i.t, n.s),
  size: (n) => n.b * n.h * col32Size(n.s, n.t),
})
