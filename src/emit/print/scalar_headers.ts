/** Device headers for scalar functions, other than kernel.cuh: a source includes only the headers of functions that it calls. */

import { attentionReference } from '../../ir/attention_reference.js'
import type { Expr } from '../../ir/expr.js'
import { emittedForm } from '../../ir/forms.js'
import type { Kernel } from '../../ir/kernel.js'
import { factorsOf } from '../../ir/product.js'
import { isTemplate, type TemplateKernel } from '../../ir/template.js'
import { visit, visitKernel } from '../../ir/walk.js'
import { isFold, ownsOf } from './user_monoids.js'

/** Row programs that a kernel's source is made of. */
function programsOf(kernel: Kernel | TemplateKernel): readonly Kernel[] {
  if (!isTemplate(kernel)) return [kernel]
  if (kernel.kind !== 'matmul') return [attentionReference(kernel)]
  const { epilogue, partials, reduced } = kernel
  const own = reduced === undefined ? [epilogue, partials] : [reduced.partials, reduced.rest]
  return [...own, ...factorsOf(kernel).map(({ prologue }) => prologue)].flatMap((program) => program ?? [])
}

/** Headers in alphabetical order. */
export function scalarHeaders(kernel: Kernel | TemplateKernel): readonly string[] {
  const headers = new Set<string>()
  const see = (expr: Expr): void => {
    const { header } = expr.kind === 'call' ? emittedForm(expr) : {}
    if (header !== undefined) headers.add(header)
  }
  for (const program of programsOf(kernel)) {
    visitKernel(program, see)
    for (const own of ownsOf(program)) for (const expr of isFold(own) ? own.next : own.combine) visit(expr, see)
  }
  return [...headers].sort()
}
