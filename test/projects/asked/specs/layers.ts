/** Parts of a layer in training: dropout before a residual, and a linear layer whose bias, activation and residual are its epilogue. */
import { gelu, graph, int, op, shiftRightUnsigned, tensor, wrappingAdd, wrappingMul } from 'heddle'

/** Keeps an element if a number in [0, 1), drawn from the seed and the element's index, is not below the rate; then adds the residual. */
export const dropoutAdded = op('dropout_added', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), before: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  attrs: { rate: 0.1, seed: int(0) },
  body:
    ({ x, before }, { n, rate, seed }) =>
    (m, c) => {
      const place = wrappingAdd(wrappingMul(m, n), c)
      const s = wrappingAdd(wrappingMul(wrappingAdd(seed, place), 747796405), 2891336453)
      const word = wrappingMul(shiftRightUnsigned(s, 4 + shiftRightUnsigned(s, 28)) ^ s, 277803737)
      const draw = shiftRightUnsigned(shiftRightUnsigned(word, 22) ^ word, 8) * 2 ** -24
      return { y: before(m, c) + (draw < rate ? 0 : x(m, c) / (1 - rate)) }
    },
})

/** Epilogue of a layer's matmul. */
export const biasGeluAdded = op('bias_gelu_added', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), bias: tensor('f32', 'n'), before: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  body:
    ({ x, bias, before }) =>
    (m, c) => ({ y: before(m, c) + gelu(x(m, c) + bias(c)) }),
})

/** A linear layer with its residual. */
export const linearAdded = graph('linear_added', {
  inputs: { x: tensor('f32', 'm k'), before: tensor('f32', 'm n') },
  weights: { w: tensor('f32', 'n k'), bias: tensor('f32', 'n') },
  typical: { m: 256, n: 1024, k: 1024 },
  build: (g, { x, before }, { w, bias }) => {
    const product = g.matmul('m k, n k -> m n', x, w)
    const y = g.apply(biasGeluAdded, { x: product, bias, before }).y
    return { nodes: { product, y }, outputs: { y } }
  },
})
