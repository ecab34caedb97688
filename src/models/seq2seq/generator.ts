/** Generator made from an encoder-decoder model folder: the encoder, and one decoder step program per method of choosing tokens. */
import { type Seq2seqDecoderProgram, seq2seqDecoder } from '../../../specs/programs/seq2seq_decoder.js'
import { openModelCheckpoint } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { countFor } from '../../ir/top_k.js'
import { beamSizes } from '../decoding/beam_search.js'
import { type GeneratorParts, type StepPart, saidValues } from '../parts/generator_parts.js'
import { type GeneratorSettings, type Given, generatorSettings, settingsOf } from '../parts/open_settings.js'
import { decoderSettings, decoderSizes, encoderProgram, modelEncoderDims } from './programs.js'
import { readSeq2seqConfig, type Seq2seqConfig } from './seq2seq_config.js'
import { embeddingNames, hasLogitsBias, seq2seqWeights } from './seq2seq_weights.js'
import { decoderTensors, encoderTensors } from './tensor_names.js'

const quantities = {
  encoder: { b: 'prompts', s: 'source', t: 'pass_tokens' },
  decoder: { b: 'prompts', w: 'width', s: 'places', t: 'source', e: 'ends', f: 'forced_ends' },
} as const

/** @throws usage `export.config`; what reading the folder throws */
export async function seq2seqGenerator(
  folder: string,
  dtype: FloatType,
  given: Given,
  signal: AbortSignal | undefined,
): Promise<GeneratorParts> {
  const config = await readSeq2seqConfig(folder)
  const file = await openModelCheckpoint(folder, embeddingNames(config), signal)
  const weights = seq2seqWeights(config, file, dtype)
  const headBias = hasLogitsBias(weights)
  const settings = generatorSettings(settingsOf('seq2seq', given, decoderSettings(config, headBias)), config.vocab)
  const tensors = decoderTensors(config)
  return {
    name: 'seq2seq',
    sources: true,
    vocab: config.vocab,
    positions: config.positions,
    start: config.startToken,
    pad: config.padToken,
    ends: config.endTokens,
    banned: config.badTokens,
    ...{ mostTopK: countFor(settings.topK), mostBeams: settings.beams },
    mostCandidates: hfSizes(config, settings.beams).k,
    logprobs: settings.logprobs,
    reader: {
      program: encoderProgram(config),
      dims: modelEncoderDims(config),
      quantities: quantities.encoder,
      tensors: encoderTensors(config),
      inputs: { ids: 'sources', lengths: 'source_lengths' },
    },
    steps: stepsOf(config, headBias, settings).map((part) => ({ ...part, quantities: quantities.decoder, tensors })),
    weights,
    exact: dtype === 'f32' ? weights : seq2seqWeights(config, file, 'f32'),
    stored: {},
  }
}

const hfSizes = ({ vocab, endTokens }: Seq2seqConfig, width: number) =>
  beamSizes({ width, vocab, ends: Math.max(endTokens.length, 1), rule: 'hf' })

type Step = Omit<StepPart, 'tensors' | 'quantities'>

function stepsOf(
  config: Seq2seqConfig,
  headBias: boolean,
  { choices, topK, beams, processors: open, logprobs: losses }: GeneratorSettings,
): Step[] {
  const { vocab, badTokens } = config
  const model = { ...decoderSizes(config), ...(badTokens.length > 0 && { x: badTokens.length }) }
  const processors = { ...open, banned: badTokens.length > 0 }
  const ofProcessors = open.ngrams > 0 ? { no_repeat_ngram_size: open.ngrams } : {}
  const { max_steps: maxSteps, diversity_rate: diversityRate } = saidValues
  const { length_penalty: lengthPenalty, early_stopping: earlyStopping } = saidValues
  const step = (choice: Seq2seqDecoderProgram['choice']) =>
    seq2seqDecoder.of({ ...decoderSettings(config, headBias), choice, processors, losses })
  const { p } = beamSizes({ width: 1, vocab, ends: 1, rule: 'plain' })
  const parts: Readonly<Record<GeneratorSettings['choices'][number], () => Step[]>> = {
    greedy: () => [{ method: 'greedy', program: step({ kind: 'greedy' }), dims: model, said: ofProcessors }],
    sample: () => [
      { method: 'sample', program: step({ kind: 'sample' }), dims: model, said: ofProcessors },
      {
        method: 'sample_top',
        program: step({ kind: 'sample_top' }),
        dims: { ...model, p, k: countFor(topK) },
        said: ofProcessors,
      },
    ],
    beams: () => {
      const dims = { ...model, ...beamSizes({ width: beams, vocab, ends: 1, rule: 'plain' }) }
      const said = { ...ofProcessors, max_steps: maxSteps }
      return [
        { method: 'beams', program: step({ kind: 'beams', maxSteps, diversityRate: 0 }), dims, said },
        {
          method: 'beams_diverse',
          program: step({ kind: 'beams', maxSteps, diversityRate }),
          dims,
          said: { ...said, diversity_rate: diversityRate },
        },
      ]
    },
    hf: () => [
      {
        ...{ method: 'beams_hf', program: step({ kind: 'beams_hf', maxSteps, lengthPenalty, earlyStopping }) },
        dims: { ...model, ...hfSizes(config, beams) },
        said: { ...ofProcessors, max_steps: maxSteps, length_penalty: lengthPenalty, early_stopping: earlyStopping },
      },
    ],
  }
  return choices.flatMap((choice) => parts[choice]())
}
