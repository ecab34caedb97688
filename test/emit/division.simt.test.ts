/** Integer quotients on the simt device: those of the body, and for a divisor of 0 a located fault instead of a signal. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, dim, index } from '../../src/ir/build.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { axis, kernel, loadInt, tensor } from '../schedule/fixtures.js'
import { type Host, launch, openKernels } from './host.js'

const of = (name: string): Expr => loadInt(name, index('m0'), index('c'))
const stores = (['idiv', 'mod'] as const).map((fn, i) => ({
  kind: 'storeRow' as const,
  tensor: fn,
  rows: [index('m0')],
  length: dim('n'),
  index: `c${i}`,
  value: call(fn, loadInt('x', index('m0'), index(`c${i}`)), loadInt('by', index('m0'), index(`c${i}`))),
}))
const divided = kernel(
  'divided',
  'm n',
  [axis('m0', 'm')],
  [
    tensor('x', 'in', 'm n', 'i32'),
    tensor('by', 'in', 'm n', 'i32'),
    tensor('idiv', 'out', 'm n', 'i32'),
    tensor('mod', 'out', 'm n', 'i32'),
  ],
  stores,
)
/** The divisor 0 is never used: the body chooses. */
const guarded = kernel(
  'guarded',
  'm n',
  [axis('m0', 'm')],
  [tensor('x', 'in', 'm n', 'i32'), tensor('by', 'in', 'm n', 'i32'), tensor('y', 'out', 'm n', 'i32')],
  [
    {
      kind: 'storeRow',
      tensor: 'y',
      rows: [index('m0')],
      length: dim('n'),
      index: 'c',
      value: call(
        'select',
        call('eq', of('by'), { kind: 'const', type: 'i32', value: 0 }),
        of('x'),
        call('idiv', of('x'), of('by')),
      ),
    },
  ],
)

let host: Host

beforeAll(async () => {
  host = await openKernels([divided, guarded])
})
afterAll(() => host?.close())

const lowest = -(2 ** 31)
const number = (i: number): number => [7, -7, 2 ** 31 - 1, lowest, 0, 100, -1][i % 7] ?? 0
const nonZero = (i: number): number => [2, -2, 3, 7, -1, 1, -100][Math.floor(i / 7) % 7] ?? 1

describe('integer quotients on simt', () => {
  it('are rounded toward zero', async () => {
    const { inputs, outputs } = await launch(
      host,
      divided,
      host.entry('divided'),
      { m: 7, n: 49 },
      (name) => (i) => (name === 'x' ? number(i) : nonZero(i)),
    )
    const expected = evaluateKernel(divided, inputs, { m: 7, n: 49 })
    // The lowest number by -1 wraps.
    for (const { tensor: param, stored } of outputs)
      expect(Array.from(stored)).toEqual(Array.from(expected[param.name]?.data ?? [], (value) => (value | 0) + 0))
  })
  it('give a located fault for a divisor of 0', async () => {
    const by = (zero: boolean) => (name: string) => (i: number) => (name === 'x' ? 5 : zero && i === 40 ? 0 : 3)
    await expect(launch(host, divided, host.entry('divided'), { m: 3, n: 33 }, by(true))).rejects.toThrow(
      /kernel divided.*: 5 is divided by 0, block \(\d+,0,0\), thread \(\d+,0,0\)/,
    )
    await expect(launch(host, divided, host.entry('divided'), { m: 3, n: 33 }, by(false))).resolves.toBeDefined()
  })
  it('are computed only where the body does', async () => {
    const { outputs } = await launch(
      host,
      guarded,
      host.entry('guarded'),
      { m: 2, n: 17 },
      (name) => (i) => (name === 'x' ? i : i % 3),
    )
    expect(Array.from(outputs[0]?.stored ?? []).slice(0, 6)).toEqual([0, 1, 1, 3, 4, 2])
  })
})
