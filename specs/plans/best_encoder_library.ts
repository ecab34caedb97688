/**
 * `best-encoder` with library matmuls in place of generated ones, wherever the library offers the epilogue: to compare main loops under equal groups.
 * It offers no GELU, so the inner matmul of a layer with one stays a generated kernel.
 */
import { everyLayer } from '../graphs/encoder_layers.js'
import { aroundLayers, over } from './best_encoder.js'

const name = 'best-encoder-library'

/** The groups of matmuls that every layer has. */
const library = ['matmul_bias', 'matmul_bias_residual']

export const bestEncoderLibrary = [
  ...everyLayer.map((form) =>
    over(name, form, { library: form.activation === 'relu' ? [...library, 'matmul_bias_relu'] : library }),
  ),
  ...aroundLayers(name),
]
