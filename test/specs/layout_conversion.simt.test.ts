/**
 * Moving a tensor from any layout of its rank to any other and back changes no element: the identity body between the lowered layouts, generated,
 * compiled for simt and run on random, mostly ragged sizes. The layouts' own functions give the positions of elements, so lowering is tested with
 * them. Padding contains garbage throughout.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { call, i32, index } from '../../src/ir/build.js'
import { dtypeInfo } from '../../src/ir/dtype.js'
import { forEachPoint } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { type Layout, rowMajor } from '../../src/ir/layout.js'
import { substitute } from '../../src/ir/walk.js'
import { decode } from '../../src/runtime/buffer.js'
import { findLayout, layoutOffset, layoutSize } from '../../src/runtime/layouts.js'
import type { NativeSlice } from '../../src/runtime/native.js'
import { encodeNumbers } from '../../src/runtime/numbers.js'
import { integer, type Random, random } from '../../src/verify/random.js'
import { type Host, openKernels } from '../emit/host.js'
import { inTurn } from '../turns.js'

const types = ['i8', 'f16'] as const
type Type = (typeof types)[number]
type Pair = readonly [from: string, to: string]

/** Layouts of one rank, and the sizes they are tried with. */
interface Family {
  readonly dims: readonly string[]
  readonly layouts: readonly string[]
  readonly size: (next: Random) => readonly number[]
  /** True if a pair is compiled for a type. */
  readonly has: (pair: Pair, type: Type) => boolean
}

/** Extents around the blocks of 4, 8, 16 and 32 that layouts have, and any others. */
const ragged = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65]
const extent = (next: Random, largest: number): number => {
  const edges = ragged.filter((edge) => edge <= largest)
  return (integer(next, 0, 3) > 0 ? edges[integer(next, 0, edges.length - 1)] : undefined) ?? integer(next, 1, largest)
}

const families: Readonly<Record<'matrices' | 'heads', Family>> = {
  matrices: {
    dims: ['m', 'n'],
    layouts: ['row', 'column', 'rows16', 'col32', 'col4_4r2_8c', 'col32_2r_4r4'],
    size: (next) => [extent(next, 70), extent(next, 70)],
    has: () => true,
  },
  heads: {
    dims: ['b', 's', 'h', 'd'],
    layouts: [
      'row',
      'split_heads',
      'heads_rows16',
      'heads_col32',
      'heads_col4_4r2_8c',
      'heads_col32_2r_4r4',
      'transposed_heads_rows16',
      'transposed_heads_col4_4r2_8c',
      'transposed_heads_col32_2r_4r4',
    ],
    size: (next) => [extent(next, 2), extent(next, 40), extent(next, 3), extent(next, 40)],
    // Compiling takes most of the time, and every layout meets floats on either side of row-major.
    has: (pair, type) => type === 'i8' || pair.includes('row'),
  },
}

/** The kernel that moves every element of a tensor from one layout to another. */
function conversion(dims: readonly string[], from: Layout, to: Layout, of: readonly Type[] = types): Kernel {
  const indices = dims.map((name) => index(`i_${name}`))
  return {
    name: `from_${from.name}_to_${to.name}`,
    source: { file: 'conversion.ts', line: 1, column: 1 },
    dims,
    types: { T: of },
    attrs: [],
    tensors: [
      { name: 'x', access: 'in', dtype: { param: 'T' }, dims, layout: from },
      { name: 'y', access: 'out', dtype: { param: 'T' }, dims, layout: to },
    ],
    rows: dims.map((dim) => ({ index: `i_${dim}`, dim })),
    body: [{ kind: 'store', tensor: 'y', indices, value: { kind: 'load', type: 'f32', tensor: 'x', indices } }],
  }
}

/** Matrices from rows to every layout and back; of all other pairs a rotating third, in both directions. */
function pairsOf({ dims, layouts: names }: Family): Pair[] {
  const one = names.flatMap((from, at) => names.slice(at + 1).map((to): Pair => [from, to]))
  const always = one.filter((pair) => dims.length === 2 && pair.includes('row'))
  const chosen = [...always, ...inTurn(one.filter((pair) => !always.includes(pair)))]
  return chosen.flatMap(([from, to]): Pair[] => [
    [from, to],
    [to, from],
  ])
}

/** COL32 with its first two columns swapped. */
const swapped = (col32: Layout): Layout => {
  const c = index('c')
  const other = call('select', call('lt', c, i32(2)), call('sub', i32(1), c), c)
  return { ...col32, name: 'swapped_col32', offset: substitute(col32.offset, new Map([['c', other]])) }
}

const alignment = 256
const garbage = 0xa5
/** Values a tensor may hold: exact in both types, and none of them garbage. */
const value = (next: Random): number => integer(next, -60, 60)

interface Placed {
  readonly type: Type
  /** Offset of each logical element. */
  readonly offsets: readonly number[]
  readonly offset: number
  readonly bytes: number
}

/** Tensors of one shape in one block of memory, with garbage between them. */
class Block {
  bytes = alignment
  readonly #placed: Placed[] = []
  readonly #shape: readonly number[]
  readonly #layouts = new Map<string, { readonly offsets: readonly number[]; readonly size: number }>()

  constructor(shape: readonly number[]) {
    this.#shape = shape
  }

  add(name: string, type: Type): Placed {
    const { offsets, size } = this.#layoutOf(name)
    const bytes = size * dtypeInfo[type].bytes
    const placed = { type, offsets, offset: this.bytes, bytes }
    this.#placed.push(placed)
    this.bytes = Math.ceil((this.bytes + bytes) / alignment + 1) * alignment
    return placed
  }

  #layoutOf(name: string) {
    const known = this.#layouts.get(name)
    if (known !== undefined) return known
    const layout = findLayout(layouts, name, this.#shape.length)
    const offsets: number[] = []
    forEachPoint(this.#shape, (point) => offsets.push(layoutOffset(layout, point, this.#shape)))
    const made = { offsets, size: layoutSize(layout, this.#shape) }
    this.#layouts.set(name, made)
    return made
  }

  /** Bytes outside all tensors. */
  between(memory: Uint8Array): Uint8Array {
    const rest = memory.slice()
    for (const { offset, bytes } of this.#placed) rest.fill(garbage, offset, offset + bytes)
    return rest
  }
}

function store({ type, offsets, offset, bytes }: Placed, values: readonly number[], memory: Uint8Array): void {
  const stored = Float64Array.from(decode(type, memory.slice(offset, offset + bytes)))
  for (const [at, value] of values.entries()) stored[offsets[at] ?? 0] = value
  memory.set(encodeNumbers(type, stored), offset)
}

function holds({ type, offsets, offset, bytes }: Placed, values: readonly number[], memory: Uint8Array): boolean {
  const stored = decode(type, memory.slice(offset, offset + bytes))
  return values.every((value, at) => stored[offsets[at] ?? -1] === value)
}

interface Trip {
  readonly label: string
  readonly key: string
  readonly backKey: string
  readonly from: Placed
  readonly there: Placed
  readonly back: Placed
}

let host: Host
beforeAll(async () => {
  const lowered = new Map(readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] }).layouts.map((each) => [each.name, each]))
  const layoutOf = (name: string, dims: readonly string[]): Layout => {
    const found = name === 'row' ? rowMajor(dims) : lowered.get(name)
    if (found === undefined) throw new Error(`no layout ${name}`)
    return found
  }
  const kernels = Object.values(families).flatMap((family) =>
    pairsOf(family).map(([from, to]) =>
      conversion(
        family.dims,
        layoutOf(from, family.dims),
        layoutOf(to, family.dims),
        types.filter((type) => family.has([from, to], type)),
      ),
    ),
  )
  const matrix = ['m', 'n']
  host = await openKernels([...kernels, conversion(matrix, rowMajor(matrix), swapped(layoutOf('col32', matrix)))])
})
afterAll(() => host.close())

/** Converts pairs of a family's layouts in both directions at one size; returns those that differ. `through` names another kernel for a pair. */
async function differing(
  family: Family,
  shape: readonly number[],
  pairs: readonly Pair[] = pairsOf(family),
  through: (pair: Pair) => string = ([from, to]) => `from_${from}_to_${to}`,
): Promise<string[]> {
  const block = new Block(shape)
  const sources = types.flatMap((type) => family.layouts.map((name) => ({ type, name, placed: block.add(name, type) })))
  const trips = sources.flatMap(({ type, name, placed }) =>
    pairs
      .filter((pair) => pair[0] === name && family.has(pair, type))
      .map(
        ([from, to]): Trip => ({
          label: `${from} to ${to} in ${type} at ${shape.join(' x ')}`,
          key: `${through([from, to])}__${type}`,
          backKey: `from_${to}_to_${from}__${type}`,
          from: placed,
          there: block.add(to, type),
          back: block.add(from, type),
        }),
      ),
  )
  const next = random(`conversion ${shape.join(' ')}`)
  const values = Array.from({ length: shape.reduce((product, each) => product * each, 1) }, () => value(next))
  const memory = new Uint8Array(block.bytes).fill(garbage)
  for (const { placed } of sources) store(placed, values, memory)
  const buffer = host.device.allocate(block.bytes)
  const slice = ({ offset, bytes }: Placed): NativeSlice => ({ buffer, offset, bytes })
  const step = (label: string, key: string, from: Placed, to: Placed) =>
    ({ kind: 'kernel', label, library: host.library, key, buffers: [slice(from), slice(to)], dims: shape, attrs: [] }) as const
  const program = host.device.program(
    trips.flatMap(({ label, key, backKey, from, there, back }) => [
      step(label, key, from, there),
      step(`${label}, back`, backKey, there, back),
    ]),
  )
  const whole = { buffer, offset: 0, bytes: block.bytes }
  const [after = new Uint8Array()] = await program.run([{ to: whole, data: memory }], [whole])
  program.release()
  buffer.release()
  expect(block.between(after).every((byte) => byte === garbage)).toBe(true)
  return trips.flatMap(({ label, there, back }) => [
    ...(holds(there, values, after) ? [] : [label]),
    ...(holds(back, values, after) ? [] : [`${label}, back`]),
  ])
}

describe('converting between layouts and back is the identity', () => {
  it.each(Object.keys(families) as (keyof typeof families)[])('of %s', async (name) => {
    const family = families[name]
    const next = random(`sizes of ${name}`)
    for (let count = 0; count < 200; count++) expect(await differing(family, family.size(next))).toEqual([])
  })

  it('and a layout with two columns swapped is noticed at any size', async () => {
    const next = random('sizes of the twin')
    const pairs: readonly Pair[] = [['row', 'col32']]
    for (let count = 0; count < 20; count++) {
      const shape = families.matrices.size(next)
      expect(await differing(families.matrices, shape, pairs)).toEqual([])
      expect(await differing(families.matrices, shape, pairs, () => 'from_row_to_swapped_col32'), shape.join(' x ')).not.toEqual(
        [],
      )
    }
  })

  it.each([
    ['col32', 5 * 64],
    ['col4_4r2_8c', 8 * 64],
    ['col32_2r_4r4', 32 * 64],
    ['rows16', 5 * 48],
  ])('takes buffers of %s with its padding and no others', async (name, elements) => {
    const shape = [5, 33]
    const run = async (bytes: number): Promise<void> => {
      const buffer = host.device.allocate(8192)
      const buffers = [
        { buffer, offset: 0, bytes: 5 * 33 },
        { buffer, offset: 1024, bytes },
      ]
      const key = `from_row_to_${name}__i8`
      await host.device
        .program([{ kind: 'kernel', label: 'sized', library: host.library, key, buffers, dims: shape, attrs: [] }])
        .run([], [])
      buffer.release()
    }
    await run(elements)
    await expect(run(elements - 1)).rejects.toThrow()
    await expect(run(5 * 33)).rejects.toThrow()
  })
})
