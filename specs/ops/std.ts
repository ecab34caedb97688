/** Ops of the standard library: their kernels are generated with those of the shipped ops. */
export {
  dequantize,
  dequantizeChannels,
  dequantizeProduct,
  dequantizeRows,
  locateRows,
  packIntegers,
  packRows,
  quantize,
  quantizeRows,
  scaleChannels,
  sequenceStarts,
  take,
  takeRange,
  unpackIntegers,
  unpackRows,
} from 'heddle/std'
