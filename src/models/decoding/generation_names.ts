/** Names of the generation options; others are refused. */
import type { NamesOf } from '../parts/known_options.js'
import type { GenerationOptions } from './generation_options.js'

export const generationNames: NamesOf<GenerationOptions> = {
  ...{ beams: true, returned: true, rule: true, lengthPenalty: true, earlyStopping: true, diversityRate: true },
  ...{ temperature: true, topK: true, topP: true, minP: true, seed: true, repetitionPenalty: true, noRepeatNgramSize: true },
  ...{ logprobs: true, maxNewTokens: true, minNewTokens: true, forcedBosTokenId: true, forcedEosTokenId: true },
}
