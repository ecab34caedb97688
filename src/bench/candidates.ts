/**
 * Candidates of the encoder benchmark: the programs of each plan and shape, over sessions shared by all plans, with inputs uploaded. A
 * candidate also has a single forward pass, whose steps and memory are reported. When weights rotate, the replayed program is another.
 */
import { layouts } from '../../specs/index.js'
import type { FloatType } from '../checkpoint/convert.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { type Assembly, assembleBert, assemblePairs, bertDims, type LayerScales } from '../models/encoder/bert.js'
import type { BertConfig } from '../models/encoder/config.js'
import { idRows } from '../models/parts/token_rows.js'
import { findPlan } from '../program/plans.js'
import { encode } from '../runtime/buffer.js'
import type { KernelSource } from '../runtime/library.js'
import type { NativeDevice } from '../runtime/native.js'
import { packedRows } from '../runtime/packed_rows.js'
import { expectPlanTypes } from '../runtime/plan_types.js'
import { prepareWeights } from '../runtime/prepare_weights.js'
import { buildProgram, type Program } from '../runtime/program.js'
import { hasInt8Weights } from '../runtime/program_wiring.js'
import { openSession, type Session, type WeightTensor } from '../runtime/session.js'
import { type AlgorithmOf, tunedAlgorithms } from '../runtime/tuned_matmuls.js'
import type { TunedMatmul } from '../schedule/tuning/library.js'
import { integer, random } from '../verify/random.js'
import { type Ceilings, layerBytes } from './floor.js'
import type { Lengths } from './lengths.js'
import { type Footprint, footprintOf } from './memory.js'
import type { Shape } from './result.js'
import { cacheOf, chain, chained, chainedWeights, type Rotation, rotationOf } from './rotation.js'
import { syntheticWeights } from './synthetic.js'

export interface EncoderBench {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  readonly config: BertConfig
  readonly dtype: FloatType
  readonly plans: readonly string[]
  readonly shapes: readonly Shape[]
  readonly lengths: Lengths
  /** True to apply a random attention mask over pairs of tokens, in addition to the lengths. */
  readonly masked?: boolean | undefined
  /** Timed replays of each plan and shape. */
  readonly repeats: number
  /** Also times every step separately. */
  readonly profile: boolean
  /** Undefined if the limits of the device are unknown. */
  readonly ceilings: Ceilings | undefined
  /** Tuned algorithms of the matmul library: each plan is timed with the library's first ones, and with these. */
  readonly algorithms?: readonly TunedMatmul[] | undefined
  readonly signal?: AbortSignal | undefined
}

/** A model under a plan. */
export interface Assembled extends Assembly {
  readonly plan: string
  /** Algorithms of library matmuls, if other than the session's. */
  readonly algorithmOf?: AlgorithmOf
}

/** A plan at a shape, ready to be timed. */
export interface Candidate {
  readonly model: Assembled
  /** One forward pass. */
  readonly single: Program
  /** The replayed program: `single` itself, or a chain of passes over rotating weights and ids. */
  readonly timed: Program
  readonly memory: Footprint
}

/** Sessions of a benchmark: the model, and its copies for chains. */
export interface Sessions {
  readonly single: Session
  readonly chain: Session | undefined
  readonly rotation: Rotation
}

/** Name of a plan with the given algorithms. */
export const tunedName = (plan: string): string => `${plan} tuned`

/** The model under each plan; with tuned algorithms, each plan appears twice. @throws usage `plan.unknown`, `plan.dtype` */
export const assemble = (
  {
    device,
    config,
    dtype,
    manifest,
    plans,
    masked,
    algorithms,
  }: Pick<EncoderBench, 'device' | 'config' | 'dtype' | 'manifest' | 'plans' | 'masked' | 'algorithms'>,
  scales?: LayerScales,
): Assembled[] =>
  plans.flatMap((plan): Assembled[] => {
    const model = (masked ? assemblePairs : assembleBert)(config, findPlan(plan, manifest.plans), false, scales)
    expectPlanTypes(plan, model.applications, { T: dtype }, manifest)
    if (algorithms === undefined) return [{ plan, ...model }]
    const tuned = tunedAlgorithms(algorithms, device.info())
    return [
      { plan, ...model, algorithmOf: () => undefined },
      { plan: tunedName(plan), ...model, algorithmOf: tuned },
    ]
  })

/** Uploads the weights that any of the plans reads. */
export async function openSessions(
  { device, library, manifest, config, dtype }: EncoderBench,
  models: readonly Assembled[],
): Promise<Sessions> {
  // All plans use the same rotation; int8 weights need more passes than float weights.
  const narrow = models.some(hasInt8Weights) ? 'i8' : dtype
  const rotation = rotationOf(layerBytes(config, narrow), cacheOf(device.info()))
  const { passes } = rotation
  const common = { device, library, manifest, layouts }
  const weights = syntheticWeights(config, dtype)
  const exact = dtype === 'f32' || narrow !== 'i8' ? weights : syntheticWeights(config, 'f32')
  type Copies = (tensors: Record<string, WeightTensor>) => Record<string, WeightTensor>
  const open = (applications: Assembly['applications'], copies: Copies): Promise<Session> =>
    openSession({ ...common, weights: prepareWeights(applications, copies(weights), layouts, copies(exact)) })
  const single = await open(
    models.flatMap(({ applications }) => applications),
    (tensors) => tensors,
  )
  if (passes === 1) return { single, chain: undefined, rotation }
  try {
    const chains = models.flatMap((model) => chain(model, model.inputs, passes).applications)
    return { single, chain: await open(chains, (tensors) => chainedWeights(passes, tensors)), rotation }
  } catch (error) {
    single.release()
    throw error
  }
}

export const release = ({ single, timed }: Pick<Candidate, 'single' | 'timed'>): void => {
  single.release()
  if (timed !== single) timed.release()
}

/** Builds the programs of a plan and shape, runs them once with real ids, and captures the timed one. */
export async function prepare(bench: EncoderBench, sessions: Sessions, model: Assembled, shape: Shape): Promise<Candidate> {
  const { passes } = sessions.rotation
  const tokens = packedRows(bench.lengths(shape.batch, shape.seq), shape.seq)
  const at = { dims: bertDims(bench.config, { ...shape, tokens }), types: { T: bench.dtype } }
  const flat = { ...model, ...at }
  const under = (session: Session): Session =>
    model.algorithmOf === undefined ? session : { ...session, algorithmOf: model.algorithmOf }
  const single = await buildProgram({ session: under(sessions.single), ...flat })
  let timed = single
  try {
    if (sessions.chain !== undefined) {
      timed = await buildProgram({ session: under(sessions.chain), ...chain(model, model.inputs, passes), ...at })
    }
    const candidate = { model, single, timed, memory: footprintOf(single, sessions.single, flat) }
    if (timed !== single) await single.run(inputsOf(bench, model, shape, 'single'))
    await refresh(bench, sessions.rotation, shape, candidate, 0)
    await timed.capture()
    return candidate
  } catch (error) {
    release({ single, timed })
    throw error
  }
}

/** Input values of one pass; `draw` names the ids. */
function inputsOf(
  { config, lengths: draw, masked }: EncoderBench,
  { packed }: Assembly,
  { batch, seq }: Shape,
  name: string,
): Record<string, Uint8Array> {
  const next = random(`ids ${batch}x${seq} ${name}`)
  const lengths = draw(batch, seq)
  const sequences = lengths.map((length) => Array.from({ length }, () => integer(next, 0, config.vocab - 1)))
  const rows = packed.inputs ? packedRows(lengths, seq) : batch * seq
  return {
    ids: encode('i32', idRows(sequences, { seq, rows, packed: packed.inputs, filler: 0 })),
    typeIds: encode('i32', new Int32Array(rows)),
    lengths: encode('i32', Int32Array.from(lengths)),
    ...(masked ? { mask: Uint8Array.from({ length: batch * seq * seq }, () => integer(next, 0, 1)) } : {}),
  }
}

/** Uploads the ids of a round by a run. Every plan gets the same ids. */
export async function refresh(
  bench: EncoderBench,
  { passes }: Rotation,
  shape: Shape,
  { model, single, timed }: Candidate,
  round: number,
): Promise<void> {
  const of = (pass: number): Record<string, Uint8Array> => inputsOf(bench, model, shape, `${round}/${pass}`)
  await timed.run(timed === single ? of(0) : chained(passes, of))
}
