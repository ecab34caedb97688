/** Reference evaluator of template kernels, by their definition and in double precision: their main loops are compared with it. */

import { attentionReference, ownedOf, referenceDims } from './attention_reference.js'
import { type Env, emptyEnv, evaluateExpr, evaluateKernel, type HostTensor } from './evaluate.js'
import { evaluateMatmul } from './evaluate_product.js'
import type { Expr } from './expr.js'
import type { Precision } from './javascript.js'
import type { Kernel } from './kernel.js'
import type { AttentionKernel, DecodeAttentionKernel, TemplateKernel } from './template.js'

type Numbers = Readonly<Record<string, number>>
type Tensors = Readonly<Record<string, HostTensor>>

/** Outputs by name. Elements that no row of the kernel writes are NaN, or keep their value in the tensor that the output updates. */
export function evaluateTemplate(
  kernel: TemplateKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
): Record<string, HostTensor> {
  switch (kernel.kind) {
    case 'matmul':
      return evaluateMatmul(kernel, inputs, dims, attrs)
    case 'attention':
    case 'decode attention':
      return evaluateAttention(kernel, inputs, dims, attrs)
  }
}

/** Cache of the programs of templates. */
const programs = new WeakMap<TemplateKernel, Kernel>()

/** Runs the reference program of the template, over as many rows as the longest sequence has. */
export function evaluateAttention(
  kernel: AttentionKernel | DecodeAttentionKernel,
  inputs: Tensors,
  dims: Numbers,
  attrs: Numbers,
  precision: Precision = 'double',
  stray?: (value: number) => number,
): Record<string, HostTensor> {
  const env: Env = { ...emptyEnv(dims), attrs, tensors: inputs }
  const number = (expr: Expr): number => Number(evaluateExpr(expr, env))
  const [batch, heads] = [number(kernel.batch), number(kernel.heads)]
  const owned = Array.from({ length: batch }, (_, b) => {
    env.values.set('b', b)
    return number(ownedOf(kernel))
  })
  const sizes = { [referenceDims.batch]: batch, [referenceDims.heads]: heads, [referenceDims.rows]: Math.max(0, ...owned) }
  const program = programs.get(kernel) ?? attentionReference(kernel)
  programs.set(kernel, program)
  return evaluateKernel(program, inputs, { ...dims, ...sizes }, attrs, precision, stray)
}
