/**
 * Error classes of a kernel's outputs, derived from its body: the operation that dominates the error (a sum of products, a sum, a
 * function, a few operations, none), the length of sums, the magnitude of cancelling terms, and exactness on small integers. The table of
 * tolerances gives the error that each class allows (src/verify/tolerance.ts).
 */

import { attentionReference } from '../attention_reference.js'
import { dtypeInfo } from '../dtype.js'
import type { Kernel, TensorParam } from '../kernel.js'
import { isTemplate, type TemplateKernel } from '../template.js'
import { attentionAccuracy } from './attention.js'
import type { Accuracy, ErrorClass } from './facts.js'
import { noFacts } from './facts.js'
import { longest, ofMatmul, ofProgram } from './interpret.js'
import type { Value } from './value.js'

/** Extra terms of a matmul whose epilogue calls functions: they allow the error of a `transcendental` result. */
const termsOfCalls = 8
/** Largest numbers of roundings of `elementwise` and `transcendental` results. */
const [fewRoundings, someRoundings] = [4, 16]

/** Accuracy of every output of a kernel; a stated class takes precedence over the derived one. */
export function accuracyOf(kernel: Kernel | TemplateKernel): Readonly<Record<string, Accuracy>> {
  const facts = kernel.facts ?? noFacts
  const { results } = facts
  const outputs = kernel.tensors.filter(({ access }) => access === 'out')
  // The key and value of a step, which decode attention stores, are computed like any row.
  const attended = isTemplate(kernel) && kernel.kind !== 'matmul' ? kernel : undefined
  const found =
    isTemplate(kernel) && kernel.kind === 'matmul'
      ? ofMatmul(kernel)
      : new Map(Object.entries(ofProgram(isTemplate(kernel) ? attentionReference(kernel) : kernel, facts, new Map())))
  return Object.fromEntries(
    outputs.map((param): [string, Accuracy] => {
      if (param.name === attended?.out.tensor) return [param.name, attentionAccuracy(attended)]
      const stated = results[param.name]
      const value = found.get(param.name)
      if (stated !== undefined) return [param.name, statedAs(stated, value)]
      return [param.name, value === undefined ? { class: 'reduction', integers: false } : classify(param, value)]
    }),
  )
}

const isFloat = ({ dtype }: Pick<TensorParam, 'dtype'>): boolean =>
  typeof dtype !== 'string' || (dtypeInfo[dtype].scalar === 'f32' && dtype !== 'i8')

/** Accuracy of a stated class: exact on small integers for `exact`, otherwise with the length from the body. */
const statedAs = (stated: ErrorClass, value: Value | undefined): Accuracy => {
  const length = value === undefined ? undefined : longest([...value.sums, ...value.products])
  return stated === 'exact'
    ? { class: 'elementwise', integers: true }
    : { class: stated, integers: false, ...(length === undefined ? {} : { length }) }
}

/** Largest scale of an error that is still finite in float32. */
const largestScale = 1e30

function classify(param: TensorParam, value: Value): Accuracy {
  // Integers have no rounding error: a result is right or wrong.
  if (typeof param.dtype === 'string' && dtypeInfo[param.dtype].scalar === 'i32') return { class: 'exact', integers: true }
  const { calls, roundings, sums, products, absolute, absoluteRoots, steep, isStored, isMoved } = value
  const rest = {
    integers: isStored,
    ...(isFloat(param) && absolute !== 1
      ? { scale: absolute === 0 ? 0 : Math.min(Math.max(1, Number(absolute.toPrecision(3))), largestScale) }
      : {}),
    ...(steep ? { steep: true as const } : {}),
  }
  const growing = isFloat(param) && absolute !== 0 && absoluteRoots > 0 ? { roots: absoluteRoots } : {}
  const terms = longest([...products, ...(products.length > 0 ? sums : [])])
  if (terms !== undefined) return { class: 'matmul', length: calls ? ['add', terms, termsOfCalls] : terms, ...growing, ...rest }
  const elements = longest(sums)
  if (elements !== undefined) return { class: 'reduction', length: elements, ...rest }
  if (roundings > someRoundings) return { class: 'reduction', length: Math.ceil(((roundings - someRoundings) / 4) ** 2), ...rest }
  if (calls || roundings > fewRoundings) return { class: 'transcendental', ...rest }
  return isMoved ? { class: 'exact', integers: true } : { class: 'elementwise', ...rest }
}
