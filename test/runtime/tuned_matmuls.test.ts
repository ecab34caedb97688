/** Saved algorithms of a matmul library when a program is built: used on their device and version, and on no other. */
import { expect, test } from 'vitest'
import { layouts } from '../../specs/index.js'
import { manifestSchema } from '../../src/emit/manifest/manifest.js'
import type { Graph } from '../../src/ir/graph.js'
import { parseShape } from '../../src/ir/shape.js'
import { loadedKernels } from '../../src/runtime/library.js'
import type { NativeDevice, NativeMatmul } from '../../src/runtime/native.js'
import { buildProgram } from '../../src/runtime/program.js'
import { openSession } from '../../src/runtime/session.js'
import { libraryVersion, matmulName, tunedAlgorithms, untunedNote } from '../../src/runtime/tuned_matmuls.js'
import type { TunedMatmul } from '../../src/schedule/tuning/library.js'
import { fakeDevice, fakeInfo, plainMatmul } from '../bench/library/fake.js'

const matmul = 'f32 x f32 -> f32, 1 x 5 x 8 x 16, a 0 16 1, b 0 16 1, out 0 8 1'

const kept = (more: Partial<TunedMatmul> = {}): TunedMatmul => ({
  device: 'a GPU',
  library: 130100,
  matmul,
  algorithm: '07'.repeat(64),
  config: 'id 7',
  measured: { first: 2, algorithm: 1 },
  ...more,
})

const graph: Graph = {
  name: 'product',
  values: ['m k', 'n k', 'm n'].map((shape) => ({ dtype: 'f32', shape: parseShape(shape), layout: 'row' })),
  nodes: [{ kind: 'matmul', name: 'p', a: 0, b: 1, out: 2, subscripts: { a: ['m', 'k'], b: ['n', 'k'], out: ['m', 'n'] } }],
  inputs: { x: 0, w: 1 },
  weights: {},
  outputs: { y: 2 },
  attrs: [],
}

/** The matmuls that a program hands to its device. */
async function handed(matmuls: readonly TunedMatmul[], dims = { m: 5, n: 8, k: 16 }): Promise<readonly NativeMatmul[]> {
  const steps: NativeMatmul[] = []
  const device: NativeDevice = {
    ...fakeDevice([{ id: 7, times: [1] }]),
    program(given) {
      for (const step of given) if (step.kind === 'matmul') steps.push(step)
      return fakeDevice([{ id: 7, times: [1] }]).program(given)
    },
  }
  const manifest = manifestSchema.parse({ version: 1, kernels: [], matmuls })
  const library = loadedKernels({ target: 'cuda', kernels: [] })
  const session = await openSession({ device, library, manifest, layouts, weights: {} })
  const names = { x: 'x', w: 'w' }
  const applications = [{ label: 'l', graph, inputs: names, weights: {}, outputs: { y: 'y' }, attrs: {} }]
  await buildProgram({ session, applications, inputs: ['x', 'w'], outputs: ['y'], dims, types: {} })
  return steps
}

test('a program uses the saved algorithm of its matmul', async () => {
  const [step] = await handed([kept()])
  expect(step?.algorithm).toEqual(new Uint8Array(64).fill(7))
})

test.each([
  ['another GPU', kept({ device: 'another GPU' })],
  ['another version of the library', kept({ library: 130000 })],
  ['another matmul', kept({ matmul: `${matmul}, relu` })],
])('the library chooses if the algorithm is of %s', async (_, entry) => {
  const [step] = await handed([entry])
  expect(step?.algorithm).toBeUndefined()
})

test('the library chooses at another size, and for a misaligned operand', async () => {
  const [step] = await handed([kept()], { m: 6, n: 8, k: 16 })
  expect(step?.algorithm).toBeUndefined()
  const algorithmOf = tunedAlgorithms([kept({ matmul: matmulName(plainMatmul([1, 5, 8, 16])) })], fakeInfo)
  const there = plainMatmul([1, 5, 8, 16])
  expect(algorithmOf(there)).toBeDefined()
  expect(algorithmOf({ ...there, b: { ...there.b, offset: 128 } })).toBeUndefined()
})

test('a note names the GPU and version of saved algorithms, if none is of this one', () => {
  expect(untunedNote([kept({ device: 'another GPU', library: 120900 })], fakeInfo)).toBe(
    'library matmuls use the default algorithm: the tuned ones were measured on another GPU with cuBLASLt 12.9, this is a GPU with 13.1; ' +
      'heddle tune --library measures them here',
  )
  expect(untunedNote([kept({ library: 130000 }), kept()], fakeInfo)).toBeUndefined()
  expect(untunedNote([], fakeInfo)).toBeUndefined()
  expect(untunedNote(undefined, fakeInfo)).toBeUndefined()
  expect(untunedNote([kept()], { kind: 'simt', name: 'a CPU', matmulVersion: 0 })).toBeUndefined()
  expect(libraryVersion(130205)).toBe('13.2')
})

test('a matmul is named by its types, extents, strides and epilogue', () => {
  const bias = { buffer: plainMatmul([1, 1, 1, 1]).a.buffer, offset: 0, bytes: 4 }
  const named = matmulName(plainMatmul([3, 2, 4, 8], { dtypes: [1, 1, 1], allowTf32: true, epilogue: { bias, relu: true } }))
  expect(named).toBe('f16 x f16 -> f16, 3 x 2 x 4 x 8, a 16 8 1, b 32 8 1, out 8 4 1, bias, relu, tf32')
})
