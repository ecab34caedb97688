/**
 * The encoder pipeline: a model folder becomes an object that runs batches of token sequences. Cases are batched in order and
 * padded; a program is built for each (batch, seq) shape, captured where the device can, and kept while shapes recur.
 */
import { join } from 'node:path'
import { layouts } from '../../../specs/index.js'
import { openModelCheckpoint } from '../../checkpoint/checkpoint.js'
import { expectFloatType } from '../../checkpoint/convert.js'
import { defaultPlan, findPlan } from '../../program/plans.js'
import { expectModel, type Scales } from '../../quant/scales.js'
import { abortable } from '../../runtime/abortable.js'
import { decode, encode } from '../../runtime/buffer.js'
import { packedRows } from '../../runtime/packed_rows.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { buildProgram, type Program } from '../../runtime/program.js'
import { openSession } from '../../runtime/session.js'
import { expectInt8, multipliesInt8 } from '../parts/int8_device.js'
import { expectOptions } from '../parts/known_options.js'
import { releasingCache } from '../parts/lru_cache.js'
import { noNumbers } from '../parts/no_numbers.js'
import { type BatchOptions, batchNames, type LoadedModel, type ModelOptions } from '../parts/options.js'
import { checkCases, longestOf, type TokenCase } from '../parts/token_cases.js'
import { type BatchShape, firstRows, idInputs, idRows } from '../parts/token_rows.js'
import { turns } from '../parts/turns.js'
import { assembleBert, bertDims, bertInputs, bertWeights, embeddingNames, hasPooler } from './bert.js'
import { bertIdentity } from './calibration.js'
import { type BertConfig, readBertConfig } from './config.js'

export interface EncoderOptions extends ModelOptions {
  /** Of this model; a quantised plan needs them. */
  readonly scales?: Scales
  /** Padded lengths are rounded up to a multiple of this, so that fewer programs are built. 8 by default. */
  readonly seqStep?: number
  /** How many programs are kept. 16 by default. */
  readonly maxPrograms?: number
}

/** One row per token of the case, padding left out; of a sequence classifier one for the case. */
export type EncoderResult =
  | {
      readonly kind: 'token-classifier'
      readonly labels: readonly string[]
      readonly labelIds: readonly number[]
      readonly logits: readonly Float32Array[]
    }
  | {
      readonly kind: 'sequence-classifier'
      readonly label: string
      readonly labelId: number
      readonly logits: readonly [Float32Array]
    }
  /** How likely an answer begins and ends at each token. */
  | { readonly kind: 'question-answering'; readonly begins: Float32Array; readonly ends: Float32Array }
  | { readonly kind: 'encoder'; readonly states: readonly Float32Array[]; readonly pooled: Float32Array | undefined }

export interface Encoder extends LoadedModel<BertConfig> {
  /**
   * Runs cases in order. Runs of one encoder follow each other; they never interleave.
   * @throws usage `run.batch`, `run.sequence`, `run.token` before anything runs; finding `run.value` for a result that holds NaN or an
   * infinity; the signal's reason when it aborts
   */
  run(cases: readonly TokenCase[], options?: BatchOptions): Promise<EncoderResult[]>
  /** The program of a shape, built if needed; for inspection and timing. */
  program(shape: BatchShape): Promise<Program>
}

/**
 * Loads a BERT model folder: `config.json`, and `model.safetensors` or its shards, which pass through host memory piece by piece.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.unknown`, `run.dtype`, `run.scales`, `scales.model`; environment `device.int8`; what the device rejects with
 */
export async function loadEncoder(dir: string, options: EncoderOptions): Promise<Encoder> {
  const { device, library, manifest, dtype = 'f32', seqStep = 8, maxPrograms = 16, scales, signal } = options
  const plan = findPlan(options.plan ?? defaultPlan, manifest.plans)
  expectFloatType(dtype)
  const config = await readBertConfig(join(dir, 'config.json'))
  const file = await openModelCheckpoint(dir, embeddingNames(config), signal)
  const weights = bertWeights(config, file, dtype)
  const exact = dtype === 'f32' ? weights : scales === undefined ? {} : bertWeights(config, file, 'f32')
  if (scales !== undefined) expectModel(scales, await bertIdentity(config, exact, signal), 'scales')
  const assembly = assembleBert(config, plan, hasPooler(config, weights), scales?.layers)
  if (multipliesInt8(assembly)) expectInt8(device.info(), plan.name)
  const prepared = prepareWeights(assembly.applications, weights, layouts, exact)
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)

  const captures = device.info().kind === 'cuda'
  const programs = releasingCache<Program>(maxPrograms)
  const program = (shape: BatchShape): Promise<Program> =>
    programs.get(`${shape.batch}x${shape.seq}x${shape.tokens}`, async () => {
      const built = await buildProgram({
        session,
        ...assembly,
        inputs: bertInputs,
        dims: bertDims(config, shape),
        types: { T: dtype },
      })
      if (captures) await built.capture()
      return built
    })

  async function runBatch(batch: readonly TokenCase[], start: number, signal: AbortSignal | undefined): Promise<EncoderResult[]> {
    const seq = Math.min(Math.ceil(longestOf(batch) / seqStep) * seqStep, config.positions)
    const sequences = batch.map(({ inputIds }) => inputIds)
    const types = batch.map(({ typeIds = [] }) => typeIds)
    const lengths = sequences.map(({ length }) => length)
    const tokens = packedRows(lengths, seq)
    const ready = await program({ batch: batch.length, seq, tokens })
    const rows = assembly.packed.inputs ? tokens : batch.length * seq
    const place = { seq, rows, packed: assembly.packed.inputs }
    // Rows without a token are masked by the lengths; what they hold only has to be a valid id.
    const inputs = {
      ...idInputs(sequences, { ...place, filler: Math.min(config.padToken, config.vocab - 1) }),
      typeIds: encode('i32', idRows(types, { ...place, filler: 0, lengths })),
    }
    const outputs = await abortable(ready, signal, () => ready.run(inputs))
    const first = firstRows(lengths, seq, assembly.packed.outputs)
    return lengths.map((length, index) =>
      unpackOutputs(config, outputs, { index, first: first[index] ?? 0, length }, `case ${start + index}`),
    )
  }

  const turn = turns()
  return {
    config,
    dtype,
    plan: plan.name,
    program,
    async run(cases, given = {}) {
      expectOptions('run', batchNames, given)
      const { batch = 8, signal, progress } = given
      const done = await turn()
      try {
        checkCases(config, cases, batch)
        const results: EncoderResult[] = []
        for (let start = 0; start < cases.length; start += batch) {
          signal?.throwIfAborted()
          results.push(...(await runBatch(cases.slice(start, start + batch), start, signal)))
          progress?.(results.length, cases.length)
        }
        return results
      } finally {
        done()
      }
    },
    release() {
      void programs.clear()
      session.release()
    },
  }
}

/** The rows of one case's valid tokens. @throws finding `run.value` for what is no number: the label of such a row would say nothing */
function unpackOutputs(
  config: BertConfig,
  outputs: Readonly<Record<string, Uint8Array>>,
  { index, first, length }: { readonly index: number; readonly first: number; readonly length: number },
  name: string,
): EncoderResult {
  const rows = (output: string, width: number, { from = first, count = length, what = output } = {}): Float32Array[] => {
    const values = decode('f32', outputs[output] ?? new Uint8Array()).subarray(from * width, (from + count) * width)
    const wrong = values.findIndex((value) => !Number.isFinite(value))
    if (wrong >= 0) throw noNumbers(`${name}: the ${what} of token ${Math.floor(wrong / width)} hold ${values[wrong]}`)
    return Array.from({ length: count }, (_, row) => values.slice(row * width, (row + 1) * width))
  }
  const labels = decode('i32', outputs.labels ?? new Uint8Array())
  const nameOf = (id: number): string => config.labels[id] ?? `LABEL_${id}`
  const { kind, classes, hidden } = config
  if (kind === 'sequence-classifier') {
    const labelId = labels[index] ?? 0
    const [logits = new Float32Array()] = rows('logits', classes, { from: index, count: 1 })
    return { kind, labelId, label: nameOf(labelId), logits: [logits] }
  }
  if (kind === 'question-answering') {
    const logits = rows('logits', classes)
    const column = (at: number): Float32Array => Float32Array.from(logits, (row) => row[at] ?? Number.NaN)
    return { kind, begins: column(0), ends: column(1) }
  }
  if (kind === 'token-classifier') {
    const labelIds = [...labels.subarray(first, first + length)]
    return { kind, labelIds, labels: labelIds.map(nameOf), logits: rows('logits', classes) }
  }
  const [pooled] = outputs.pooled === undefined ? [] : rows('pooled', hidden, { from: index, count: 1, what: 'pooled state' })
  return { kind, states: rows('states', hidden), pooled }
}
