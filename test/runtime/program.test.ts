import { describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import { add } from '../../specs/ops/add.js'
import { addBias } from '../../specs/ops/add_bias.js'
import type { Graph } from '../../src/ir/graph.js'
import { graph } from '../../src/lang/graph.js'
import { tensor } from '../../src/lang/tensor.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { loadedKernels } from '../../src/runtime/library.js'
import type { NativeStep } from '../../src/runtime/native.js'
import { buildProgram, type ProgramConfig } from '../../src/runtime/program.js'
import { recording } from '../../src/runtime/recording.js'
import { openSession, type Session } from '../../src/runtime/session.js'
import { referenceDevice, referenceLibrary, referenceManifest } from './reference_device.js'

/** y = x W^T + bias + x, through a view. */
const { graph: block } = graph('block', {
  inputs: { x: tensor('T', 'm n') },
  weights: { weight: tensor('T', 'n n'), bias: tensor('T', 'n') },
  build: (g, { x }, w) => {
    const product = g.matmul('m k, n k -> m n', x, w.weight)
    const biased = g.apply(addBias, { x: g.view(g.view(product, 'n m'), 'm n'), bias: w.bias }).y
    const y = g.apply(add, { x: biased, y: x }).z
    return { nodes: { product, biased, y }, outputs: { y } }
  },
})

/** The same as one matmul. */
const whole: Graph = {
  ...block,
  nodes: [
    {
      kind: 'matmul',
      name: 'y',
      a: block.inputs.x ?? -1,
      b: block.weights.weight ?? -1,
      out: block.outputs.y ?? -1,
      subscripts: { a: ['m', 'k'], b: ['n', 'k'], out: ['m', 'n'] },
      epilogue: { bias: block.weights.bias, residual: block.inputs.x, relu: false },
    },
  ],
}

const manifest = referenceManifest()
const floats = (...values: number[]): Uint8Array => encode('f32', Float32Array.from(values))
const weights = {
  weight: { dtype: 'f32', shape: [2, 2], data: floats(1, 2, 3, 4) },
  bias: { dtype: 'f32', shape: [2], data: floats(10, 20) },
} as const

async function setUp(): Promise<{ session: Session; seen: NativeStep[] }> {
  const { device } = referenceDevice(manifest)
  const seen: NativeStep[] = []
  const spy = {
    ...device,
    program(steps: readonly NativeStep[]) {
      seen.push(...steps)
      return device.program(steps)
    },
  }
  return { session: await openSession({ device: spy, library: referenceLibrary(manifest), manifest, layouts, weights }), seen }
}

const chain = (session: Session, changes: Partial<ProgramConfig> = {}): ProgramConfig => ({
  session,
  applications: [0, 1, 2].map((i) => ({
    label: `block${i}`,
    graph: block,
    inputs: { x: `x${i}` },
    weights: { weight: 'weight', bias: 'bias' },
    outputs: { y: `x${i + 1}` },
    attrs: {},
  })),
  inputs: ['x0'],
  outputs: ['x3'],
  dims: { m: 3, n: 2 },
  types: { T: 'f32' },
  ...changes,
})

/** The chain, computed by hand. */
function expected(x: readonly number[]): number[] {
  let rows = x
  for (let i = 0; i < 3; i++) {
    rows = rows.map((_, at) => {
      const [a = 0, b = 0] = rows.slice(at - (at % 2), at - (at % 2) + 2)
      return at % 2 === 0 ? a + 2 * b + 10 + a : 3 * a + 4 * b + 20 + b
    })
  }
  return [...rows]
}

describe('buildProgram', () => {
  it('runs a chain of graphs over a shared arena, again and again', async () => {
    const { session } = await setUp()
    const program = await buildProgram(chain(session))
    for (const x of [
      [1, 2, 3, 4, 5, 6],
      [-1, 0, 2, -2, 7, 1],
    ]) {
      const { x3 } = await program.run({ x0: floats(...x) })
      expect([...decode('f32', x3 ?? new Uint8Array())]).toEqual(expected(x))
    }
    // The input keeps its memory, so that the steps can be replayed; of the others two are alive at most.
    expect(program.memory).toMatchObject({ arenaBytes: 4 * 256, lowerBound: 4 * 256 })
  })

  it('runs a graph of another plan at few rows, with the same results', async () => {
    const few = { rows: { factor: 1, dims: ['m'] }, few: [{ most: 2, plan: 'whole', graph: whole }] }
    const rows = { 2: [1, 2, 3, 4], 3: [1, 2, 3, 4, 5, 6] }
    for (const [m, x] of Object.entries(rows)) {
      const { session } = await setUp()
      const config = chain(session, { dims: { m: Number(m), n: 2 } })
      const applications = config.applications.map((each) => ({ ...each, graph: { ...block, byRows: few } }))
      const program = await buildProgram({ ...config, applications })
      const { x3 } = await program.run({ x0: floats(...x) })
      expect([...decode('f32', x3 ?? new Uint8Array())]).toEqual(expected(x))
      expect(program.steps).toHaveLength(m === '2' ? 3 : 9)
    }
  })

  it('names the kernels of a graph at other numbers of rows, for a package', async () => {
    const few = { rows: { factor: 1, dims: ['m'] }, few: [{ most: 2, plan: 'whole', graph: block }] }
    const { device, library, keys } = recording('simt')
    const session = await openSession({ device, library, manifest, layouts, weights })
    const keysOf = async (graph: Graph): Promise<readonly string[]> => {
      const config = chain(session)
      await buildProgram({ ...config, applications: config.applications.map((each) => ({ ...each, graph })) })
      return keys()
    }
    expect(await keysOf(whole)).toEqual([])
    expect(await keysOf({ ...whole, byRows: few })).toEqual(['add__f32', 'add_bias__f32'])
  })

  it('refuses a step that writes a constant of a kernel', async () => {
    const constant = (entry: (typeof manifest.kernels)[number]) =>
      entry.op === 'add_bias'
        ? { ...entry, buffers: entry.buffers.map((b) => (b.name === 'bias' ? { ...b, constant: true as const } : b)) }
        : entry
    const { session } = await setUp()
    const marked = { ...session, manifest: { ...manifest, kernels: manifest.kernels.map(constant) } }
    await expect(buildProgram(chain(marked))).resolves.toBeDefined()

    // A state in the weight's own memory, which a step moves on.
    const bias = session.weights.get('bias')
    if (bias === undefined) throw new Error('no weight')
    const moves = graph('moves', {
      inputs: { x: tensor('T', 'n') },
      weights: { bias: tensor('T', 'n') },
      build: (g, { x }, w) => {
        const y = g.apply(add, { x: g.view(x, '1 n'), y: g.view(w.bias, '1 n') }).z
        return { nodes: { y }, outputs: { y: g.view(y, 'n') } }
      },
    })
    const writing = (given: Session): ProgramConfig => {
      const before = chain(given)
      const last = {
        label: 'moves',
        graph: moves.graph,
        inputs: { x: 'b' },
        weights: { bias: 'bias' },
        outputs: { y: 'b1' },
        attrs: {},
      }
      return { ...before, applications: [...before.applications, last], states: { b: { tensor: bias, next: 'b1' } } }
    }
    await expect(buildProgram(writing(marked))).rejects.toMatchObject({
      code: 'program.constant',
      message: expect.stringMatching(/^block0\/biased: add_bias__f32 reads bias as a constant, and .* writes its memory$/),
    })
    await expect(buildProgram(writing(session))).resolves.toBeDefined()
  })

  it('reports its launches and bytes', async () => {
    const { session, seen } = await setUp()
    const program = await buildProgram(chain(session))
    expect(program.steps).toHaveLength(9)
    expect(program.steps.slice(0, 3)).toEqual([
      { kind: 'matmul', label: 'block0/product', kernel: undefined, bytes: 24 + 16 + 24, flops: 2 * 3 * 2 * 2 },
      { kind: 'kernel', label: 'block0/biased', kernel: 'add_bias__f32', bytes: 24 + 8 + 24, flops: 0 },
      { kind: 'kernel', label: 'block0/y', kernel: 'add__f32', bytes: 72, flops: 0 },
    ])
    expect(program.inputs).toEqual({ x0: { dtype: 'f32', shape: [3, 2], layout: 'row' } })
    expect(program.outputs).toEqual({ x3: { dtype: 'f32', shape: [3, 2], layout: 'row' } })
    expect(seen[0]).toMatchObject({ kind: 'fill', value: 0xff, target: { offset: 0, bytes: program.memory.arenaBytes } })
    expect(seen[1]).toMatchObject({ kind: 'fill', value: 0, target: { bytes: 24 } })
    expect(seen[2]).toMatchObject({ kind: 'matmul', dtypes: [0, 0, 0], allowTf32: false, extents: [1, 3, 2, 2] })
  })

  it('runs matmuls with epilogues, whose bias and residual stay allocated as long as they are read', async () => {
    const { session, seen } = await setUp()
    const { applications, ...rest } = chain(session)
    const program = await buildProgram({ ...rest, applications: applications.map((each) => ({ ...each, graph: whole })) })
    const { x3 } = await program.run({ x0: floats(1, 2, 3, 4, 5, 6) })
    expect([...decode('f32', x3 ?? new Uint8Array())]).toEqual(expected([1, 2, 3, 4, 5, 6]))
    expect(program.steps).toHaveLength(3)
    expect(program.steps[0]).toEqual({
      kind: 'matmul',
      label: 'block0/y',
      kernel: undefined,
      bytes: 24 + 16 + 24 + 8 + 24,
      flops: 2 * 3 * 2 * 2,
    })
    const product = seen.find((step) => step.kind === 'matmul')
    expect(product).toMatchObject({ epilogue: { bias: { bytes: 8 }, residual: product?.a, relu: false } })
    // The input, and of the other tensors the input and the output of one step.
    expect(program.memory).toMatchObject({ arenaBytes: 3 * 256, lowerBound: 3 * 256 })
  })

  it('can return intermediate values, which then stay allocated', async () => {
    const { session } = await setUp()
    const program = await buildProgram(chain(session, { outputs: ['x1', 'x3'] }))
    const { x1, x3 } = await program.run({ x0: floats(1, 2, 3, 4, 5, 6) })
    expect([...decode('f32', x1 ?? new Uint8Array())].slice(0, 2)).toEqual([16, 33])
    expect([...decode('f32', x3 ?? new Uint8Array())]).toEqual(expected([1, 2, 3, 4, 5, 6]))
  })

  it('refuses missing inputs and inputs of another size', async () => {
    const { session } = await setUp()
    const program = await buildProgram(chain(session))
    await expect(program.run({})).rejects.toMatchObject({
      code: 'program.input',
      message: 'input x0 is missing: expected f32 [3, 2], 24 bytes',
    })
    await expect(program.run({ x0: floats(1) })).rejects.toMatchObject({
      code: 'program.input',
      message: expect.stringContaining('has 4 bytes'),
    })
  })

  it.each<[string, Partial<ProgramConfig>, string, RegExp]>([
    ['a program input nobody declared', { inputs: [] }, 'program.value', /wired to x0, which nothing computes before/],
    ['an output nobody computes', { outputs: ['y'] }, 'program.value', /output y is not computed/],
    [
      'a weight of another shape',
      { dims: { m: 3, n: 3 } },
      'program.shape',
      /weight weight \(weight\): expected f32 \[3, 3\].*got f32 \[2, 2\]/,
    ],
    ['a weight of another storage type', { types: { T: 'f16' } }, 'program.shape', /expected f16 \[2, 2\].*got f32/],
    ['a dimension without a value', { dims: { m: 3 } }, 'graph.dim', /dimension n/],
  ])('refuses %s', async (_, changes, code, message) => {
    const { session } = await setUp()
    await expect(buildProgram(chain(session, changes))).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it('refuses an int8 matmul whose sums might overflow int32', async () => {
    const { graph: narrow } = graph('narrow', {
      inputs: { x: tensor('i8', 'm n') },
      weights: { weight: tensor('i8', 'p n') },
      build: (g, { x }, w) => {
        const product = g.matmul('m k, n k -> m n', x, w.weight)
        return { nodes: { product }, outputs: { product } }
      },
    })
    const n = 133_145
    const { device } = referenceDevice(manifest)
    const weight = { dtype: 'i8', shape: [2, n], data: new Uint8Array(2 * n) } as const
    const session = await openSession({
      device,
      library: referenceLibrary(manifest),
      manifest,
      layouts,
      weights: { weight },
    })
    const application = {
      label: 'narrow',
      graph: narrow,
      inputs: { x: 'x' },
      weights: { weight: 'weight' },
      outputs: { product: 'y' },
    }
    const config = { session, inputs: ['x'], outputs: ['y'], dims: { m: 3, n, p: 2 }, types: {} }
    await expect(buildProgram({ ...config, applications: [{ ...application, attrs: {} }] })).rejects.toMatchObject({
      code: 'matmul.terms',
      message: `narrow/product: sums of ${n} products of int8 may exceed int32`,
    })
  })

  it('refuses wires that are missing, dangling or doubled', async () => {
    const { session } = await setUp()
    const [first] = chain(session).applications
    if (first === undefined) throw new Error('no application')
    const build = (change: Partial<typeof first>) =>
      buildProgram(chain(session, { applications: [{ ...first, ...change }], outputs: [] }))
    await expect(build({ inputs: {} })).rejects.toMatchObject({ code: 'program.wire', message: 'block0: input x is not wired' })
    await expect(build({ weights: { weight: 'weight', bias: 'b' } })).rejects.toMatchObject({ code: 'program.weight' })
    await expect(build({ outputs: { y: 'x0' } })).rejects.toMatchObject({
      code: 'program.value',
      message: expect.stringContaining('already has a value'),
    })
  })

  it('refuses a library without a kernel it needs', async () => {
    const { session } = await setUp()
    const { library: all } = referenceLibrary(manifest)
    const library = loadedKernels({ ...all, kernels: all.kernels.filter(({ key }) => key !== 'add__f32') })
    await expect(buildProgram(chain({ ...session, library }))).rejects.toMatchObject({
      code: 'library.kernel',
      exitCode: 3,
      message: 'the simt kernel library has no kernel add__f32, which block0/y needs',
    })
  })
})
