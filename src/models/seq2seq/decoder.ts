/**
 * The decoder of an encoder-decoder model as a sequence of graphs: some steps of it, one behind the other. What a step leaves behind,
 * caches, words and counters, is state that the next step takes up.
 */
import { beamStep, beamStepHf } from '../../../specs/graphs/beam.js'
import {
  biasedLanguageModelHead,
  decoderNorm,
  embedStep,
  keepBeams,
  keepWords,
  languageModelHead,
} from '../../../specs/graphs/decoder.js'
import { decoderLayers } from '../../../specs/graphs/decoder_layer.js'
import { greedyStep, minimumStep, penaltyStep, sampleStep, sampleTopStep } from '../../../specs/graphs/sampling.js'
import { usageError } from '../../errors.js'
import type { GraphDecl } from '../../lang/graph.js'
import { defaultPlan, type ModelPlan } from '../../program/plans.js'
import type { GraphApplication } from '../../runtime/program.js'
import { candidatesOf, type Generation } from '../decoding/generation_options.js'
import type { Seq2seqConfig } from './seq2seq_config.js'
import { memoryOutputs } from './seq2seq_encoder.js'
import { decoderLayerNames, seq2seqEmbeddings, seq2seqFinalNorm, seq2seqHead } from './seq2seq_weights.js'

type Names = Readonly<Record<string, string>>
type Attrs = Readonly<Record<string, number>>

/** The caches of a layer. */
export const cacheNames = (layer: number) => ({ keys: `keys${layer}`, values: `values${layer}` })

/** The value of a state after `step` steps: the state itself before the first. */
export const stateAfter = (name: string, step: number): string => (step === 0 ? name : `${name}@${step}`)

/** What each rule of beams remembers besides words: inputs and outputs of its graph. */
const beamMemory = {
  plain: ['cumulative'],
  hf: ['cumulative', 'poolScores', 'poolSteps', 'poolRows', 'poolWords'],
} as const

/**
 * Names of the states that steps change.
 * Besides them steps read `lengths`, `ends` and what the choice asks for: nothing changes those.
 */
export function carriedStates({ decoder: { layers } }: Seq2seqConfig, { choice, repetitionPenalty }: Generation): string[] {
  const caches = Array.from({ length: layers }, (_, layer) => Object.values(cacheNames(layer))).flat()
  const common = [...caches, 'step', 'words', 'finished', 'history']
  if (choice.kind === 'beams') return [...common, 'beams', 'parents', ...beamMemory[choice.rule]]
  return repetitionPenalty === 1 ? common : [...common, 'seen']
}

/**
 * What the states and steps of a generation are made for: two of one form differ in nothing but values that states start with, such as
 * seeds and limits, and can use the same programs.
 */
export function formOf({ choice, repetitionPenalty, maxNewTokens, minNewTokens }: Generation): string {
  if (choice.kind !== 'beams') {
    const candidates = choice.kind === 'sampling' ? candidatesOf(choice) : undefined
    return JSON.stringify([choice.kind, candidates, repetitionPenalty !== 1, minNewTokens > 0])
  }
  return JSON.stringify([{ ...choice, returned: undefined }, maxNewTokens])
}

/**
 * The applications of `count` steps. Wires are states by their names, and by `stateAfter` once steps have changed them.
 * @param headBias whether logits have a bias
 * @throws usage `plan.model` for a plan without the model's decoder layers
 */
export function decoderSteps(
  config: Seq2seqConfig,
  headBias: boolean,
  plan: ModelPlan,
  generation: Generation,
  count: number,
): GraphApplication[] {
  const layer = decoderLayers[config.preNorm ? 'pre' : 'post'][config.activation]
  if (!plan.covers(layer.name)) {
    throw usageError('plan.model', `plan ${plan.name} has nothing to say about ${layer.name}, the decoder layers of this model`, {
      hint: `choose a plan made for decoders, such as ${defaultPlan}`,
    })
  }
  return Array.from({ length: count }, (_, step) => new Step(plan, generation, step).build(config, headBias, layer)).flat()
}

/** Collects the applications of one step. */
class Step {
  readonly #plan: ModelPlan
  readonly #generation: Generation
  readonly #step: number
  readonly #applications: GraphApplication[] = []

  constructor(plan: ModelPlan, generation: Generation, step: number) {
    this.#plan = plan
    this.#generation = generation
    this.#step = step
  }

  build(config: Seq2seqConfig, headBias: boolean, layer: GraphDecl): GraphApplication[] {
    const { eps, decoder } = config
    const words = { ids: this.#now('words'), step: this.#now('step') }
    this.#apply('embed', embedStep, words, seq2seqEmbeddings('decoder'), 'hidden', { factor: config.embedScale })
    for (let i = 0; i < decoder.layers; i++) this.#layer(i, layer, { eps, scale: 1 / Math.sqrt(decoder.headDim) })
    const last = { x: this.#local('hidden') }
    if (config.finalNorm) this.#apply('norm', decoderNorm, last, seq2seqFinalNorm('decoder'), 'hidden', { eps })
    const head = headBias ? biasedLanguageModelHead : languageModelHead
    this.#apply('head', head, { x: this.#local('hidden') }, seq2seqHead(config), 'logits')
    this.#choose()
    return this.#applications
  }

  #layer(i: number, layer: GraphDecl, attrs: Attrs): void {
    const { keys, values } = cacheNames(i)
    const memory = memoryOutputs(i)
    const follows = this.#generation.choice.kind === 'beams'
    const inputs = {
      x: this.#local('hidden'),
      step: this.#now('step'),
      beams: follows ? this.#now('beams') : 'beams',
      keys: this.#now(keys),
      values: this.#now(values),
      memoryKeys: memory.keys,
      memoryValues: memory.values,
      lengths: 'lengths',
    }
    const outputs = { hidden: this.#made('hidden'), keys: this.#next(keys), values: this.#next(values) }
    this.#wire(`layer${i}`, layer, inputs, decoderLayerNames(i), outputs, attrs)
  }

  /** The words of the next step, and all that follows from them. */
  #choose(): void {
    const { choice, repetitionPenalty, minNewTokens } = this.#generation
    const finished = this.#now('finished')
    const step = this.#now('step')
    if (choice.kind === 'beams') {
      const memory = beamMemory[choice.rule]
      const state = Object.fromEntries(memory.map((name) => [name, this.#now(name)]))
      const outputs = Object.fromEntries(['words', 'finished', ...memory].map((name) => [name, this.#next(name)]))
      const graph = choice.rule === 'plain' ? beamStep : beamStepHf
      const made = { ...outputs, parents: this.#made('chosenParents') }
      const inputs = { logits: this.#local('logits'), ...state, step, finished, ends: 'ends' }
      this.#wire('beams', graph, inputs, {}, made, beamAttrs(this.#generation))
      this.#keep(keepBeams, ['history', 'parents', 'beams'], { chosenParents: this.#local('chosenParents') })
      return
    }
    if (repetitionPenalty !== 1) {
      const inputs = { logits: this.#local('logits'), seen: this.#now('seen'), words: this.#now('words'), penalty: 'penalty' }
      this.#wire('penalty', penaltyStep, inputs, {}, { logits: this.#made('logits'), seen: this.#next('seen') })
    }
    if (minNewTokens > 0) {
      const inputs = { logits: this.#local('logits'), step, minimum: 'minimum', ends: 'ends' }
      this.#wire('minimum', minimumStep, inputs, {}, { logits: this.#made('logits') })
    }
    const inputs = { logits: this.#local('logits'), step, finished, ends: 'ends', limit: 'limit' }
    const outputs = { words: this.#next('words'), finished: this.#next('finished') }
    if (choice.kind === 'greedy') this.#wire('choose', greedyStep, inputs, {}, outputs)
    else {
      const graph = candidatesOf(choice) === undefined ? sampleStep : sampleTopStep
      this.#wire('choose', graph, { ...inputs, ...samplingInputs }, {}, outputs)
    }
    this.#keep(keepWords, ['history'], {})
  }

  /** Records what was chosen, and goes one step further. */
  #keep(graph: GraphDecl, states: readonly string[], more: Names): void {
    const kept = [...states, 'step']
    const inputs = Object.fromEntries(kept.map((name) => [name, this.#now(name)]))
    const outputs = Object.fromEntries(kept.map((name) => [name, this.#next(name)]))
    this.#wire('keep', graph, { ...inputs, words: this.#next('words'), ...more }, {}, outputs)
  }

  #apply(label: string, graph: GraphDecl, inputs: Names, weights: Names, output: string, attrs: Attrs = {}): void {
    this.#wire(label, graph, inputs, weights, { [output]: this.#made(output) }, attrs)
  }

  #wire(label: string, { graph }: GraphDecl, inputs: Names, weights: Names, outputs: Names, attrs: Attrs = {}): void {
    this.#applications.push({
      label: `step${this.#step}/${label}`,
      graph: this.#plan.rewrite(graph),
      inputs,
      weights,
      outputs,
      attrs,
    })
  }

  #now = (state: string): string => stateAfter(state, this.#step)
  #next = (state: string): string => stateAfter(state, this.#step + 1)

  /** Values of this step alone, of which a later one takes the place of an earlier. */
  readonly #versions = new Map<string, number>()
  #local = (name: string): string => `${name}#${this.#step}.${this.#versions.get(name) ?? 0}`
  #made = (name: string): string => {
    this.#versions.set(name, (this.#versions.get(name) ?? 0) + 1)
    return this.#local(name)
  }
}

/** Inputs of `sample_step` that a request says and nothing changes, under their own names. */
const samplingNames = ['temperature', 'topK', 'topP', 'minP', 'seedsLow', 'seedsHigh'] as const
const samplingInputs = Object.fromEntries(samplingNames.map((name) => [name, name]))

/** How the rule of Hugging Face's `generate` has its ways of stopping early. */
const stoppingOf = { false: 0, true: 1, never: 2 } as const

function beamAttrs({ choice, maxNewTokens }: Generation): Attrs {
  if (choice.kind !== 'beams') return {}
  if (choice.rule === 'plain') return { maxSteps: maxNewTokens }
  const { lengthPenalty, earlyStopping } = choice
  return { lengthPenalty, earlyStopping: stoppingOf[`${earlyStopping}`], maxSteps: maxNewTokens }
}
