/**
 * Offsets of the interleaved orders that INT8 tensor-core libraries define for matrices: blocks of 32 columns, with the rows of a block in an order
 * that suits the instruction's fragments. Plain functions, so that layouts of matrices and of heads share them. `r` and `c` are row and column,
 * `rows` and `columns` the extents of the matrix. Formulas as published for cuBLASLt's orders, checked against cublasLtMatrixTransform.
 */
import { idiv } from 'heddle'

/** Rounds up to a multiple. */
export const roundUp = (n: number, multiple: number): number => idiv(n + multiple - 1, multiple) * multiple

/** COL32: columns in blocks of 32, each block row by row. */
export const col32Offset = (r: number, c: number, rows: number): number => (c >> 5) * 32 * rows + r * 32 + (c & 31)
export const col32Size = (rows: number, columns: number): number => roundUp(columns, 32) * rows

/** COL4_4R2_8C: tiles of 8 rows and 32 columns; even rows come before odd ones, in runs of four columns. Rows are padded to 8. */
export const col4Offset = (r: number, c: number, rows: number): number =>
  (c >> 5) * 32 * roundUp(rows, 8) +
  (((r >> 3) * 8 + (r & 1) * 4 + ((c >> 3) & 3)) * 8 + ((c >> 2) & 1) * 4 + ((r & 7) >> 1)) * 4 +
  (c & 3)
export const col4Size = (rows: number, columns: number): number => roundUp(columns, 32) * roundUp(rows, 8)

/** COL32_2R_4R4: as COL32, with the rows of every 32 in the order 0, 1, 8, 9, 16, 17, 24, 25, 2, 3, and so on. Rows are padded to 32. */
export const col32TwoRowsOffset = (r: number, c: number, rows: number): number =>
  (c >> 5) * 32 * roundUp(rows, 32) + (r >> 5) * 1024 + ((((r & 7) >> 1) * 4 + ((r & 31) >> 3)) * 2 + (r & 1)) * 32 + (c & 31)
export const col32TwoRowsSize = (rows: number, columns: number): number => roundUp(columns, 32) * roundUp(rows, 32)

/** Rows padded to 16 columns, so that every row of int8 starts at a multiple of 16 bytes. */
export const rows16Offset = (r: number, c: number, columns: number): number => r * roundUp(columns, 16) + c
export const rows16Size = (rows: number, columns: number): number => rows * roundUp(columns, 16)
