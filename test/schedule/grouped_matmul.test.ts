/** Grouped matmuls found in bodies: the forms that are found, their meaning by the definition, and the forms that are not. */
import { describe, expect, it } from 'vitest'
import { emptyEnv, evaluateExpr, evaluateKernel, forEachPoint, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { variantLines } from '../../src/schedule/describe.js'
import { type GroupedMatmul, groupedMatmul } from '../../src/schedule/grouped/grouped_matmul.js'
import { mapKernel } from '../../src/schedule/map.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { read } from '../frontend/refuse.js'

/** The kernel of an op with the given dimensions, body and further fields. */
function kernelOf(
  dims: string,
  body: string,
  more = '',
  inputs = "x: tensor('T', 'm k'), w: tensor('T', 'e n k'), expert: tensor('i32', 'm')",
): Kernel {
  const specs = read(`import { exp, idiv, max, maximum, op, row, sum, tensor } from 'heddle'
export const t = op('t', {
  dims: [${dims.split(' ').map((dim) => `'${dim}'`)}], types: { T: ['f32', 'f16', 'bf16', 'i8'] },
  inputs: { ${inputs} }, outputs: { y: tensor('T', 'm n')${more} },
  body: ${body},
})
`)
  const [kernel] = specs.kernels
  expect(specs.diagnostics.filter(({ code }) => code.startsWith('HED'))).toEqual([])
  if (kernel === undefined) throw new Error('no kernel')
  return kernel
}

const find = (kernel: Kernel, T: 'f16' | 'i8' = 'f16'): GroupedMatmul | undefined =>
  groupedMatmul({ kernel, types: { T }, dims: {} })

const found: Readonly<Record<string, Kernel>> = {
  'a row per element': kernelOf(
    'm n k e',
    '({ x, w, expert }, { k }) => (m, c) => ({ y: sum(k, (i) => x(m, i) * w(expert(m), c, i)) })',
  ),
  'an element of a row': kernelOf(
    'm n k e',
    '({ x, w, expert }, { n, k }) => (m) => ({ y: row(n, (c) => maximum(0, 2 * sum(k, (i) => w(expert(m), c, i) * x(m, i)) - 1)) })',
  ),
  'a row read by two results': kernelOf(
    'm n k e',
    '({ x, w, expert }, { n, k }) => (m) => { const s = row(n, (c) => sum(k, (i) => x(m, i) * w(expert(m), c, i)))\n return { y: row(n, (c) => s(c) + 1), z: row(n, (c) => s(c) * s(c)) } }',
    ", z: tensor('f32', 'm n')",
  ),
  'a gathered row, a named matrix': kernelOf(
    'm n k e s',
    '({ x, w, expert, at }, { n, k }) => (m) => { const e = expert(idiv(m, 2))\n return { y: row(n, (c) => sum(k, (i) => x(at(m), i) * w(e, c, i))) } }',
    '',
    "x: tensor('T', 's k'), w: tensor('T', 'e n k'), expert: tensor('i32', 'm'), at: tensor('i32', 'm')",
  ),
}

const extents = { m: 5, n: 3, k: 4, e: 3, s: 6 }

function inputsOf({ tensors }: Kernel): Record<string, HostTensor> {
  const draw = (name: string, i: number): number =>
    name === 'expert' ? (i * 2) % 3 : name === 'at' ? (i * 5) % 6 : ((i * 7) % 11) - 5
  return Object.fromEntries(
    tensors.flatMap(({ name, access, dims }) => {
      const shape = dims.map((dim) => extents[dim as keyof typeof extents])
      const data = Array.from({ length: shape.reduce((size, extent) => size * extent, 1) }, (_, i) => draw(name, i))
      return access === 'in' ? [[name, { data, shape }]] : []
    }),
  )
}

/** Results by the definition: the sums of each row and column, then the epilogue. */
function evaluate({ rows, n, k, left, right, accumulator, epilogue }: GroupedMatmul, inputs: Record<string, HostTensor>) {
  const size = (dim: string): number => extents[dim as keyof typeof extents]
  const shape = [...rows.map((axis) => size(axis.dim)), size(n)]
  const [x, w] = [inputs[left.tensor], inputs[right.tensor]]
  const sums: number[] = []
  forEachPoint(shape, (point) => {
    const env = { ...emptyEnv(extents), tensors: inputs }
    for (const [i, axis] of rows.entries()) env.values.set(axis.index, point[i] ?? 0)
    const place = left.indices.reduce((at, each, i) => at * (x?.shape[i] ?? 1) + Number(evaluateExpr(each, env)), 0)
    const matrix = Number(evaluateExpr(right.matrix, env))
    let sum = 0
    for (let i = 0; i < size(k); i++)
      sum +=
        (x?.data[place * size(k) + i] ?? Number.NaN) *
        (w?.data[(matrix * size(n) + (point.at(-1) ?? 0)) * size(k) + i] ?? Number.NaN)
    sums.push(sum)
  })
  return evaluateKernel(epilogue, { ...inputs, [accumulator]: { data: sums, shape } }, extents)
}

const differs = (kernel: Kernel, grouped: GroupedMatmul): boolean => {
  const inputs = inputsOf(kernel)
  const [made, wanted] = [evaluate(grouped, inputs), evaluateKernel(kernel, inputs, extents)]
  return Object.entries(wanted).some(([name, { data }]) => Array.from(data).some((value, i) => value !== made[name]?.data[i]))
}

describe('a grouped matmul', () => {
  it.each(Object.entries(found))('is found in %s, and means the same', (_, kernel) => {
    const grouped = find(kernel)
    expect(grouped).toBeDefined()
    if (grouped !== undefined) expect(differs(kernel, grouped)).toBe(false)
  })
  it.each<[string, (grouped: GroupedMatmul) => GroupedMatmul]>([
    ['matrix', (grouped) => ({ ...grouped, right: { ...grouped.right, matrix: { kind: 'const', type: 'i32', value: 0 } } })],
    ['row', (grouped) => ({ ...grouped, left: { ...grouped.left, indices: [{ kind: 'const', type: 'i32', value: 1 }] } })],
    ['epilogue', (grouped) => ({ ...grouped, epilogue: found['a row per element'] ?? grouped.epilogue })],
  ])('with another %s means another', (_, fault) => {
    const kernel = found['an element of a row']
    const grouped = kernel && find(kernel)
    expect(kernel !== undefined && grouped !== undefined && differs(kernel, fault(grouped))).toBe(true)
  })
  it('has no note, which its sum would have, and the matmul in its description', () => {
    const kernel = found['a row per element']
    const mapped = kernel && mapKernel({ kernel, types: { T: 'f16' }, dims: {} })
    expect(mapped && notesOf(mapped)).toEqual([])
    if (mapped === undefined) return
    const { grouped: _, ...rows } = mapped
    expect(notesOf(rows).map(({ kind }) => kind)).toContain('matmul')
    expect(variantLines(mapped).map(({ schedule }) => schedule.slice(0, 8))).toEqual(['a matmul', 'a matmul'])
  })
  it('is none of int8, whose sums are integers', () => expect(find(found['a row per element'] as Kernel, 'i8')).toBeUndefined())
  it.each([
    ['a matrix for all rows', '({ x, w, expert }, { k }) => (m, c) => ({ y: sum(k, (i) => x(m, i) * w(1, c, i)) * expert(m) })'],
    [
      'a matrix per element',
      '({ x, w, expert }, { k }) => (m, c) => ({ y: sum(k, (i) => x(m, i) * w((expert(m) + c) % 3, c, i)) })',
    ],
    ['another column', '({ x, w, expert }, { n, k }) => (m, c) => ({ y: sum(k, (i) => x(m, i) * w(expert(m), n - 1 - c, i)) })'],
    ['a sum of other terms', '({ x, w, expert }, { k }) => (m, c) => ({ y: sum(k, (i) => x(m, i) * w(expert(m), c, i) + 1) })'],
    ['another reduction', '({ x, w, expert }, { k }) => (m, c) => ({ y: max(k, (i) => x(m, i) * w(expert(m), c, i)) })'],
    ['a part of the sum', '({ x, w, expert }, { k }) => (m, c) => ({ y: sum(idiv(k, 2), (i) => x(m, i) * w(expert(m), c, i)) })'],
    [
      'a softmax of its row',
      '({ x, w, expert }, { n, k }) => (m) => { const s = row(n, (c) => sum(k, (i) => x(m, i) * w(expert(m), c, i)))\n const t = sum(n, (c) => exp(s(c)))\n return { y: row(n, (c) => s(c) / t) } }',
    ],
    [
      'two sums',
      '({ x, w, expert }, { k }) => (m, c) => ({ y: sum(k, (i) => x(m, i) * w(expert(m), c, i)) + sum(k, (i) => x(m, i)) })',
    ],
  ])('is none with %s', (_, body) => expect(find(kernelOf('m n k e', body))).toBeUndefined())
  it('is none where only a condition makes its places exist', () => {
    const body = (left: string) =>
      `({ x, w, expert }, { n, k }) => (m) => ({ y: row(n, (c) => (expert(m) < 0 ? 0 : sum(k, (i) => x(${left}, i) * w(expert(m), c, i)))) })`
    expect(find(kernelOf('m n k e', body('m')))).toBeDefined()
    expect(find(kernelOf('m n k e', body('expert(m)')))).toBeUndefined()
  })
})
