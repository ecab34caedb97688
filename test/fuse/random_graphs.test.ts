/**
 * Plans of random graphs are refused with a typed error, or compute the same as the graphs. A failure names the family and the seed. A rotating
 * third of the seeds.
 */
import { describe, expect, it } from 'vitest'
import { seedsInTurn } from '../turns.js'
import { judge, type Verdict } from './random/judge.js'
import { drawCase, type Family } from './random_graphs.js'

/** Number of graphs per family, and the minimum share that must be accepted: refusing all would pass otherwise. */
const drawn: readonly (readonly [Family, number, number])[] = [
  ['rows', 700, 0.5],
  ['products', 650, 0.3],
  ['pairs of products', 150, 0.15],
  ['attention', 600, 0.4],
]

const timeout = 600_000

describe('plans of random graphs', { timeout }, () => {
  it.each(drawn)('%s: of %i graphs, those in rotation are fused correctly or refused', (family, count, share) => {
    const refused = new Map<string, number>()
    const wrong: string[] = []
    let accepted = 0
    const seeds = seedsInTurn(count)
    for (const seed of seeds) {
      const verdict = attempt(family, seed)
      if (verdict.kind === 'wrong') wrong.push(`${family} ${seed}: ${verdict.how}`)
      else if (verdict.kind === 'accepted') accepted += 1
      else refused.set(verdict.reason, (refused.get(verdict.reason) ?? 0) + 1)
    }
    const reasons = [...refused].sort(([, a], [, b]) => b - a).map(([reason, times]) => `  ${times} ${reason}`)
    process.stdout.write(`${family}: ${accepted} of ${seeds.length} accepted\n${reasons.join('\n')}\n`)
    expect(wrong).toEqual([])
    expect(accepted / seeds.length).toBeGreaterThan(share)
  })
})

/** Anything but a typed refusal is wrong too: an internal error, a stack overflow. */
function attempt(family: Family, seed: number): Verdict {
  try {
    return judge(drawCase(family, seed))
  } catch (error) {
    return { kind: 'wrong', how: error instanceof Error ? error.message : String(error) }
  }
}
