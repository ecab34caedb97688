/**
 * Times decoding from the perspective of a caller of the pipeline: keys and values of a given memory, then a number of steps, with tokens chosen on
 * the device. There are no end ids, so every run takes all steps. Timings of the plans of a batch are interleaved.
 */
import { layouts } from '../../specs/index.js'
import type { FloatType } from '../checkpoint/convert.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { type Decoding, type DecodingBatch, openDecoding } from '../models/decoding/decoding.js'
import { type GenerationOptions, resolveGeneration } from '../models/decoding/generation_options.js'
import { assembleDecoder, assembleSeq2seqEncoder } from '../models/seq2seq/programs.js'
import { parseSeq2seqConfig, type Seq2seqConfig } from '../models/seq2seq/seq2seq_config.js'
import { seq2seqShapes } from '../models/seq2seq/seq2seq_weights.js'
import { findPlan } from '../program/plans.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeDevice } from '../runtime/native.js'
import { expectPlanTypes } from '../runtime/plan_types.js'
import { prepareWeights } from '../runtime/prepare_weights.js'
import { openSession } from '../runtime/session.js'
import { integer, random } from '../verify/random.js'
import type { StepTime } from './result.js'
import { type Summary, summarise } from './statistics.js'
import { stepTimes } from './step_times.js'
import { syntheticTensors } from './synthetic.js'

export interface DecodingBench {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  readonly dtype: FloatType
  readonly plans: readonly string[]
  readonly batches: readonly number[]
  readonly layers: number
  readonly heads: number
  readonly headDim: number
  readonly vocab: number
  /** Tokens generated. */
  readonly steps: number
  /** Positions of the memory. */
  readonly memory: number
  /** Width of the memory; default: the width of the decoder. */
  readonly memoryHidden?: number | undefined
  readonly choice: Pick<GenerationOptions, 'beams' | 'topK' | 'topP' | 'temperature' | 'diversityRate'>
  readonly repeats: number
  /** Also times every kernel of a step separately. */
  readonly profile: boolean
  readonly signal?: AbortSignal | undefined
}

export interface DecodingTimes {
  readonly plan: string
  readonly batch: number
  /** Beams, or 1. */
  readonly width: number
  readonly steps: number
  /** Time from the sources to the last token, by the host's clock. */
  readonly milliseconds: Summary
  /** One step by the device's clock, from replays without copies. */
  readonly step: Summary
  readonly kernels: number
  readonly matmuls: number
  readonly captured: boolean
  readonly memory: { readonly stateBytes: number; readonly arenaBytes: number; readonly weightBytes: number }
  readonly profile: readonly StepTime[] | undefined
}

export interface DecodingObserver {
  readonly onStage?: (stage: string) => void
  readonly onResult?: (times: DecodingTimes) => void
}

const warmup = 2
/** Steps of one replay. */
const stepsPerRun = 16

/** Decoder of the given sizes after an encoder without layers, so that timing begins with a memory. */
export function decoderOnly({
  layers,
  heads,
  headDim,
  vocab,
  steps,
  memory,
  memoryHidden,
}: Pick<DecodingBench, 'layers' | 'heads' | 'headDim' | 'vocab' | 'steps' | 'memory' | 'memoryHidden'>): Seq2seqConfig {
  const hidden = heads * headDim
  const width = memoryHidden ?? hidden
  const config = parseSeq2seqConfig(
    {
      model_type: 'pegasus',
      vocab_size: vocab,
      d_model: hidden,
      encoder_layers: 1,
      decoder_layers: layers,
      // Without layers, the encoder's heads only define its width.
      encoder_attention_heads: width % heads === 0 ? heads : 1,
      ...(width === hidden ? {} : { cross_attention_hidden_size: width, share_encoder_decoder_embeddings: false }),
      decoder_attention_heads: heads,
      encoder_ffn_dim: 4 * hidden,
      decoder_ffn_dim: 4 * hidden,
      max_position_embeddings: Math.max(steps, memory),
      activation_function: 'relu',
      scale_embedding: true,
    },
    'the benchmark',
  )
  return { ...config, encoder: { ...config.encoder, layers: 0 }, endTokens: [] }
}

/** @throws usage `plan.*`, `generate.*`, `config.*`; environment `states.memory`; the signal's reason */
export async function benchDecoding(
  bench: DecodingBench,
  { onStage, onResult }: DecodingObserver = {},
): Promise<DecodingTimes[]> {
  const { device, library, manifest, dtype, steps, vocab } = bench
  const config = decoderOnly(bench)
  const limits = { vocab, positions: config.positions, cases: 1, endTokens: config.endTokens }
  const generation = resolveGeneration({ ...bench.choice, maxNewTokens: steps }, limits)
  const weights = syntheticTensors(seq2seqShapes(config), dtype)
  const models = bench.plans.map((name) => {
    const plan = findPlan(name, manifest.plans)
    const encoder = assembleSeq2seqEncoder(config, plan)
    const decoder = assembleDecoder(config, false, plan, generation, 1)
    const applications = [...encoder.wired.applications, ...decoder.wired.applications]
    expectPlanTypes(name, applications, { T: dtype }, manifest)
    return { plan, encoder, applications }
  })
  const prepared = Object.assign({}, ...models.map(({ applications }) => prepareWeights(applications, weights, layouts)))
  const session = await openSession({ device, library, manifest, layouts, weights: prepared })
  const results: DecodingTimes[] = []
  try {
    for (const batch of bench.batches) {
      const width = generation.choice.kind === 'beams' ? generation.choice.width : 1
      const perRun = Math.min(stepsPerRun, steps)
      const capacity = Math.ceil(steps / perRun) * perRun
      const shape = { batch, width, source: bench.memory, capacity, ends: 1 }
      const candidates: Candidate[] = []
      try {
        for (const { plan, encoder } of models) {
          onStage?.(`building ${plan.name} at batch ${batch}`)
          const opened = { session, config, plan, encoder, headBias: false, generation, shape, dtype, stepsPerRun: perRun }
          candidates.push({ plan: plan.name, decoding: await openDecoding(opened), samples: [] })
        }
        onStage?.(`timing batch ${batch}`)
        await measure(bench, candidates)
        for (const candidate of candidates) {
          const times = await describe(bench, candidate)
          onResult?.(times)
          results.push(times)
        }
      } finally {
        for (const { decoding } of candidates) decoding.release()
      }
    }
  } finally {
    session.release()
  }
  return results
}

interface Candidate {
  readonly plan: string
  readonly decoding: Decoding
  readonly samples: number[]
}

/** Random sources for a round. */
function batchOf({ vocab, memory }: DecodingBench, { shape }: Decoding, round: number): DecodingBatch {
  const next = random(`sources ${round}`)
  const sources = Array.from({ length: shape.batch }, () => Array.from({ length: memory }, () => integer(next, 0, vocab - 1)))
  return { sources, cases: sources.map((_, i) => i) }
}

/** Times whole runs of the plans interleaved, in alternating order. */
async function measure(bench: DecodingBench, candidates: readonly Candidate[]): Promise<void> {
  const { steps, repeats, signal } = bench
  for (let round = 0; round < repeats + warmup; round++) {
    for (const { decoding, samples } of round % 2 === 0 ? candidates : candidates.toReversed()) {
      signal?.throwIfAborted()
      const batch = batchOf(bench, decoding, round)
      const began = performance.now()
      decoding.start(batch, signal)
      await decoding.advance(Math.ceil(steps / decoding.stepsPerRun), signal)
      const took = performance.now() - began
      if (round >= warmup) samples.push(took)
    }
  }
}

async function describe(bench: DecodingBench, { plan, decoding, samples }: Candidate): Promise<DecodingTimes> {
  const { shape, stepsPerRun: perRun, steps: program, stateBytes } = decoding
  const perStep = (count: number): number => count / perRun
  const replays: number[] = []
  for (let round = 0; round < bench.repeats; round++) {
    // A replay continues after the previous one and would exceed the caches, so each starts again.
    decoding.start(batchOf(bench, decoding, round))
    replays.push(...(await program.time(1, 0)))
  }
  decoding.start(batchOf(bench, decoding, 0))
  return {
    plan,
    batch: shape.batch,
    width: shape.width,
    steps: bench.steps,
    milliseconds: summarise(samples),
    step: summarise(replays.map(perStep)),
    kernels: perStep(program.steps.filter(({ kind }) => kind === 'kernel').length),
    matmuls: perStep(program.steps.filter(({ kind }) => kind === 'matmul').length),
    captured: program.captured,
    memory: { stateBytes, arenaBytes: program.memory.arenaBytes, weightBytes: program.memory.weightBytes },
    profile: bench.profile ? stepTimes(program, await program.profile(1), perRun) : undefined,
  }
}
