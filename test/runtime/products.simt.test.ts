/** Matmuls outside of every plan: for all axes that the language allows, the device computes the definition, or gives the reason of a refusal. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { graph } from '../../src/lang/graph.js'
import { tensor } from '../../src/lang/tensor.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import type { KernelSource } from '../../src/runtime/library.js'
import { buildProgram } from '../../src/runtime/program.js'
import { openSession } from '../../src/runtime/session.js'

type Sizes = Readonly<Record<string, number>>

/** No kernel is needed: all steps are matmuls. */
const library: KernelSource = {
  target: 'simt',
  ensure: async () => {},
  of: (key) => {
    throw new Error(`there is no kernel ${key}`)
  },
}

const split = (axes: string): string[] => axes.split(' ')
const count = (axes: readonly string[], sizes: Sizes): number => axes.reduce((product, axis) => product * (sizes[axis] ?? 1), 1)

/** Row-major place of an element, by the place along each axis. */
const placeOf = (axes: readonly string[], sizes: Sizes, at: Sizes): number =>
  axes.reduce((place, axis) => place * (sizes[axis] ?? 1) + (at[axis] ?? 0), 0)

/** A matmul by its definition: over every index of every axis. */
function defined([a, b, out]: readonly string[][], sizes: Sizes, x: Float32Array, y: Float32Array): Float32Array {
  if (a === undefined || b === undefined || out === undefined) throw new Error('no product')
  const axes = [...new Set([...a, ...b])]
  const result = new Float32Array(count(out, sizes))
  for (let i = 0; i < count(axes, sizes); i++) {
    let rest = i
    const at: Record<string, number> = {}
    for (const axis of axes.toReversed()) {
      at[axis] = rest % (sizes[axis] ?? 1)
      rest = Math.floor(rest / (sizes[axis] ?? 1))
    }
    const to = placeOf(out, sizes, at)
    result[to] = (result[to] ?? 0) + (x[placeOf(a, sizes, at)] ?? Number.NaN) * (y[placeOf(b, sizes, at)] ?? Number.NaN)
  }
  return result
}

let device: Device
beforeAll(() => {
  device = openDevice('simt')
})
afterAll(() => device.close())

/** The result on the device, and the number of matmuls. */
async function run(subscripts: string, sizes: Sizes, x: Float32Array, y: Float32Array) {
  const [a, b] = subscripts.split(' -> ')[0]?.split(', ') ?? []
  const { graph: product } = graph('product', {
    inputs: { x: tensor('f32', a ?? ''), y: tensor('f32', b ?? '') },
    weights: {},
    build: (g, given) => {
      const z = g.matmul(subscripts, given.x, given.y)
      return { nodes: { z }, outputs: { z } }
    },
  })
  const session = await openSession({ device, library, manifest: { version: 1, kernels: [] }, layouts: {}, weights: {} })
  try {
    const wires = { x: 'x', y: 'y' }
    const program = await buildProgram({
      session,
      applications: [{ label: 'it', graph: product, inputs: wires, weights: {}, outputs: { z: 'z' }, attrs: {} }],
      inputs: ['x', 'y'],
      outputs: ['z'],
      dims: sizes,
      types: {},
    })
    try {
      const { z } = await program.run({ x: encode('f32', x), y: encode('f32', y) })
      return { result: Float32Array.from(decode('f32', z ?? new Uint8Array())), matmuls: program.steps.length }
    } finally {
      program.release()
    }
  } finally {
    session.release()
  }
}

const names = ['u', 'v', 'w', 'z', 'c', 'q']
const roles = ['a b', 'a out', 'b out', 'a b out'] as const

/** Axes of any group, in any order of each tensor, of any size. */
const products = fc
  .record({
    groups: fc.array(fc.constantFrom(...roles), { minLength: 1, maxLength: names.length }),
    sizes: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: names.length, maxLength: names.length }),
    orders: fc.tuple(
      fc.shuffledSubarray(names, { minLength: 6 }),
      fc.shuffledSubarray(names, { minLength: 6 }),
      fc.shuffledSubarray(names, { minLength: 6 }),
    ),
  })
  .map(({ groups, sizes, orders }) => {
    const tensors = (['a', 'b', 'out'] as const).map((tensor, i) =>
      (orders[i] ?? []).filter((name) => groups[names.indexOf(name)]?.split(' ').includes(tensor)),
    )
    return { tensors, sizes: Object.fromEntries(names.map((name, i) => [name, sizes[i] ?? 1])) }
  })
  .filter(({ tensors }) => tensors.every((axes) => axes.length > 0))

const drawn = (length: number, step: number): Float32Array => Float32Array.from({ length }, (_, i) => ((i * step) % 7) - 3)

describe('matmuls without a plan', () => {
  it.each([
    ['z v u c, z w u c -> z u v w', { z: 2, v: 3, u: 4, c: 5, w: 6 }, 2],
    ['v z c, w z c -> z v w', { z: 3, v: 5, c: 7, w: 2 }, 1],
    ['m k z, n k z -> m n z', { m: 2, k: 3, z: 4, n: 5 }, 10],
    ['m u n, u k n -> n m k', { m: 2, u: 3, n: 4, k: 5 }, 10],
  ])('%s', async (subscripts, sizes, matmuls) => {
    const tensors = subscripts.split(/, | -> /).map(split)
    const [x, y] = [drawn(count(tensors[0] ?? [], sizes), 3), drawn(count(tensors[1] ?? [], sizes), 5)]
    const found = await run(subscripts, sizes, x, y)
    expect(found.result).toEqual(defined(tensors, sizes, x, y))
    expect(found.matmuls).toBe(matmuls)
  })

  it('match their definition for any axes, or name the summed axes that are not adjacent', async () => {
    let refused = 0
    let several = 0
    await fc.assert(
      fc.asyncProperty(products, async ({ tensors, sizes }) => {
        const subscripts = `${tensors[0]?.join(' ')}, ${tensors[1]?.join(' ')} -> ${tensors[2]?.join(' ')}`
        const [x, y] = [drawn(count(tensors[0] ?? [], sizes), 3), drawn(count(tensors[1] ?? [], sizes), 5)]
        const found = await run(subscripts, sizes, x, y).catch((error: unknown) => {
          if (!(error instanceof HeddleError) || error.code !== 'matmul.strides') throw error
          const summed = (tensors[0] ?? []).filter((axis) => !tensors[2]?.includes(axis) && sizes[axis] !== 1)
          expect(summed.length, error.message).toBeGreaterThan(1)
          refused += 1
          return undefined
        })
        if (found === undefined) return
        if (found.matmuls > 1) several += 1
        expect(found.result).toEqual(defined(tensors, sizes, x, y))
      }),
      { numRuns: 300, seed: 7 },
    )
    // Both have to have been tried.
    expect(Math.min(refused, several)).toBeGreaterThan(5)
  })
})
