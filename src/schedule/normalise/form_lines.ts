/** Forms of a kernel's operations in words, for `heddle inspect`. */
import { attentionReference } from '../../ir/attention_reference.js'
import type { DType } from '../../ir/dtype.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import { fastForm, hasForms, isFast } from '../../ir/forms.js'
import type { Kernel } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { factorsOf } from '../../ir/product.js'
import { isTemplate, type TemplateKernel } from '../../ir/template.js'
import { placesOf, visitKernel } from '../../ir/walk.js'
import { chooseForms, chooseTemplateForms } from './forms.js'

/** One line per operation that has a fast form: its form, the instruction and the line of the body. */
export function formLines(kernel: Kernel | TemplateKernel, types: Readonly<Record<string, DType>>): readonly string[] {
  const lines = new Set<string>()
  const see = (node: Expr): void => {
    if (node.kind === 'call' && (isFast(node.form) || hasForms(node))) lines.add(`${printExpr(node)}: ${formText(node)}`)
  }
  for (const program of programsOf(kernel, types)) visitKernel(program, see)
  return [...lines]
}

function programsOf(kernel: Kernel | TemplateKernel, types: Readonly<Record<string, DType>>): readonly Kernel[] {
  if (!isTemplate(kernel)) return [chooseForms({ kernel, types, dims: {} }).kernel]
  const chosen = chooseTemplateForms(kernel, types)
  if (chosen.kind !== 'matmul') return [attentionReference(chosen)]
  const { epilogue, partials, reduced } = chosen
  const own = reduced === undefined ? [epilogue, partials] : [reduced.partials, reduced.rest]
  return [...own, ...factorsOf(chosen).map(({ prologue }) => prologue)].flatMap((program) => program ?? [])
}

function formText(node: ExprOf<'call'>): string {
  const [place] = placesOf(node)
  const where = place === undefined ? '' : `, at ${place}`
  if (!isFast(node.form)) return `exact${node.form === 'exact' ? ', as its op asks' : ''}${where}`
  const how = fastForm(node.fn)?.instruction ?? 'a product with the reciprocal'
  return `fast, by ${how}${node.form === 'flushed' ? ', results below 2^-126 become 0' : ''}${where}`
}
