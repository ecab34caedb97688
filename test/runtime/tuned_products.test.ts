/** Form of a matmul in a program: the generated kernel for the sizes and the architecture for which it was measured, else the library. */
import { describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import type { KernelEntry } from '../../src/emit/manifest/manifest.js'
import type { Graph } from '../../src/ir/graph.js'
import { parseShape } from '../../src/ir/shape.js'
import { flatten } from '../../src/runtime/program_flatten.js'

const dims = { m: 5, n: 8, k: 16 }

const graph = (generated?: string): Graph => ({
  name: 'product',
  values: [
    { dtype: 'i8', shape: parseShape('m k'), layout: 'row' },
    { dtype: 'i8', shape: parseShape('n k'), layout: 'row' },
    { dtype: 'i32', shape: parseShape('m n'), layout: 'row' },
  ],
  nodes: [
    { kind: 'matmul', name: 'p', a: 0, b: 1, out: 2, subscripts: { a: ['m', 'k'], b: ['n', 'k'], out: ['m', 'n'] }, generated },
  ],
  inputs: { x: 0, w: 1 },
  weights: {},
  outputs: { y: 2 },
  attrs: [],
})

type Measured = NonNullable<KernelEntry['measured']>
const size: Measured[number] = { architecture: 'sm_90', length: 8, depth: 16, fromRows: 5, toRows: 5 }

/** The form that runs for measured sizes, of a kernel that stores `out`. */
function formOf(
  measured: Measured,
  architecture = 'sm_90',
  out: 'i32' | 'f32' = 'i32',
  generated: string | undefined = 'product',
) {
  const buffer = (name: string, dtype: 'i8' | 'i32' | 'f32') => ({ name, access: 'in' as const, dtype, dims: [], layout: 'row' })
  const entry: KernelEntry = {
    key: 'product',
    op: 'product',
    types: {},
    fixedDims: {},
    file: 'cuda/product.cu',
    digest: '0'.repeat(64),
    buffers: [buffer('a', 'i8'), buffer('b', 'i8'), { ...buffer('y', out), access: 'out' }],
    dims: ['m', 'n', 'k'],
    attrs: [],
    measured,
    variants: [],
  }
  const names = { x: 'x', w: 'w' }
  const application = { label: 'l', graph: graph(generated), inputs: names, weights: {}, outputs: { y: 'y' }, attrs: {} }
  const manifest = { version: 1 as const, kernels: [entry] }
  const common = { layouts, manifest, architecture, weights: new Map(), dims, types: {} }
  const [step] = flatten({ ...common, applications: [application], inputs: ['x', 'w'], outputs: ['y'] }).steps
  return step?.kind === 'kernel' ? [step.key, step.dims] : step?.kind
}

describe('a matmul with a generated form', () => {
  it('is the kernel for the rows, the size and the architecture that were measured, without a bound too', () => {
    expect(formOf([size])).toEqual(['product', [5, 8, 16]])
    const { toRows: _, ...unbounded } = size
    expect(formOf([{ ...unbounded, fromRows: 1 }])).toEqual(['product', [5, 8, 16]])
  })

  it('is the kernel on the CPU device whatever was measured on', () =>
    expect(formOf([size], 'simt')).toEqual(['product', [5, 8, 16]]))

  it.each<[string, Partial<Measured[number]>]>([
    ['another architecture', { architecture: 'sm_80' }],
    ['other columns', { length: 9 }],
    ['another depth', { depth: 8 }],
    ['more rows', { fromRows: 6, toRows: 9 }],
    ['fewer rows', { fromRows: 1, toRows: 4 }],
  ])('is the library where %s were measured', (_, other) => expect(formOf([{ ...size, ...other }])).toBe('matmul'))

  it('runs in the library without a measurement, in other types, and if the plan names no kernel', () => {
    expect(formOf([])).toBe('matmul')
    expect(formOf([size], 'sm_90', 'f32')).toBe('matmul')
    expect(formOf([size], 'sm_90', 'i32', 'other')).toBe('matmul')
  })
})
