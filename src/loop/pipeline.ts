/** The passes of the loop IR, in order. `heddle inspect --passes` shows what each of them makes. */
import type { DividedProgram } from '../schedule/divided/divided_program.js'
import type { Step } from '../schedule/normalise/passes.js'
import { type Access, eachLoop, type Loop } from './ir.js'
import { lowerSteps } from './lower.js'
import { lowerWalks } from './lower_walks.js'
import { divideChunks } from './passes/divide_chunks.js'
import { placeLoads } from './passes/place_loads.js'
import { requestVectors } from './passes/request_vectors.js'
import { unroll } from './passes/unroll.js'
import { version, versionWalks, withoutChecks } from './passes/version.js'
import { type Frame, newState } from './state.js'
import { verifyLoops } from './verify.js'

/** Steps of a row, or a program whose rows are divided too. */
export type Lowered = readonly Step[] | DividedProgram

/** Passes, by the name that `inspect` shows. A test replaces each by a faulty one. */
export const loopPasses = {
  lower: (given: Lowered, frame: Frame): readonly Loop[] =>
    'kind' in given ? lowerWalks(given) : lowerSteps(given, newState(frame)),
  version: (loops: readonly Loop[], frame: Frame): readonly Loop[] =>
    frame.walk === 'columns' || frame.walk === 'parts' ? versionWalks(loops, frame) : version(loops, frame),
  divideChunks: (loops: readonly Loop[], frame: Frame): readonly Loop[] => divideChunks(loops, frame),
  placeLoads: (loops: readonly Loop[], frame: Frame): readonly Loop[] => placeLoads(loops, frame),
  requestVectors: (loops: readonly Loop[], frame: Frame): readonly Loop[] => requestVectors(loops, frame),
  unroll: (loops: readonly Loop[], _: Frame): readonly Loop[] => unroll(loops),
} as const

/** Loops of a program. @param see receives the loops after each pass */
export function loopsOf(
  given: Lowered,
  frame: Frame,
  passes: typeof loopPasses = loopPasses,
  see: (pass: string, loops: readonly Loop[]) => void = () => undefined,
): readonly Loop[] {
  const seen = (pass: string, loops: readonly Loop[]): readonly Loop[] => {
    verifyLoops(loops, frame.known ?? [], pass)
    see(pass, loops)
    return loops
  }
  let loops = seen('lowering to loops', passes.lower(given, frame))
  if (frame.walk === 'single')
    return frame.isWhole === true && loadsSeveral(loops) ? seen('versioning', passes.version(loops, frame)) : loops
  loops = seen('versioning', passes.version(loops, frame))
  if (frame.walk === 'columns' || frame.walk === 'parts') return loops
  loops = seen('dividing chunks', passes.divideChunks(loops, frame))
  loops =
    frame.walk === 'kept'
      ? seen('placing loads', passes.placeLoads(loops, frame))
      : seen('unrolling', passes.unroll(loops, frame))
  return seen('requesting vectors', passes.requestVectors(loops, frame))
}

/**
 * True if a thread with one chunk loads several: checks of each would part their loads, so that fewer are in flight (a convolution of four rows took 9 %
 * longer on an H200). Steps for pieces of a row are a version already: another took 5 % longer.
 */
function loadsSeveral(loops: readonly Loop[]): boolean {
  let loads = 0
  eachLoop(loops, ({ kind }) => {
    loads += kind === 'copy' ? 1 : 0
  })
  return loads > 1
}

/** Loops of steps that are part of another program. @param whole accesses that need no checks in the version for whole rows */
export function partLoops(steps: readonly Step[], frame: Frame, whole?: (access: Access) => boolean): readonly Loop[] {
  const lowered = loopPasses.lower(steps, frame)
  return loopPasses.unroll(whole === undefined ? lowered : withoutChecks(lowered, whole), frame)
}
