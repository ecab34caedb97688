/** Plans without padding refuse nodes whose results would change: those that do not treat each row by itself. */
import { describe, expect, it } from 'vitest'
import { packGraph } from '../../src/fuse/graph/pack.js'
import type { Graph } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { refusal } from '../refusal.js'
import { Draft } from './random/draft.js'

const packing = { batch: 'p', seq: 'z', tokens: 't', lengths: 'ends' }
const same = 'm n'

/** An op of rows `m n`, as its kernel. @param outputs its tensors */
function kernelOf(outputs: string, body: string): Kernel {
  const [kernel] = read(`import { idiv, max, op, row, sum, tensor } from 'heddle'
export const step = op('step', { dims: ['m', 'n'], inputs: { x: tensor('f32', 'm n') }, outputs: { y: tensor('f32', '${outputs}') }, body: ${body} })`).kernels
  if (kernel === undefined) throw new Error('no kernel')
  return kernel
}

/** Packs a graph of one op over the rows of sequences. */
function packed(outputs: string, body: string): Graph {
  const draft = new Draft()
  const x = draft.input('p*z n')
  const y = draft.value(outputs === 'm n' ? 'p*z n' : outputs === 'm' ? 'p*z' : 'n')
  draft.nodes.push({ kind: 'op', name: 'y', op: 'step', types: {}, inputs: { x }, outputs: { y }, attrs: {} })
  draft.output(y)
  return packGraph(draft.graph(), packing, new Map([['step', kernelOf(outputs, body)]]))
}

describe('rows without padding', () => {
  it.each([
    ['an element', same, '({ x }) => (i, c) => ({ y: x(i, c) * 2 })'],
    [
      'a row',
      same,
      '({ x }, { n }) => (i) => { const top = max(n, (c) => x(i, c)); return { y: row(n, (c) => x(i, c) - top) } }',
    ],
    ['a column of each row', 'm', '({ x }) => (i) => ({ y: x(i, 0) })'],
    ['the number of a column', same, '({ x }) => (i, c) => ({ y: x(i, c) * c })'],
  ])('take an op that computes %s', (_, outputs, body) => {
    expect(packed(outputs, body).nodes.map(({ name }) => name)).toEqual(['y'])
  })

  it.each([
    ['the number of a row', same, '({ x }) => (i, c) => ({ y: i > c ? x(i, c) : 0 })', 'y computes with the number of a row'],
    [
      'another row',
      same,
      '({ x }, { m }) => (i, c) => ({ y: x(i, c) + (i > 0 ? x(i - 1, c) : 0) * m })',
      'y computes with the number of',
    ],
    ['the row before', same, '({ x }) => (i, c) => ({ y: x(idiv(i, 2), c) })', 'y reads another row'],
    ['the number of rows', same, '({ x }, { m }) => (i, c) => ({ y: x(i, c) / m })', 'y computes with the number of rows'],
    ['sums over rows', 'n', '({ x }, { m }) => (c) => ({ y: sum(m, (i) => x(i, c)) })', 'y combines rows'],
    ['rows less their mean', same, '({ x }, { m }) => (i, c) => ({ y: x(i, c) - sum(m, (j) => x(j, c)) })', 'y combines rows'],
  ])('refuse an op with %s', (_, outputs, body, reason) => {
    const error = refusal(() => packed(outputs, body))
    expect(error.code).toBe('plan.packed')
    expect(error.message).toContain(`drawn: ${reason}`)
    expect(error.message).toContain('rows without padding are others than "p*z"')
  })

  it('refuse a matmul that sums over them', () => {
    const draft = new Draft()
    draft.output(draft.matmul('m n, m k -> n k', draft.input('p*z n'), draft.input('p*z k')))
    expect(refusal(() => packGraph(draft.graph(), packing, new Map())).message).toContain('combines rows')
  })
})
