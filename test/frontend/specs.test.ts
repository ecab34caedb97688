/** Every shipped op: its kernel in the interpreter yields exactly the results of its body in Node, on random small shapes. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { mapStmt, rewrite } from '../../src/ir/walk.js'
import { runOp } from '../../src/lang/run.js'
import type { Op } from '../../src/lang/types.js'

const root = process.cwd()
const { kernels } = readSpecsOrThrow({ root, specs: ['specs'] })
const ops = new Map<string, Op>()

const isOp = (value: unknown): value is Op =>
  typeof value === 'object' && value !== null && 'body' in value && 'inputs' in value && 'name' in value

beforeAll(async () => {
  const specs = join(root, 'specs')
  for (const file of readdirSync(specs, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))) {
    const module: Record<string, unknown> = await import(pathToFileURL(join(specs, file)).href)
    for (const value of Object.values(module)) if (isOp(value)) ops.set(value.name, value)
  }
})

/** Deterministic numbers in [0, 1). */
function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

const extents = [1, 2, 3, 5, 7]

type Extents = Readonly<Record<string, number>>

interface Case {
  readonly dims: Extents
  readonly inputs: Record<string, HostTensor>
}

/** As many candidates as ranked beams, or half of them. */
const candidates =
  (each: number) =>
  ({ p = 1, k = 1, ...dims }: Extents): Extents => {
    const w = Math.max(1, Math.floor(k / each))
    return { ...dims, p, k: Math.max(k, each * w), w, n: w * p * Math.max(k, each * w) }
  }

/** Extents that follow from others. */
const related: Readonly<Record<string, (dims: Extents) => Extents>> = {
  beam_rank: ({ p = 1, k = 1, ...dims }) => ({ ...dims, p, k, n: p * k }),
  beam_select: candidates(1),
  beam_select_diverse: ({ k = 1, ...dims }) => ({ ...dims, k, w: k, n: k * k }),
  beam_select_hf: candidates(2),
}

/** Random extents and data. Integers index the smallest dimension, or count up to it, so most reads through them stay inside. */
function draw(kernel: Kernel, seed: number): Case {
  const next = numbers(seed)
  const free = Object.fromEntries(kernel.dims.map((name) => [name, extents[Math.floor(next() * extents.length)] ?? 1]))
  const dims = related[kernel.name]?.(free) ?? free
  const smallest = Math.min(...Object.values(dims))
  const tensors = kernel.tensors.filter((tensor) => tensor.access === 'in')
  const inputs = tensors.map(({ name, dims: axes, dtype }): [string, HostTensor] => {
    const shape = axes.map((axis) => dims[axis] ?? 1)
    const least = kernel.facts?.inputs[name]?.from?.includes(1) ? 1 : 0
    const value = (): number => (dtype === 'i32' ? least + Math.floor(next() * smallest) : next() * 8 - 4)
    return [name, { data: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, value), shape }]
  })
  return { dims, inputs: Object.fromEntries(inputs) }
}

type Result = Record<string, { readonly data: ArrayLike<number> }> | 'outside'

/** Result of a run; an out-of-bounds read is a result too, which both sides must share. */
function attempt(run: () => Result): Result {
  try {
    return run()
  } catch (error) {
    if (error instanceof HeddleError && error.code === 'evaluate.bounds') return 'outside'
    throw error
  }
}

const interpret = (kernel: Kernel, { dims, inputs }: Case): Result => attempt(() => evaluateKernel(kernel, inputs, dims))

const opOf = (kernel: Kernel): Op => {
  const op = ops.get(kernel.name)
  if (op === undefined) throw new Error(`no spec exports ${kernel.name}`)
  return op
}

const draws = Array.from({ length: 40 }, (_, seed) => seed)

describe('shipped ops', () => {
  it('are all found', () => expect(kernels.map(({ name }) => name)).toEqual([...ops.keys()].sort()))
  it.each(kernels.map((kernel) => [kernel.name, kernel] as const))('%s', (_, kernel) => {
    let inside = 0
    for (const seed of draws) {
      const sample = draw(kernel, seed)
      const expected = attempt(() => runOp(opOf(kernel), sample.inputs, { dims: sample.dims }))
      expect(interpret(kernel, sample)).toEqual(expected)
      if (expected !== 'outside') inside++
    }
    expect(inside).toBeGreaterThan(draws.length / 4)
  })
  it('differ from a kernel with a planted fault', () => {
    const layerNorm = kernels.find(({ name }) => name === 'layer_norm')
    if (layerNorm === undefined) throw new Error('layer_norm is not shipped')
    const plant = (stmt: Kernel['body'][number]) =>
      mapStmt(stmt, (expr) =>
        rewrite(expr, (node) => (node.kind === 'call' && node.fn === 'rsqrt' ? { ...node, fn: 'sqrt' } : node)),
      )
    const sample = draw(layerNorm, 1)
    const expected = runOp(opOf(layerNorm), sample.inputs, { dims: sample.dims })
    expect(interpret(layerNorm, sample)).toEqual(expected)
    expect(interpret({ ...layerNorm, body: layerNorm.body.map(plant) }, sample)).not.toEqual(expected)
  })
})
