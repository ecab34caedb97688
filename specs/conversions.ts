/** Steps between layouts for where graphs meet that hold a value in one of these: a program inserts them under such plans. */
import type { Conversion } from 'heddle'
import { col32FromRows, int8Col32FromRows, rowsFromCol32, rowsFromInt8Col32 } from './ops/int8_col32.js'

export const conversions: readonly Conversion[] = [
  { op: col32FromRows },
  { op: rowsFromCol32 },
  { op: int8Col32FromRows, scales: { inverse: 'inverse' } },
  { op: rowsFromInt8Col32, scales: { step: 'step' } },
]
