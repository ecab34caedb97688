/**
 * Reads tokens into the caches of rows, pass by pass. The programs over passes of different shapes are built when first needed, share one
 * arena, and are cached.
 */
import type { FloatType } from '../../checkpoint/convert.js'
import type { ModelPlan } from '../../program/index.js'
import { abortable } from '../../runtime/abortable.js'
import { buildProgram, type Program } from '../../runtime/program.js'
import type { Session } from '../../runtime/session.js'
import { type OwnedArena, type SharedArena, sharedArena } from '../../runtime/shared_arena.js'
import type { States } from '../../runtime/states.js'
import { type Assembly, statesOf } from '../parts/assembly.js'
import { type Cache, releasingCache } from '../parts/lru_cache.js'
import type { LlamaConfig } from './config.js'
import { fixedPasses, inputsOf, type PassShape, passesOf, passInputs, passShape, type Run, type Unread } from './passes.js'
import { assemblePrompt, type Given, modelDims } from './programs.js'
import type { RowsShape } from './shapes.js'

export interface ReaderConfig {
  readonly session: Session
  readonly config: LlamaConfig
  readonly plan: ModelPlan
  readonly shape: RowsShape
  readonly dtype: FloatType
}

/** Requested outputs of a pass, which fills the caches in any case. */
export interface PassRequest {
  /** Tokens to return outputs of, by index in the pass. */
  readonly wanted: readonly number[]
  /** Ids whose likelihood after each wanted token is requested; logits if undefined. */
  readonly targets?: readonly number[]
}

export interface PassReader {
  /** Device memory of temporaries of the largest pass so far. */
  readonly arenaBytes: number
  /** Splits unread tokens into passes of at most `most` tokens, or of the shape's fixed size. */
  passes(unread: readonly Unread[], most: number): Iterable<readonly Run[]>
  /** Reads one pass. @returns the outputs of its program by name */
  run(
    pass: readonly Run[],
    most: number,
    request: PassRequest | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Readonly<Record<string, Uint8Array>>>
  /** The program that reads a pass without outputs. */
  program(pass: readonly Run[], most: number): Promise<Program>
  release(): void
}

/** A reader's configuration and caches. */
interface Reading extends ReaderConfig {
  readonly states: States
  readonly programs: Cache<Program>
  readonly arena: OwnedArena
  readonly assemblies: Map<Given, Assembly>
}

/** Number of cached programs over passes of different shapes. */
const cachedPasses = 48

/** Builds a program over the states of rows. */
export const buildOver = (
  { session, dtype, states }: Pick<Reading, 'session' | 'dtype' | 'states'>,
  assembly: Assembly,
  dims: Readonly<Record<string, number>>,
  arena?: SharedArena,
): Promise<Program> =>
  buildProgram({ session, ...assembly.wired, states: statesOf(assembly, states), dims, types: { T: dtype }, arena })

export function passReader(config: ReaderConfig, states: States): PassReader {
  const { shape } = config
  const programs = releasingCache<Program>(cachedPasses)
  const arena = sharedArena(config.session.device)
  const reading: Reading = { ...config, states, programs, arena, assemblies: new Map() }
  return {
    get arenaBytes() {
      return arena.bytes
    },
    passes: (unread, most) => (shape.pass === undefined ? passesOf(unread, most) : fixedPasses(unread, shape.pass)),
    run: (pass, most, request, signal) => runPass(reading, extentsOf(shape, pass, most), pass, request, signal),
    program: (pass, most) => programFor(reading, extentsOf(shape, pass, most), 'nothing', 1),
    release() {
      void programs.clear()
      arena.release()
    },
  }
}

const extentsOf = ({ pass: fixed }: RowsShape, pass: readonly Run[], most: number): PassShape =>
  fixed === undefined ? passShape(pass, most) : { tokens: fixed, sequences: 1, longest: fixed }

async function runPass(
  reading: Reading,
  extents: PassShape,
  pass: readonly Run[],
  request: PassRequest | undefined,
  signal: AbortSignal | undefined,
) {
  const { shape } = reading
  const gives = request === undefined ? 'nothing' : request.targets === undefined ? 'logits' : 'losses'
  const count =
    shape.pass === undefined || request === undefined ? 2 ** Math.ceil(Math.log2(request?.wanted.length ?? 1)) : shape.pass
  const program = await programFor(reading, extents, gives, count)
  const padded = (values: readonly number[] = []): Int32Array => Int32Array.from({ length: count }, (_, i) => values[i] ?? 0)
  const given = { ...passInputs(pass, extents, shape.rows), wanted: padded(request?.wanted), targets: padded(request?.targets) }
  return abortable(program, signal, () => program.run(inputsOf(program, given)))
}

/** The program over passes of a shape, with room for `wanted` requested tokens. */
function programFor(reading: Reading, pass: PassShape, gives: Given, wanted: number): Promise<Program> {
  const { config, shape, programs, arena } = reading
  const key = JSON.stringify([pass, gives, wanted])
  const sizes = { r: shape.rows, u: shape.capacity, t: pass.tokens, b: pass.sequences, s: pass.longest, k: wanted }
  return programs.get(key, () =>
    buildOver(
      reading,
      assemblyOf(reading, gives),
      { ...modelDims(config), ...sizes },
      arena.for(() => programs.clear(key)),
    ),
  )
}

function assemblyOf({ config, plan, shape, assemblies }: Reading, gives: Given): Assembly {
  const assembly = assemblies.get(gives) ?? assemblePrompt(config, plan, gives, shape.ropeRange)
  assemblies.set(gives, assembly)
  return assembly
}
