/** Elementwise ops after a matmul whose rows choose their matrix: in a plan's group they are its epilogue. */
import { expect, it } from 'vitest'
import { graph } from '../../src/lang/graph.js'
import { sum } from '../../src/lang/intrinsics.js'
import { op } from '../../src/lang/op.js'
import { plan } from '../../src/lang/plan.js'
import { tensor } from '../../src/lang/tensor.js'
import { groupedMatmul } from '../../src/schedule/grouped/grouped_matmul.js'
import { planAll } from '../../src/search/plans.js'
import { read } from '../frontend/refuse.js'

const declared = `import { op, sum, tensor } from 'heddle'
export const up = op('up', {
  dims: ['t', 'n', 'k', 'e'], types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 't k'), w: tensor('T', 'e n k'), expert: tensor('i32', 't') }, outputs: { y: tensor('T', 't n') },
  body: ({ x, w, expert }, { k }) => (t, c) => ({ y: sum(k, (i) => x(t, i) * w(expert(t), c, i)) }),
})
export const weigh = op('weigh', {
  dims: ['t', 'n'], types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 't n'), gate: tensor('f32', 't') }, outputs: { y: tensor('T', 't n') },
  body: ({ x, gate }) => (t, c) => ({ y: x(t, c) * gate(t) }),
})
`
const types = { T: ['f32', 'f16', 'bf16'] } as const
const up = op('up', {
  dims: ['t', 'n', 'k', 'e'],
  types,
  inputs: { x: tensor('T', 't k'), w: tensor('T', 'e n k'), expert: tensor('i32', 't') },
  outputs: { y: tensor('T', 't n') },
  body:
    ({ x, w, expert }, { k }) =>
    (t, c) => ({ y: sum(k, (i) => x(t, i) * w(expert(t), c, i)) }),
})
const weigh = op('weigh', {
  dims: ['t', 'n'],
  types,
  inputs: { x: tensor('T', 't n'), gate: tensor('f32', 't') },
  outputs: { y: tensor('T', 't n') },
  body:
    ({ x, gate }) =>
    (t, c) => ({ y: x(t, c) * gate(t) }),
})
const experts = graph('experts', {
  inputs: { x: tensor('T', 't k'), expert: tensor('i32', 't'), gate: tensor('f32', 't') },
  weights: { w: tensor('T', 'e n k') },
  build: (g, { x, expert, gate }, { w }) => {
    const { y: wide } = g.apply(up, { x, w, expert })
    const { y: weighed } = g.apply(weigh, { x: wide, gate })
    return { nodes: { wide, weighed }, outputs: { weighed } }
  },
})

it('elementwise ops of a group are the epilogue of a grouped matmul', () => {
  const { kernels } = read(declared)
  const fused = plan('fused', experts, { groups: { up_weigh: ['wide', 'weighed'] } })
  const made = planAll([fused], { experts }, kernels)
  const kernel = made.kernels.find(({ name }) => name === 'up_weigh')
  const grouped = kernel && groupedMatmul({ kernel, types: { T: 'bf16' }, dims: {} })
  expect(grouped).toMatchObject({ left: { tensor: 'x' }, right: { tensor: 'w' } })
  expect(grouped?.epilogue.tensors.some(({ name }) => name === 'gate')).toBe(true)
})
