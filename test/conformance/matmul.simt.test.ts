import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Device } from '../../src/runtime/device.js'
import type { NativeEpilogue, NativeMatmul, NativeStep } from '../../src/runtime/native.js'
import { checkAbuse } from '../../src/verify/abuse.js'
import { type Epilogue, type MatmulCase, matmulCases, runMatmul } from '../../src/verify/matmul.js'
import { openSimt } from './simt.js'

let device: Device
beforeAll(async () => {
  device = await openSimt()
})
afterAll(() => device.close())

describe('the matmul of the simt device', () => {
  it.each(['f32', 'f16', 'bf16'] as const)('equals a plain loop in %s: transposed, padded, batched, shared', async (dtype) => {
    const cases = matmulCases().filter((test) => test.dtype === dtype)
    expect(cases.length).toBeGreaterThan(300)
    const failures = []
    for (const test of cases) {
      const result = await runMatmul(device, test)
      if (!result.passed) failures.push(`${result.name}: ${result.detail}`)
    }
    expect(failures).toEqual([])
  })

  it('is refused when one product is left out', async () => {
    const [test] = matmulCases().filter(({ k, draw }) => k === 65 && draw === 'integer')
    if (test === undefined) throw new Error('no case')
    const short: Device = {
      ...device,
      program: (steps) =>
        device.program(
          steps.map((step) => {
            if (step.kind !== 'matmul') return step
            const [batch, m, n, k] = step.extents
            return { ...step, extents: [batch, m, n, k - 1] }
          }),
        ),
    }
    expect(await runMatmul(short, test)).toMatchObject({ passed: false })
  })

  /** The case in f16 of an epilogue on a matrix of 17 x 33. */
  const caseOf = (wanted: Epilogue, draw: MatmulCase['draw'], batch = 1): MatmulCase => {
    const test = matmulCases().find(
      (known) =>
        known.dtype === 'f16' &&
        known.m === 17 &&
        known.batch === batch &&
        known.orders[2] === 'n' &&
        known.draw === draw &&
        JSON.stringify(known.epilogue) === JSON.stringify(wanted),
    )
    if (test === undefined) throw new Error('no case')
    return test
  }
  /** The device with other steps for each product with an epilogue. */
  const withSteps = (change: (step: NativeMatmul, given: NativeEpilogue) => NativeStep): Device => ({
    ...device,
    program: (steps) =>
      device.program(
        steps.map((step) => {
          if (step.kind !== 'matmul' || step.epilogue === undefined) return step
          const { epilogue, ...product } = step
          return change(product, epilogue)
        }),
      ),
  })
  const both: Epilogue = { bias: true, residual: true, relu: false }
  const rectified: Epilogue = { bias: true, residual: false, relu: true }

  describe.each(['integer', 'normal'] as const)('of %s values', (draw) => {
    it.each<[string, Epilogue, (given: NativeEpilogue) => NativeEpilogue | undefined]>([
      ['no epilogue is given', both, () => undefined],
      ['the bias is left out', both, ({ bias: _, ...rest }) => rest],
      ['the residual is left out', both, ({ residual: _, ...rest }) => rest],
      [
        'the residual is read for a bias',
        both,
        ({ residual, ...rest }) => ({ ...rest, ...(residual ? { bias: residual } : {}) }),
      ],
      ['relu is left out', rectified, (given) => ({ ...given, relu: false })],
      ['relu is applied unasked', both, (given) => ({ ...given, relu: true })],
    ])('is refused when %s', async (_, wanted, fault) => {
      const test = caseOf(wanted, draw)
      const wrong = withSteps((product, given) => {
        const epilogue = fault(given)
        return epilogue === undefined ? product : { ...product, epilogue }
      })
      expect(await runMatmul(device, test)).toMatchObject({ passed: true })
      expect(await runMatmul(wrong, test)).toMatchObject({ passed: false })
    })
  })
})

describe('misuse of the simt device', () => {
  it('ends in typed errors and leaves it usable', async () => {
    expect((await checkAbuse(device)).filter(({ passed }) => !passed)).toEqual([])
  })
})
