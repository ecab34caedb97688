/** NaN, and values outside of integer types, on the simt device: minima, maxima and stores behave like the body in Node. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, dim, f32, index, local } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import type { MonoidName } from '../../src/ir/monoids.js'
import { axis, kernel, load, tensor } from '../schedule/fixtures.js'
import { type Host, launch, openKernels } from './host.js'

const at = (c: string): Expr => load('x', index('m0'), index(c))
const reduceAll = (['max', 'min', 'argmax', 'argmin'] as const).flatMap((monoid: MonoidName): Stmt[] => {
  const type = monoid.startsWith('arg') ? 'i32' : 'f32'
  const of = { monoid, length: dim('n'), type } as const
  return [
    { kind: 'reduce', name: `${monoid}1`, index: `r${monoid}`, value: at(`r${monoid}`), ...of },
    { kind: 'store', tensor: `${monoid}Of`, indices: [index('m0')], value: local(`${monoid}1`, type) },
  ]
})
/** Reductions of rows. */
const reductions = kernel(
  'nan_reductions',
  'm n',
  [axis('m0', 'm')],
  [
    tensor('x', 'in', 'm n', 'f32'),
    tensor('maxOf', 'out', 'm', 'f32'),
    tensor('minOf', 'out', 'm', 'f32'),
    tensor('argmaxOf', 'out', 'm', 'i32'),
    tensor('argminOf', 'out', 'm', 'i32'),
  ],
  reduceAll,
)
/** A scan, and folds inside of elements. */
const running = kernel(
  'nan_running',
  'm n',
  [axis('m0', 'm')],
  [tensor('x', 'in', 'm n', 'f32'), tensor('y', 'out', 'm n', 'f32'), tensor('z', 'out', 'm n', 'f32')],
  [
    { kind: 'scan', name: 'top', type: 'f32', monoid: 'max', length: dim('n'), index: 'c', value: at('c') },
    {
      kind: 'storeRow',
      tensor: 'y',
      rows: [index('m0')],
      length: dim('n'),
      index: 'c1',
      value: { kind: 'element', type: 'f32', row: 'top', index: index('c1') },
    },
    {
      kind: 'storeRow',
      tensor: 'z',
      rows: [index('m0')],
      length: dim('n'),
      index: 'c2',
      value: {
        kind: 'fold',
        type: 'f32',
        monoid: 'min',
        length: call('add', index('c2'), { kind: 'const', type: 'i32', value: 1 }),
        index: 'j',
        value: at('j'),
      },
    },
  ],
)
const elementwise = (name: string, dtype: DType, value: Expr): Kernel =>
  kernel(
    name,
    'm n',
    [axis('m0', 'm')],
    [tensor('x', 'in', 'm n', 'f32'), tensor('y', 'out', 'm n', dtype)],
    [{ kind: 'storeRow', tensor: 'y', rows: [index('m0')], length: dim('n'), index: 'c', value }],
  )
const relu = elementwise('nan_relu', 'f32', call('maximum', at('c'), f32(0)))
const capped = elementwise('nan_capped', 'f32', call('minimum', f32(1), at('c')))
const truncated = elementwise('nan_truncated', 'i32', call('toInt', at('c')))
const bytes = elementwise('nan_bytes', 'i8', at('c'))
const unsigned = elementwise('nan_unsigned', 'u8', call('toInt', at('c')))
const kernels = [reductions, running, relu, capped, truncated, bytes, unsigned]

const special = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  0,
  0.5,
  1.5,
  2.5,
  -0.5,
  -127.5,
  127.5,
  3e9,
  -3e9,
  300,
]
/** Rows of ordinary numbers with something special here and there; one row in three has none, one begins with NaN. */
const draw = (i: number, { n = 1 }: Readonly<Record<string, number>>): number => {
  const row = Math.floor(i / n)
  const c = i % n
  if (row % 3 === 1 && c === 0) return Number.NaN
  if (row % 3 === 2 && (c * 7 + row) % 5 === 0) return special[(c + row) % special.length] ?? 0
  return ((i * 37) % 101) - 50
}

let host: Host

beforeAll(async () => {
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

/** Outputs of the device and of the IR's own evaluation. */
async function both(subject: Kernel, m: number, n: number, of: Kernel = subject) {
  const { inputs, outputs } = await launch(host, subject, host.entry(subject.name), { m, n }, () => draw)
  const expected = evaluateKernel(of, inputs, { m, n })
  return outputs.map(({ tensor: { name }, stored }) => ({ name, stored: Array.from(stored), expected: expected[name]?.data }))
}

describe('special values, on simt as in the IR', () => {
  it.each(kernels.map((subject) => [subject.name, subject] as const))('%s', async (_, subject) => {
    for (const n of [1, 2, 7, 33, 300, subject === running ? 301 : 5000]) {
      for (const { name, stored, expected } of await both(subject, 9, n)) {
        const float = subject === reductions || subject === running || subject === relu || subject === capped
        const wanted = Array.from(expected ?? [], (value) => (float ? Math.fround(value) : value) + 0)
        expect(
          stored.map((value) => value + 0),
          `${name} of ${n}`,
        ).toEqual(wanted)
      }
    }
  })

  it('is noticed', async () => {
    const [dropped] = await both(
      relu,
      3,
      33,
      elementwise('nan_relu', 'f32', call('select', call('gt', at('c'), f32(0)), at('c'), f32(0))),
    )
    expect(dropped?.stored).not.toEqual(Array.from(dropped?.expected ?? []))
  })
})
