/**
 * How the results of attention err: as a whole, by the terms of a score and by what is rounded on the way. A key that is computed is stored,
 * and with a query that is computed main loops take it in storage precision. One rounding of their elements moves a score by about that part
 * of the score's own size, which follows from what queries and keys are computed from: a row that is normed is of size 1 whatever it was,
 * times its gain, and a score of it grows as the root of its length.
 */
import type { Expr } from '../expr.js'
import type { AttentionKernel, DecodeAttentionKernel, RowAccess, RowOperand } from '../template.js'
import { countOf } from './counts.js'
import type { Accuracy, Size } from './facts.js'
import { noFacts } from './facts.js'
import { inputValue } from './interpret.js'
import { type Known, largerSize, productSize, sizeOf, sizesOf } from './size.js'

type Attention = AttentionKernel | DecodeAttentionKernel

/** What its results err by: as many terms as a score has, and roundings of the operands that are computed. */
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
    // Twice as much where values are rounded as well as their weights.
    ...(scale === 1 ? {} : { scale: Number(scale.toPrecision(3)) }),
    ...(roundings === 0 ? {} : { rounded: { ...moved, rms: Number(moved.rms.toPrecision(3)) } }),
  }
}

/** By how much numbers of that size exceed what the table is for: random ones, or a few of them added up. */
const beyond = ({ rms }: Size): number => (rms > 4 ? rms : 1)

/** True if it is anything but an element as it lies in memory, and so is rounded once it is computed. */
const isComputed = ({ kind }: Expr): boolean => kind !== 'load'

/** What a row is read from, or computed as: of a step also what joins the rows in memory. */
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

/** How far scores move when each term of theirs moves by its own size: `terms` is that of a term, and they move independently. */
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
      // What has a domain is drawn from it, whatever others are drawn from.
      return param === undefined
        ? sizeOf(1)
        : sizeOf(inputValue(param, inputs[tensor]).magnitude, 0, inputs[tensor] === undefined ? 1 : 0)
    },
    attr: (name) => kernel.attrs.find((attr) => attr.name === name)?.default ?? 1,
    length: kernel.headDim,
  }
}
