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
import { expectPlanTypes } from '../../runtime/plan_types.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import type { Program } from '../../runtime/program.js'
import { openSession } from '../../runtime/session.js'
import { expectInt8, multipliesInt8 } from '../parts/int8_device.js'
import { expectOptions, type NamesOf } from '../parts/known_options.js'
import { expectTokens, type MaskedCase, withoutMasks } from '../parts/masks.js'
import { type BatchOptions, batchNames, type LoadedModel, type ModelOptions } from '../parts/options.js'
import { runQueue } from '../parts/run_queue.js'
import { checkCases, type TokenCase } from '../parts/token_cases.js'
import type { BatchShape } from '../parts/token_rows.js'
import { assembleBert, assemblePairs, bertWeights, embeddingNames, hasPooler, type Masking, weightMaxima } from './bert.js'
import { bertIdentity } from './calibration.js'
import { type BertConfig, readBertConfig } from './config.js'
import { formsOf, type PoolingOptions, poolingOf } from './encoder_forms.js'
import { encoderPrograms } from './encoder_programs.js'
import { type EncoderResult, embeddingOf, unpackOutputs } from './encoder_results.js'

export interface EncoderOptions extends ModelOptions {
  /** Scales of this model, needed by a quantised plan. */
  readonly scales?: Scales
  /**
   * FasterTransformer's arithmetic of masks, under `unfused` and the `ft-*` plans: `maskValue`, -10000 by default, is added to scores of
   * removed pairs, and `softmaxEps`, 1e-6 by default, to the denominator of the softmax. Undefined for that of Hugging Face.
   */
  readonly masking?: Partial<Masking> | undefined
  /** Padded lengths are rounded up to a multiple of this, so that fewer programs are built. 8 by default. */
  readonly seqStep?: number
  /** Number of cached programs. 16 by default. */
  readonly maxPrograms?: number
}

export { type PoolingOptions, poolings } from './encoder_forms.js'
export type { EncoderResult } from './encoder_results.js'

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
   * Embeds each case as one row, pooled on the device from the last layer's states without a classifier's own head. Tokens that no token
   * attends under a mask are not pooled. Serialised with runs.
   * @throws like `run`; usage `embed.pooling`
   */
  embed(cases: readonly TokenCase[], options?: EmbedOptions): Promise<Float32Array[]>
  /** The program of a shape, built if needed, masked by lengths or with a pair mask; for inspection and timing. */
  program(shape: BatchShape, form?: { readonly masked?: boolean }): Promise<Program>
}

/**
 * Loads a BERT model folder: `config.json`, and `model.safetensors` or its shards, which are streamed through host memory.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.unknown`, `plan.dtype`, `run.dtype`,
 * `run.scales`, `run.masking`, `scales.model`; environment `device.int8`; what the device rejects with
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
  const masking = options.masking === undefined ? undefined : maskingOf(options.masking)
  const assembly =
    masking === undefined
      ? assembleBert(config, plan, withPooler, scales?.layers)
      : assemblePairs(config, plan, withPooler, scales?.layers, masking)
  if (multipliesInt8(assembly)) expectInt8(device.info(), plan.name)
  expectPlanTypes(plan.name, assembly.applications, { T: dtype }, manifest)
  const maxima = weightMaxima(config, scales?.weights)
  const prepared = prepareWeights(assembly.applications, weights, layouts, exact, { maxima })
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)
  const programs = encoderPrograms({ config, dtype, session, seqStep, maxPrograms, captures: device.info().kind === 'cuda' })
  const forms = formsOf({ config, plan, withPooler, scales: scales?.layers, dtype, manifest, masking }, assembly)
  const batches: Batches = { config, nextRun: runQueue() }
  return {
    config,
    dtype,
    plan: plan.name,
    program: (shape, { masked = false } = {}) => programs.of(...(masked ? forms.pairs() : forms.plain), shape),
    async run(cases, given = {}) {
      expectOptions('run', batchNames, given)
      return inBatches(batches, cases, given, forms.of, async (batch, start) => {
        const { outputs, lengths, first } = await programs.run(...forms.of(batch), batch, given.signal)
        return lengths.map((length, index) =>
          unpackOutputs(config, outputs, { index, first: first[index] ?? 0, length }, `case ${start + index}`),
        )
      })
    },
    async embed(cases, given = {}) {
      expectOptions('embed', embedNames, given)
      const pooling = poolingOf(given)
      const check = (masked: readonly MaskedCase[]): void => {
        expectTokens(masked)
        forms.pooled(pooling, masked)
      }
      return inBatches(batches, cases, given, check, async (batch, start) => {
        const { outputs } = await programs.run(...forms.pooled(pooling, batch), batch, given.signal)
        return batch.map((_, index) => embeddingOf(config, outputs, index, `case ${start + index}`))
      })
    },
    release() {
      programs.release()
      session.release()
    },
  }
}

/** @throws usage `run.masking` for a mask value that is not below 0, or an epsilon below 0 */
function maskingOf({ maskValue = -10_000, softmaxEps = 1e-6 }: Partial<Masking>): Masking {
  const refuse = (name: string, value: number, expected: string): Error =>
    usageError('run.masking', `${name} is ${value}, expected a number ${expected}`)
  if (!(maskValue < 0 && maskValue >= -65_504)) throw refuse('maskValue', maskValue, 'below 0 and at least -65504')
  if (!(softmaxEps >= 0 && softmaxEps < 1)) throw refuse('softmaxEps', softmaxEps, 'from 0 to below 1')
  return { maskValue, softmaxEps }
}

interface Batches {
  readonly config: BertConfig
  /** Waits for earlier runs, and returns the function that lets the next run begin. */
  nextRun(): Promise<() => void>
}

/** Runs cases batch by batch. @param check of all cases, before anything runs */
async function inBatches<T>(
  { config, nextRun }: Batches,
  cases: readonly TokenCase[],
  { batch = 8, signal, progress }: BatchOptions,
  check: (cases: readonly MaskedCase[]) => void,
  run: (cases: readonly MaskedCase[], start: number) => Promise<T[]>,
): Promise<T[]> {
  const done = await nextRun()
  try {
    const masked = Array.isArray(cases) ? withoutMasks(cases) : []
    checkCases(config, Array.isArray(cases) ? masked.map(({ item }) => item) : cases, batch)
    check(masked)
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
