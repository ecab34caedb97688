/** Timed LLaMA-like model on a device under a plan, with random weights or those of its folder. */
import { layouts } from '../../../specs/index.js'
import type { FloatType } from '../../checkpoint/convert.js'
import type { Manifest } from '../../emit/manifest/manifest.js'
import { type Generation, resolveGeneration } from '../../models/decoding/generation_options.js'
import type { LlamaConfig } from '../../models/llama/config.js'
import { openLlamaFiles } from '../../models/llama/open_files.js'
import { assemblePrompt, assembleSteps } from '../../models/llama/programs.js'
import { llamaWeights, usualRotation } from '../../models/llama/weights.js'
import { expectInt8, multipliesInt8 } from '../../models/parts/int8_device.js'
import type { ModelPlan } from '../../program/index.js'
import { findPlan } from '../../program/plans.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import { expectPlanTypes } from '../../runtime/plan_types.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { hasInt8Weights } from '../../runtime/program_wiring.js'
import { openSession, type Session } from '../../runtime/session.js'
import { randomCheckpoint, randomInt8 } from './random_weights.js'
import type { Products } from './work.js'

export interface LlamaModelSource {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  readonly config: LlamaConfig
  readonly dtype: FloatType
  /** Folder of the weights; random weights by default. */
  readonly folder?: string | undefined
  readonly signal?: AbortSignal | undefined
}

export interface TimedModel {
  readonly plan: ModelPlan
  readonly products: Products
  readonly session: Session
  readonly loading: Loading
}

export interface Loading {
  /** Time from the checkpoint's header, or the first random number, to the last byte on the device. */
  readonly milliseconds: number
  readonly bytes: number
}

/** Greedy generation, with as many steps as there is room for. */
export const generationOf = ({ vocab, positions }: LlamaConfig, maxNewTokens: number): Generation =>
  resolveGeneration({ maxNewTokens }, { vocab, positions, cases: 1, endTokens: [] })

/** @throws usage `plan.*`; environment `device.int8`, `device.memory`; errors of reading weights; the signal's reason */
export async function openTimedModel(source: LlamaModelSource, planName: string): Promise<TimedModel> {
  const { device, library, manifest, config, dtype, folder, signal } = source
  const plan = findPlan(planName, manifest.plans)
  const began = performance.now()
  const applications = [
    ...assemblePrompt(config, plan, 'nothing').wired.applications,
    ...assembleSteps(config, plan, generationOf(config, 1), 1).wired.applications,
  ]
  if (multipliesInt8({ applications })) expectInt8(device.info(), plan.name)
  expectPlanTypes(plan.name, applications, { T: dtype }, manifest)
  const checkpoint = folder === undefined ? randomCheckpoint(config, dtype) : (await openLlamaFiles(folder, signal)).checkpoint
  const weights = llamaWeights(config, checkpoint, dtype, usualRotation)
  const exact = dtype === 'f32' ? weights : llamaWeights(config, checkpoint, 'f32', usualRotation)
  const made = prepareWeights(applications, weights, layouts, exact)
  const drawn = folder === undefined ? randomInt8(applications, made) : {}
  const session = await openSession({ device, library, manifest, layouts, weights: { ...made, ...drawn } }, signal)
  return {
    plan,
    products: !hasInt8Weights({ applications }) ? 'float' : multipliesInt8({ applications }) ? 'int8' : 'int8 weights',
    session,
    loading: { milliseconds: performance.now() - began, bytes: session.weightBytes },
  }
}
