/**
 * Accuracy of attention: the error follows from the number of terms of a score and from intermediate roundings. A computed key is stored,
 * and main loops take it, and a computed query, in storage precision. One rounding of their elements moves a score by about the same
 * fraction of the score's own size. That size follows from the inputs of queries and keys: a normalised row has size 1 times its gain,
 * for any input, and its score grows as the root of its length.
 */
import type { Expr } from '../expr.js'
import type { AttentionKernel, DecodeAttentionKernel, RowAccess, RowOperand } from '../template.js'
import { countOf } from './counts.js'
import type { Accuracy, Size } from './facts.js'
import { noFacts } from './facts.js'
import { inputValue } from './interpret.js'
import { type Known, largerSize, productSize, sizeOf, sizesOf } from './size.js'

type Attention = AttentionKernel | DecodeAttentionKernel

/** Accuracy of attention: the number of terms of a score, and the roundings of computed operands. */
export function attentionAccuracy(kernel: Attention): Accuracy {
  const length = countOf(kernel.headDim, new Map())
  const { query, keys, values } = operandsOf(kernel)
  const known = knownOf(kernel)
  const size = (exprs: readonly Expr[]): Size => exprs.map((expr) => sizesOf(expr, known).size).reduce(largerSize)
  const terms = productSize(size(query), size(keys))
  // Weights move by errors of scores, and results by those times values.
  const averaged = beyond(size(values))
  const scale = averaged * beyond(terms) * (values.some(isComputed) ? 2 : 1)
  const roundings = [query, keys].filter((each) => each.some(isComputed)).length
  const moved = productSize(movement(kernel, known, terms), sizeOf(Math.sqrt(roundings) * averaged))
  return {
    class: 'attention',
    integers: false,
    ...(length === undefined ? {} : { length }),
    // Twice as much if values are rounded as well as their weights.
    ...(scale === 1 ? {} : { scale: Number(scale.toPrecision(3)) }),
    ...(roundings === 0 ? {} : { rounded: { ...moved, rms: Number(moved.rms.toPrecision(3)) } }),
  }
}

/** Factor by which numbers of that size exceed those of the tolerance table: random numbers, or sums of a few. */
const beyond = ({ rms }: Size): number => (rms > 4 ? rms : 1)

/** True if an operand is not a plain load, so that it is rounded after its computation. */
const isComputed = ({ kind }: Expr): boolean => kind !== 'load'

/** Expressions of the operand rows; for decode attention also those of the new key and value. */
function operandsOf(kernel: Attention): Readonly<Record<'query' | 'keys' | 'values', readonly Expr[]>> {
  const loaded = ({ tensor, indices }: RowAccess): Expr => ({ kind: 'load', type: 'f32', tensor, indices })
  if (kernel.kind === 'attention') {
    const element = ({ element, ...access }: RowOperand): Expr => element ?? loaded(access)
    return { query: [element(kernel.query)], keys: [element(kernel.key)], values: [element(kernel.value)] }
  }
  const { fresh } = kernel
  return {
    query: [kernel.query],
    keys: [loaded(kernel.key), ...(fresh === undefined ? [] : [fresh.key])],
    values: [loaded(kernel.value), ...(fresh === undefined ? [] : [fresh.value])],
  }
}

/** Change of scores if each of their terms changes independently by its own size, `terms`. */
function movement({ score }: Attention, known: Known, terms: Size): Size {
  const raw = productSize(terms, sizeOf(1, 1))
  const { slope } = sizesOf(score, { ...known, local: { name: 'raw', size: raw } })
  return productSize(slope ?? sizeOf(0), raw)
}

function knownOf(kernel: Attention): Known {
  const { inputs } = kernel.facts ?? noFacts
  return {
    input: (tensor) => {
      const param = kernel.tensors.find(({ name }) => name === tensor)
      // An input with a domain is drawn from it, independently of the size of the others.
      return param === undefined
        ? sizeOf(1)
        : sizeOf(inputValue(param, inputs[tensor]).magnitude, 0, inputs[tensor] === undefined ? 1 : 0)
    },
    attr: (name) => kernel.attrs.find((attr) => attr.name === name)?.default ?? 1,
    length: kernel.headDim,
  }
}
