/** Activation functions as ordinary functions; any op body may call them, and each is an op of its own. */
import { exp, gelu as geluOf, maximum, op, tanh as tanhOf, tensor } from 'heddle'

/** GELU by the error function, 0.5 x (1 + erf(x / sqrt 2)): BERT's `gelu`. */
export const geluErf = (x: number): number => geluOf(x)

/** GELU by tanh: BERT's `gelu_new`, FasterTransformer's GELU (Hendrycks, Gimpel 2016). */
export const geluByTanh = (x: number): number => 0.5 * x * (1 + tanhOf(0.7978845608028654 * (x + 0.044715 * x * x * x)))

export const rectify = (x: number): number => maximum(x, 0)

/** x sigmoid(x): Marian's `swish` (Elfwing et al. 2017). */
export const sigmoidWeighted = (x: number): number => x / (1 + exp(-x))

export const gelu = op('gelu', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: geluErf(x(m, c)) }),
})

export const geluTanh = op('gelu_tanh', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: geluByTanh(x(m, c)) }),
})

export const relu = op('relu', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: rectify(x(m, c)) }),
})

export const silu = op('silu', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: sigmoidWeighted(x(m, c)) }),
})

export const tanh = op('tanh', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x }) =>
    (m, c) => ({ y: tanhOf(x(m, c)) }),
})
