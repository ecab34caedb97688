/** All declarations of the shipped specs by name, for `heddle gen` and for the models. */
import { type GraphDecl, kernelName, type Op, type PlanDecl } from 'heddle'
import { conversions } from './conversions.js'
import { beamStep, beamStepDiverse, beamStepHf } from './graphs/beam.js'
import { biasedLanguageModelHead, decoderNorm, embedStep, keepBeams, keepWords, languageModelHead } from './graphs/decoder.js'
import { decoderLayers } from './graphs/decoder_layer.js'
import { embeddings, untypedEmbeddings } from './graphs/embeddings.js'
import { addedLayers, memoryLayers } from './graphs/encoder_layer.js'
import { encoderLayers, pairLayers } from './graphs/encoder_layers.js'
import { greedyHeads } from './graphs/greedy_heads.js'
import {
  firstMaskedPooling,
  firstPooling,
  hiddenStates,
  lastMaskedPooling,
  lastPooling,
  meanMaskedPooling,
  meanPooling,
  pooler,
  sequenceClassifiers,
  spanClassifier,
  tokenClassifier,
  unitLength,
} from './graphs/heads.js'
import { keepBeamTokens, keepTokens, llamaHead, llamaLikelihood, llamaSomeLogits, llamaWords } from './graphs/llama_ends.js'
import { llamaLayers } from './graphs/llama_layer.js'
import {
  forcedStep,
  keepBeamSeen,
  keepBeamText,
  keepSeen,
  keepText,
  keepTextPlaces,
  minimumStep,
  ngramStep,
  penaltyStep,
  scoresStep,
} from './graphs/processors.js'
import {
  greedyPartsStep,
  greedyStep,
  keepBeamLosses,
  keepLosses,
  recordLosses,
  sampleNarrowedStep,
  samplePartsStep,
  sampleStep,
  sampleTopStep,
} from './graphs/sampling.js'
import { attendedMemory, embedScaled, finalNorm, memoryKeysValues } from './graphs/seq2seq_encoder.js'
import { layouts } from './layouts.js'
import { gelu, geluTanh, relu, silu, tanh } from './ops/activations.js'
import { add } from './ops/add.js'
import { addBias } from './ops/add_bias.js'
import { addPosition } from './ops/add_position.js'
import { appendStep } from './ops/append_step.js'
import { argmaxRow } from './ops/argmax.js'
import { beamCandidates } from './ops/beam_candidates.js'
import { beamLoss } from './ops/beam_loss.js'
import { beamRank } from './ops/beam_rank.js'
import { beamSelect } from './ops/beam_select.js'
import { beamSelectDiverse } from './ops/beam_select_diverse.js'
import { beamSelectHf } from './ops/beam_select_hf.js'
import { followParents, gatherBeams } from './ops/beams.js'
import { absMax, channelMax, columnSum, magnitudeHistogram } from './ops/calibration.js'
import { castF32 } from './ops/cast_f32.js'
import { castFloat } from './ops/cast_float.js'
import { embeddingLookup, wordLookup } from './ops/embedding_lookup.js'
import { suppressEnds } from './ops/ends.js'
import { firstToken } from './ops/first_token.js'
import { forceWords } from './ops/force_words.js'
import { swiglu } from './ops/gate.js'
import { gatherTree } from './ops/gather_tree.js'
import { greedyLoss } from './ops/greedy_loss.js'
import { col32FromRows, int8Col32FromRows, rowsFromCol32, rowsFromInt8Col32 } from './ops/int8_col32.js'
import { attendedTokens, firstKept, lastKept, meanKept } from './ops/kept_pooling.js'
import { layerNorm } from './ops/layer_norm.js'
import { logSoftmax } from './ops/log_softmax.js'
import { maskAdded } from './ops/mask_added.js'
import { maskPairs } from './ops/mask_pairs.js'
import { maskBeams, maskBeamsWindow, maskFuture, maskFutureWindow, maskPlaces, maskPlacesWindow } from './ops/mask_past.js'
import { maskScores } from './ops/mask_scores.js'
import { mergeHeads } from './ops/merge_heads.js'
import { banWords, followText, recordText, repeatedWords, residues } from './ops/ngrams.js'
import { appendPlaces, appendTokens, beamHeads, pastHeads, repeatHeads } from './ops/past.js'
import {
  appendPlacesInt8,
  appendStepInt8,
  appendTokensInt8,
  beamHeadsInt8,
  pastHeadsInt8,
  repeatHeadsInt8,
} from './ops/past_int8.js'
import { followSeen, markSeen, penalise } from './ops/penalise.js'
import { lastToken, meanTokens, unitRows } from './ops/pooling.js'
import { record, recordBeams, recordNumbers } from './ops/record.js'
import { rmsNorm } from './ops/rms_norm.js'
import { rotateHalves } from './ops/rotate_halves.js'
import { rotatePairs } from './ops/rotate_pairs.js'
import { peaks } from './ops/row_parts.js'
import { greedy, greedyOfPeaks, sample } from './ops/sample.js'
import { sampleCandidates } from './ops/sample_candidates.js'
import { sampleNarrowed, sampleParts, weighParts } from './ops/sample_parts.js'
import { scale } from './ops/scale.js'
import { softmax } from './ops/softmax.js'
import { softmaxEps } from './ops/softmax_eps.js'
import { splitHeads } from './ops/split_heads.js'
import * as standard from './ops/std.js'
import { addStepPosition, maskSteps, nextBeamPlaces, nextPlaces, nextStep } from './ops/steps.js'
import { takeTokens } from './ops/take_tokens.js'
import { tokenLoss, wordLoss } from './ops/token_loss.js'
import { auto } from './plans/auto.js'
import { bestDecoder } from './plans/best_decoder.js'
import { bestEncoder, bestSeq2seqEncoder } from './plans/best_encoder.js'
import { bestEncoderLibrary } from './plans/best_encoder_library.js'
import { bestLlama } from './plans/best_llama.js'
import { ftV1 } from './plans/ft_v1.js'
import { ftV21 } from './plans/ft_v2_1.js'
import { ftV21Decoder } from './plans/ft_v2_1_decoder.js'
import { ftV3 } from './plans/ft_v3.js'
import { bestEncoderInt8, int8Row } from './plans/int8.js'
import { llamaInt8 } from './plans/llama_int8.js'
import { memoryLayerPlans } from './plans/memory_layer.js'
import { bert, bertAdded, bertPairs } from './programs/bert.js'
import { llamaBeams } from './programs/llama_beams.js'
import { llamaPrompt } from './programs/llama_prompt.js'
import { llamaStep } from './programs/llama_step.js'
import { seq2seqDecoder } from './programs/seq2seq_decoder.js'
import { seq2seqEncoder, seq2seqEncoderPairs } from './programs/seq2seq_encoder.js'

export { conversions, layouts }

const byName = <T extends { readonly name: string }>(declarations: readonly T[]): Readonly<Record<string, T>> =>
  Object.fromEntries(declarations.map((declaration) => [kernelName(declaration.name), declaration]))

/** Ops by the names of their kernels. */
export const ops: Readonly<Record<string, Op>> = byName<Op>([
  absMax,
  add,
  addBias,
  addPosition,
  addStepPosition,
  appendPlaces,
  appendPlacesInt8,
  appendStep,
  appendStepInt8,
  appendTokens,
  appendTokensInt8,
  argmaxRow,
  attendedTokens,
  banWords,
  beamCandidates,
  beamHeads,
  beamHeadsInt8,
  beamLoss,
  beamRank,
  beamSelect,
  beamSelectDiverse,
  beamSelectHf,
  castF32,
  castFloat,
  col32FromRows,
  channelMax,
  columnSum,
  embeddingLookup,
  firstKept,
  firstToken,
  followParents,
  followSeen,
  followText,
  forceWords,
  gatherBeams,
  gatherTree,
  gelu,
  geluTanh,
  greedy,
  greedyLoss,
  greedyOfPeaks,
  int8Col32FromRows,
  lastKept,
  lastToken,
  layerNorm,
  logSoftmax,
  magnitudeHistogram,
  markSeen,
  maskAdded,
  maskBeams,
  maskBeamsWindow,
  maskFuture,
  maskFutureWindow,
  maskPairs,
  maskPlaces,
  maskPlacesWindow,
  maskScores,
  maskSteps,
  meanKept,
  meanTokens,
  mergeHeads,
  nextBeamPlaces,
  nextPlaces,
  nextStep,
  pastHeads,
  pastHeadsInt8,
  peaks,
  penalise,
  record,
  recordBeams,
  recordNumbers,
  recordText,
  relu,
  repeatHeads,
  repeatHeadsInt8,
  repeatedWords,
  residues,
  rmsNorm,
  rotateHalves,
  rotatePairs,
  rowsFromCol32,
  rowsFromInt8Col32,
  sample,
  sampleCandidates,
  sampleNarrowed,
  sampleParts,
  scale,
  silu,
  softmax,
  softmaxEps,
  splitHeads,
  suppressEnds,
  swiglu,
  takeTokens,
  tanh,
  tokenLoss,
  unitRows,
  weighParts,
  wordLookup,
  wordLoss,
  ...Object.values(standard),
])

export const graphs: Readonly<Record<string, GraphDecl>> = byName<GraphDecl>([
  attendedMemory,
  biasedLanguageModelHead,
  ...Object.values(decoderLayers.post),
  ...Object.values(decoderLayers.pre),
  decoderNorm,
  embedScaled,
  embedStep,
  beamStep,
  beamStepDiverse,
  beamStepHf,
  embeddings,
  ...Object.values(encoderLayers.post),
  ...Object.values(encoderLayers.pre),
  ...Object.values(pairLayers.post),
  ...Object.values(pairLayers.pre),
  ...Object.values(addedLayers),
  ...Object.values(memoryLayers),
  finalNorm,
  firstMaskedPooling,
  firstPooling,
  forcedStep,
  ...Object.values(greedyHeads.losses),
  ...Object.values(greedyHeads.words),
  greedyPartsStep,
  greedyStep,
  hiddenStates,
  keepBeams,
  keepBeamSeen,
  keepBeamText,
  keepBeamTokens,
  keepBeamLosses,
  keepLosses,
  keepSeen,
  keepText,
  keepTextPlaces,
  keepTokens,
  keepWords,
  languageModelHead,
  lastMaskedPooling,
  lastPooling,
  ...Object.values(llamaLayers.beams),
  llamaHead,
  ...Object.values(llamaLayers.prompt),
  ...Object.values(llamaLayers.step),
  llamaLikelihood,
  llamaSomeLogits,
  llamaWords,
  meanMaskedPooling,
  meanPooling,
  memoryKeysValues,
  minimumStep,
  ngramStep,
  penaltyStep,
  pooler,
  recordLosses,
  sampleStep,
  sampleNarrowedStep,
  samplePartsStep,
  sampleTopStep,
  scoresStep,
  ...Object.values(sequenceClassifiers),
  spanClassifier,
  tokenClassifier,
  unitLength,
  untypedEmbeddings,
])

export const plans: readonly PlanDecl[] = [
  ...ftV1,
  ...ftV21,
  ...ftV21Decoder,
  ...ftV3,
  ...int8Row,
  ...bestEncoder,
  ...bestEncoderLibrary,
  ...bestSeq2seqEncoder,
  ...bestDecoder,
  ...bestLlama,
  ...bestEncoderInt8,
  ...llamaInt8,
  ...memoryLayerPlans,
  ...auto,
]

export const programs = {
  bert,
  bertAdded,
  bertPairs,
  llamaBeams,
  llamaPrompt,
  llamaStep,
  seq2seqDecoder,
  seq2seqEncoder,
  seq2seqEncoderPairs,
} as const
