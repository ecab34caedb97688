/**
 * Symmetric quantisation between floats and int8: a value is its integer times a scale. The scale of an activation is `step`, amax / 127;
 * `inverse` is 127 / amax. Both are 0 if amax is 0, so that such a tensor is all zeros. Weights have one scale per output channel.
 * If the scale of an activation is determined as it is computed, each row has its own.
 */
import { abs, max, maximum, minimum, op, round, row, tensor } from 'heddle'

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

/** Dequantises a matmul of an activation and a weight; `steps` are the scales of the weight's channels times the activation's. */
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

/** Dequantises a matmul of two activations. */
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

/** Rows whose largest magnitude does not exceed this become zeros: 127 divided by a smaller number does not fit float32. */
const least = 1e-30

/** Quantises each row with its own scale: its largest magnitude becomes 127. A NaN makes the row's scale NaN, and all results computed from it. */
export const quantizeRows = op('std.quantize_rows', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n') },
  outputs: { y: tensor('i8', 'm n'), steps: tensor('f32', 'm') },
  body:
    ({ x }, { n }) =>
    (m) => {
      const v = row(n, (c) => x(m, c))
      const amax = max(n, (c) => abs(v(c)))
      const inverse = amax > least ? 127 / amax : 0
      return { y: row(n, (c) => toInt8(v(c) * inverse)), steps: amax / 127 }
    },
})

/** Dequantises a matmul of an activation with one scale per row and a weight; `channels` are the scales of the weight's channels. */
export const dequantizeRows = op('std.dequantize_rows', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('i32', 'm n'), steps: tensor('f32', 'm'), channels: tensor('f32', 'n') },
  outputs: { y: tensor('T', 'm n') },
  facts: { steps: { scales: 'x' } },
  body:
    ({ x, steps, channels }) =>
    (m, c) => ({ y: x(m, c) * steps(m) * channels(c) }),
})

/** Scales a matmul of a float activation and an int8 weight; `steps` are the scales of the weight's channels. */
export const scaleChannels = op('std.scale_channels', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('f32', 'm n'), steps: tensor('f32', 'n') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, steps }) =>
    (m, c) => ({ y: x(m, c) * steps(c) }),
})
