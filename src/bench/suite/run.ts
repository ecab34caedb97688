/**
 * Runs a suite: at every shape and type all plans, interleaved, then the peers. Where times come from is a stage: a device, or the cost model of
 * one; tests give their own.
 */
import type { SuiteDecl, SuiteType } from '../../lang/suite.js'
import { timePeer } from './peers.js'
import { clockText, type Dims, type SuiteCell, type SuiteClock, type SuiteResult, shapeText, versusOf } from './result.js'

export interface SuiteStage {
  readonly clock: SuiteClock
  /** Kind and model. */
  readonly device: string
  /** Device of the predictions, if there are any. */
  readonly predictedOn?: string | undefined
  /** Further notes for the reader of the table. */
  readonly notes: readonly string[]
  /** A shape with all dimensions. @throws usage for one that the subject does not have */
  completed(dtype: SuiteType, dims: Dims): Dims
  /** All plans at a complete shape. */
  time(dtype: SuiteType, dims: Dims): Promise<readonly SuiteCell[]>
}

export interface SuiteHost {
  readonly root: string
  readonly signal: AbortSignal
  log(text: string): void
}

/** @throws errors of the stage, and the signal's reason */
export async function timeSuite(suite: SuiteDecl, file: string, stage: SuiteStage, host: SuiteHost): Promise<SuiteResult> {
  const { signal, log } = host
  const isModel = stage.clock.startsWith('model ')
  // Shapes are checked before anything is timed.
  const places = suite.dtypes.flatMap((dtype) => suite.shapes.map((dims) => ({ dtype, dims: stage.completed(dtype, dims) })))
  const cells: SuiteCell[] = []
  for (const [i, { dtype, dims }] of places.entries()) {
    signal.throwIfAborted()
    if (!isModel) log(`${suite.name} ${dtype} ${shapeText(dims)} (${i + 1} of ${places.length})\n`)
    cells.push(...(await stage.time(dtype, dims)))
  }
  const problems: Record<string, string> = {}
  // A price is not comparable to a time.
  const peers = isModel ? [] : Object.entries(suite.peers)
  for (const [name, command] of peers) {
    log(`timing ${name}\n`)
    const request = { subject: suite.subject, device: stage.device, repeats: suite.repeats, cells: places }
    const { cells: timed, problem } = await timePeer(name, command, request, host)
    cells.push(...timed)
    if (problem !== undefined) problems[name] = problem
  }
  return {
    suite: suite.name,
    subject: suite.subject,
    file,
    versus: versusOf(suite, cells),
    clock: stage.clock,
    device: stage.device,
    predictedOn: stage.predictedOn,
    cells,
    problems,
    notes: [clockText(stage.clock), ...stage.notes],
  }
}
