/** Failures of groups in a search: what is stored, what is tried again, and what ends the search. */
import { describe, expect, it } from 'vitest'
import { failureOf } from '../../src/bench/search/failures.js'
import { environmentError, findingError, usageError } from '../../src/errors.js'

const { signal } = new AbortController()
const thrown = (error: unknown, given = signal): unknown => {
  try {
    return failureOf(error, given)
  } catch (reason) {
    return { reason }
  }
}

describe('a failure of a group', () => {
  it('is stored if it follows from the kernel', () => {
    expect(failureOf(findingError('build.spill', 'k spills 8 bytes\nmore'), signal)).toEqual({ refused: 'k spills 8 bytes' })
    expect(failureOf(usageError('plan.meaning', 'another value'), signal)).toEqual({ refused: 'another value' })
  })

  it('is tried again by the next search if there was no room', () => {
    expect(failureOf(environmentError('device.memory', 'out of memory'), signal)).toEqual({ skipped: 'out of memory' })
  })

  it('ends the search if every group would meet it, or if it is a defect', () => {
    for (const error of [environmentError('device.fault', 'lost'), new TypeError('x is undefined')]) {
      expect(thrown(error)).toEqual({ reason: error })
    }
    const stopped = AbortSignal.abort('stopped')
    expect(thrown(usageError('plan.meaning', 'another value'), stopped)).toEqual({ reason: 'stopped' })
  })
})
