/** A stage with given times, which stands for a device. */

import { summarise } from '../../../src/bench/statistics.js'
import type { SuiteClock } from '../../../src/bench/suite/result.js'
import type { SuiteStage } from '../../../src/bench/suite/run.js'
import { defineSuite, type SuiteDecl } from '../../../src/lang/suite.js'

/** Two plans at two shapes in two types. */
export const suite: SuiteDecl = defineSuite({
  subject: 'layer',
  plans: ['unfused', 'fused'],
  versus: 'unfused',
  shapes: [{ m: 1 }, { m: 64 }],
  dtypes: ['f32', 'f16'],
})

/** Milliseconds: unfused takes m in f32 and half of it in f16, fused the given share of it, in one of two kernels. */
export const given = (share: (m: number) => number, clock: SuiteClock = 'cuda'): SuiteStage => ({
  clock,
  device: 'cuda GPU 1',
  predictedOn: 'GPU 1',
  notes: ['a note'],
  completed: (_, dims) => ({ ...dims, n: 2 }),
  time: async (dtype, { m = 0, ...others }) =>
    ['unfused', 'fused'].map((plan) => {
      const time = (dtype === 'f16' ? 0.5 : 1) * m * (plan === 'fused' ? share(m) : 1)
      const samples = clock.startsWith('model ') ? [time] : [0.98, 0.99, 1, 1, 1.01, 1.02].map((factor) => factor * time)
      const profile = [
        { kernel: 'heavy', count: 1, milliseconds: time - 0.1 * m },
        { kernel: 'light', count: 2, milliseconds: 0.1 * m },
      ]
      const cell = { plan, peer: false, dtype, dims: { m, ...others }, samples, milliseconds: summarise(samples), profile }
      return { ...cell, predicted: time / 2, launches: 3 }
    }),
})

export const host = { root: '.', signal: new AbortController().signal, log: (): void => undefined }
