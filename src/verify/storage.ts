/** Plain numbers to and from storage bytes, for checks and their oracles. */
export { encodeNumbers, roundTo } from '../runtime/numbers.js'
