/**
 * Programs of LLaMA-like models, by configuration, method of choosing tokens and plan, and their sizes. The program that reads prompts and
 * the one that chooses tokens share weights and caches.
 */
import { type CacheType, cacheTypes } from '../../../specs/graphs/llama_caches.js'
import type { LlamaFlags } from '../../../specs/graphs/llama_layer.js'
import type { LlamaProgram } from '../../../specs/programs/llama.js'
import { type LlamaBeamsProgram, llamaBeams } from '../../../specs/programs/llama_beams.js'
import { type LlamaPromptProgram, llamaPrompt } from '../../../specs/programs/llama_prompt.js'
import { type LlamaStepProgram, llamaStep } from '../../../specs/programs/llama_step.js'
import { noProcessors } from '../../../specs/programs/processors.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import type { Program } from '../../ir/program.js'
import type { ModelPlan } from '../../program/index.js'
import { type Beams, candidatesOf, type Generation, type Sampling, stoppingOf } from '../decoding/generation_options.js'
import { forcedEnds, processorsOf } from '../decoding/logit_changes.js'
import { type Assembly, assemble } from '../parts/assembly.js'
import { type Given as GivenSettings, settingsOf } from '../parts/open_settings.js'
import type { LlamaConfig } from './config.js'
import { rotaryDims } from './rotary_config.js'
import { type RopeRange, weightTensors } from './weights.js'

/** Outputs of a prompt program. */
export type Given = LlamaPromptProgram['gives']

/**
 * Sets the type of the caches in a configuration. Float32 caches of a model in float32 are its `float` ones.
 * @param dtype storage type of the model
 * @throws usage `run.caches` for another type
 */
export function withCaches(config: LlamaConfig, caches: CacheType, dtype: FloatType): LlamaConfig {
  if (cacheTypes.includes(caches)) return { ...config, caches: caches === dtype ? 'float' : caches }
  throw usageError('run.caches', `unknown cache type ${JSON.stringify(caches)}`, { hint: `known: ${cacheTypes.join(', ')}` })
}

/** Variant of the model's layers, with or without its window. */
export const flagsOf = ({ outputBias, qkvBias, qkNorm, caches = 'float' }: LlamaConfig, window: boolean): LlamaFlags => ({
  bias: outputBias ? 'all' : qkvBias ? 'heads' : 'none',
  norm: qkNorm,
  window,
  caches,
})

/** Settings of a model's programs, all from its files. */
export function llamaSettings(config: LlamaConfig): LlamaProgram {
  const { layers, window = 1, windowLayers, eps, headDim } = config
  return {
    layers,
    ...flagsOf(config, false),
    window,
    windowLayers: windowLayers.flatMap((has, layer) => (has ? [layer] : [])),
    eps,
    scale: 1 / Math.sqrt(headDim),
  }
}

/** Sampling method of a step. */
function drawOf(choice: Sampling): LlamaStepProgram['choice'] {
  if (candidatesOf(choice) !== undefined) return 'sample_top'
  return choice.topK === 0 && choice.topP === 1 && choice.minP === 0 ? 'sample' : 'sample_narrowed'
}

/** Logit processors of a generation. */
const changing = (config: LlamaConfig, generation: Generation): LlamaStepProgram['processors'] => ({
  ...processorsOf(generation),
  banned: config.banned.length > 0,
})

export const promptProgram = (config: LlamaConfig, gives: Given): Program => llamaPrompt.of({ ...llamaSettings(config), gives })

/** Rule of a beam search. */
const ruleOf = ({ rule, lengthPenalty, earlyStopping, diversityRate }: Beams): LlamaBeamsProgram['rule'] =>
  rule === 'plain'
    ? { kind: 'plain', diversityRate }
    : { kind: 'hf', lengthPenalty, earlyStopping: stoppingOf[`${earlyStopping}`] }

export function stepProgram(config: LlamaConfig, generation: Generation, steps: number): Program {
  const { choice, maxNewTokens } = generation
  const common = { ...llamaSettings(config), steps, processors: changing(config, generation), losses: generation.logprobs }
  return choice.kind === 'beams'
    ? llamaBeams.of({ ...common, maxSteps: maxNewTokens, rule: ruleOf(choice) })
    : llamaStep.of({ ...common, choice: choice.kind === 'greedy' ? 'greedy' : drawOf(choice) })
}

/** A program of a model, with the settings that its files leave open. @throws usage `export.config` for other settings */
export function llamaProgram(
  name: 'llama_step' | 'llama_beams' | 'llama_prompt',
  config: LlamaConfig,
  given: GivenSettings,
): Program {
  const settings = llamaSettings(config)
  if (name === 'llama_prompt') return llamaPrompt.of({ ...settings, ...settingsOf(name, given, settings) })
  const banned = config.banned.length > 0
  if (name === 'llama_beams') {
    const { processors = noProcessors, ...open } = settingsOf(name, given, settings)
    return llamaBeams.of({ ...settings, ...open, processors: { ...processors, banned } })
  }
  const { processors = noProcessors, ...open } = settingsOf(name, given, settings)
  return llamaStep.of({ ...settings, ...open, processors: { ...processors, banned } })
}

/** The prompt program under a plan. @throws usage `plan.model` for a plan without the model's layers */
export const assemblePrompt = (config: LlamaConfig, plan: ModelPlan, gives: Given, ropeRange: RopeRange = 'short'): Assembly =>
  assemble(promptProgram(config, gives), plan, weightTensors(config, ropeRange))

/** `steps` steps under a plan. @throws usage `plan.model` for a plan without the model's layers */
export const assembleSteps = (
  config: LlamaConfig,
  plan: ModelPlan,
  generation: Generation,
  steps: number,
  ropeRange: RopeRange = 'short',
): Assembly => assemble(stepProgram(config, generation, steps), plan, weightTensors(config, ropeRange))

/** Extents of the dimensions that the model determines. */
export const modelDims = (config: LlamaConfig) => ({
  n: config.hidden,
  h: config.heads,
  g: config.kvHeads,
  d: config.headDim,
  i: config.inner,
  v: config.vocab,
  p: config.positions,
  e: rotaryDims(config.rotary, config.headDim) / 2,
})

/** Key of the states and steps of a generation. Two generations of one form differ only in initial values of states. */
export function formOf(generation: Generation): string {
  const { choice, maxNewTokens } = generation
  const changed = [processorsOf(generation), forcedEnds(generation), generation.logprobs]
  if (choice.kind === 'beams') return JSON.stringify([ruleOf(choice), choice.width, maxNewTokens, changed])
  return JSON.stringify(choice.kind === 'greedy' ? ['greedy', changed] : [drawOf(choice), candidatesOf(choice), changed])
}
