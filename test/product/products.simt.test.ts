/** Source of matmul kernels, with every main loop that supports them, on the CPU device: equal to their IR. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { instanceKey } from '../../src/ir/instance.js'
import type { MatmulKernel } from '../../src/ir/product.js'
import { inTurn, oneInTurn } from '../turns.js'
import { computed, crossed, inParts, partial, products } from './graphs.js'
import { planned, productOf, readOps } from './host.js'
import { differences, type Kernels, launch, openProducts } from './host_simt.js'

const ops = readOps()
const all = [...products, ...crossed, ...inParts, ...computed, ...partial].map(
  (each): MatmulKernel => productOf(planned(each, ops)),
)
const types = ['f32', 'f16'] as const
type Type = (typeof types)[number]
/** Run over so many rows that tiles are large. */
const tall = oneInTurn(['gate_and_up', 'norm_gate_and_up', 'group_weights'], 0)
/**
 * Kernels that tests below name with a type; of the others, a rotating third. A norm of elements far from zero has its neighbour in f16 where float32
 * statistics are off by a last place, which is beyond a matmul's tolerance.
 */
const stated: Readonly<Record<string, readonly Type[]>> = {
  ...Object.fromEntries([tall, 'mixed'].map((name) => [name, ['f16' as const]])),
  ...{ moments: types, largest: types, columns_first: ['f32'], layer_norm_in_front: ['f32'] },
}
const turns = inTurn(all.flatMap(({ name }) => types.map((type) => ({ name, type }))))
const typesOf = (of: string): readonly Type[] => stated[of] ?? turns.flatMap(({ name, type }) => (name === of ? [type] : []))
const kernels = all.filter(({ name }) => typesOf(name).length > 0)

/** Few rows, a tile and its edges, sizes no chunk divides: a short k, and one of which rows are copied to be aligned. */
const sizes = [
  { m: 1, n: 8, k: 16 },
  { m: 3, n: 40, k: 64 },
  { m: 5, n: 13, k: 7 },
  { m: 17, n: 72, k: 128 },
  { m: 70, n: 136, k: 40 },
  { m: 65, n: 67, k: 33 },
  { m: 66, n: 35, k: 133 },
]

/** Matmuls with a computed left operand: one row in several steps of a block, and a few rows that are stored first. */
const longer = [
  { m: 1, n: 21, k: 2064 },
  { m: 4, n: 24, k: 264 },
]

/** Sequences, their positions, heads and elements of a head; rows and columns of a matmul seen in such parts are products of these. */
const partSizes = [
  { b: 1, m: 1, g: 2, h: 8, k: 16 },
  { b: 2, m: 3, g: 3, h: 5, k: 7 },
  { b: 5, m: 14, g: 5, h: 24, k: 40 },
]
function extentsOf(axis: string, parts: Readonly<Record<string, number>>): number {
  const named: Readonly<Record<string, number>> = { ...parts, m2: parts.m ?? 1, n: 24 }
  // The outer of two axes called m is that of sequences.
  return axis === 'm_m2' ? (parts.b ?? 1) * (parts.m ?? 1) : axis.split('_').reduce((size, part) => size * (named[part] ?? 1), 1)
}

let host: Kernels
beforeAll(async () => {
  host = await openProducts(kernels, ({ name }) => typesOf(name))
})
afterAll(() => host?.close())

const named = kernels.flatMap((kernel) =>
  (Object.hasOwn(kernel.types, 'T') ? typesOf(kernel.name).map((T) => ({ T })) : [{}]).map((each) => ({
    key: instanceKey(kernel.name, each as Record<string, Type>),
    kernel,
  })),
)

describe('matmul kernels on simt equal their IR', () => {
  it.each(named.filter(({ kernel }) => !inParts.some(({ name }) => name === kernel.name)))('$key', async ({ kernel, key }) => {
    const found: string[] = []
    for (const size of [...sizes, ...(kernel.a.prologue === undefined ? [] : longer)]) {
      // Pairs of columns come in pairs, and so do nibbles.
      const even = (extent: number): number => extent + (extent % 2)
      const [n, k] = [kernel.name === 'pairs' ? even(size.n) : size.n, kernel.name === 'group_weights' ? even(size.k) : size.k]
      const dims = {
        ...Object.fromEntries(kernel.batch.map((axis) => [axis, 2] as const)),
        ...{ [kernel.m]: size.m, [kernel.n]: n, [kernel.k]: k },
        ...{ v: 4, h: k / 2, g: partial.some(({ name }) => name === kernel.name) ? Math.ceil(n / 32) : Math.ceil(k / 16) },
      }
      found.push(...(await differences(host, kernel, key, dims)))
    }
    expect(found).toEqual([])
  })

  it.each(named.filter(({ kernel }) => inParts.some(({ name }) => name === kernel.name)))(
    '$key in parts',
    async ({ kernel, key }) => {
      const found: string[] = []
      for (const parts of partSizes) {
        const dims = Object.fromEntries(kernel.dims.map((axis) => [axis, extentsOf(axis, parts)]))
        found.push(...(await differences(host, kernel, key, dims)))
      }
      expect(found).toEqual([])
    },
  )

  it.each([tall])('%s__f16 of so many rows that tiles are large', async (name) => {
    const kernel = kernelNamed(name)
    const dims = { [kernel.m]: 1412, [kernel.n]: name === 'group_weights' ? 1416 : 712, [kernel.k]: 64, h: 32, g: 4 }
    expect(await differences(host, kernel, `${name}__f16`, dims)).toEqual([])
  })

  it.each([1, 5])('mixed__f16 of %s rows and so long a k that blocks have many warps', async (rows) => {
    const kernel = kernelNamed('mixed')
    expect(await differences(host, kernel, 'mixed__f16', { [kernel.m]: rows, [kernel.n]: 21, [kernel.k]: 1552 })).toEqual([])
  })
})

const kernelNamed = (name: string): MatmulKernel => {
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`there is no kernel ${name}`)
  return kernel
}

it.each(['moments', 'largest'])('the number of rows changes no bit of the values %s stores per row', async (name) => {
  const kernel = kernelNamed(name)
  const sizeOf = (rows: number) => ({ [kernel.m]: rows, [kernel.n]: 328, [kernel.k]: 72, g: 11 })
  const [few, many] = [
    await launch(host, kernel, `${name}__f16`, sizeOf(2)),
    await launch(host, kernel, `${name}__f16`, sizeOf(1000)),
  ]
  for (const [i, { name: output, stored }] of few.outputs.entries()) {
    expect(Array.from(many.outputs[i]?.stored ?? []).slice(0, stored.length), output).toEqual(Array.from(stored))
  }
})

it.each(['moments', 'largest'])('%s stores as many groups as fit, and nothing for those without columns', async (name) => {
  const kernel = kernelNamed(name)
  for (const [n, g] of [
    [3, 5],
    [64, 4],
    [72, 2],
    [200, 1],
  ] as const) {
    const dims = { [kernel.m]: 6, [kernel.n]: n, [kernel.k]: 24, g }
    for (const type of types) expect(await differences(host, kernel, `${name}__${type}`, dims), `${n} in ${g}`).toEqual([])
  }
})

it('a kernel that computes something else than its IR is found', async () => {
  const kernel = kernelNamed('columns_first')
  const dims = { [kernel.m]: 5, [kernel.n]: 24, [kernel.k]: 24 }
  expect(await differences(host, kernel, 'columns_first__f32', dims)).toEqual([])
  // The other order of the axes of a square factor.
  const tensors = kernel.tensors.map((tensor) =>
    tensor.name === kernel.products[0].b.tensor ? { ...tensor, dims: [kernel.n, kernel.k] } : tensor,
  )
  expect((await differences(host, { ...kernel, tensors }, 'columns_first__f32', dims)).join()).toContain('elements differ')
})
