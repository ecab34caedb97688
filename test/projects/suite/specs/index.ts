/** A feed-forward layer and three plans for it. */
import { graph, plan, tensor } from 'heddle'
import { addResidual, squaredRelu } from './ops.js'

export const feedForward = graph('feed_forward', {
  typical: { m: 512, n: 1024, k: 4096 },
  inputs: { x: tensor('T', 'm n') },
  weights: { up: tensor('T', 'k n'), bias: tensor('T', 'k'), down: tensor('T', 'n k') },
  build: (g, { x }, { up, bias, down }) => {
    const inner = g.matmul('m n, k n -> m k', x, up)
    const active = g.apply(squaredRelu, { x: inner, bias }).y
    const outer = g.matmul('m k, n k -> m n', active, down)
    const y = g.apply(addResidual, { x: outer, residual: x }).y
    return { nodes: { inner, active, outer, y }, outputs: { y } }
  },
})

export const first = plan('first', feedForward, { groups: { up_squared_relu: ['inner', 'active'] } })
export const second = plan('second', feedForward, { groups: { down_residual: ['outer', 'y'] } })
export const both = plan('both', feedForward, {
  groups: { up_squared_relu: ['inner', 'active'], down_residual: ['outer', 'y'] },
})
