/**
 * Faults of steps, of beams and of int8 rows, planted into bodies or states: the results must differ from the right ones. Together with
 * llama_faults.test.ts these are the known faults of implementations of LLaMA-like models. The test that notices each, by its name there or here:
 *
 *   places ignored                    llama_faults: 'places are ignored'
 *   places off by one                 llama_faults: 'the last cached place is overwritten', 'a place is left out', 'the rotation begins anew in every pass'
 *   pairs for halves                  llama_faults: 'pairs for halves'
 *   < for <= in the mask              llama_faults: 'a token does not attend itself'
 *   heads modulo                      llama_faults: 'heads modulo for heads over the number that share'
 *   no 1/sqrt(d)                      llama_faults: 'scores without their scale'
 *   eps outside of the root           llama_faults: 'eps outside of the root'
 *   mean subtracted                   llama_faults: 'the mean is subtracted'
 *   last place overwritten            llama_faults: 'the last cached place is overwritten'
 *   padding attended                  llama_faults: 'places that hold nothing are attended'
 *   llama3's scaling ignored          llama_faults: 'the scaling of the rotation is ignored'
 *   absmax 0 of a row                 here: 'a row of zeros has a step of 0, and is not divided by it'
 *   store of a shared head raced      here: 'every head of keys is stored from its own, not by each head of queries that shares it'; that no two
 *                                     threads of the kernels write one element is checked by llama_plans.simt, whose twin is
 *                                     native/simt.simt: 'two threads that write one element of an output are found on request'
 *   prompt of beams not shared        here: 'beams that read a prompt in their own caches'
 *   only the first end id             here: 'only the first end id ends a text'
 *   finished rows go on               here: 'a row that has ended goes on to the next place'
 */
import { abs, idiv, max, op, row, tensor } from 'heddle'
import { quantizeRows, toInt8 } from 'heddle/std'
import { beforeAll, describe, expect, it } from 'vitest'
import { ops } from '../../specs/index.js'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import type { Op } from '../../src/lang/index.js'
import { runOp } from '../../src/lang/run.js'
import { beamSizes } from '../../src/models/decoding/beam_search.js'
import { type Generation, resolveGeneration } from '../../src/models/decoding/generation_options.js'
import { type LlamaConfig, readLlamaConfig } from '../../src/models/llama/config.js'
import { passesOf, passInputs, passShape } from '../../src/models/llama/passes.js'
import { assemblePrompt, assembleSteps, modelDims } from '../../src/models/llama/programs.js'
import { startStates } from '../../src/models/llama/start.js'
import { llamaWeights } from '../../src/models/llama/weights.js'
import { findPlan } from '../../src/program/plans.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { logitTolerance } from '../../src/verify/tolerance.js'
import { interpret } from './interpreter.js'
import { farthest, folderOf, goldenOf } from './llama_host.js'

type States = Record<string, HostTensor>

const plan = findPlan('unfused', {})
const capacity = 16
const { text } = goldenOf('smollm')
/** The first is the longest: the place after the end of the second belongs to the other. */
const prompts = [text.input_ids.slice(0, 9), text.input_ids.slice(20, 24)]

let config: LlamaConfig
let weights: Record<string, HostTensor>
beforeAll(async () => {
  config = await readLlamaConfig(folderOf('smollm'))
  weights = {}
  for (const [at, weight] of Object.entries(llamaWeights(config, await openCheckpoint(folderOf('smollm')), 'f32', 'float32'))) {
    const { data, shape, dtype } = await inMemory(weight)
    weights[at] = { data: Array.from(decode(dtype, data) as ArrayLike<number>), shape }
  }
})

const generationOf = (options: Parameters<typeof resolveGeneration>[0]): Generation =>
  resolveGeneration(options, { vocab: config.vocab, positions: config.positions, cases: 2, endTokens: config.eos })

/** Caches of which rows `width` apart hold the prompts, all but their last tokens. */
function promptCaches(width: number): States {
  const { compiled, wired } = assemblePrompt(config, plan, 'nothing')
  const rows = prompts.length * width
  const shape = [rows, capacity, config.kvHeads, config.headDim]
  let caches: States = {}
  for (const name of Object.keys(compiled.states)) {
    caches[name] = { shape, data: new Float64Array(shape.reduce((a, b) => a * b, 1)) }
  }
  for (const pass of passesOf(
    prompts.map((ids, i) => ({ row: i * width, first: 0, ids: ids.slice(0, -1) })),
    16,
  )) {
    const extents = passShape(pass, 16)
    const given = { ...passInputs(pass, extents, rows), wanted: new Int32Array(1), targets: new Int32Array(1) }
    const inputs = Object.fromEntries(
      Object.entries(given).map(([key, data]) => [key, { data: Array.from(data), shape: [data.length] }]),
    )
    const dims = { ...modelDims(config), r: rows, u: capacity, t: extents.tokens, b: extents.sequences, s: extents.longest, k: 1 }
    const values = interpret(wired.applications, { ...inputs, ...caches }, weights, dims)
    caches = nextOf(compiled.states, values, caches)
  }
  return caches
}

/** Tensors after a run of a program. */
const nextOf = (
  states: Readonly<Record<string, { readonly next?: string | undefined }>>,
  values: ReadonlyMap<string, HostTensor>,
  before: States,
): States =>
  Object.fromEntries(
    Object.entries(states).flatMap(([name, { next }]) => {
      const found = (next === undefined ? undefined : values.get(next)) ?? before[name]
      return found === undefined ? [] : [[name, found]]
    }),
  )

interface Setting {
  readonly ends?: readonly number[]
  /** Words that are never chosen. */
  readonly banned?: readonly number[]
  /** Bodies in the place of others. */
  readonly registry?: Readonly<Record<string, Op>>
  /** Changes states before the first step. */
  readonly change?: (states: States) => void
}

const steps = 3

/** States after some steps following the prompts. */
function stepped(
  generation: Generation,
  { ends = config.eos, banned = [], registry = {}, change = () => {} }: Setting = {},
): States {
  const { choice } = generation
  const width = choice.kind === 'beams' ? choice.width : 1
  const rows = prompts.length * width
  const { compiled, wired } = assembleSteps({ ...config, banned }, plan, generation, 1)
  const start = startStates(
    { ...config, banned, eos: ends },
    generation,
    { rows, width, capacity, steps },
    { prompts, cases: [0, 1] },
  )
  const shapes: Readonly<Record<string, readonly number[]>> = { beams: [rows, capacity] }
  let states: States = {
    ...promptCaches(width),
    ...Object.fromEntries(
      Object.entries(start).map(([name, data]) => [
        name,
        { data: Array.from(data), shape: [...(shapes[name] ?? [data.length])] },
      ]),
    ),
  }
  for (const name of ['history', 'parents']) states[name] = { data: new Array(steps * rows).fill(-1), shape: [steps, rows] }
  change(states)
  const sized =
    choice.kind === 'beams'
      ? (({ p, k }) => ({ q: p, k, b: prompts.length, w: width }))(
          beamSizes({ ...choice, vocab: config.vocab, ends: ends.length }),
        )
      : { r: rows, q: Math.ceil(config.vocab / 1024) }
  const dims = { ...modelDims(config), ...sized, u: capacity, s: steps, f: ends.length, x: banned.length }
  for (let step = 0; step < steps; step++) {
    const values = interpret(wired.applications, states, weights, dims, { ...ops, ...registry })
    states = nextOf(compiled.states, values, states)
  }
  return states
}

const integers = (states: States, name: string): number[] => Array.from(states[name]?.data ?? [])
const greedy = () => generationOf({ maxNewTokens: steps })
/** The choice of each row, step by step. */
const wordsOf = (states: States, row: number): number[] =>
  integers(states, 'history').filter((_, at) => at % prompts.length === row)

describe('steps', () => {
  /** The row whose first word is an end id continues with the first end id. */
  const ending = () => {
    const first = wordsOf(stepped(greedy()), 0)[0] ?? 0
    const unused = [...Array(config.vocab).keys()].find((id) => !integers(stepped(greedy()), 'history').includes(id)) ?? 0
    return { first, ends: [unused, first] }
  }

  it('only the first end id ends a text: noticed by the row that comes to another', () => {
    const { ends } = ending()
    expect(integers(stepped(greedy(), { ends }), 'finished').slice(0, 1)).toEqual([1])
    const onlyFirst = (states: States): void => {
      states.ends = { data: [ends[0] ?? 0, ends[0] ?? 0], shape: [2] }
    }
    const generation = generationOf({ maxNewTokens: steps + 1 })
    expect(integers(stepped(generation, { ends }), 'finished')[0]).toBe(1)
    expect(integers(stepped(generation, { ends, change: onlyFirst }), 'finished')[0]).toBe(0)
  })

  it('a row that has ended goes on to the next place: noticed by where it stands', () => {
    const { ends } = ending()
    const wanted = [(prompts[0]?.length ?? 0) - 1 + 1, (prompts[1]?.length ?? 0) - 1 + steps]
    expect(integers(stepped(greedy(), { ends }), 'places')).toEqual(wanted)
    const always = op('next_places', {
      dims: ['r'],
      inputs: { places: tensor('i32', 'r'), finished: tensor('i32', 'r') },
      outputs: { y: tensor('i32', 'r') },
      body:
        ({ places }) =>
        (r) => ({ y: places(r) + 1 }),
    })
    expect(integers(stepped(greedy(), { ends, registry: { next_places: always } }), 'places')).not.toEqual(wanted)
  })

  it('every head of keys is stored from its own, not by each head of queries that shares it: noticed by what is chosen from', () => {
    const right = stepped(greedy())
    // Result of the last of several racing heads, if query heads were used as key heads.
    const raced = op('append_places', {
      dims: ['r', 'u', 'g', 'd'],
      types: { T: ['f32'] },
      inputs: { cache: tensor('T', 'r u g d', splitHeads), x: tensor('T', 'r g d'), places: tensor('i32', 'r') },
      outputs: { y: tensor('T', 'r u g d', splitHeads) },
      updates: { y: 'cache' },
      body:
        ({ cache, x, places }, { g: heads }) =>
        (r, u, g, d) => ({ y: u === places(r) ? x(r, idiv(g * heads + heads - 1, heads * heads), d) : cache(r, u, g, d) }),
    })
    const wrong = stepped(greedy(), { registry: { append_places: raced } })
    expect(farthest(wrong.keys1?.data ?? [], Array.from(right.keys1?.data ?? []))).toBeGreaterThan(logitTolerance.relative)
  })
})

it('words that are banned are never chosen, by no row and in no step', () => {
  const words = integers(stepped(greedy()), 'history')
  const banned = [...new Set(words)]
  const others = integers(stepped(greedy(), { banned }), 'history')
  expect(others).toHaveLength(words.length)
  expect(others.filter((id) => id < 0 || banned.includes(id))).toEqual([])
})

describe('beams', () => {
  const searched = () => generationOf({ beams: 2, maxNewTokens: steps })

  it('beams that read a prompt in their own caches: noticed by what they are worth', () => {
    const shared = integers(stepped(searched()), 'cumulative')
    const longest = (prompts[0]?.length ?? 0) - 1
    const registry = {
      follow_parents: op('follow_parents', {
        dims: ['r', 's', 'o'],
        inputs: { beams: tensor('i32', 'r s'), parents: tensor('i32', 'r'), step: tensor('i32', 'o') },
        outputs: { y: tensor('i32', 'r s') },
        body:
          ({ beams, parents, step }) =>
          (r, s) => ({ y: s >= longest && s <= step(0) ? beams(parents(r), s) : r }),
      }),
    }
    // Caches that all hold the prompt are as good as one that is shared.
    const change = (states: States): void => {
      for (const [name, { data, shape }] of Object.entries(states)) {
        if (!/^(keys|values)\d/.test(name)) continue
        const each = data.length / (shape[0] ?? 1)
        const values = Array.from(data)
        states[name] = { shape, data: values.map((_, at) => values[at - (at % (2 * each)) + (at % each)] ?? 0) }
      }
    }
    const copied = integers(stepped(searched(), { change, registry }), 'cumulative')
    expect(farthest(copied, shared)).toBeLessThan(logitTolerance.relative)
    const alone = integers(stepped(searched(), { registry }), 'cumulative')
    expect(farthest(alone, shared)).toBeGreaterThan(logitTolerance.relative)
  })
})

describe('int8 rows', () => {
  const x: HostTensor = { data: [0, 0, 0, 1, -2, 0.5], shape: [2, 3] }
  const dims = { m: 2, n: 3 }

  it('a row of zeros has a step of 0, and is not divided by it', () => {
    const { y, steps: found } = runOp(quantizeRows, { x }, { attrs: {}, dims })
    expect([Array.from(y?.data ?? []), found?.data[0]]).toEqual([[0, 0, 0, 64, -127, 32], 0])
    const divided = op('quantize_rows', {
      dims: ['m', 'n'],
      types: { T: ['f32'] },
      inputs: { x: tensor('T', 'm n') },
      outputs: { y: tensor('f32', 'm n') },
      body:
        ({ x: given }, { n }) =>
        (m) => {
          const largest = max(n, (c) => abs(given(m, c)))
          return { y: row(n, (c) => given(m, c) * (127 / largest)) }
        },
    })
    expect(Array.from(runOp(divided, { x }, { attrs: {}, dims }).y?.data ?? []).slice(0, 3)).toEqual([
      Number.NaN,
      Number.NaN,
      Number.NaN,
    ])
    expect(toInt8(63.5)).toBe(64)
  })
})
