/** The passes of the loop IR, in order. `heddle inspect --passes` shows what each of them makes. */
import type { DividedProgram } from '../schedule/divided/divided_program.js'
import type { Step } from '../schedule/normalise/passes.js'
import { type Access, eachLoop, type Loop } from './ir.js'
import { lowerSteps } from './lower.js'
import { lowerWalks } from './lower_walks.js'
import { type Division, lowerWork } from './lower_work.js'
import { countPlaces, countsPlaces } from './passes/count_places.js'
import { divideChunks } from './passes/divide_chunks.js'
import { placeLoads } from './passes/place_loads.js'
import { requestVectors } from './passes/request_vectors.js'
import { shiftSums } from './passes/shift_sums.js'
import { spread } from './passes/spread.js'
import { unroll } from './passes/unroll.js'
import { version, versionWalks, withoutChecks } from './passes/version.js'
import { type Frame, newState } from './state.js'
import { verifyLoops } from './verify.js'

/** Steps of a row, or a program whose rows are divided too. */
type Program = readonly Step[] | DividedProgram

/** A program, and the division of its work. */
export interface Divided {
  readonly kind: 'divided'
  readonly program: Program
  readonly division: Division
}

/** Input of lowering: a whole kernel, or a part of another. */
export type Lowered = Program | Divided

function lower(given: Lowered, frame: Frame): readonly Loop[] {
  if (!('kind' in given)) return lowerSteps(given, newState(frame))
  if (given.kind !== 'divided') return lowerWalks(given)
  return lowerWork(given.division, lower(given.program, frame), (steps) => lower(steps, frame))
}

/** Passes, by the name that `inspect` shows. A test replaces each by a faulty one. */
export const loopPasses = {
  lower,
  countPlaces: (loops: readonly Loop[], frame: Frame): readonly Loop[] => countPlaces(loops, frame),
  shiftSums: (loops: readonly Loop[], _: Frame): readonly Loop[] => shiftSums(loops),
  version: (loops: readonly Loop[], frame: Frame): readonly Loop[] =>
    frame.walk === 'columns' || frame.walk === 'parts' ? versionWalks(loops, frame) : version(loops, frame),
  divideChunks: (loops: readonly Loop[], frame: Frame): readonly Loop[] => divideChunks(loops, frame),
  spread: (loops: readonly Loop[], frame: Frame): readonly Loop[] => spread(loops, frame),
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
  const verified = (pass: string, loops: readonly Loop[]): readonly Loop[] => {
    verifyLoops(loops, pass)
    see(pass, loops)
    return loops
  }
  let loops = verified('lowering to loops', passes.lower(given, frame))
  const apply = (name: string, pass: (loops: readonly Loop[], frame: Frame) => readonly Loop[]): void => {
    loops = verified(
      name,
      inShares(loops, (body) => pass(body, frame)),
    )
  }
  if ((frame.walk === 'reread' || frame.walk === 'parts') && hasShifts(loops)) apply('shifting sums', passes.shiftSums)
  if (frame.walk === 'single' && frame.isWhole === true) apply('counting places', passes.countPlaces)
  if (frame.walk !== 'single' || (frame.isWhole === true && (loadsSeveral(loops) || countsPlaces(loops))))
    apply('versioning', passes.version)
  if (frame.walk !== 'kept' && frame.walk !== 'reread') return loops
  apply('dividing chunks', passes.divideChunks)
  apply('spreading chunks', passes.spread)
  if (frame.walk === 'kept') apply('placing loads', passes.placeLoads)
  else apply('unrolling', passes.unroll)
  return verified('requesting vectors', passes.requestVectors(loops, frame))
}

/** True if sums are joined with the maximum that they are shifted by. */
function hasShifts(loops: readonly Loop[]): boolean {
  let found = false
  eachLoop(loops, (loop) => {
    found ||= loop.kind === 'accumulator' && typeof loop.monoid !== 'string' && 'shift' in loop.monoid
  })
  return found
}

/** Rewrites the loops of a share, after the nodes at which threads may be done. */
function inShares(loops: readonly Loop[], pass: (body: readonly Loop[]) => readonly Loop[]): readonly Loop[] {
  if (!loops.some(({ kind }) => kind === 'work')) return pass(loops)
  return loops.map((loop) => {
    if (loop.kind !== 'work') return loop
    const first = loop.body.findIndex(({ kind }) => kind !== 'narrow' && kind !== 'piece')
    return { ...loop, body: [...loop.body.slice(0, first), ...pass(loop.body.slice(first))] }
  })
}

/**
 * True if a thread with one chunk loads several: checks of each would part their loads, so that fewer are in flight (a convolution of four rows took 9 %
 * longer on an H200). Steps for pieces of a row are a version already: another took 5 % longer.
 */
function loadsSeveral(loops: readonly Loop[]): boolean {
  let loads = 0
  eachLoop(loops, (loop) => {
    if (loop.kind === 'copy') loads += loop.span === undefined ? 1 : 2
  })
  return loads > 1
}

/** Loops of steps that are part of another program. @param whole accesses that need no checks in the version for whole rows */
export function partLoops(steps: readonly Step[], frame: Frame, whole?: (access: Access) => boolean): readonly Loop[] {
  const lowered = loopPasses.lower(steps, frame)
  return loopPasses.unroll(whole === undefined ? lowered : withoutChecks(lowered, whole), frame)
}
