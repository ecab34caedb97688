/**
 * Calibration of a LLaMA-like model: the float model reads texts, and the largest magnitude of each channel is recorded for every
 * activation that a plan quantises per row. Smoothing derives its factors from these.
 */
import { layouts } from '../../../specs/index.js'
import type { FloatType } from '../../checkpoint/convert.js'
import type { Manifest } from '../../emit/manifest/manifest.js'
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import type { Graph, ScaleFolding } from '../../ir/graph.js'
import { findPlan } from '../../program/plans.js'
import {
  type ChannelMaxima,
  channelsOf,
  expectChannels,
  type ModelIdentity,
  modelIdentity,
  observeChannels,
  type Smoothing,
  smoothWeights,
  usualAlpha,
} from '../../quant/index.js'
import { decode } from '../../runtime/buffer.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { buildProgram } from '../../runtime/program.js'
import { stateDecls } from '../../runtime/program_wiring.js'
import { openSession } from '../../runtime/session.js'
import { openStates } from '../../runtime/states.js'
import type { Weight } from '../../runtime/weight.js'
import { statesOf } from '../parts/assembly.js'
import type { BatchOptions, ModelOptions } from '../parts/options.js'
import { checkCases, longestOf, type TokenCase } from '../parts/token_cases.js'
import type { LlamaConfig } from './config.js'
import { openLlamaFiles } from './open_files.js'
import { inputsOf, passesOf, passInputs } from './passes.js'
import { assemblePrompt, modelDims } from './programs.js'
import { llamaWeights, type Rotation, ropeRangeOf, usualRotation } from './weights.js'

/** Options of the float model and of its run over the cases. */
export interface LlamaCalibration extends Omit<ModelOptions, 'plan'>, Pick<BatchOptions, 'progress'> {
  readonly rotation?: Rotation | undefined
}

/** Tokens read per pass. */
const chunk = 512
/** Magnitudes from this value on represent values that are not finite; see `specs/ops/calibration.ts`. */
const notFinite = 2.9e38

/** Identity of a model, from its norms and first layer, on which every activation depends. Expects float32 weights. */
export function llamaIdentity(
  { layers, hidden, heads, inner }: LlamaConfig,
  weights: Readonly<Record<string, Weight>>,
  signal?: AbortSignal,
): Promise<ModelIdentity> {
  const deciding = Object.entries(weights).filter(([name]) => /^layers\.0\.|norm/.test(name))
  return modelIdentity({ layers, hidden, heads, inner }, Object.fromEntries(deciding), signal)
}

/**
 * Computes the largest magnitude of each channel over all cases.
 * @throws usage `run.*` for cases that the model cannot read, `calibrate.finite` naming an activation that is not finite,
 * `calibrate.plans` if no plan quantises rows of this model; what loading a model throws
 */
export async function calibrateLlama(
  dir: string,
  cases: readonly TokenCase[],
  { device, library, manifest, dtype = 'f32', rotation = usualRotation, signal, progress }: LlamaCalibration,
): Promise<ChannelMaxima> {
  const { config, checkpoint } = await openLlamaFiles(dir, signal)
  checkCases({ ...config, continued: true }, cases, 1)
  const exact = llamaWeights(config, checkpoint, 'f32', rotation)
  const assembly = assemblePrompt(config, findPlan('unfused'), 'nothing', ropeRangeOf(config, longestOf(cases)))
  const outputs: string[] = []
  const applications = assembly.wired.applications.map((application) => {
    const folds = foldsIn(manifest, application.graph)
    const observed = folds.map(({ value }): [string, string] => [channelsOf(value), `${application.label}.${value}`])
    outputs.push(...observed.map(([, name]) => name))
    return {
      ...application,
      graph: observeChannels(application.graph, folds),
      outputs: { ...application.outputs, ...Object.fromEntries(observed) },
    }
  })
  if (outputs.length === 0) throw usageError('calibrate.plans', `no plan quantises rows of models of type ${config.modelType}`)
  const weights = dtype === 'f32' ? exact : llamaWeights(config, checkpoint, dtype, rotation)
  const prepared = prepareWeights(applications, weights, layouts)
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)
  const maxima = new Map<string, Float32Array>()
  try {
    for (const [done, { inputIds }] of cases.entries()) {
      const dims = { ...modelDims(config), r: 1, u: inputIds.length, b: 1, k: 1 }
      const states = await openStates({ device, layouts }, stateDecls(assembly.compiled, { ...dims, t: 1, s: 1 }, { T: dtype }))
      try {
        for (const pass of passesOf([{ row: 0, first: 0, ids: inputIds }], chunk)) {
          signal?.throwIfAborted()
          const tokens = pass.reduce((sum, { ids }) => sum + ids.length, 0)
          const given = passInputs(pass, { tokens, sequences: 1, longest: tokens }, 1)
          const program = await buildProgram({
            ...{ session, applications, outputs, inputs: assembly.wired.inputs, types: { T: dtype } },
            ...{ states: statesOf(assembly, states), dims: { ...dims, t: tokens, s: tokens } },
          })
          const found = await program.run(inputsOf(program, given)).finally(() => program.release())
          for (const name of outputs) keep(maxima, name, decode('f32', found[name] ?? new Uint8Array()), dtype)
        }
      } finally {
        states.release()
      }
      progress?.(done + 1, cases.length)
    }
  } finally {
    session.release()
  }
  const tokens = cases.reduce((sum, { inputIds }) => sum + inputIds.length, 0)
  return {
    model: await llamaIdentity(config, exact, signal),
    calibration: { cases: cases.length, tokens, dtype },
    values: Object.fromEntries([...maxima].map(([name, values]) => [name, [...values]])),
  }
}

function keep(maxima: Map<string, Float32Array>, name: string, found: Float32Array, dtype: FloatType): void {
  const before = maxima.get(name)
  if (found.some((value) => !(value < notFinite))) {
    throw usageError('calibrate.finite', `${name}: an activation is not finite in ${dtype}`, {
      hint: 'calibrate with --dtype f32; if it happens there too, the weights are wrong',
    })
  }
  maxima.set(name, before === undefined ? found : before.map((value, i) => Math.max(value, found[i] ?? 0)))
}

/** Scale foldings of all plans in a graph, one per value. */
function foldsIn({ plans = {} }: Manifest, { name }: Graph): readonly ScaleFolding[] {
  const all = Object.values(plans).flatMap((graphs) => getOwn(graphs, name)?.folds ?? [])
  return all.filter(({ value }, i) => all.findIndex((other) => other.value === value) === i)
}

type Weights = Readonly<Record<string, Weight>>

/** Weights that absorb the outlier channels of activations. @throws usage `smooth.*`, `scales.model` */
export async function smoothed(
  config: LlamaConfig,
  { alpha = usualAlpha, ...given }: Omit<Smoothing, 'dims' | 'alpha'> & { readonly alpha?: number | undefined },
  { weights, exact }: { readonly weights: Weights; readonly exact: Weights },
  signal: AbortSignal | undefined,
): Promise<{ readonly weights: Weights; readonly exact: Weights }> {
  if (config.quantization !== undefined) {
    throw usageError('smooth.quantised', 'the weights are already int8, and smoothing would round them a second time', {
      hint: 'smooth the float model that they were made from',
    })
  }
  expectChannels(given.channels, await llamaIdentity(config, exact, signal))
  return smoothWeights({ ...given, alpha, dims: modelDims(config) }, weights, exact, signal)
}
