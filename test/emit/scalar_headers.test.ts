/** Sources include the header of powers and bits if they, or their main loops, call one of its functions, and no other source does. */
import { describe, expect, it } from 'vitest'
import { scalarHeaders } from '../../src/emit/print/scalar_headers.js'
import { call } from '../../src/ir/build.js'
import { read } from '../frontend/refuse.js'
import * as fixtures from '../schedule/fixtures.js'
import { attentionKernel, raw } from './attention_subject.js'

describe('scalarHeaders', () => {
  it('follows from main loops', () => {
    expect(scalarHeaders(attentionKernel('plain'))).toEqual([])
    expect(scalarHeaders(attentionKernel('bits', { score: call('floatOfBits', call('bitsOf', raw)) }))).toEqual(['scalars.cuh'])
  })
  it('follows from rows', () => {
    expect(fixtures.everything.flatMap(scalarHeaders)).toEqual([])
  })
  it('follows from the steps of a recurrence', () => {
    const { kernels, diagnostics } = read(`import { exp2, fold, op, tensor } from 'heddle'
export const t = op('halved', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm') },
  body: ({ x }, { n }) => (m) => ({ y: fold(n, { a: 0 }, ({ a }, c) => ({ a: exp2(a) - x(m, c) })).a }),
})`)
    expect(diagnostics).toEqual([])
    expect(kernels.map(scalarHeaders)).toEqual([['scalars.cuh']])
  })
})
