/** Opens the weights of a LLaMA-like model on a device: reads its files, checks them against the plan and the device, and uploads the tensors. */
import { layouts } from '../../../specs/index.js'
import { expectFloatType, type FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import type { ModelPlan } from '../../program/index.js'
import { defaultPlan, findPlan } from '../../program/plans.js'
import type { GraphApplication } from '../../runtime/application.js'
import { expectPlanTypes } from '../../runtime/plan_types.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { openSession, type Session } from '../../runtime/session.js'
import { anyGeneration } from '../decoding/generation_options.js'
import { expectInt8, multipliesInt8 } from '../parts/int8_device.js'
import { smoothed } from './calibration.js'
import type { LlamaConfig } from './config.js'
import type { LlamaOptions } from './llama_types.js'
import { openLlamaFiles } from './open_files.js'
import { assemblePrompt, assembleSteps, withCaches } from './programs.js'
import { llamaInt8, llamaWeights, type Rotation, ropeRangesOf, rotations, usualRotation } from './weights.js'

/** A model with its weights on a device. */
export interface OpenModel {
  readonly session: Session
  readonly config: LlamaConfig
  readonly plan: ModelPlan
  readonly dtype: FloatType
  readonly rotation: Rotation
}

/** @throws what `loadLlama` throws */
export async function openModel(dir: string, options: LlamaOptions): Promise<OpenModel> {
  const { device, library, manifest, dtype = 'f32', rotation = usualRotation, signal } = options
  const plan = findPlan(options.plan ?? defaultPlan, manifest.plans)
  expectFloatType(dtype)
  if (!rotations.includes(rotation)) {
    throw usageError('run.rotation', `unknown rotation ${JSON.stringify(rotation)}`, { hint: `known: ${rotations.join(', ')}` })
  }
  const { config: stored, checkpoint } = await openLlamaFiles(dir, signal)
  const config = withCaches(stored, options.caches ?? 'float', dtype)
  const weights = llamaWeights(config, checkpoint, dtype, rotation)
  const applications = applicationsOf(config, plan)
  if (multipliesInt8({ applications })) expectInt8(device.info(), plan.name)
  expectPlanTypes(plan.name, applications, { T: dtype }, manifest)
  // Int8 weights are made from the checkpoint's numbers, without rounding them to half precision first.
  const exact = dtype === 'f32' ? weights : llamaWeights(config, checkpoint, 'f32', rotation)
  const int8 = llamaInt8(config, checkpoint)
  const made =
    options.smooth === undefined
      ? { weights, exact }
      : await smoothed(config, { applications, plan: plan.name, dtype, ...options.smooth }, { weights, exact }, signal)
  const prepared = prepareWeights(applications, made.weights, layouts, made.exact, { stored: int8 })
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)
  return { session, config, plan, dtype, rotation }
}

/** Graph applications of all programs of a model: of prompts and steps, over the tables of each RoPE range. */
const applicationsOf = (config: LlamaConfig, plan: ModelPlan): GraphApplication[] =>
  ropeRangesOf(config).flatMap((ropeRange) => [
    ...assemblePrompt(config, plan, 'logits', ropeRange).wired.applications,
    ...assembleSteps(config, plan, anyGeneration, 1, ropeRange).wired.applications,
  ])
