/** Thirty random ops and graphs under ten random plans, others at each commit, on the CPU device against their float64 meaning. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { seedOfTurn } from '../turns.js'
import { fuzz } from './run.js'

it('random ops and plans match their references, or are refused', async () => {
  const lines: string[] = []
  const seed = seedOfTurn()
  // The lines of a failure name the folder of its spec.
  const out = join(tmpdir(), 'heddle-fuzz-failures')
  const tally = await fuzz({
    device: 'simt',
    seed,
    ops: 30,
    plans: 10,
    from: 0,
    batch: 30,
    out,
    shrinks: false,
    log: (line) => void lines.push(line),
  })
  expect(tally.failed, `npm run fuzz -- --cases 30 --plans 10 --seed ${seed}\n${lines.join('\n')}`).toBe(0)
  expect(tally.ops).toBeGreaterThanOrEqual(25)
  expect(tally.plans).toBeGreaterThanOrEqual(10)
  expect(tally.verdict.unjudged, lines.join('\n')).toBeLessThan(tally.allowedUnjudged)
})
