/** Ops of the standard library: their kernels are generated with those of the shipped ops. */
export {
  dequantize,
  dequantizeChannels,
  dequantizeProduct,
  locateRows,
  packIntegers,
  packRows,
  quantize,
  sequenceStarts,
  take,
  unpackIntegers,
  unpackRows,
} from 'heddle/std'
