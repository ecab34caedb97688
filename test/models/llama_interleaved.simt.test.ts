/**
 * Heads that rotate pairs of neighbours: models of the test data, permuted to pairs, are with `rope_interleave` the same models as the originals,
 * and the body for pairs is that for halves over permuted channels.
 */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ops } from '../../specs/index.js'
import { formatSafetensors, readSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { runOp } from '../../src/lang/run.js'
import { type LlamaConfig, parseLlamaConfig } from '../../src/models/llama/config.js'
import { openLlamaFiles } from '../../src/models/llama/open_files.js'
import { withHeadsInHalves } from '../../src/models/llama/paired_heads.js'
import { rotaryDims } from '../../src/models/llama/rotary_config.js'
import { llamaInt8, llamaWeights } from '../../src/models/llama/weights.js'
import { wholeOf } from '../../src/runtime/weight.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { held } from './fixtures.js'
import { int8Checkpoint, packed, packedW8a16, smallQwen3, w8a8 } from './llama_fixtures.js'
import { type FamilyName, folderOf, goldenOf, withFields, withLlama } from './llama_host.js'

/** Index in pairs of channel `d` of a head in halves of `e`. */
const inPairs = (d: number, e: number): number => (d < e ? 2 * d : d < 2 * e ? 2 * (d - e) + 1 : d)

/** A tensor whose first heads are permuted to pairs, row by row. */
function paired(tensor: StoredTensor, heads: number, { headDim, rotary }: LlamaConfig): StoredTensor {
  const row = tensor.data.length / (tensor.shape[0] ?? 1)
  const data = tensor.data.slice()
  for (let head = 0; head < heads; head++) {
    for (let d = 0; d < headDim; d++) {
      const to = head * headDim + inPairs(d, rotaryDims(rotary, headDim) / 2)
      data.set(tensor.data.subarray((head * headDim + d) * row, (head * headDim + d + 1) * row), to * row)
    }
  }
  return { ...tensor, data }
}

/** Tensors with the queries and keys of a model in pairs. */
const allPaired = (tensors: ReadonlyMap<string, StoredTensor>, config: LlamaConfig): Map<string, StoredTensor> =>
  new Map(
    [...tensors].map(([name, tensor]) => {
      const { heads, kvHeads } = config
      const count = name.includes('qkv_proj')
        ? heads + kvHeads
        : name.includes('.q_proj')
          ? heads
          : name.includes('.k_proj')
            ? kvHeads
            : Number(/[qk]_norm/.test(name))
      return [name, name.endsWith('_shape') ? tensor : paired(tensor, count, config)]
    }),
  )

/** A copy of a model with interleaved pairs of rotated elements, and the setting for it. */
async function pairedFolder(name: FamilyName): Promise<string> {
  const dir = await withFields(name, { rope_interleave: true })
  const config = parseLlamaConfig(JSON.parse(await readFile(join(dir, 'config.json'), 'utf8')), name)
  const path = join(dir, 'model.safetensors')
  await writeFile(path, formatSafetensors(allPaired((await readSafetensors(path)).tensors, config)))
  return dir
}

describe('a model in pairs', () => {
  // Biases; norms of heads; queries, keys and values in one tensor.
  it.each(['qwen2', 'qwen3', 'phi3'] as const)('has the weights of %s in halves', async (name) => {
    const dir = await pairedFolder(name)
    try {
      const weights = async (folder: string) => {
        const { config, checkpoint } = await openLlamaFiles(folder)
        return held(llamaWeights(config, checkpoint, 'f32', 'float32'))
      }
      const [found, wanted] = [await weights(dir), await weights(folderOf(name))]
      for (const [tensor, { data }] of Object.entries(wanted))
        expect(Buffer.compare(found[tensor]?.data ?? Buffer.of(), data), tensor).toBe(0)
      await writeFile(join(dir, 'config.json'), await readFile(join(folderOf(name), 'config.json')))
      const other = await weights(dir)
      expect(
        Object.keys(wanted).some(
          (tensor) => Buffer.compare(other[tensor]?.data ?? Buffer.of(), wanted[tensor]?.data ?? Buffer.of()) !== 0,
        ),
      ).toBe(true)
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it.each([
    ['as it is', w8a8, () => {}],
    ['four integers to a word', packedW8a16, packed],
  ] as const)('has int8 and its steps, %s, in halves', async (_, quantization_config, pack) => {
    const json = { ...smallQwen3, quantization_config }
    const file = int8Checkpoint(json)
    pack(file)
    const config = parseLlamaConfig(json, 'config.json')
    const other = parseLlamaConfig({ ...json, rope_interleave: true }, 'config.json')
    const checkpoint = withHeadsInHalves({ tensors: allPaired(file.tensors, config) }, other)
    const ofInt8 = async (of: Parameters<typeof llamaInt8>[1]) =>
      Promise.all(
        Object.entries(llamaInt8(config, of)).flatMap(([name, { values, steps }]) =>
          [values, steps].map(async (each) => [
            name,
            Buffer.from('pieces' in each ? await wholeOf(each) : each.data).toString('hex'),
          ]),
        ),
      )
    expect(await ofInt8(checkpoint)).toEqual(await ofInt8(file))
    expect(await ofInt8({ tensors: allPaired(file.tensors, config) })).not.toEqual(await ofInt8(file))
  })

  it('has the words of Hugging Face under a plan that fuses', async () => {
    const dir = await pairedFolder('qwen3')
    try {
      const cases = goldenOf('qwen3').cases.slice(0, 2)
      await withLlama('qwen3', { dir, plan: 'best-llama' }, async (model) => {
        const found = await model.generate(
          cases.map(({ input_ids: inputIds }) => ({ inputIds })),
          { maxNewTokens: 6 },
        )
        expect(found.map(({ ids }) => ids)).toEqual(cases.map(({ greedy_ids: ids }) => ids.slice(0, 6)))
      })
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

it('the body of pairs is that of halves over channels in another order', () => {
  const [m, h, p] = [3, 2, 7]
  for (const [d, e] of [
    [6, 3],
    [8, 3],
    [2, 1],
  ] as const) {
    const at = (shape: readonly number[], value: (i: number) => number): HostTensor => ({
      shape: [...shape],
      data: Array.from({ length: shape.reduce((product, n) => product * n, 1) }, (_, i) => value(i)),
    })
    const shared = {
      places: at([m], (i) => (5 * i) % p),
      cos: at([p, e], (i) => Math.cos(i)),
      sin: at([p, e], (i) => Math.sin(i)),
    }
    const halves = at([m, h, d], (i) => ((i * 37) % 11) - 5)
    const pairs = at([m, h, d], () => 0)
    const place = (i: number): number => i - (i % d) + inPairs(i % d, e)
    const data = Array.from(pairs.data)
    for (const [i, value] of Array.from(halves.data).entries()) data[place(i)] = value
    const run = (name: string, x: HostTensor): readonly number[] => {
      const op = ops[name]
      if (op === undefined) throw new Error(`no op ${name}`)
      return Array.from(runOp(op, { x, ...shared }).y?.data ?? [])
    }
    const wanted = run('rotate_halves', halves)
    const found = run('rotate_pairs', { ...pairs, data })
    const rounding = tolerance({ dtype: 'f32', class: 'transcendental' })
    expect(
      compare(
        wanted.map((_, i) => found[place(i)] ?? Number.NaN),
        wanted,
        rounding,
      ).passed,
    ).toBe(true)
    expect(compare(found, wanted, rounding).passed).toBe(d === 2)
  }
})
