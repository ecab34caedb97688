/** Ops of the standard library: their kernels are generated with those of the shipped ops. */
export {
  dequantize,
  dequantizeChannels,
  dequantizeProduct,
  locateRows,
  packRows,
  quantize,
  sequenceStarts,
  take,
  unpackRows,
} from 'heddle/std'
