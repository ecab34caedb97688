/**
 * LLaMA-like models as programs: which programs a configuration and a way of choosing words are, under a plan, and their sizes. The program
 * that reads prompts and the one that chooses words are over the same weights and caches.
 */
import type { LlamaFlags } from '../../../specs/graphs/llama_layer.js'
import type { LlamaProgram } from '../../../specs/programs/llama.js'
import { type LlamaBeamsProgram, llamaBeams } from '../../../specs/programs/llama_beams.js'
import { type LlamaPromptProgram, llamaPrompt } from '../../../specs/programs/llama_prompt.js'
import { type LlamaStepProgram, llamaStep } from '../../../specs/programs/llama_step.js'
import { noProcessors } from '../../../specs/programs/processors.js'
import { usageError } from '../../errors.js'
import type { Program } from '../../ir/program.js'
import type { ModelPlan } from '../../program/index.js'
import { type Beams, candidatesOf, type Generation, type Sampling, stoppingOf } from '../decoding/generation_options.js'
import { forcedEnds, processorsOf } from '../decoding/logit_changes.js'
import { type Assembly, assemble } from '../parts/assembly.js'
import { type Given as GivenSettings, settingsOf } from '../parts/open_settings.js'
import type { LlamaConfig } from './config.js'
import { rotaryDims } from './rotary_config.js'
import { type Reach, weightTensors } from './weights.js'

/** What a program over prompts gives. */
export type Given = LlamaPromptProgram['gives']

/** How keys and values are cached: in the model's storage type, or as int8 with a step for each row, head and place. */
export const cacheTypes = ['float', 'int8'] as const
export type CacheType = (typeof cacheTypes)[number]

/** The configuration of a model whose caches are of a type. @throws usage `run.caches` for another type */
export function withCaches(config: LlamaConfig, caches: CacheType): LlamaConfig {
  if (cacheTypes.includes(caches)) return { ...config, int8Caches: caches === 'int8' }
  throw usageError('run.caches', `unknown type of caches ${JSON.stringify(caches)}`, { hint: `known: ${cacheTypes.join(', ')}` })
}

/** What sets the model's layers apart, of those that have its window or not. */
export const flagsOf = ({ outputBias, qkvBias, qkNorm, int8Caches = false }: LlamaConfig, window: boolean): LlamaFlags => ({
  bias: outputBias ? 'all' : qkvBias ? 'heads' : 'none',
  norm: qkNorm,
  window,
  int8Caches,
})

/** What a model's files say of its programs. */
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

/** What a step draws from. */
function drawOf(choice: Sampling): LlamaStepProgram['choice'] {
  if (candidatesOf(choice) !== undefined) return 'sample_top'
  return choice.topK === 0 && choice.topP === 1 && choice.minP === 0 ? 'sample' : 'sample_narrowed'
}

/** What changes logits. */
const changing = (config: LlamaConfig, generation: Generation): LlamaStepProgram['processors'] => ({
  ...processorsOf(generation),
  banned: config.banned.length > 0,
})

export const promptProgram = (config: LlamaConfig, gives: Given): Program => llamaPrompt.of({ ...llamaSettings(config), gives })

/** How beams are chosen. */
const ruleOf = ({ rule, lengthPenalty, earlyStopping, diversityRate }: Beams): LlamaBeamsProgram['rule'] =>
  rule === 'plain'
    ? { kind: 'plain', diversityRate }
    : { kind: 'hf', lengthPenalty, earlyStopping: stoppingOf[`${earlyStopping}`] }

export function stepProgram(config: LlamaConfig, generation: Generation, steps: number): Program {
  const { choice, maxNewTokens } = generation
  const processors = changing(config, generation)
  return choice.kind === 'beams'
    ? llamaBeams.of({ ...llamaSettings(config), steps, maxSteps: maxNewTokens, rule: ruleOf(choice), processors })
    : llamaStep.of({
        ...{ ...llamaSettings(config), steps, processors, losses: generation.logprobs },
        choice: choice.kind === 'greedy' ? 'greedy' : drawOf(choice),
      })
}

/** A program of a model, with settings that its files leave open. @throws usage `export.config` for others */
export function llamaProgram(
  name: 'llama_step' | 'llama_beams' | 'llama_prompt',
  config: LlamaConfig,
  given: GivenSettings,
): Program {
  const said = llamaSettings(config)
  if (name === 'llama_prompt') return llamaPrompt.of({ ...said, ...settingsOf(name, given, said) })
  const banned = config.banned.length > 0
  if (name === 'llama_beams') {
    const { processors = noProcessors, ...open } = settingsOf(name, given, said)
    return llamaBeams.of({ ...said, ...open, processors: { ...processors, banned } })
  }
  const { processors = noProcessors, ...open } = settingsOf(name, given, said)
  return llamaStep.of({ ...said, ...open, processors: { ...processors, banned } })
}

/** The program over prompts under a plan. @throws usage `plan.model` for a plan without the model's layers */
export const assemblePrompt = (config: LlamaConfig, plan: ModelPlan, gives: Given, reach: Reach = 'short'): Assembly =>
  assemble(promptProgram(config, gives), plan, weightTensors(config, reach))

/** `steps` steps under a plan. @throws usage `plan.model` for a plan without the model's layers */
export const assembleSteps = (
  config: LlamaConfig,
  plan: ModelPlan,
  generation: Generation,
  steps: number,
  reach: Reach = 'short',
): Assembly => assemble(stepProgram(config, generation, steps), plan, weightTensors(config, reach))

/** Extents of the dimensions that the model says. */
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

/** Form of the states and steps of a generation: two of one form differ in nothing but values that states start with. */
export function formOf(generation: Generation): string {
  const { choice, maxNewTokens } = generation
  const changed = [processorsOf(generation), forcedEnds(generation), generation.logprobs]
  if (choice.kind === 'beams') return JSON.stringify([ruleOf(choice), choice.width, maxNewTokens, changed])
  return JSON.stringify(choice.kind === 'greedy' ? ['greedy', changed] : [drawOf(choice), candidatesOf(choice), changed])
}
