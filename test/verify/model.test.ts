import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FloatType } from '../../src/checkpoint/convert.js'
import { formatSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import type { Encoder } from '../../src/models/encoder/encoder_pipeline.js'
import { encode } from '../../src/runtime/buffer.js'
import { checkModel } from '../../src/verify/model.js'
import { argmax } from '../../src/verify/score.js'
import { modelTolerance } from '../../src/verify/tolerance.js'

const width = 3
const seq = 4
const lengths = [4, 2]
let dir: string

/** The logits of a token depend on its id alone. */
const logitsOf = (id: number): number[] => [1, id % 2, -(id % 3)].map((value, i) => value + (i === id % width ? 3 : 0))

function writeGolden(folder: string, tensors: Record<string, StoredTensor>): void {
  writeFileSync(join(folder, 'golden.safetensors'), formatSafetensors(Object.entries(tensors)))
}

const integers = (values: number[]): StoredTensor => ({
  dtype: 'I32',
  shape: [lengths.length, seq],
  data: encode('i32', Int32Array.from(values)),
})
const ids = [5, 6, 7, 8, 9, 10, 0, 0]
const mask = [1, 1, 1, 1, 1, 1, 0, 0]
// Values at padded positions must not matter: NaN would fail any comparison.
const expected = ids.flatMap((id, i) => (mask[i] === 1 ? logitsOf(id) : [Number.NaN, Number.NaN, Number.NaN]))
const logits: StoredTensor = { dtype: 'F32', shape: [2, seq, width], data: encode('f32', Float32Array.from(expected)) }

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'heddle-golden-'))
  writeGolden(dir, { input_ids: integers(ids), attention_mask: integers(mask), logits })
  const items = [{ input_ids: [5, 6, 7], labels: [5, 6, 7].map((id) => argmax(logitsOf(id))) }]
  writeFileSync(join(dir, 'test-set.json'), JSON.stringify({ float32: { f1: 1 }, items }))
})
afterAll(() => rmSync(dir, { recursive: true }))

/** An encoder that computes the golden function, changed by `distort`. */
function encoder(dtype: FloatType, distort: (value: number, at: number) => number = (value) => value): Encoder {
  return {
    config: { kind: 'token-classifier', layers: 4, labels: ['a', 'b', 'c'] } as unknown as Encoder['config'],
    dtype,
    plan: 'unfused',
    async run(cases) {
      return cases.map(({ inputIds }) => {
        const rows = inputIds.map((id, token) => Float32Array.from(logitsOf(id), (value, i) => distort(value, token * width + i)))
        return { kind: 'token-classifier' as const, labels: [], labelIds: rows.map(argmax), logits: rows }
      })
    },
    embed: () => Promise.reject(new Error('not part of the test')),
    program: () => Promise.reject(new Error('not part of the test')),
    release: () => {},
  }
}

const failed = async (subject: Encoder): Promise<string[]> =>
  (await checkModel(subject, dir, 'm')).flatMap(({ name, passed }) => (passed ? [] : [name]))

describe('checkModel', () => {
  it('passes a faithful model and ignores padding', async () => {
    const checks = await checkModel(encoder('f32'), dir, 'm')
    expect(checks.map(({ name }) => name)).toEqual([
      'm golden logits elements',
      'm golden logits relative L2',
      'm golden labels',
      'm F1',
    ])
    expect(checks.every(({ passed }) => passed)).toBe(true)
  })

  it('refuses one logit beyond the bound', async () => {
    const slip = 1.5 * modelTolerance('f32', 4).absolute
    expect(await failed(encoder('f32', (value, at) => (at === 3 ? value + slip : value)))).toContain('m golden logits elements')
  })

  it.each(['f32', 'f16', 'bf16'] as const)('refuses an error of all logits beyond the norm in %s', async (dtype) => {
    const { relativeL2 } = modelTolerance(dtype, 4)
    expect(await failed(encoder(dtype, (value) => value * (1 + 1.5 * relativeL2)))).toContain('m golden logits relative L2')
    expect(await failed(encoder(dtype, (value) => value * (1 + 0.5 * relativeL2)))).toEqual([])
  })

  it('refuses NaN in every numeric check', async () => {
    const names = await failed(encoder('bf16', (value, at) => (at === 1 ? Number.NaN : value)))
    expect(names).toEqual(expect.arrayContaining(['m golden logits elements', 'm golden logits relative L2']))
  })

  it('refuses wrong labels', async () => {
    expect(await failed(encoder('bf16', (value) => -value))).toEqual(expect.arrayContaining(['m golden labels', 'm F1']))
  })

  it('names a tensor that is missing, and a folder without goldens', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'heddle-golden-'))
    await expect(checkModel(encoder('f32'), folder, 'm')).rejects.toThrow('holds no golden*.safetensors')
    writeGolden(folder, { input_ids: integers(ids), attention_mask: integers(mask) })
    await expect(checkModel(encoder('f32'), folder, 'm')).rejects.toThrow('has no tensor logits')
    rmSync(folder, { recursive: true })
  })
})
