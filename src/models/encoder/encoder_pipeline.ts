/**
 * Encoder pipeline: loads a model folder into an object that runs batches of token sequences in order, and embeds them.
 */
import { join } from 'node:path'
import { layouts } from '../../../specs/index.js'
import { openModelCheckpoint } from '../../checkpoint/checkpoint.js'
import { expectFloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { defaultPlan, findPlan } from '../../program/plans.js'
import { expectModel, type Scales } from '../../quant/scales.js'
import { decode } from '../../runtime/buffer.js'
import { expectPlanTypes } from '../../runtime/plan_types.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import type { Program } from '../../runtime/program.js'
import { openSession } from '../../runtime/session.js'
import { expectInt8, multipliesInt8 } from '../parts/int8_device.js'
import { expectOptions, type NamesOf } from '../parts/known_options.js'
import { noNumbers } from '../parts/no_numbers.js'
import { type BatchOptions, batchNames, type LoadedModel, type ModelOptions } from '../parts/options.js'
import { runQueue } from '../parts/run_queue.js'
import { checkCases, type TokenCase } from '../parts/token_cases.js'
import type { BatchShape } from '../parts/token_rows.js'
import {
  type Assembly,
  assembleBert,
  assemblePairs,
  assemblePooled,
  bertWeights,
  embeddingNames,
  hasPooler,
  type Pooling,
  weightMaxima,
} from './bert.js'
import { bertIdentity } from './calibration.js'
import { type BertConfig, readBertConfig } from './config.js'
import { encoderPrograms, type Outputs } from './encoder_programs.js'
import { expectNoPairs, type MaskedCase, withoutMasks } from './masks.js'

export interface EncoderOptions extends ModelOptions {
  /** Scales of this model, needed by a quantised plan. */
  readonly scales?: Scales
  /** Padded lengths are rounded up to a multiple of this, so that fewer programs are built. 8 by default. */
  readonly seqStep?: number
  /** Number of cached programs. 16 by default. */
  readonly maxPrograms?: number
}

/** One row per token of the case, without padding; for a sequence classifier, one row per case. */
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
  /** Logits of an answer beginning and ending at each token. */
  | { readonly kind: 'question-answering'; readonly begins: Float32Array; readonly ends: Float32Array }
  | { readonly kind: 'encoder'; readonly states: readonly Float32Array[]; readonly pooled: Float32Array | undefined }

/** Pooling methods of a sequence's token rows. */
export const poolings = ['mean', 'cls', 'last'] as const

export interface PoolingOptions {
  /** The mean of a sequence's tokens, its first token, or its last; the mean by default. Padding is excluded. */
  readonly pooling?: (typeof poolings)[number] | undefined
  /** True if embeddings are divided by their Euclidean length, so that dot products are cosines. */
  readonly normalize?: boolean | undefined
}

export interface EmbedOptions extends BatchOptions, PoolingOptions {}

export const embedNames: NamesOf<EmbedOptions> = { ...batchNames, pooling: true, normalize: true }

export interface Encoder extends LoadedModel<BertConfig> {
  /**
   * Runs cases in order. Runs of one encoder are serialised and never interleave.
   * @throws usage `run.batch`, `run.mask`, `run.sequence`, `run.token`, `plan.model` for a mask under a plan without masked layers, before
   * anything runs; finding `run.value` for a result that holds NaN or an infinity; the signal's reason when it aborts
   */
  run(cases: readonly TokenCase[], options?: BatchOptions): Promise<EncoderResult[]>
  /**
   * Embeds each case as one row, pooled on the device from the last layer's states without a classifier's own head. Serialised with
   * runs.
   * @throws like `run`; usage `embed.pooling`
   */
  embed(cases: readonly TokenCase[], options?: EmbedOptions): Promise<Float32Array[]>
  /** The program of a shape, built if needed, masked by lengths or with a pair mask; for inspection and timing. */
  program(shape: BatchShape, form?: { readonly masked?: boolean }): Promise<Program>
}

/**
 * Loads a BERT model folder: `config.json`, and `model.safetensors` or its shards, which are streamed through host memory.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.unknown`, `plan.dtype`, `run.dtype`,
 * `run.scales`, `scales.model`; environment `device.int8`; what the device rejects with
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
  const withPooler = hasPooler(config, weights)
  const assembly = assembleBert(config, plan, withPooler, scales?.layers)
  if (multipliesInt8(assembly)) expectInt8(device.info(), plan.name)
  expectPlanTypes(plan.name, assembly.applications, { T: dtype }, manifest)
  const maxima = weightMaxima(config, scales?.weights)
  const prepared = prepareWeights(assembly.applications, weights, layouts, exact, { maxima })
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)

  const programs = encoderPrograms({ config, dtype, session, seqStep, maxPrograms, captures: device.info().kind === 'cuda' })
  /** Assemblies by pooling; each has its own program over the same weights. */
  const pooled = new Map<string, Assembly>()
  const pooledBy = (pooling: Pooling): Assembly => {
    const name = nameOf(pooling)
    const known = pooled.get(name) ?? assemblePooled(config, plan, pooling, scales?.layers)
    pooled.set(name, known)
    return known
  }

  let pairs: Assembly | undefined
  /** Masked by lengths if no case of a batch has a pair mask. */
  const formOf = (batch: readonly MaskedCase[]): readonly [Assembly, string] =>
    batch.some((each) => each.pairs !== undefined) ? pairForm() : [assembly, '']
  const pairForm = (): readonly [Assembly, string] => {
    pairs ??= assemblePairs(config, plan, withPooler, scales?.layers)
    expectPlanTypes(plan.name, pairs.applications, { T: dtype }, manifest)
    return [pairs, 'pairs ']
  }

  const nextRun = runQueue()
  /** Runs cases batch by batch. */
  async function inBatches<T>(
    cases: readonly TokenCase[],
    { batch = 8, signal, progress }: BatchOptions,
    ready: (cases: readonly MaskedCase[]) => void,
    run: (cases: readonly MaskedCase[], start: number) => Promise<T[]>,
  ): Promise<T[]> {
    const done = await nextRun()
    try {
      const masked = Array.isArray(cases) ? withoutMasks(cases) : []
      checkCases(config, Array.isArray(cases) ? masked.map(({ item }) => item) : cases, batch)
      ready(masked)
      const results: T[] = []
      for (let start = 0; start < masked.length; start += batch) {
        signal?.throwIfAborted()
        results.push(...(await run(masked.slice(start, start + batch), start)))
        progress?.(results.length, masked.length)
      }
      return results
    } finally {
      done()
    }
  }

  return {
    config,
    dtype,
    plan: plan.name,
    program: (shape, { masked = false } = {}) => programs.of(...(masked ? pairForm() : ([assembly, ''] as const)), shape),
    async run(cases, given = {}) {
      expectOptions('run', batchNames, given)
      return inBatches(cases, given, formOf, async (batch, start) => {
        const { outputs, lengths, first } = await programs.run(...formOf(batch), batch, given.signal)
        return lengths.map((length, index) =>
          unpackOutputs(config, outputs, { index, first: first[index] ?? 0, length }, `case ${start + index}`),
        )
      })
    },
    async embed(cases, given = {}) {
      expectOptions('embed', embedNames, given)
      const pooling = poolingOf(given)
      return inBatches(cases, given, expectNoPairs, async (batch, start) => {
        const { outputs } = await programs.run(pooledBy(pooling), nameOf(pooling), batch, given.signal)
        return batch.map((_, index) => embeddingOf(config, outputs, index, `case ${start + index}`))
      })
    },
    release() {
      programs.release()
      session.release()
    },
  }
}

const heads = { mean: 'mean', cls: 'first', last: 'last' } as const
const nameOf = ({ head, normalize }: Pooling): string => `${head}${normalize ? ' of length one' : ''} `

/** @throws usage `embed.pooling` for an unknown method, which an untyped caller may pass */
function poolingOf({ pooling = 'mean', normalize = false }: PoolingOptions): Pooling {
  if (!poolings.includes(pooling)) {
    throw usageError('embed.pooling', `pooling is ${JSON.stringify(pooling)}, expected one of ${poolings.join(', ')}`)
  }
  return { head: heads[pooling], normalize }
}

/** The row of one case. @throws finding `run.value` for a value that is not finite */
function embeddingOf({ hidden }: BertConfig, outputs: Outputs, index: number, name: string): Float32Array {
  const row = decode('f32', outputs.embeddings ?? new Uint8Array()).slice(index * hidden, (index + 1) * hidden)
  const wrong = row.find((value) => !Number.isFinite(value))
  if (wrong !== undefined) throw noNumbers(`${name}: the embedding holds ${wrong}`)
  return row
}

/** The rows of one case's valid tokens. @throws finding `run.value` for a value that is not finite: such a row's label is meaningless */
function unpackOutputs(
  config: BertConfig,
  outputs: Outputs,
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
