/**
 * Whole-model checks against golden files: results of HF transformers in float32, and a labelled test set. Only tokens
 * that the attention mask marks valid are compared; the contents of padded positions are arbitrary.
 */
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { readSafetensors, type Safetensors } from '../checkpoint/safetensors.js'
import { usageError } from '../errors.js'
import type { Encoder, EncoderResult } from '../models/encoder/encoder_pipeline.js'
import { decode } from '../runtime/buffer.js'
import { compare, relativeL2 } from './compare.js'
import type { CheckResult } from './conformance.js'
import { argmax, microF1 } from './score.js'
import { modelTolerance } from './tolerance.js'

/** Inputs and expected rows of a golden file, without padding. */
interface Golden {
  readonly cases: readonly { readonly inputIds: number[] }[]
  readonly expected: Readonly<Record<string, Float32Array | undefined>>
  readonly width: (name: string) => number
}

function tensorOf(file: Safetensors, name: string, path: string) {
  const tensor = file.tensors.get(name)
  if (tensor === undefined) throw usageError('golden.tensor', `${path} has no tensor ${name}`)
  return tensor
}

/** @throws usage `golden.tensor` when a tensor is missing or of another type */
async function readGolden(path: string): Promise<Golden> {
  const file = await readSafetensors(path)
  const integers = (name: string): Int32Array => {
    const tensor = tensorOf(file, name, path)
    if (tensor.dtype !== 'I32') throw usageError('golden.tensor', `${path}: ${name} is ${tensor.dtype}, expected I32`)
    return decode('i32', tensor.data)
  }
  const [ids, mask] = [integers('input_ids'), integers('attention_mask')]
  const [batch = 0, seq = 0] = tensorOf(file, 'input_ids', path).shape
  const cases = Array.from({ length: batch }, (_, row) => {
    const length = mask.subarray(row * seq, (row + 1) * seq).reduce((sum, bit) => sum + bit, 0)
    return { inputIds: [...ids.subarray(row * seq, row * seq + length)] }
  })
  const width = (name: string): number => file.tensors.get(name)?.shape.at(-1) ?? 0
  const valid = (name: string): Float32Array | undefined => {
    const tensor = file.tensors.get(name)
    if (tensor === undefined) return undefined
    const [values, columns] = [decode('f32', tensor.data), width(name)]
    return concat(cases.map(({ inputIds }, row) => values.subarray(row * seq * columns, (row * seq + inputIds.length) * columns)))
  }
  return { cases, expected: { logits: valid('logits'), last_hidden_state: valid('last_hidden_state') }, width }
}

function concat(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((length, part) => length + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

const rowsOf = (result: EncoderResult): readonly Float32Array[] =>
  'states' in result ? result.states : 'logits' in result ? result.logits : [result.begins, result.ends]

const rootMeanSquare = (values: Float32Array): number =>
  Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / Math.max(values.length, 1))

/** Runs the inputs of one golden file as one batch, as in the file, and compares by element, by norm and by label. */
export async function checkGolden(encoder: Encoder, path: string, name: string): Promise<CheckResult[]> {
  const golden = await readGolden(path)
  const tensor = encoder.config.kind === 'token-classifier' ? 'logits' : 'last_hidden_state'
  const expected = golden.expected[tensor]
  if (expected === undefined) throw usageError('golden.tensor', `${path} has no tensor ${tensor}`)
  const results = await encoder.run(golden.cases, { batch: golden.cases.length })
  const actual = concat(results.flatMap(rowsOf))
  const bound = modelTolerance(encoder.dtype, encoder.config.layers, rootMeanSquare(expected))
  const elements = compare(actual, expected, { absolute: bound.absolute, relative: 0 })
  const norm = relativeL2(actual, expected)
  const checks: CheckResult[] = [
    { name: `${name} ${tensor} elements`, passed: elements.passed, detail: elements.summary },
    {
      name: `${name} ${tensor} relative L2`,
      passed: norm <= bound.relativeL2,
      detail: `${norm.toExponential(2)}, allowed ${bound.relativeL2.toExponential(2)}`,
    },
  ]
  if (tensor !== 'logits') return checks
  const width = golden.width(tensor)
  const tokens = expected.length / width
  const wanted = Array.from({ length: tokens }, (_, i) => argmax(expected.subarray(i * width, (i + 1) * width)))
  const found = results.flatMap((result) => (result.kind === 'token-classifier' ? result.labelIds : []))
  const differ = wanted.filter((label, i) => label !== found[i]).length
  const passed = found.length === tokens && differ <= bound.labelsDiffer * tokens
  return [...checks, { name: `${name} labels`, passed, detail: `${differ} of ${tokens} labels differ` }]
}

const testSetSchema = z.object({
  float32: z.object({ f1: z.number() }),
  items: z.array(z.object({ input_ids: z.array(z.number()), labels: z.array(z.number()) })),
})

/** A labelled set of token sequences. */
export const readTestSet = async (path: string): Promise<z.infer<typeof testSetSchema>> =>
  testSetSchema.parse(JSON.parse(await readFile(path, 'utf8')))

/** Runs a labelled set and compares its F1 score with the stated float32 one. */
export async function checkTestSet(
  encoder: Encoder,
  path: string,
  name: string,
  progress?: (done: number, total: number) => void,
): Promise<CheckResult> {
  const { items, float32 } = await readTestSet(path)
  const cases = items.map((item) => ({ inputIds: item.input_ids }))
  const results = await encoder.run(cases, { batch: 32, ...(progress === undefined ? {} : { progress }) })
  const predicted = results.flatMap((result) => (result.kind === 'token-classifier' ? result.labelIds : []))
  const score = microF1(
    predicted,
    items.flatMap((item) => item.labels),
  )
  const { f1 } = modelTolerance(encoder.dtype, encoder.config.layers)
  const passed = Math.abs(score - float32.f1) <= f1
  return { name: `${name} F1`, passed, detail: `${score.toFixed(5)}, float32 ${float32.f1.toFixed(5)}, allowed distance ${f1}` }
}

/**
 * Runs every check that a model folder allows: each `golden*.safetensors`, and `test-set.json` if it exists.
 * @throws usage `golden.missing` if it has neither
 */
export async function checkModel(
  encoder: Encoder,
  dir: string,
  name: string,
  progress?: (done: number, total: number) => void,
): Promise<CheckResult[]> {
  const goldens = (await readdir(dir)).filter((file) => /^golden.*\.safetensors$/.test(file)).sort()
  const testSet = join(dir, 'test-set.json')
  if (goldens.length === 0 && !existsSync(testSet)) {
    throw usageError('golden.missing', `${dir} holds no golden*.safetensors and no test-set.json`, {
      hint: 'test/peers/make_bert.py writes a model with goldens',
    })
  }
  const checks: CheckResult[] = []
  for (const file of goldens) {
    const results = await checkGolden(encoder, join(dir, file), `${name} ${file.replace('.safetensors', '')}`)
    checks.push(...results)
  }
  if (existsSync(testSet)) checks.push(await checkTestSet(encoder, testSet, name, progress))
  return checks
}
