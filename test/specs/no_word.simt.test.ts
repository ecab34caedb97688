/**
 * NaN logits on the simt device: no token is chosen, and the next step computes NaN when it looks one up. A copy of the embedding that treats such an
 * id as a token gives its numbers.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { type Host, launch, openKernels } from '../emit/host.js'
import { read } from '../frontend/refuse.js'

const sourceOf = (file: string): string => readFileSync(join(process.cwd(), 'specs/ops', file), 'utf8')
const embedding = sourceOf('embedding_lookup.ts')
/** The row of id 0 for ids below 0. */
const careless = embedding.replace(' + missing', '').replace("op('word_lookup'", "op('careless'")
const { kernels: all } = read({
  'ends.ts': sourceOf('ends.ts'),
  'sample.ts': sourceOf('sample.ts'),
  'embedding_lookup.ts': embedding,
  'careless.ts': careless,
})
const kernels = all.map((kernel): Kernel => ({ ...kernel, types: { T: ['f32'] } }))

let host: Host

beforeAll(async () => {
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

type Draw = (i: number) => number

async function run(name: string, dims: Readonly<Record<string, number>>, inputs: Readonly<Record<string, Draw>>) {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  const { outputs } = await launch(host, kernel, host.entry(`${name}__f32`), dims, (tensor) => inputs[tensor] ?? (() => 0))
  return outputs.map(({ stored }) => Array.from(stored))
}

describe('logits that are not numbers', () => {
  /** Rows: all NaN, one NaN, numbers, nothing but -Infinity, one Infinity. */
  const logits =
    (v: number): Draw =>
    (i) => {
      const [row, c] = [Math.floor(i / v), i % v]
      if (row === 0 || (row === 1 && c === v - 1)) return Number.NaN
      if (row === 4 && c === 3) return Number.POSITIVE_INFINITY
      return row === 3 ? Number.NEGATIVE_INFINITY : c === 4 ? 2 : 1
    }

  it.each(['greedy', 'sample'])('%s has no word for them, and ends the row', async (name) => {
    for (const v of [7, 300]) {
      const request = { temperature: () => 0.01, topP: () => 1, limit: () => 100, ends: () => -2 }
      const made = await run(name, { r: 5, v, o: 1, e: 1 }, { logits: logits(v), ...request })
      expect(made).toEqual([
        [-1, -1, 4, -1, -1],
        [1, 1, 0, 1, 1],
      ])
    }
  })

  it('without a word, its row is NaN', async () => {
    for (const n of [3, 64]) {
      const inputs = { ids: (i: number) => (i === 0 ? -1 : i), table: (i: number) => Math.floor(i / n) + 1 }
      const dims = { m: 3, n, v: 3 }
      const rows = (...values: number[]) => values.flatMap((value) => Array.from({ length: n }, () => value))
      expect(await run('word_lookup', dims, inputs)).toEqual([rows(Number.NaN, 2, 3)])
      expect(await run('careless', dims, inputs)).toEqual([rows(1, 2, 3)])
    }
  })
})
