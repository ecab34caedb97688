/** The queue of a search without a device: what it does when nothing is left to time. */
import { expect, it } from 'vitest'
import type { SearchStage } from '../../src/bench/search/clock.js'
import { TimingQueue } from '../../src/bench/search/queue.js'

const stage = (signal: AbortSignal) => ({ signal, ops: new Map(), byName: {} }) as unknown as SearchStage

it('goes on at once if all launches have results, such as those that are refused', async () => {
  const queue = new TimingQueue(stage(new AbortController().signal), { isOver: () => false, onTimed: () => undefined, busy: 8 })
  queue.start([])
  await queue.next()
  expect(queue.pending.size).toBe(0)
  await queue.close()
})

it('ends by the reason of the signal', async () => {
  const queue = new TimingQueue(stage(AbortSignal.abort(new Error('stopped'))), {
    isOver: () => false,
    onTimed: () => undefined,
    busy: 8,
  })
  await expect(queue.next()).rejects.toThrow('stopped')
})
