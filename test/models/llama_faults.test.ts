/**
 * Known faults of LLaMA implementations, planted one by one into the bodies of the programs: the comparison with HF's logits must notice each.
 * Without a fault, the unchanged bodies compute HF's logits.
 */
import { exp, idiv, maximum, op, row, rsqrt, sqrt, sum, tensor } from 'heddle'
import { describe, expect, it } from 'vitest'
import { ops } from '../../specs/index.js'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import type { Op } from '../../src/lang/index.js'
import type { LlamaConfig } from '../../src/models/llama/config.js'
import { readLlamaConfig } from '../../src/models/llama/config.js'
import { passesOf, passInputs, passShape } from '../../src/models/llama/passes.js'
import { assemblePrompt, modelDims } from '../../src/models/llama/programs.js'
import { llamaWeights } from '../../src/models/llama/weights.js'
import { findPlan } from '../../src/program/plans.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { int8CacheTolerance, logitTolerance } from '../../src/verify/tolerance.js'
import { interpret } from './interpreter.js'
import { type FamilyName, farthest, folderOf, goldenOf } from './llama_host.js'

const floats = ['f32'] as const
/** Tokens that are read, in two passes, and the position whose logits are compared. */
const length = 16
const chunk = 11
const capacity = 20

interface Fault {
  readonly ops?: Readonly<Record<string, Op>>
  readonly config?: (config: LlamaConfig) => LlamaConfig
}

async function logitsOf(name: FamilyName, fault: Fault = {}): Promise<ArrayLike<number>> {
  const read = await readLlamaConfig(folderOf(name))
  const config = fault.config?.(read) ?? read
  const weights: Record<string, HostTensor> = {}
  for (const [at, weight] of Object.entries(llamaWeights(config, await openCheckpoint(folderOf(name)), 'f32', 'float32'))) {
    const { data, shape, dtype } = await inMemory(weight)
    weights[at] = { data: Array.from(decode(dtype, data) as ArrayLike<number>), shape }
  }
  const { compiled, wired } = assemblePrompt(config, findPlan('unfused', {}), 'logits')
  let caches: Record<string, HostTensor> = {}
  for (const key of Object.keys(compiled.states)) {
    const places = config.caches === 'int8' ? [config.kvHeads, capacity] : [capacity, config.kvHeads]
    const shape = [1, ...places, ...(key.includes('Steps') ? [] : [config.headDim])]
    caches[key] = { shape, data: new Float64Array(shape.reduce((a, b) => a * b, 1)) }
  }
  const ids = goldenOf(name).text.input_ids.slice(0, length)
  let logits: ArrayLike<number> = []
  for (const pass of passesOf([{ row: 0, first: 0, ids }], chunk)) {
    const extents = passShape(pass, chunk)
    const integers = {
      ...passInputs(pass, extents, 1),
      wanted: Int32Array.of((pass[0]?.ids.length ?? 0) - 1),
      targets: Int32Array.of(0),
    }
    const inputs = Object.fromEntries(
      Object.entries(integers).map(([key, data]) => [key, { data: Array.from(data), shape: [data.length] }]),
    )
    const sizes = { r: 1, u: capacity, t: extents.tokens, b: extents.sequences, s: extents.longest, k: 1 }
    const values = interpret(
      wired.applications,
      { ...inputs, ...caches },
      weights,
      { ...modelDims(config), ...sizes },
      { ...ops, ...fault.ops },
    )
    const next: Record<string, HostTensor> = {}
    for (const [state, { next: value = state }] of Object.entries(compiled.states)) {
      const found = values.get(value)
      if (found !== undefined) next[state] = found
    }
    caches = next
    logits = values.get(wired.outputs[0] ?? '')?.data ?? []
  }
  return logits
}

const distanceOf = async (name: FamilyName, fault?: Fault): Promise<number> => {
  const { text } = goldenOf(name)
  return farthest(await logitsOf(name, fault), text.logits[text.places.indexOf(length - 1)] ?? [])
}

/** Rotates element `partner` together with each, by the angle of position `place`. */
const rotation = (halves: boolean, place: (at: number) => number) =>
  op('rotate_halves', {
    dims: ['m', 'h', 'd', 'p', 'e'],
    types: { T: floats },
    inputs: { x: tensor('T', 'm h d'), places: tensor('i32', 'm'), cos: tensor('f32', 'p e'), sin: tensor('f32', 'p e') },
    outputs: { y: tensor('T', 'm h d') },
    body:
      ({ x, places, cos, sin }, { e }) =>
      (m, h, d) => {
        const first = halves ? d < e : d % 2 === 0
        const partner = halves ? (first ? d + e : d - e) : first ? d + 1 : d - 1
        const pair = halves ? d % e : idiv(d, 2)
        const at = place(places(m))
        return { y: x(m, h, d) * cos(at, pair) + (first ? -x(m, h, partner) : x(m, h, partner)) * sin(at, pair) }
      },
  })

const norm = (of: (squares: number, n: number, mean: number) => number, centred = false) =>
  op('rms_norm', {
    dims: ['m', 'n'],
    types: { T: floats },
    inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') },
    outputs: { y: tensor('T', 'm n') },
    attrs: { eps: 1e-5, offset: 0 },
    body:
      ({ x, gamma }, { n }) =>
      (m) => {
        const mean = centred ? sum(n, (c) => x(m, c)) / n : 0
        const squares = sum(n, (c) => (x(m, c) - mean) ** 2)
        return { y: row(n, (c) => (x(m, c) - mean) * of(squares, n, mean) * gamma(c)) }
      },
  })

const mask = (sees: (u: number, first: number, s: number) => boolean) =>
  op('mask_future', {
    dims: ['b', 'h', 's', 'u'],
    types: { T: floats },
    inputs: { x: tensor('T', 'b h s u'), first: tensor('i32', 'b') },
    outputs: { y: tensor('T', 'b h s u') },
    body:
      ({ x, first }) =>
      (b, h, s, u) => ({ y: sees(u, first(b), s) ? x(b, h, s, u) : -1e30 }),
  })

const append = (shift: number) =>
  op('append_tokens', {
    dims: ['r', 'u', 'g', 'd', 't', 'b'],
    types: { T: floats },
    inputs: {
      ...{ cache: tensor('T', 'r u g d', splitHeads), x: tensor('T', 't g d'), writers: tensor('i32', 'r') },
      ...{ starts: tensor('i32', 'b'), lengths: tensor('i32', 'b'), first: tensor('i32', 'b') },
    },
    outputs: { y: tensor('T', 'r u g d', splitHeads) },
    updates: { y: 'cache' },
    body:
      ({ cache, x, writers, starts, lengths, first }) =>
      (r, u, g, d) => {
        const sequence = maximum(writers(r), 0)
        const at = u - maximum(first(sequence) + shift, 0)
        const inside = writers(r) >= 0 && at >= 0 && at < lengths(sequence)
        return { y: inside ? x(inside ? starts(sequence) + at : 0, g, d) : cache(r, u, g, d) }
      },
  })

const heads = (of: (h: number, heads: number, shared: number) => number) =>
  op('past_heads', {
    dims: ['r', 'b', 'u', 'g', 'h', 'd'],
    types: { T: floats },
    inputs: { cache: tensor('T', 'r u g d', splitHeads), slots: tensor('i32', 'b') },
    outputs: { y: tensor('T', 'b u h d', splitHeads) },
    body:
      ({ cache, slots }, { g: shared, h: all }) =>
      (b, u, h, d) => ({ y: cache(slots(b), u, of(h, all, shared), d) }),
  })

const factor = (of: (factor: number) => number) =>
  op('scale', {
    dims: ['m', 'n'],
    types: { T: floats },
    inputs: { x: tensor('T', 'm n') },
    outputs: { y: tensor('T', 'm n') },
    attrs: { factor: 1 },
    body:
      ({ x }, { factor: given }) =>
      (m, c) => ({ y: x(m, c) * of(given) }),
  })

const gate = (swapped: boolean) =>
  op('swiglu', {
    dims: ['m', 'n'],
    types: { T: floats },
    inputs: { gate: tensor('T', 'm n'), up: tensor('T', 'm n') },
    outputs: { y: tensor('T', 'm n') },
    body:
      ({ gate: opened, up }) =>
      (m, c) => {
        const [a, b] = swapped ? [up(m, c), opened(m, c)] : [opened(m, c), up(m, c)]
        return { y: (a / (1 + exp(-a))) * b }
      },
  })

/** Values that attention reads from int8 caches, with the scales of their rows or with others. */
const inSteps = (of: (own: number, first: number) => number) =>
  op('past_heads_int8', {
    dims: ['r', 'b', 'u', 'g', 'h', 'd'],
    types: { T: floats },
    inputs: { cache: tensor('i8', 'r g u d'), steps: tensor('f32', 'r g u'), slots: tensor('i32', 'b') },
    outputs: { y: tensor('T', 'b u h d') },
    body:
      ({ cache, steps, slots }, { g: shared, h: heads }) =>
      (b, u, h, d) => {
        const head = idiv(h, idiv(heads, shared))
        return { y: cache(slots(b), head, u, d) * of(steps(slots(b), head, u), steps(0, 0, 0)) }
      },
  })
const int8Caches = (config: LlamaConfig): LlamaConfig => ({ ...config, caches: 'int8' })

const faults: readonly (readonly [string, FamilyName, Fault])[] = [
  ['places are ignored', 'smollm', { ops: { rotate_halves: rotation(true, () => 0) } }],
  ['the rotation begins anew in every pass', 'smollm', { ops: { rotate_halves: rotation(true, (at) => at % chunk) } }],
  ['pairs for halves', 'smollm', { ops: { rotate_halves: rotation(false, (at) => at) } }],
  ['a token does not attend itself', 'smollm', { ops: { mask_future: mask((u, first, s) => u < first + s) } }],
  ['a token attends the next', 'smollm', { ops: { mask_future: mask((u, first, s) => u <= first + s + 1) } }],
  ['places that hold nothing are attended', 'smollm', { ops: { mask_future: mask(() => true) } }],
  [
    'what was cached before is forgotten',
    'smollm',
    { ops: { mask_future: mask((u, first, s) => u >= first && u <= first + s) } },
  ],
  ['heads modulo for heads over the number that share', 'smollm', { ops: { past_heads: heads((h, _, shared) => h % shared) } }],
  ['scores without their scale', 'smollm', { ops: { scale: factor(() => 1) } }],
  ['eps outside of the root', 'smollm', { ops: { rms_norm: norm((squares, n) => 1 / (sqrt(squares / n) + 1e-3)) } }],
  ['the mean is subtracted', 'smollm', { ops: { rms_norm: norm((squares, n) => rsqrt(squares / n + 1e-6), true) } }],
  ['the last cached place is overwritten', 'smollm', { ops: { append_tokens: append(-1) } }],
  ['a place is left out', 'smollm', { ops: { append_tokens: append(1) } }],
  ['gate and up change places', 'smollm', { ops: { swiglu: gate(true) } }],
  [
    'the scaling of the rotation is ignored',
    'llama3',
    { config: (config) => ({ ...config, rotary: { ...config.rotary, type: 'default' } as LlamaConfig['rotary'] }) },
  ],
]

describe('bodies', () => {
  it.each(['smollm', 'llama3'] as const)('of %s give the logits of HF', async (name) => {
    expect(await distanceOf(name)).toBeLessThan(logitTolerance.relative)
  })
})

describe('caches in int8', () => {
  it.each(['smollm', 'llama3'] as const)('of %s move logits of HF by little, and by more than float32 errs', async (name) => {
    const found = await distanceOf(name, { config: int8Caches })
    expect(found).toBeLessThan(int8CacheTolerance.relative)
    expect(found).toBeGreaterThan(logitTolerance.relative)
  })

  it.each([
    ['steps are left out', inSteps(() => 1)],
    ['one step serves all rows', inSteps((_, first) => first)],
  ] as const)('%s: noticed', async (_, twin) => {
    const found = await distanceOf('smollm', { config: int8Caches, ops: { past_heads_int8: twin } })
    expect(found).toBeGreaterThan(int8CacheTolerance.relative)
  })
})

describe('planted faults are noticed', () => {
  it.each(faults)('%s', async (_, name, fault) => {
    expect(await distanceOf(name, fault)).toBeGreaterThan(logitTolerance.relative)
  })
})
