/**
 * Programs of encoder-decoder models, by configuration, method of choosing tokens and plan, and their sizes. The decoder's program is
 * a few steps; it reads the states that the encoder writes.
 */
import { noProcessors } from '../../../specs/programs/processors.js'
import { type Seq2seqDecoderProgram, seq2seqDecoder } from '../../../specs/programs/seq2seq_decoder.js'
import { seq2seqEncoder, seq2seqEncoderPairs } from '../../../specs/programs/seq2seq_encoder.js'
import type { Program } from '../../ir/program.js'
import type { ModelPlan } from '../../program/index.js'
import { candidatesOf, type Generation, stoppingOf } from '../decoding/generation_options.js'
import { forcedEnds, processorsOf } from '../decoding/logit_changes.js'
import { type Assembly, assemble } from '../parts/assembly.js'
import { type Given, settingsOf } from '../parts/open_settings.js'
import { type BatchShape, batchDims } from '../parts/token_rows.js'
import type { Seq2seqConfig } from './seq2seq_config.js'
import { decoderTensors, encoderTensors } from './tensor_names.js'

/** Extents of the encoder's dimensions. */
export const seq2seqEncoderDims = (config: Seq2seqConfig, shape: BatchShape): Record<string, number> => ({
  ...batchDims(shape),
  h: config.encoder.heads,
  d: config.encoder.headDim,
  i: config.encoder.inner,
  g: config.decoder.heads,
  e: config.decoder.headDim,
  v: config.vocab,
  p: config.positions,
})

/** Extents of the encoder's dimensions that the model determines. */
export function modelEncoderDims(config: Seq2seqConfig): Readonly<Record<string, number>> {
  const { b: _, s: __, t: ___, ...dims } = seq2seqEncoderDims(config, { batch: 1, seq: 1 })
  return dims
}

/** Extents of the decoder's dimensions that the model determines. */
export const decoderSizes = ({ decoder, vocab, positions }: Seq2seqConfig) => ({
  h: decoder.heads,
  d: decoder.headDim,
  i: decoder.inner,
  v: vocab,
  u: positions,
})

const common = ({ activation, preNorm, finalNorm, eps }: Seq2seqConfig) => ({ activation, preNorm, finalNorm, eps })

const scaleOf = ({ headDim }: Seq2seqConfig['encoder']): number => 1 / Math.sqrt(headDim)

/** Settings of the encoder's program, all from the model's files. */
export function encoderSettings(config: Seq2seqConfig) {
  const { encoder, decoder } = config
  const { layers, embedScale: factor } = encoder
  return { ...common(config), layers, decoderLayers: decoder.layers, scale: scaleOf(encoder), factor }
}

export const encoderProgram = (config: Seq2seqConfig): Program => seq2seqEncoder.of(encoderSettings(config))

/** Settings of the decoder's program, from the model's files. @param headBias true if logits have a bias */
export function decoderSettings(config: Seq2seqConfig, headBias: boolean) {
  const { decoder } = config
  const { layers, embedScale: factor } = decoder
  return { ...common(config), layers, scale: scaleOf(decoder), factor, headBias }
}

/** @param headBias true if logits have a bias */
export function decoderProgram(config: Seq2seqConfig, headBias: boolean, generation: Generation, steps: number): Program {
  const processors = { ...processorsOf(generation), banned: config.badTokens.length > 0 }
  const choosing = { choice: choiceOf(generation), processors, losses: generation.logprobs }
  return seq2seqDecoder.of({ ...decoderSettings(config, headBias), steps, ...choosing })
}

export type Seq2seqName = 'seq2seq_encoder' | 'seq2seq_encoder_pairs' | 'seq2seq_decoder'

/** A program of a model, with the settings that its files leave open. @throws usage `export.config` for other settings */
export function seq2seqProgram(name: Seq2seqName, config: Seq2seqConfig, headBias: boolean, given: Given): Program {
  if (name !== 'seq2seq_decoder') {
    const settings = encoderSettings(config)
    const encoder = name === 'seq2seq_encoder' ? seq2seqEncoder : seq2seqEncoderPairs
    return encoder.of({ ...settings, ...settingsOf(name, given, settings) })
  }
  const settings = decoderSettings(config, headBias)
  const { processors = noProcessors, ...open } = settingsOf(name, given, settings)
  return seq2seqDecoder.of({ ...settings, ...open, processors: { ...processors, banned: config.badTokens.length > 0 } })
}

/** The encoder with an attention mask over pairs of tokens, under a plan. @throws usage `plan.model` for a plan without masked layers */
export const assembleMaskedEncoder = (config: Seq2seqConfig, plan: ModelPlan): Assembly =>
  assemble(seq2seqEncoderPairs.of(encoderSettings(config)), plan, encoderTensors(config))

/** The encoder under a plan. @throws usage `plan.model` for a plan without the model's layers */
export const assembleSeq2seqEncoder = (config: Seq2seqConfig, plan: ModelPlan): Assembly =>
  assemble(encoderProgram(config), plan, encoderTensors(config))

/** `steps` steps of the decoder under a plan. @throws usage `plan.model` for a plan without the model's layers */
export const assembleDecoder = (
  config: Seq2seqConfig,
  headBias: boolean,
  plan: ModelPlan,
  generation: Generation,
  steps: number,
): Assembly => assemble(decoderProgram(config, headBias, generation, steps), plan, decoderTensors(config))

function choiceOf({ choice, maxNewTokens }: Generation): Seq2seqDecoderProgram['choice'] {
  if (choice.kind === 'beams') {
    const { rule, lengthPenalty, earlyStopping, diversityRate } = choice
    if (rule === 'plain') return { kind: 'beams', maxSteps: maxNewTokens, diversityRate }
    return { kind: 'beams_hf', maxSteps: maxNewTokens, lengthPenalty, earlyStopping: stoppingOf[`${earlyStopping}`] }
  }
  return { kind: choice.kind === 'greedy' ? 'greedy' : candidatesOf(choice) === undefined ? 'sample' : 'sample_top' }
}

/**
 * Key of the states and steps of a generation. Two generations of one form differ only in initial values of states, such as seeds and
 * limits, and can share programs.
 */
export function formOf(generation: Generation): string {
  const { choice } = generation
  const candidates = choice.kind === 'sampling' ? candidatesOf(choice) : choice.kind === 'beams' ? choice.width : undefined
  const changed = [processorsOf(generation), forcedEnds(generation), generation.logprobs]
  return JSON.stringify([choiceOf(generation), candidates, changed])
}
