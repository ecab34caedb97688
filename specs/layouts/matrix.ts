/** Layouts of a matrix other than row-major: by columns, with padded rows, and the interleaved orders of INT8 tensor-core libraries. */
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

/** Column-major. */
export const column = layout('column', ['r', 'c'], { offset: (i, n) => i.c * n.r + i.r })

export const rows16 = layout('rows16', ['r', 'c'], {
  offset: (i, n) => rows16Offset(i.r, i.c, n.c),
  size: (n) => rows16Size(n.r, n.c),
})

export const col32 = layout('col32', ['r', 'c'], {
  offset: (i, n) => col32Offset(i.r, i.c, n.r),
  size: (n) => col32Size(n.r, n.c),
})

export const col4 = layout('col4_4r2_8c', ['r', 'c'], {
  offset: (i, n) => col4Offset(i.r, i.c, n.r),
  size: (n) => col4Size(n.r, n.c),
})

export const col32TwoRows = layout('col32_2r_4r4', ['r', 'c'], {
  offset: (i, n) => col32TwoRowsOffset(i.r, i.c, n.r),
  size: (n) => col32TwoRowsSize(n.r, n.c),
})
