/** A body under construction: names that its next statements may read. */
import { call, type Expr, type Result, type ScalarType } from './describe.js'
import type { Context, OpDraft } from './draft.js'

/** Names that a body has made so far, and outputs that its last statements leave. */
export interface Body {
  readonly at: Context
  readonly n: string
  readonly outputs?: readonly { readonly dims: readonly string[]; readonly result: Result }[]
}

export const along = ({ at, n }: Body): Context => ({ ...at, indices: [...at.indices, { name: 'c', dim: n }] })

export function withNumber(body: Body, name: string, type: ScalarType): Body {
  return { ...body, at: { ...body.at, numbers: [...body.at.numbers, { name, type }] } }
}
export function withRow(body: Body, name: string, type: ScalarType, ordered: boolean, dim = body.n): Body {
  return { ...body, at: { ...body.at, rows: [...body.at.rows, { name, type, dim, ordered }] } }
}

/** The type of a sum, or of an extreme, of such elements. */
export const numeric = (e: Expr): 'f32' | 'i32' => (e.type === 'i32' ? 'i32' : 'f32')

/** A number that is loaded, so that its order among others is known. */
export function key(draft: OpDraft, body: Body): Expr {
  const { random } = draft
  const at = { ...body.at, indices: [...body.at.indices, { name: 'c', dim: body.n }], rows: [], numbers: [], plain: true }
  const own = draft.leaf('f32', at) ?? draft.float(1, at)
  return random.chance(0.3) ? call('f32', random.pick(['neg', 'abs']), own) : own
}
