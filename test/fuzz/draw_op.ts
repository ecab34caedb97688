/** A random op of a seed. */
import type { DType, OpDesc } from './describe.js'
import { OpDraft } from './draft.js'
import { columns, type Drawn, elementwise, rowwise, total, windows } from './families.js'
import { grouped } from './grouped.js'
import { moves, scaled } from './moves.js'
import { gathers, hashes, recurrences, updates } from './places.js'
import { pruned } from './prune.js'
import { Random } from './random.js'
import type { Special } from './rows.js'

/** Weights of the families. */
const weights = {
  elementwise: 6,
  rowwise: 8,
  columns: 3,
  total: 2,
  windows: 1.5,
  gathers: 2,
  updates: 2,
  moves: 1.5,
  scaled: 1,
  grouped: 1,
  hashes: 1.5,
  recurrences: 1.5,
  scan: 2,
  monoid: 2,
  fold: 2,
  topK: 1.5,
  longTopK: 0.7,
  argsort: 1.5,
  threshold: 1,
  segmentSum: 1,
  histogram: 0.7,
  counted: 1,
  carry: 1.5,
} as const
type Family = keyof typeof weights
const special: readonly string[] = [
  'scan',
  'monoid',
  'fold',
  'topK',
  'longTopK',
  'argsort',
  'threshold',
  'segmentSum',
  'histogram',
  'counted',
  'carry',
] satisfies Special[]
const isSpecial = (family: Family): family is Family & Special => special.includes(family)

const plain = {
  elementwise,
  rowwise,
  columns,
  total,
  windows,
  gathers,
  updates,
  moves,
  scaled,
  grouped,
  hashes,
  recurrences,
} as const

const draw = (family: Family, draft: OpDraft): Drawn => (isSpecial(family) ? rowwise(draft, family) : plain[family](draft))

/** @param name snake_case */
export function drawOp(seed: number, name: string): OpDesc {
  const random = new Random(seed)
  const family = random.weighed(weights)
  const draft = new OpDraft(random)
  const { rows, outputs } = draw(family, draft)
  const tensors = [...draft.inputs, ...outputs]
  const floats = tensors.map(({ dtype }) => dtype).filter((dtype) => /^(f|bf)/.test(dtype))
  const param: DType | undefined = floats.length > 0 && random.chance(0.4) ? random.pick(floats) : undefined
  const { dims, inputs, attrs, monoids, body } = draft
  return pruned({ name, family, dims, ...(param === undefined ? {} : { param }), inputs, attrs, rows, monoids, body, outputs })
}
