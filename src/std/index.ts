/**
 * The standard library: ops that the compiler itself inserts into graphs, declared and compiled like any other and shipped with it. A
 * pass refers to them by identity, which is their qualified name: an op of a project cannot have a dot in its name, so it is never
 * mistaken for one of these. A project that runs or re-exports one has its kernel among its own.
 *
 * @module heddle/std
 */
export {
  dequantize,
  dequantizeChannels,
  dequantizeProduct,
  dequantizeRows,
  quantize,
  quantizeRows,
  scaleChannels,
  toInt8,
} from './int8.js'
export { locateRows, packIntegers, packRows, unpackIntegers, unpackRows } from './padding.js'
export { sequenceStarts } from './sequence_starts.js'
export { take, takeRange } from './take.js'
