/**
 * Between floats and int8, symmetric: a value is its integer times a step. The step of an activation is amax / 127, `inverse` is
 * 127 / amax, and both are 0 where amax is 0, so that such a tensor is all zeros. Weights have a step for each output channel.
 */
import { maximum, minimum, op, round, tensor } from 'heddle'

/** The nearest integer, ties to even, within [-127, 127]. */
export const toInt8 = (x: number): number => maximum(minimum(round(x), 127), -127)

export const quantize = op('std.quantize', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('i8', 'm n') },
  attrs: { inverse: 1 },
  facts: { inverse: { fills: 'y' } },
  body:
    ({ x }, { inverse }) =>
    (m, c) => ({ y: toInt8(x(m, c) * inverse) }),
})

export const dequantize = op('std.dequantize', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('i8', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { step: 1 },
  body:
    ({ x }, { step }) =>
    (m, c) => ({ y: x(m, c) * step }),
})

/** A product of an activation and a weight; `steps` are those of the weight's channels times the activation's. */
export const dequantizeChannels = op('std.dequantize_channels', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('i32', 'm n'), steps: tensor('f32', 'n') },
  outputs: { y: tensor('T', 'm n') },
  facts: { steps: { scales: 'x' } },
  body:
    ({ x, steps }) =>
    (m, c) => ({ y: x(m, c) * steps(c) }),
})

/** A product of two activations. */
export const dequantizeProduct = op('std.dequantize_product', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('i32', 'm n') },
  outputs: { y: tensor('T', 'm n') },
  attrs: { step: 1, otherStep: 1 },
  body:
    ({ x }, { step, otherStep }) =>
    (m, c) => ({ y: x(m, c) * (step * otherStep) }),
})
