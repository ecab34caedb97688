/** A block of a model under two plans. */
import { graph, plan, tensor } from 'heddle'
import { rmsNorm, shift } from './ops.js'

export const block = graph('block', {
  inputs: { hidden: tensor('T', 'rows width') },
  weights: { weight: tensor('T', 'wide width'), bias: tensor('T', 'wide'), gamma: tensor('T', 'wide') },
  attrs: ['eps'],
  build: (g, { hidden }, { weight, bias, gamma }, { eps }) => {
    const product = g.matmul('m k, n k -> m n', hidden, weight)
    const shifted = g.apply(shift, { x: product, by: bias }).y
    const normed = g.apply(rmsNorm, { x: shifted, gamma }, { eps }).y
    return { nodes: { product, shifted, normed }, outputs: { y: normed } }
  },
})

const rows = plan('rows', block, { groups: { shift_norm: ['shifted', 'normed'] } })
const epilogue = plan('epilogue', block, { groups: { product_shift: ['product', 'shifted'] } })

export const graphs = { block }
export const plans = [rows, epilogue]
