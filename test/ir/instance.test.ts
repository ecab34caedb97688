/** Instances of kernels: one for every choice of storage types, and of head sizes that are worth fixing where columns interleave. */
import { describe, expect, it } from 'vitest'
import { dim, i32, index } from '../../src/ir/build.js'
import { allInstances, allTypes, instanceKey, resolveDType } from '../../src/ir/instance.js'
import type { Kernel, TensorParam } from '../../src/ir/kernel.js'
import { type Layout, rowMajor } from '../../src/ir/layout.js'
import { splitLayout } from '../../src/ir/split_layout.js'

const dims = ['s', 'h', 'd']
const blocks: Layout = { name: 'blocks', axes: ['r', 'c'], offset: index('c'), size: i32(32) }

const kernel = (layout: Layout, types: Kernel['types'] = {}): Kernel => {
  const x: TensorParam = { name: 'x', access: 'in', dtype: 'i8', dims: dims.slice(0, layout.axes.length), layout }
  return {
    name: 'moves',
    source: { file: 'moves.ts', line: 1, column: 1 },
    dims,
    types,
    attrs: [],
    tensors: [x, { ...x, name: 'y', access: 'out', layout: rowMajor(x.dims) }],
    rows: [{ index: 'i', dim: 's' }],
    body: [],
  }
}

describe('instances', () => {
  it('are those of the types if no layout splits its columns', () => {
    expect(allInstances(kernel(rowMajor(dims))).map((each) => each.dims)).toEqual([{}])
    expect(allInstances(kernel(blocks)).map((each) => each.dims)).toEqual([{}])
    expect(allInstances(kernel(splitLayout(blocks, [2, 1], dims))).map((each) => each.dims)).toEqual([{}])
  })

  it('are two if one does: any size of heads, and the usual one', () => {
    const split = splitLayout({ ...blocks, offset: dim('c') }, [1, 2], dims)
    const usually = (typical: Record<string, number>, types?: Kernel['types']) =>
      allInstances({ ...kernel(split, types), typical })
    expect(usually({ d: 64 }).map((each) => each.dims)).toEqual([{}, { d: 64 }])
    expect(usually({ d: 80, s: 128 }).map((each) => each.dims)).toEqual([{}, { d: 80 }])
    // The size of heads is not stated.
    expect(allInstances(kernel(split)).map((each) => each.dims)).toEqual([{}])
    expect(usually({ s: 128 }).map((each) => each.dims)).toEqual([{}])
    expect(usually({ d: 64 }, { T: ['f32', 'f16'] }).map(({ types, dims: fixed }) => instanceKey('moves', types, fixed))).toEqual(
      ['moves__f32', 'moves__f32__d64', 'moves__f16', 'moves__f16__d64'],
    )
  })

  it('have keys of name, types and fixed dimensions sorted by name', () => {
    expect(instanceKey('softmax', {}, { n: 128, m: 2 })).toBe('softmax__m2_n128')
    expect(instanceKey('cast', { T: 'f16', S: 'i8' })).toBe('cast__f16_i8')
  })

  it('take every combination of types', () => {
    expect(allTypes({ types: { T: ['f32', 'f16'], S: ['i8'] } })).toEqual([
      { T: 'f32', S: 'i8' },
      { T: 'f16', S: 'i8' },
    ])
    expect(resolveDType({ param: 'T' }, { T: 'bf16' })).toBe('bf16')
    expect(() => resolveDType({ param: 'U' }, { T: 'bf16' })).toThrow('has no storage type')
  })
})
