/** A run of the fuzzer: ops, then graphs under plans, in batches that share one `gen` and one library. */
import { drawOp } from './draw_op.js'
import type { DeviceKind } from './house.js'
import { seedOf } from './random.js'
import { Tally, writeGraph, writeOp } from './report.js'
import { drawSubject, runGraphs } from './run_graphs.js'
import { runOps, type Subject } from './run_ops.js'
import { shrink } from './shrink.js'
import { shrinkGraph } from './shrink_graph.js'

export interface RunOptions {
  readonly device: DeviceKind
  readonly seed: number
  /** Number of random ops. */
  readonly ops: number
  /** Plans that are run at least; those that are refused do not count. */
  readonly plans: number
  /** The number of the first op, and of the first graph. */
  readonly from: number
  readonly batch: number
  /** The folder that failures are written to. */
  readonly out: string
  readonly shrinks: boolean
  readonly log: (line: string) => void
}

const plansOfEach = 3

export async function fuzz(options: RunOptions): Promise<Tally> {
  const tally = new Tally()
  await fuzzOps(options, tally)
  await fuzzGraphs(options, tally)
  return tally
}

async function fuzzOps({ device, seed, ops, from, batch, out, shrinks, log }: RunOptions, tally: Tally): Promise<void> {
  for (let first = 0; first < ops; first += batch) {
    const subjects = Array.from({ length: Math.min(batch, ops - first) }, (_, i): Subject => {
      const at = from + first + i
      return { op: drawOp(seedOf(seed, at), `fuzz_${at}`), seed: seedOf(seed, at) }
    })
    const { ran, refused, failures, verdict } = await runOps(device, subjects)
    tally.ops += ran
    tally.count('ops', refused, verdict)
    for (const failure of failures) {
      tally.failed++
      log(`FAILURE ${failure.op.name}, seed ${seed}: ${failure.kind}: ${failure.message}`)
      log(`  written to ${writeOp(out, seed, shrinks ? await shrink(device, failure) : failure)}`)
    }
    log(tally.text)
  }
}

async function fuzzGraphs({ device, seed, plans, from, batch, out, shrinks, log }: RunOptions, tally: Tally): Promise<void> {
  // Graphs of which most plans are refused leave the rest to others, but not without end.
  for (let first = from; tally.plans < plans && first < from + plans + batch; ) {
    const count = Math.max(1, Math.min(Math.ceil(batch / 6), Math.ceil((plans - tally.plans) / 2)))
    const subjects = Array.from({ length: count }, (_, i) => drawSubject(seed, first + i, plansOfEach))
    first += count
    const { graphs, plans: ran, refused, failures, verdict } = await runGraphs(device, subjects)
    tally.graphs += graphs
    tally.plans += ran
    tally.count('plans', refused, verdict)
    for (const failure of failures) {
      tally.failed++
      log(`FAILURE ${failure.subject.graph.name} under ${failure.plan}, seed ${seed}: ${failure.kind}: ${failure.message}`)
      log(`  written to ${writeGraph(out, seed, shrinks ? await shrinkGraph(device, failure) : failure)}`)
    }
    log(tally.text)
  }
}
