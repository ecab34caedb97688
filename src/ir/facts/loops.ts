/** Dimensions that loops of a kernel run over, and those that it reduces across: a check tries many lengths of these. Others only locate data. */
import type { Kernel, Stmt } from '../kernel.js'
import { isTemplate, type TemplateKernel } from '../template.js'
import { operands, stmtExprs, visit } from '../walk.js'
import { countOf } from './counts.js'
import type { Count } from './facts.js'
import { namesOf } from './facts.js'

/** Dimensions that loops run over, in the order of the kernel's dimensions. */
export function loopDims(kernel: Kernel | TemplateKernel): readonly string[] {
  const names = new Set(lengthsOf(kernel).flatMap(namesOf))
  return kernel.dims.filter((dim) => names.has(dim))
}

/**
 * Dimensions that are both an axis of outputs and the range of reductions: every element along the axis needs the reduction over all of
 * them, and a body computes that for each.
 */
export function acrossDims(kernel: Kernel | TemplateKernel): readonly string[] {
  if (isTemplate(kernel)) return []
  const names = new Set(loopsOf(kernel, ['reduce', 'merge']).flatMap(namesOf))
  return kernel.dims.filter((dim) => names.has(dim) && kernel.rows.some((row) => row.dim === dim))
}

function lengthsOf(kernel: Kernel | TemplateKernel): readonly Count[] {
  const none = new Map<string, never>()
  if (!isTemplate(kernel)) return loopsOf(kernel)
  const counts = (exprs: readonly Parameters<typeof countOf>[0][]): Count[] =>
    exprs.flatMap((expr) => {
      const count = countOf(expr, none)
      return count === undefined ? [] : [count]
    })
  switch (kernel.kind) {
    case 'matmul': {
      const programs = [kernel.a, ...kernel.products.map(({ b }) => b)].flatMap(({ prologue }) => prologue ?? [])
      return [kernel.m, kernel.n, kernel.k, ...programs.flatMap((each) => loopsOf(each))]
    }
    case 'attention':
      return counts([kernel.keys, kernel.headDim, kernel.valueDim])
    case 'decode attention':
      return counts([kernel.places, kernel.headDim, kernel.valueDim])
  }
}

/** @param kinds kinds of statements to consider; all by default */
function loopsOf(kernel: Kernel, kinds?: readonly Stmt['kind'][]): Count[] {
  const locals = new Map(kernel.body.flatMap((stmt) => (stmt.kind === 'let' ? [[stmt.name, stmt.value] as const] : [])))
  const found: Count[] = []
  for (const stmt of kernel.body) {
    const lengths = 'length' in stmt && (kinds?.includes(stmt.kind) ?? true) ? [stmt.length] : []
    for (const expr of stmtExprs(stmt))
      visit(expr, (node) => {
        if (node.kind === 'fold') lengths.push(...operands(node).slice(0, 1))
      })
    for (const length of lengths) {
      const count = countOf(length, locals)
      if (count !== undefined) found.push(count)
    }
  }
  return found
}
