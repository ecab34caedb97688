import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Device } from '../../src/runtime/device.js'
import { checkAbuse } from '../../src/verify/abuse.js'
import { matmulCases, runMatmul } from '../../src/verify/matmul.js'
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
})

describe('misuse of the simt device', () => {
  it('ends in typed errors and leaves it usable', async () => {
    expect((await checkAbuse(device)).filter(({ passed }) => !passed)).toEqual([])
  })
})
