/** Random matmuls: axes in any order, batches, swapped operands, chains of ops after them and ops before them. */
import { call, dim, f32, i32, toFloat } from '../../../src/ir/build.js'
import type { Expr } from '../../../src/ir/expr.js'
import type { ValueId } from '../../../src/ir/graph.js'
import { norm, someFloat } from './bodies.js'
import { type At, type Case, Draft, type Random } from './draft.js'

const extents = { m: 'm', n: 'n', k: 'k', p: 'p', b: 'b' }
const sizes = (random: Random) => ({ m: 1 + random.below(5), n: 2 + random.below(5), k: 1 + random.below(6), p: 4, b: 2 })

const read = (given: At | undefined, indices: readonly Expr[]): Expr => {
  if (given === undefined) throw new Error('an op without that tensor')
  return given(...indices)
}

export function products(random: Random, seed: number): Case {
  const draft = new Draft()
  const usual = random.chance(0.6)
  const batch = random.chance(usual ? 0.08 : 0.3) ? ['b'] : []
  const order = (axes: readonly string[]): string[] => (usual ? [...axes] : random.shuffle(axes))
  const [a, b, out] = [order([...batch, 'm', 'k']), order([...batch, 'n', 'k']), order([...batch, 'm', 'n'])]
  let left = draft.input(a.join(' '))
  const right = draft.input(b.join(' '))
  const before = random.chance(0.1)
  if (before) left = inFront(draft, random, a, left)
  let value = random.chance(usual ? 0.97 : 0.5)
    ? draft.matmul(`${a.join(' ')}, ${b.join(' ')} -> ${out.join(' ')}`, left, right)
    : draft.matmul(`${b.join(' ')}, ${a.join(' ')} -> ${out.join(' ')}`, right, left)
  const steps = random.below(5)
  for (let step = 0; step < steps; step++) {
    value = epilogue(draft, random, out, value)
    if (random.chance(0.05)) draft.output(value)
  }
  if (random.chance(0.08)) value = inFront(draft, random, out, value)
  draft.output(value)
  return { family: 'products', seed, draft, groups: grouping(random, draft), dims: sizes(random) }
}

/** An op after a matmul: over the element, and values of its row, its column or neither. */
function epilogue(draft: Draft, random: Random, axes: readonly string[], value: ValueId): ValueId {
  const kinds = random.pick([[], ['row'], ['column'], ['column'], ['whole'], ['whole'], ['row', 'column'], ['one']])
  const reads: Record<string, { value: ValueId; dims: readonly string[] }> = { x: { value, dims: axes } }
  for (const kind of kinds) {
    const dims = kind === 'whole' ? axes : kind === 'one' ? [] : kind === 'row' ? axes.slice(0, -1) : axes.slice(-1)
    reads[kind] = { value: draft.input(dims.length === 0 ? '1' : dims.join(' ')), dims: dims.length === 0 ? ['p'] : dims }
  }
  const rarely = random.below(40)
  return draft.each(axes, { ...extents, p: '1' }, reads, (given, at) => {
    const here = (dims: readonly string[]) => dims.map((axis) => at[axis] ?? i32(0))
    const self = read(given.x, here(axes))
    const others = Object.entries(reads).flatMap(([name, { dims }]) => (name === 'x' ? [] : [read(given[name], here(dims))]))
    // Sometimes another element of the matmul, which no epilogue supports.
    const last = axes.at(-1) ?? ''
    const neighbour = read(given.x, [
      ...here(axes.slice(0, -1)),
      call('maximum', call('sub', at[last] ?? i32(0), i32(1)), i32(0)),
    ])
    const leaves = [self, ...others, toFloat(call('add', at[last] ?? i32(0), dim(last))), ...(rarely === 0 ? [neighbour] : [])]
    const made = someFloat(random, leaves, 2)
    return others.reduce(
      (sum, other) => call('add', sum, other),
      random.chance(0.7) ? call('add', self, call('tanh', made)) : made,
    )
  })
}

/** A norm of rows. */
function inFront(draft: Draft, random: Random, axes: readonly string[], value: ValueId): ValueId {
  const last = axes.at(-1) ?? ''
  return draft.op({
    over: axes,
    extents,
    reads: { x: { value, dims: axes } },
    body: ({ x }, at) => {
      const rows = axes.slice(0, -1).map((axis) => at[axis] ?? i32(0))
      return norm(random, last, rows, (c) => read(x, [...rows, c]), undefined)
    },
  })
}

/** One group, several, or some ungrouped nodes. */
export function grouping(random: Random, draft: Draft): readonly (readonly string[])[] {
  const members = draft.members()
  if (random.chance(0.55)) return [members]
  const groups: string[][] = [[]]
  for (const name of members) {
    if (random.chance(0.25)) groups.push([])
    if (random.chance(0.9)) groups.at(-1)?.push(name)
  }
  if (random.chance(0.1)) return random.shuffle(groups.filter((group) => group.length > 0))
  return groups.filter((group) => group.length > 0)
}

/** Two matmuls of one input, or in sequence, with ops that read both. */
export function pairs(random: Random, seed: number): Case {
  const draft = new Draft()
  const x = draft.input('m k')
  const first = draft.matmul('m k, n k -> m n', x, draft.input('n k'))
  const gate = epilogue(draft, random, ['m', 'n'], first)
  const second = random.chance(0.5)
    ? draft.matmul('m k, n k -> m n', x, draft.input('n k'))
    : draft.matmul('m n, p n -> m p', gate, draft.input('p n'))
  const both = draft.shapeOf(second) === 'm n'
  const last = both ? 'n' : 'p'
  const axes = ['m', last]
  const made = both
    ? draft.each(
        axes,
        extents,
        { x: { value: gate, dims: axes }, other: { value: second, dims: axes } },
        ({ x: a, other: c }, at) =>
          call(
            'mul',
            read(
              a,
              axes.map((axis) => at[axis] ?? i32(0)),
            ),
            read(
              c,
              axes.map((axis) => at[axis] ?? i32(0)),
            ),
          ),
      )
    : draft.each(axes, extents, { x: { value: second, dims: axes } }, ({ x: a }, at) =>
        call(
          'mul',
          read(
            a,
            axes.map((axis) => at[axis] ?? i32(0)),
          ),
          f32(0.5),
        ),
      )
  draft.output(made)
  return { family: 'pairs of products', seed, draft, groups: grouping(random, draft), dims: sizes(random) }
}
