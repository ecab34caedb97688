/** Overlapping runs of one program: an aborted run stops the device only if nobody else waits for it. */
import { expect, it } from 'vitest'
import { usageError } from '../../src/errors.js'
import { abortable } from '../../src/runtime/abortable.js'

/** Work whose abort rejects every run in flight, as a device does. */
function device() {
  const running = new Set<{ readonly end: () => void; readonly fail: (error: Error) => void }>()
  let aborts = 0
  return {
    get aborts() {
      return aborts
    },
    running,
    abort() {
      aborts += 1
      for (const run of running) run.fail(usageError('device.aborted', 'the run was aborted'))
    },
    run: (): Promise<string> =>
      new Promise<string>((end, fail) => {
        const each = { end: () => end('done'), fail }
        running.add(each)
      }),
  }
}

const outcome = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error)

it('ends the run of its signal alone', async () => {
  const work = device()
  const [first, second] = [new AbortController(), new AbortController()]
  const runs = [
    abortable(work, first.signal, work.run),
    abortable(work, undefined, work.run),
    abortable(work, second.signal, work.run),
  ]
  first.abort('first')
  expect(work.aborts).toBe(0)
  for (const { end } of [...work.running].slice(0, 2)) end()
  expect(await outcome(runs[0] ?? Promise.resolve())).toBe('first')
  expect(await runs[1]).toBe('done')
  expect(work.aborts).toBe(0)
  second.abort('second')
  expect(work.aborts).toBe(1)
  expect(await outcome(runs[2] ?? Promise.resolve())).toBe('second')
})

it('stops the device once the runs that somebody wants are over', async () => {
  const work = device()
  const given = new AbortController()
  const kept = abortable(work, undefined, work.run)
  const aborted = abortable(work, given.signal, work.run)
  given.abort('reason')
  const [one] = work.running
  one?.end()
  expect(await kept).toBe('done')
  expect(await outcome(aborted)).toBe('reason')
  expect(work.aborts).toBe(1)
  await expect(abortable(work, given.signal, work.run)).rejects.toBe('reason')
})
