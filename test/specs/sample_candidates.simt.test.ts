/** Draws among candidates: by definition, run by Node, and their frequencies on the simt device. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sampleCandidates } from '../../specs/ops/sample_candidates.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { uniform } from '../../src/ir/philox.js'
import { rankValues } from '../../src/ir/top_k.js'
import { runOp } from '../../src/lang/run.js'
import { chiSquare } from '../../src/verify/chi_square.js'
import { plain, probabilities, type Request } from '../../src/verify/probabilities.js'
import { type Host, launch, openKernels } from '../emit/host.js'
import { read } from '../frontend/refuse.js'
import { numbers, wordAt } from './sampling.js'

const k = 16

/** Candidates as `beam_candidates` leaves them: of each part the largest, largest first. */
function candidatesOf(logits: readonly number[], parts: number): { values: number[]; ids: number[] } {
  const length = Math.ceil(logits.length / parts)
  const ranked = Array.from({ length: parts }, (_, part) => {
    const own = logits.slice(part * length, (part + 1) * length)
    return { first: part * length, ...rankValues(k, own.length, (i) => own[i] ?? Number.NaN) }
  })
  return {
    values: ranked.flatMap(({ values }) => values),
    ids: ranked.flatMap(({ first, indices }) => indices.map((index) => (index < 0 ? -1 : first + index))),
  }
}

const scalar = (value: number): HostTensor => ({ shape: [1], data: [value] })

function draw(logits: readonly number[], request: Partial<Request>, seed: number, { parts = 1, step = 0 } = {}): number {
  const { temperature, topK, topP, minP } = { ...plain, ...request }
  const { values, ids } = candidatesOf(logits, parts)
  const inputs = {
    values: { shape: [1, values.length], data: values },
    ids: { shape: [1, parts, k], data: ids },
    temperature: scalar(temperature),
    count: scalar(topK),
    topP: scalar(topP),
    minP: scalar(minP),
    seedsLow: scalar(seed),
    seedsHigh: scalar(3),
    step: scalar(step),
    finished: scalar(0),
    limit: scalar(1000),
    ends: scalar(-1),
  }
  return runOp(sampleCandidates, inputs).words?.data[0] ?? Number.NaN
}

const reached = (logits: readonly number[], request: Partial<Request>): number[] =>
  [...new Set(Array.from({ length: 300 }, (_, seed) => draw(logits, request, seed)))].sort((a, b) => a - b)

describe('a word is drawn among candidates', () => {
  it('as its random number falls on those that remain, the likeliest first, whatever the parts', () => {
    const next = numbers(8)
    for (let round = 0; round < 300; round++) {
      const logits = Array.from({ length: 1 + Math.floor(next() * 40) }, () => 8 * next() - 4)
      const request: Request = {
        temperature: 0.3 + 2 * next(),
        topK: 1 + Math.floor(next() * k),
        topP: next() < 0.5 ? 1 : 0.05 + 0.9 * next(),
        minP: next() < 0.5 ? 0 : 0.5 * next(),
      }
      const step = Math.floor(next() * 100)
      const order = logits.map((_, id) => id).sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0))
      const chances = probabilities(logits, request)
      const place = wordAt(
        order.map((id) => chances[id] ?? 0),
        uniform(round, 3, step),
      )
      for (const parts of [1, 3]) {
        expect(draw(logits, request, round, { parts, step }), JSON.stringify({ logits, request })).toBe(order[place])
      }
    }
  })

  it('of exactly so many words, of equals those with the lowest ids', () => {
    expect(reached([1, 3, 2, 2, 0], { topK: 2 })).toEqual([1, 2])
    expect(reached([1, 1, 1], { topK: 1 })).toEqual([0])
    expect(reached([1, 3, 2, 2, 0], { topK: 1, temperature: 5 })).toEqual([1])
  })

  it('that always include the likeliest', () => {
    expect(reached([0, 1, 2], { topK: 3, topP: 1e-6 })).toEqual([2])
    expect(reached([0, 1, 2], { topK: 3, minP: 1 })).toEqual([2])
  })

  it('and never without probability', () => {
    expect(reached([Number.NEGATIVE_INFINITY, 0, Number.NEGATIVE_INFINITY], { topK: 3, temperature: 100 })).toEqual([1])
    expect(draw([Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY], { topK: 2 }, 1)).toBe(-1)
    expect(draw([0, Number.POSITIVE_INFINITY, 1], { topK: 2 }, 1)).toBe(-1)
    expect(draw([Number.NaN, Number.NaN], { topK: 1, topP: 0.5 }, 1), 'no logit is a number').toBe(-1)
  })
})

const sourceOf = (file: string): string => readFileSync(join(process.cwd(), 'specs/ops', file), 'utf8')
/** A copy that leaves out the last token that should remain. */
const wrong = sourceOf('sample_candidates.ts')
  .replace('i < count(r)', 'i < count(r) - 1')
  .replace("op('sample_candidates'", "op('sample_few'")
const files = {
  'ends.ts': sourceOf('ends.ts'),
  'sample.ts': sourceOf('sample.ts'),
  'sample_candidates.ts': sourceOf('sample_candidates.ts'),
  'wrong.ts': wrong,
}
const { kernels } = read(files)

function kernelNamed(name: string) {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}

describe('on simt', () => {
  let host: Host
  beforeAll(async () => {
    host = await openKernels(['sample_candidates', 'sample_few'].map(kernelNamed))
  })
  afterAll(() => host?.close())

  /** Tokens of rows that draw for one request with separate seeds. */
  async function drawn(name: string, logits: readonly number[], request: Request, rows: number): Promise<number[]> {
    const { values, ids } = candidatesOf(logits, 2)
    const n = values.length
    const given: Readonly<Record<string, (i: number) => number>> = {
      values: (i) => values[i % n] ?? 0,
      ids: (i) => ids[i % n] ?? 0,
      temperature: () => request.temperature,
      count: () => request.topK,
      topP: () => request.topP,
      minP: () => request.minP,
      seedsLow: (i) => i,
      seedsHigh: () => 20,
      step: () => 7,
      finished: () => 0,
      limit: () => 1000,
      ends: () => -1,
    }
    const made = (tensor: string) => given[tensor] ?? (() => Number.NaN)
    const dims = { r: rows, n, p: n / k, k, o: 1, e: 1 }
    const { outputs } = await launch(host, kernelNamed(name), host.entry(`${name}__k${k}`), dims, made)
    return Array.from(outputs[0]?.stored ?? [])
  }

  const vocab = 50
  const logits = Array.from({ length: vocab }, (_, i) => Math.fround(i === 20 ? 4 : Math.sin(i * 1.7) + i / 100))
  const request: Request = { temperature: 2, topK: 12, topP: Math.fround(0.9), minP: 0 }

  async function frequencies(name: string, asked: Request) {
    const counts = Array.from({ length: vocab }, () => 0)
    for (const word of await drawn(name, logits, asked, 20_000)) counts[word] = (counts[word] ?? 0) + 1
    return chiSquare(counts, probabilities(logits, asked))
  }

  it.each([
    ['top-k', { ...request, topP: 1 }],
    ['top-k and top-p', request],
    ['top-k and min-p', { ...request, topP: 1, minP: Math.fround(0.1) }],
  ])('words come as often as they should by %s', async (_, asked) => {
    expect(await frequencies('sample_candidates', asked)).toMatchObject({ passed: true })
  })

  it('that fail with one word less', async () => {
    expect(await frequencies('sample_few', { ...request, topP: 1 })).toMatchObject({ passed: false })
  })

  it('few rows draw the same as many', async () => {
    const many = await drawn('sample_candidates', logits, request, 700)
    expect(await drawn('sample_candidates', logits, request, 5)).toEqual(many.slice(0, 5))
  })
})
