/** The report of a run: counts, refusals by their codes, and failures as specs in a folder. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mostUnjudged } from './bounds.js'
import { together, type Verdict } from './judge.js'
import { layoutModule, printOp } from './print.js'
import { printGraph, printPlan } from './print_graph.js'
import type { Refusal } from './project.js'
import type { GraphFailure } from './run_graphs.js'
import type { Failure } from './run_ops.js'

/** Sums over batches. */
export class Tally {
  ops = 0
  graphs = 0
  plans = 0
  failed = 0
  readonly refused = { ops: new Map<string, number>(), plans: new Map<string, number>() }
  verdict: Verdict = { elements: 0, unjudged: 0, wrong: 0 }

  count(of: 'ops' | 'plans', refused: readonly Refusal[], verdict: Verdict): void {
    for (const { code } of refused) this.refused[of].set(code, (this.refused[of].get(code) ?? 0) + 1)
    this.verdict = together([this.verdict, verdict])
  }

  /** Elements that the run may leave unjudged. */
  get allowedUnjudged(): number {
    return mostUnjudged(this.ops + this.graphs) * this.verdict.elements
  }

  /** One line. */
  get text(): string {
    const codes = (of: 'ops' | 'plans'): string => {
      const all = [...this.refused[of]].sort(([, a], [, b]) => b - a).map(([code, count]) => `${code} ${count}`)
      return all.length === 0 ? 'none' : all.join(', ')
    }
    const { elements, unjudged } = this.verdict
    const share = elements === 0 ? 0 : (100 * unjudged) / elements
    return (
      `${this.ops} ops (refused: ${codes('ops')}), ${this.graphs} graphs under ${this.plans} plans (refused: ${codes('plans')}), ` +
      `${elements} elements, ${share.toFixed(1)} % not judged, ${this.failed} failures`
    )
  }
}

/** Writes an op that fails as a project that `heddle check` takes. @returns the folder */
export function writeOp(out: string, seed: number, { op, kind, message }: Failure): string {
  const folder = join(out, `${op.name}_seed_${seed}`)
  mkdirSync(join(folder, 'specs'), { recursive: true })
  writeFileSync(join(folder, 'specs', `${op.name}.ts`), printOp(op))
  writeFileSync(join(folder, 'specs', 'layouts.ts'), layoutModule)
  writeFileSync(join(folder, 'failure.txt'), `${kind}: ${message}\n`)
  writeFileSync(join(folder, 'op.json'), `${JSON.stringify(op, undefined, 1)}\n`)
  return folder
}

/** Writes a graph that fails, with its plan. @returns the folder */
export function writeGraph(out: string, seed: number, { subject: { graph, plans }, plan, kind, message }: GraphFailure): string {
  const folder = join(out, `${graph.name}_seed_${seed}`)
  mkdirSync(join(folder, 'specs'), { recursive: true })
  writeFileSync(join(folder, 'specs', `${graph.name}.ts`), printGraph(graph))
  for (const each of plans)
    if (each.name === plan) writeFileSync(join(folder, 'specs', `${each.name}.ts`), printPlan(graph, each))
  writeFileSync(join(folder, 'failure.txt'), `${plan}: ${kind}: ${message}\n`)
  return folder
}
