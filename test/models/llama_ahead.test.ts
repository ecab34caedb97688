/** The loop over decoding steps: its requests and their times, on rows that only record them. */
import { describe, expect, it } from 'vitest'
import { type Advanced, runsAhead, type Span } from '../../src/models/llama/ahead.js'

const shape = { rows: 2, steps: 40, perRun: 8 }
const all: Span = { from: 0, most: 40, whole: false }

/** Rows of two texts that have ended after `end` steps; tokens are the numbers of their steps. */
function noting(end: number) {
  const trace: string[] = []
  const resolvers: (() => void)[] = []
  return {
    trace,
    /** Lets the oldest run end. */
    finish: () => resolvers.shift()?.(),
    rows: {
      shape,
      advance(step: number): Promise<Advanced> {
        trace.push(`ask ${step}`)
        const words = Int32Array.from({ length: 16 }, (_, i) => step + Math.floor(i / 2))
        return new Promise((resolve) => resolvers.push(() => resolve({ ended: step + 8 >= end, words })))
      },
      stop: () => trace.push('stop'),
    },
  }
}

async function drained(end: number, span: Span, look: (step: number) => void = () => {}) {
  const { rows, trace, finish } = noting(end)
  const runs = runsAhead(rows, span, undefined)
  for (let next = runs.next(); ; next = runs.next()) {
    finish()
    const { done, value } = await next
    if (done === true) return trace
    trace.push(`look ${value.step}`)
    look(value.step)
    const steps = Array.from({ length: shape.steps }, (_, step) => (step >= span.from && step < value.step ? step : -1))
    expect([...value.history]).toEqual(steps.flatMap((step) => [step, step]))
  }
}

describe('runs of steps', () => {
  it('are requested one ahead of the one being processed, and no more than needed', async () => {
    const asked = ['ask 0', 'ask 8', 'ask 16', 'look 8', 'ask 24', 'look 16', 'ask 32', 'look 24', 'look 32', 'look 40']
    expect(await drained(40, all)).toEqual(asked)
    expect(await drained(99, { ...all, from: 3, most: 4 })).toEqual(['ask 3', 'look 11'])
    expect(await drained(99, { ...all, most: 0 })).toEqual([])
  })

  it('end with the texts: later requests are stopped, unless their state is needed', async () => {
    const asked = ['ask 0', 'ask 8', 'ask 16', 'look 8', 'look 16']
    expect(await drained(12, all)).toEqual([...asked, 'stop'])
    expect(await drained(12, { ...all, whole: true })).toEqual(asked)
  })

  it('are stopped when their reader leaves, and when a signal aborts', async () => {
    const left = noting(40)
    const runs = runsAhead(left.rows, all, undefined)
    const first = runs.next()
    left.finish()
    await first
    await runs.return()
    expect(left.trace).toEqual(['ask 0', 'ask 8', 'ask 16', 'stop'])

    const aborted = noting(40)
    const controller = new AbortController()
    const waited = runsAhead(aborted.rows, all, controller.signal).next()
    controller.abort(new Error('enough'))
    aborted.finish()
    await expect(waited).rejects.toThrow('enough')
    expect(aborted.trace).toEqual(['ask 0', 'ask 8', 'stop'])
  })
})
