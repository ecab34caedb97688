/** Layout conversions. A program inserts them where graphs with different layouts of a value meet under a plan. */
import type { Conversion } from 'heddle'
import { col32FromRows, int8Col32FromRows, rowsFromCol32, rowsFromInt8Col32 } from './ops/int8_col32.js'

export const conversions: readonly Conversion[] = [
  { op: col32FromRows },
  { op: rowsFromCol32 },
  { op: int8Col32FromRows, scales: { inverse: 'inverse' } },
  { op: rowsFromInt8Col32, scales: { step: 'step' } },
]
