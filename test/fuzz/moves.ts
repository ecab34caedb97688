/** Random ops that replace in place what they read at other indices: shifting windows, and a number per row together with its elements. */
import {
  call,
  type DType,
  type Expr,
  load,
  named,
  num,
  type OutputDesc,
  type Result,
  reduce,
  type Stmt,
  whole,
} from './describe.js'
import { type Context, empty, type OpDraft } from './draft.js'
import { type Drawn, indicesOf, output, rowsOf } from './families.js'
import { draftWithout } from './places.js'

const state = (draft: OpDraft, dims: readonly string[], dtype: DType): string => {
  const name = draft.fresh('x')
  draft.inputs.push({ name, dtype, dims, domain: { kind: 'float' } })
  return name
}

/** Sources of elements: `at` by the index for old values, and a new value elsewhere. */
function moved(draft: OpDraft, c: Expr, w: Expr, kept: (at: Expr) => Expr, fresh: () => Expr): Expr {
  const { random } = draft
  const by = whole(random.between(1, 3))
  switch (random.below(5)) {
    case 0: {
      const last = call('i32', 'sub', w, whole(1))
      return call('f32', 'select', call('bool', 'eq', c, last), fresh(), kept(call('i32', 'add', c, whole(1))))
    }
    case 1:
      return call('f32', 'select', call('bool', 'lt', call('i32', 'add', c, by), w), kept(call('i32', 'add', c, by)), fresh())
    case 2:
      return call('f32', 'select', call('bool', 'lt', c, by), fresh(), kept(call('i32', 'sub', c, by)))
    case 3:
      return kept(call('i32', 'mod', call('i32', 'add', c, by), w))
    default:
      return call('f32', 'add', kept(call('i32', 'sub', call('i32', 'sub', w, whole(1)), c)), num(0.5))
  }
}

/** A replaced tensor, and the source of its values. */
interface Window {
  readonly name: string
  readonly dtype: DType
  readonly dims: readonly string[]
}

const replaced = (draft: OpDraft, { name, dtype, dims }: Window, result: Result): OutputDesc => ({
  name: draft.fresh('y'),
  dtype,
  dims,
  result,
  updates: name,
})

/** A window of the last elements that moves on: whole rows, or each element along any axis. */
export function moves(draft: OpDraft): Drawn {
  const { random } = draft
  const dtype = random.pick(['f32', 'f16', 'bf16'] as const)
  const [b, w, d] = [draft.dim('m', 'few'), draft.dim('n', 'row'), draft.dim('h')]
  const axes = random.pick([
    [b, w],
    [b, d, w],
    [b, w, d],
  ])
  const others = axes.filter((dim) => dim !== w)
  const window: Window = { name: state(draft, axes, dtype), dtype, dims: axes }
  draft.input(others)
  const at: Context = { ...empty, indices: indicesOf(others), plain: true }
  const read = (place: Expr): Expr => load('f32', window.name, ...axes.map((dim) => (dim === w ? place : named(`i_${dim}`))))
  const fresh = (): Expr => draftWithout(draft, window.name, () => draft.float(2, at))
  const isRow = axes.at(-1) === w && random.chance(0.6)
  const index = named(isRow ? 'c' : `i_${w}`)
  const value = moved(draft, index, named(w), read, fresh)
  if (!isRow) return { rows: rowsOf(axes), outputs: [replaced(draft, window, { kind: 'number', value })] }
  const next = replaced(draft, window, { kind: 'row', loop: { length: w, index: 'c', value } })
  if (random.chance(0.4)) return { rows: rowsOf(others), outputs: [next] }
  // A second output from the old values of the window.
  const weighed = call('f32', 'mul', read(named('c')), call('f32', 'toFloat', call('i32', 'sub', named('c'), whole(3))))
  const beside: Result = random.chance(0.5)
    ? { kind: 'number', value: reduce(random.pick(['sum', 'max'] as const), w, 'c', weighed) }
    : { kind: 'row', loop: { length: w, index: 'c', value: weighed } }
  const made = output(draft, beside.kind === 'row' ? axes : others, beside)
  return { rows: rowsOf(others), outputs: random.chance(0.5) ? [next, made] : [made, next] }
}

/** A scale per row together with its codes, both replaced. */
export function scaled(draft: OpDraft): Drawn {
  const { random } = draft
  const [m, n] = [draft.dim('m', 'few'), draft.dim('n', 'row')]
  const codes: Window = { name: '', dtype: random.pick(['i8', 'f16', 'f32', 'f8e4m3'] as const), dims: [m, n] }
  const [q, s] = [state(draft, [m, n], codes.dtype), state(draft, [m], 'f32')]
  const x = draft.input([m, n])
  const [i, c] = [named(`i_${m}`), named('c')]
  const old = load('f32', s, i)
  const value = call('f32', 'add', call('f32', 'mul', load('f32', q, i, c), old), load('f32', x, i, c))
  const top = draft.fresh('t')
  const size: Stmt = { kind: 'const', name: top, value: reduce('max', n, 'c', call('f32', 'abs', value)) }
  draft.body.push(size)
  const step = call('f32', 'add', named(top, 'f32'), num(0.5))
  const made: OutputDesc[] = [
    replaced(
      draft,
      { ...codes, name: q },
      { kind: 'row', loop: { length: n, index: 'c', value: call('f32', 'div', value, step) } },
    ),
    replaced(
      draft,
      { name: s, dtype: 'f32', dims: [m] },
      {
        kind: 'number',
        value: random.chance(0.5) ? step : call('f32', 'add', call('f32', 'mul', old, num(0.5)), named(top, 'f32')),
      },
    ),
  ]
  return { rows: rowsOf([m]), outputs: random.chance(0.5) ? made : made.toReversed() }
}
