import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Activation } from '../../src/ir/graph.js'
import type { Device } from '../../src/runtime/device.js'
import type { NativeEpilogue } from '../../src/runtime/native.js'
import { checkAbuse } from '../../src/verify/abuse.js'
import { type Epilogue, matmulCases, runMatmul } from '../../src/verify/matmul.js'
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

  /** The case of an epilogue on a matrix of 17 x 33, run on a device that is given another epilogue instead. */
  const withFault = async (wanted: Epilogue, fault: (given: NativeEpilogue) => NativeEpilogue | undefined) => {
    const test = matmulCases().find(
      ({ dtype, m, batch, orders, epilogue }) =>
        dtype === 'f16' && m === 17 && batch === 1 && orders[2] === 'n' && JSON.stringify(epilogue) === JSON.stringify(wanted),
    )
    if (test === undefined) throw new Error('no case')
    const wrong: Device = {
      ...device,
      program: (steps) =>
        device.program(
          steps.map((step) => {
            if (step.kind !== 'matmul' || step.epilogue === undefined) return step
            const { epilogue, ...product } = step
            const given = fault(epilogue)
            return given === undefined ? product : { ...product, epilogue: given }
          }),
        ),
    }
    expect(await runMatmul(device, test)).toMatchObject({ passed: true })
    return runMatmul(wrong, test)
  }
  const both: Epilogue = { bias: true, residual: true, activation: 'none' }
  const biased = (activation: Activation): Epilogue => ({ bias: true, residual: false, activation })

  it.each<[string, Epilogue, (given: NativeEpilogue) => NativeEpilogue | undefined]>([
    ['no epilogue is given', both, () => undefined],
    ['the bias is left out', both, ({ bias: _, ...rest }) => rest],
    ['the residual is left out', both, ({ residual: _, ...rest }) => rest],
    ['the residual is read for a bias', both, ({ residual, ...rest }) => ({ ...rest, ...(residual ? { bias: residual } : {}) })],
    ['the activation is left out', biased('relu'), (given) => ({ ...given, activation: 0 })],
    ['relu is applied for GELU', biased('gelu_tanh'), (given) => ({ ...given, activation: 1 })],
  ])('is refused when %s', async (_, wanted, fault) => expect(await withFault(wanted, fault)).toMatchObject({ passed: false }))
})

describe('misuse of the simt device', () => {
  it('ends in typed errors and leaves it usable', async () => {
    expect((await checkAbuse(device)).filter(({ passed }) => !passed)).toEqual([])
  })
})
