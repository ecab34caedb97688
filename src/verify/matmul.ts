/**
 * Cases for a device's matmul: extents around tile edges, transposed and padded operands, batches, a broadcast operand, and every
 * epilogue. Values are +-1 and +-2, so float32 accumulation is exact in any order and the result must equal a plain loop, rounded once.
 */
import { type DType, dtypeInfo, dtypes } from '../ir/dtype.js'
import { decode } from '../runtime/buffer.js'
import type { NativeDevice } from '../runtime/native.js'
import { encodeNumbers, roundTo } from '../runtime/numbers.js'
import { compare } from './compare.js'
import type { CheckResult } from './conformance.js'
import { normal, type Random, random, smallInteger } from './random.js'
import { tolerance, withStoredPart } from './tolerance.js'

/** `n`: the inner axis of a matrix is contiguous; `t`: the outer one is. */
type Order = 'n' | 't'

export interface MatmulCase {
  /** `matmul f16 b=2 m=17 n=33 k=65 a=n b=t out=n pad=8 integer` */
  readonly name: string
  readonly dtype: DType
  readonly batch: number
  readonly m: number
  readonly n: number
  readonly k: number
  readonly orders: readonly [a: Order, b: Order, out: Order]
  /** Elements between the end of one line of a matrix and the start of the next. */
  readonly pad: number
  /** b is one matrix for the whole batch. */
  readonly broadcast: boolean
  readonly draw: 'integer' | 'normal'
  readonly epilogue: Epilogue
}

/** Epilogue of the matmul. */
export interface Epilogue {
  readonly bias: boolean
  readonly residual: boolean
  readonly relu: boolean
}

const none: Epilogue = { bias: false, residual: false, relu: false }

/** Every epilogue a plan can ask a library for. */
const epilogues: readonly Epilogue[] = [
  { ...none, bias: true },
  { ...none, residual: true },
  { ...none, bias: true, residual: true },
  { ...none, relu: true },
  { ...none, bias: true, relu: true },
]

const floatTypes = ['f32', 'f16', 'bf16'] as const
const extents: readonly (readonly [m: number, n: number, k: number])[] = [
  [1, 1, 1],
  [1, 64, 128],
  [3, 5, 7],
  [16, 16, 16],
  [17, 33, 65],
  [31, 64, 33],
  [64, 31, 32],
  [65, 129, 127],
  [128, 6, 128],
  [2, 300, 26],
  [33, 2, 1025],
]
const orderChoices: readonly Order[] = ['n', 't']

/** Every combination of type, extents, operand orders, padding, batch and draw that is worth running. */
export function matmulCases(): MatmulCase[] {
  const cases: MatmulCase[] = []
  const add = (test: Omit<MatmulCase, 'name'>): void => {
    const { dtype, batch, m, n, k, orders, pad, broadcast, draw, epilogue } = test
    const form = `a=${orders[0]} b=${orders[1]} out=${orders[2]}`
    const suffix = [epilogue.bias ? ' bias' : '', epilogue.residual ? ' residual' : '', epilogue.relu ? ' relu' : '']
    const base = `matmul ${dtype} batch=${batch}${broadcast ? ' shared' : ''} m=${m} n=${n} k=${k} ${form} pad=${pad} ${draw}`
    cases.push({ name: epilogue === none ? base : base + suffix.join(''), ...test })
  }
  for (const dtype of floatTypes) {
    for (const [m, n, k] of extents) {
      for (const a of orderChoices) {
        for (const b of orderChoices) {
          for (const out of orderChoices) {
            const common = { dtype, m, n, k, orders: [a, b, out] as const, epilogue: none }
            add({ ...common, batch: 1, pad: 0, broadcast: false, draw: 'integer' })
            add({ ...common, batch: 3, pad: 0, broadcast: false, draw: 'integer' })
            add({ ...common, batch: 2, pad: 8, broadcast: true, draw: 'integer' })
            add({ ...common, batch: 1, pad: 3, broadcast: false, draw: 'normal' })
          }
        }
      }
      for (const epilogue of epilogues) {
        for (const out of orderChoices) {
          const common = { dtype, m, n, k, orders: ['n', 'n', out] as const, broadcast: false, epilogue }
          add({ ...common, batch: 1, pad: 0, draw: 'integer' })
          add({ ...common, batch: 2, pad: 8, draw: 'normal' })
          add({ ...common, batch: 1, pad: 0, draw: 'normal' })
        }
      }
    }
  }
  return cases
}

interface Operand {
  /** Element strides: batch, outer axis, inner axis. */
  readonly strides: readonly [number, number, number]
  readonly elements: number
}

function operand(batch: number, rows: number, columns: number, order: Order, pad: number): Operand {
  const [line, lines] = order === 'n' ? [columns, rows] : [rows, columns]
  const size = (line + pad) * lines
  return { strides: [size, order === 'n' ? line + pad : 1, order === 'n' ? 1 : line + pad], elements: batch * size }
}

const offset = ({ strides }: Operand, batch: number, row: number, column: number): number =>
  batch * strides[0] + row * strides[1] + column * strides[2]

type Numbers = ArrayLike<number>

/** Values of bias and residual; empty if there is none. */
type Added = readonly [bias: Numbers, residual: Numbers]

interface Expected {
  readonly result: Float64Array
  /** Matmul result + residual, before the bias is added. */
  readonly unbiased: Float64Array
}

/** The plain loop, in double precision, over values as stored. Elements between lines stay NaN. */
function reference(
  test: MatmulCase,
  [a, b, out]: readonly [Operand, Operand, Operand],
  [x, y]: readonly [Numbers, Numbers],
  [bias, residual]: Added,
): Expected {
  const least = test.epilogue.relu ? 0 : Number.NEGATIVE_INFINITY
  const unbiased = new Float64Array(out.elements).fill(Number.NaN)
  const result = unbiased.slice()
  for (let i = 0; i < test.batch; i++) {
    for (let row = 0; row < test.m; row++) {
      for (let column = 0; column < test.n; column++) {
        let sum = 0
        for (let k = 0; k < test.k; k++) sum += (x[offset(a, i, row, k)] ?? 0) * (y[offset(b, i, column, k)] ?? 0)
        const at = offset(out, i, row, column)
        unbiased[at] = sum + (residual[at] ?? 0)
        result[at] = Math.max(sum + (bias[column] ?? 0) + (residual[at] ?? 0), least)
      }
    }
  }
  return { result, unbiased }
}

/** Alignment of operands, in bytes, as a matmul library requires. */
const gap = 256

/** Runs one case. A rejection by the device is a failed case. */
export async function runMatmul(device: NativeDevice, test: MatmulCase): Promise<CheckResult> {
  const { name, dtype, batch, m, n, k, orders, pad } = test
  const a = operand(batch, m, k, orders[0], pad)
  const shared = operand(test.broadcast ? 1 : batch, n, k, orders[1], pad)
  const b: Operand = test.broadcast ? { ...shared, strides: [0, shared.strides[1], shared.strides[2]] } : shared
  const out = operand(batch, m, n, orders[2], pad)
  const value: (next: Random) => number = test.draw === 'integer' ? smallInteger : normal
  const drawn = ({ elements }: Operand, which: string) => {
    const next = random(`${name} ${which}`)
    return roundTo(
      dtype,
      Float64Array.from({ length: elements }, () => value(next)),
    )
  }
  const [x, y] = [drawn(a, 'a'), drawn(b, 'b')]
  const added: Added = [
    test.epilogue.bias ? drawn({ elements: n, strides: [0, 0, 1] }, 'bias') : [],
    test.epilogue.residual ? drawn(out, 'residual') : [],
  ]
  const exact = test.draw === 'integer'
  const bound = tolerance({ dtype, class: exact ? 'exact' : 'matmul', length: k })
  const { result: expected, unbiased } = reference(test, [a, b, out], [x, y], added)
  const isStoredBetween = !exact && test.epilogue.bias
  try {
    const actual = await multiply(device, test, [a, b, out], [x, y], added)
    const written = [...expected.keys()].filter((i) => !Number.isNaN(expected[i]))
    const wanted = exact ? roundTo(dtype, expected) : expected
    const between = [...expected.keys()].find((i) => Number.isNaN(expected[i]) && !Number.isNaN(actual[i]))
    if (between !== undefined)
      return { name, passed: false, detail: `element ${between} between lines of the result was overwritten` }
    const pick = (values: ArrayLike<number>) => Float64Array.from(written, (i) => values[i] ?? Number.NaN)
    const parts = pick(unbiased)
    const boundAt = (i: number) => (isStoredBetween ? withStoredPart(bound, dtype, parts[i] ?? 0) : bound)
    const result = compare(pick(actual), pick(wanted), boundAt)
    return { name, passed: result.passed, detail: result.summary }
  } catch (error) {
    return { name, passed: false, detail: error instanceof Error ? error.message : String(error) }
  }
}

async function multiply(
  device: NativeDevice,
  { name, dtype, batch, m, n, k, epilogue }: MatmulCase,
  [a, b, out]: readonly [Operand, Operand, Operand],
  [x, y]: readonly [Numbers, Numbers],
  [bias, residual]: Added,
): Promise<Numbers> {
  const element = dtypeInfo[dtype].bytes
  const bytes = [a.elements, b.elements, out.elements, bias.length, residual.length].map((elements) => elements * element)
  const starts = bytes.map((_, i) => bytes.slice(0, i).reduce((start, size) => Math.ceil((start + size) / gap) * gap, 0))
  const buffer = device.allocate((starts.at(-1) ?? 0) + (bytes.at(-1) ?? 0))
  const slice = (i: number) => ({ buffer, offset: starts[i] ?? 0, bytes: bytes[i] ?? 0 })
  const type = dtypes.indexOf(dtype)
  const program = device.program([
    { kind: 'fill', label: 'poison', target: slice(2), value: 0xff },
    {
      kind: 'matmul',
      label: name,
      a: slice(0),
      b: slice(1),
      out: slice(2),
      dtypes: [type, type, type],
      allowTf32: false,
      extents: [batch, m, n, k],
      strides: [a.strides, b.strides, out.strides],
      ...(epilogue === none
        ? {}
        : {
            epilogue: {
              ...(epilogue.bias ? { bias: slice(3) } : {}),
              ...(epilogue.residual ? { residual: slice(4) } : {}),
              relu: epilogue.relu,
            },
          }),
    },
  ])
  try {
    const [result] = await program.run(
      [
        { to: slice(0), data: encodeNumbers(dtype, x) },
        { to: slice(1), data: encodeNumbers(dtype, y) },
        ...(epilogue.bias ? [{ to: slice(3), data: encodeNumbers(dtype, bias) }] : []),
        ...(epilogue.residual ? [{ to: slice(4), data: encodeNumbers(dtype, residual) }] : []),
      ],
      [slice(2)],
    )
    return decode(dtype, result ?? new Uint8Array())
  } finally {
    program.release()
    buffer.release()
  }
}
