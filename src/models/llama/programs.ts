/**
 * LLaMA-like models as programs: which programs a configuration and a way of choosing words are, under a plan, and their sizes. The program
 * that reads prompts and the one that chooses words are over the same weights and caches.
 */
import { conversions } from '../../../specs/conversions.js'
import type { LlamaFlags } from '../../../specs/graphs/llama_layer.js'
import type { LlamaProgram } from '../../../specs/programs/llama.js'
import { type LlamaPromptProgram, llamaPrompt } from '../../../specs/programs/llama_prompt.js'
import { type LlamaStepProgram, llamaStep } from '../../../specs/programs/llama_step.js'
import { usageError } from '../../errors.js'
import type { Program } from '../../ir/program.js'
import { type CompiledProgram, compileProgram, type ModelPlan } from '../../program/index.js'
import { type WiredProgram, wireProgram } from '../../runtime/program_wiring.js'
import { candidatesOf, type Generation } from '../decoding/generation_options.js'
import type { LlamaConfig } from './config.js'
import { rotaryDims } from './rotary_config.js'
import { type Reach, weightTensors } from './weights.js'

/** A program under a plan, and its graphs over the model's tensors. */
export interface Assembly {
  readonly compiled: CompiledProgram
  readonly wired: WiredProgram
}

/** What a program over prompts gives. */
export type Given = LlamaPromptProgram['gives']

/** What sets the model's layers apart, of those that have its window or not. */
export const flagsOf = ({ outputBias, qkvBias, qkNorm }: LlamaConfig, window: boolean): LlamaFlags => ({
  bias: outputBias ? 'all' : qkvBias ? 'heads' : 'none',
  norm: qkNorm,
  window,
})

function common(config: LlamaConfig): LlamaProgram {
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

/** How a step chooses words. @throws usage `generate.beams` */
function choiceOf({
  choice,
  repetitionPenalty,
  minNewTokens,
}: Generation): Pick<LlamaStepProgram, 'choice' | 'penalised' | 'minimum'> {
  if (choice.kind === 'beams') {
    throw usageError('generate.beams', `beams is ${choice.width}, models of this type follow one text`, {
      hint: 'leave it out: the likeliest word is taken, or one is drawn',
    })
  }
  const kind = choice.kind === 'greedy' ? 'greedy' : candidatesOf(choice) === undefined ? 'sample' : 'sample_top'
  return { choice: kind, penalised: repetitionPenalty !== 1, minimum: minNewTokens > 0 }
}

export const promptProgram = (config: LlamaConfig, gives: Given): Program => llamaPrompt.of({ ...common(config), gives })

/** @throws usage `generate.beams` */
export const stepProgram = (config: LlamaConfig, generation: Generation, steps: number): Program =>
  llamaStep.of({ ...common(config), ...choiceOf(generation), steps })

function assemble(config: LlamaConfig, program: Program, plan: ModelPlan, reach: Reach): Assembly {
  const compiled = compileProgram(program, plan, { conversions })
  return { compiled, wired: wireProgram(compiled, { tensors: weightTensors(config, reach) }) }
}

/** The program over prompts under a plan. @throws usage `plan.model` for a plan without the model's layers */
export const assemblePrompt = (config: LlamaConfig, plan: ModelPlan, gives: Given, reach: Reach = 'short'): Assembly =>
  assemble(config, promptProgram(config, gives), plan, reach)

/** `steps` steps under a plan. @throws usage `plan.model` for a plan without the model's layers, `generate.beams` */
export const assembleSteps = (
  config: LlamaConfig,
  plan: ModelPlan,
  generation: Generation,
  steps: number,
  reach: Reach = 'short',
): Assembly => assemble(config, stepProgram(config, generation, steps), plan, reach)

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

/**
 * What the states and steps of a generation are made for: two of one form differ in nothing but values that states start with.
 * @throws usage `generate.beams`
 */
export function formOf(generation: Generation): string {
  const { choice } = generation
  return JSON.stringify([choiceOf(generation), choice.kind === 'sampling' ? candidatesOf(choice) : undefined])
}
