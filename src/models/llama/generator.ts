/** Generator made from a LLaMA-like model folder: the prompt program, and one step program per method of choosing tokens. */
import { type LlamaBeamsProgram, llamaBeams } from '../../../specs/programs/llama_beams.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { countFor } from '../../ir/top_k.js'
import { beamSizes } from '../decoding/beam_search.js'
import { mostCandidates } from '../decoding/generation_options.js'
import { type GeneratorParts, type StepPart, saidValues } from '../parts/generator_parts.js'
import { type GeneratorSettings, type Given, generatorSettings, settingsOf } from '../parts/open_settings.js'
import type { LlamaConfig } from './config.js'
import { openLlamaFiles } from './open_files.js'
import { llamaProgram, llamaSettings, modelDims, promptProgram, withCaches } from './programs.js'
import { wordParts } from './shapes.js'
import { llamaInt8, llamaWeights, longTables, usualRotation, weightTensors } from './weights.js'

/** Quantities that the dimensions of row steps, beam steps and prompt passes count. */
const quantities = {
  rows: { r: 'rows', u: 'places', s: 'steps', f: 'ends', y: 'forced_ends' },
  beams: { b: 'prompts', w: 'width', u: 'places', s: 'steps', f: 'ends', y: 'forced_ends' },
  prompt: { r: 'rows', u: 'places', t: 'pass_tokens', b: 'pass_sequences', s: 'pass_longest' },
} as const

const inputs = {
  ids: 'ids',
  places: 'places',
  sequences: 'sequences',
  positions: 'positions',
  starts: 'starts',
  lengths: 'lengths',
  first: 'first',
  slots: 'slots',
  writers: 'writers',
} as const

/** @throws usage `export.config`; what reading the folder throws */
export async function llamaGenerator(
  folder: string,
  dtype: FloatType,
  given: Given,
  signal: AbortSignal | undefined,
): Promise<GeneratorParts> {
  const { config: stored, checkpoint } = await openLlamaFiles(folder, signal)
  const { caches: _, ...fixed } = llamaSettings(stored)
  const { caches = 'float', ...open } = settingsOf('llama', given, fixed)
  const config = withCaches(stored, caches, dtype)
  const settings = generatorSettings(open, config.vocab)
  const weights = llamaWeights(config, checkpoint, dtype, usualRotation)
  const tensors = weightTensors(config, 'short')
  return {
    name: 'llama',
    sources: false,
    vocab: config.vocab,
    positions: config.positions,
    ...{ start: 0, pad: 0 },
    ends: config.eos,
    banned: config.banned,
    ...{ mostTopK: countFor(settings.topK), mostBeams: settings.beams },
    mostCandidates: hfSizes(config, settings.beams).k,
    logprobs: settings.logprobs,
    reader: {
      program: promptProgram(config, 'nothing'),
      dims: { ...modelDims(config), k: 1 },
      quantities: quantities.prompt,
      tensors,
      inputs,
    },
    steps: stepsOf(config, settings).map((part) => ({ ...part, tensors })),
    ...(config.rotary.type === 'longrope' && { long: { after: config.rotary.originalPositions, tensors: longTables } }),
    weights,
    exact: dtype === 'f32' ? weights : llamaWeights(config, checkpoint, 'f32', usualRotation),
    stored: llamaInt8(config, checkpoint),
  }
}

/** Checks that one program can rotate all texts. @throws usage `export.rotation` */
export function expectOneRotation({ rotary }: LlamaConfig): void {
  if (rotary.type !== 'longrope') return
  throw usageError(
    'export.rotation',
    'a longrope model uses different RoPE tables for long and short texts, but an exported program has only one',
    { hint: 'export the generator, llama, which has both' },
  )
}

const hfSizes = ({ vocab, eos }: LlamaConfig, width: number) =>
  beamSizes({ width, vocab, ends: Math.max(eos.length, 1), rule: 'hf' })

function stepsOf(
  config: LlamaConfig,
  { choices, topK, beams, processors: open, logprobs: losses }: GeneratorSettings,
): Omit<StepPart, 'tensors'>[] {
  const { vocab, banned } = config
  const model = { ...modelDims(config), ...(banned.length > 0 && { x: banned.length }) }
  const ofProcessors = open.ngrams > 0 ? { no_repeat_ngram_size: open.ngrams } : {}
  const rows = { quantities: quantities.rows, said: ofProcessors }
  const step = (choice: 'greedy' | 'sample' | 'sample_narrowed' | 'sample_top') =>
    llamaProgram('llama_step', config, { choice, processors: open, losses })
  const whole = { ...model, q: wordParts(vocab) }
  const few = beamSizes({ width: 1, vocab, ends: 1, rule: 'plain' })
  const { max_steps: maxSteps, diversity_rate: diversityRate } = saidValues
  const { length_penalty: lengthPenalty, early_stopping: earlyStopping } = saidValues
  const processors = { ...open, banned: banned.length > 0 }
  const search = (rule: LlamaBeamsProgram['rule']) =>
    llamaBeams.of({ ...llamaSettings(config), maxSteps, rule, processors, losses })
  const plain = beamSizes({ width: beams, vocab, ends: 1, rule: 'plain' })
  const hf = hfSizes(config, beams)
  const parts: Readonly<Record<GeneratorSettings['choices'][number], () => Omit<StepPart, 'tensors'>[]>> = {
    greedy: () => [{ ...rows, method: 'greedy', program: step('greedy'), dims: whole }],
    sample: () => [
      { ...rows, method: 'sample', program: step('sample'), dims: whole },
      { ...rows, method: 'sample_narrowed', program: step('sample_narrowed'), dims: { ...whole, k: mostCandidates } },
      { ...rows, method: 'sample_top', program: step('sample_top'), dims: { ...model, q: few.p, k: countFor(topK) } },
    ],
    beams: () => {
      const of = { quantities: quantities.beams, dims: { ...model, q: plain.p, k: plain.k } }
      const said = { ...ofProcessors, max_steps: maxSteps }
      return [
        { ...of, method: 'beams', program: search({ kind: 'plain', diversityRate: 0 }), said },
        {
          ...of,
          method: 'beams_diverse',
          program: search({ kind: 'plain', diversityRate }),
          said: { ...said, diversity_rate: diversityRate },
        },
      ]
    },
    hf: () => [
      {
        ...{ quantities: quantities.beams, dims: { ...model, q: hf.p, k: hf.k }, method: 'beams_hf' },
        program: search({ kind: 'hf', lengthPenalty, earlyStopping }),
        said: { ...ofProcessors, max_steps: maxSteps, length_penalty: lengthPenalty, early_stopping: earlyStopping },
      },
    ],
  }
  return choices.flatMap((choice) => parts[choice]())
}
