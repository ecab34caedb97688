import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decode } from '../../src/runtime/buffer.js'
import type { Device } from '../../src/runtime/device.js'
import type { NativeEpilogue, NativeMatmul, NativeSlice, NativeStep } from '../../src/runtime/native.js'
import { encodeNumbers, roundTo } from '../../src/runtime/numbers.js'
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

  it('is refused when one term is left out', async () => {
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
  /** The device with changed steps for each matmul with an epilogue. */
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

  type Combine = (product: number, bias: number, residual: number) => number
  const stored = (value: number): number => roundTo('f16', Float64Array.of(value))[0] ?? Number.NaN

  /** The device with results of matmuls computed on the host, in f16. */
  const onHost = (combine: Combine): Device => ({
    ...device,
    program: (steps) => {
      const step = steps.find(({ kind }) => kind === 'matmul')
      if (step?.kind !== 'matmul') throw new Error('no product')
      const { a, b, out, extents, strides, epilogue } = step
      const [batches, rows, columns, depth] = extents
      const result = new Float64Array(out.bytes / 2).fill(Number.NaN)
      const at = (which: 0 | 1 | 2, batch: number, outer: number, inner: number) =>
        batch * strides[which][0] + outer * strides[which][1] + inner * strides[which][2]
      return {
        ...device.program(steps),
        run: async (given) => {
          const read = (slice: NativeSlice | undefined) =>
            decode('f16', given.find(({ to }) => to.offset === slice?.offset)?.data ?? new Uint8Array())
          const [x, y, bias, residual] = [read(a), read(b), read(epilogue?.bias), read(epilogue?.residual)]
          for (let i = 0; i < batches; i++) {
            for (let row = 0; row < rows; row++) {
              for (let column = 0; column < columns; column++) {
                let sum = 0
                for (let k = 0; k < depth; k++) sum += (x[at(0, i, row, k)] ?? 0) * (y[at(1, i, column, k)] ?? 0)
                const place = at(2, i, row, column)
                result[place] = combine(sum, bias[column] ?? 0, residual[place] ?? 0)
              }
            }
          }
          return [encodeNumbers('f16', result)]
        },
      }
    },
  })

  it.each<[string, Epilogue, Combine, boolean]>([
    ['rounds once', both, (product, bias, residual) => product + bias + residual, true],
    ['stores product + residual', both, (product, bias, residual) => stored(product + residual) + bias, true],
    ['stores product + bias', both, (product, bias, residual) => stored(product + bias) + residual, false],
    ['stores every sum', both, (product, bias, residual) => stored(stored(product) + residual) + bias, false],
    ['stores a product to add a residual', { ...both, bias: false }, (product, _, residual) => stored(product) + residual, false],
    ['stores a product to add a bias', { ...both, residual: false }, (product, bias) => stored(product) + bias, true],
  ])('judges a device that %s, for %j', async (_, wanted, combine, passed) => {
    expect(await runMatmul(onHost(combine), caseOf(wanted, 'normal', 2))).toMatchObject({ passed })
  })
})

describe('misuse of the simt device', () => {
  it('ends in typed errors and leaves it usable', async () => {
    expect((await checkAbuse(device)).filter(({ passed }) => !passed)).toEqual([])
  })
})
