/**
 * First pass of a schedule: chooses the form of every operation that has a fast one. An operation is fast if its error disappears in the rounding
 * of every result that depends on it, or if its op asks for it. The choice follows from the body and the storage types alone, so that all variants of
 * a kernel round alike, and with them any number of rows.
 *
 *     y[m, c] = x / (1.0 + exp(-x))        in f16: y[m, c] = x /~ (1.0 + exp~(-x))
 */
import { f32 } from '../../ir/build.js'
import type { DType } from '../../ir/dtype.js'
import type { Expr, ExprOf, Form } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { accuracyOf } from '../../ir/facts/accuracy.js'
import { both, errorOf, type Need, needOfStore, needsOf } from '../../ir/facts/needs.js'
import { fastForm, hasForms, isFast } from '../../ir/forms.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { Kernel, Stmt } from '../../ir/kernel.js'
import type { MatmulFactor, MatmulKernel, ReducedRows } from '../../ir/product.js'
import type { TemplateKernel } from '../../ir/template.js'
import { mapOperands, mapStmt, stmtExprs, visitKernel, visitUp } from '../../ir/walk.js'

type Types = Readonly<Record<string, DType>>

/** The instance with the form of each operation. */
export function chooseForms(instance: Instance): Instance {
  const { kernel, types } = instance
  const [chosen = kernel] = chosenIn([kernel], types, exactResults(kernel))
  return chosen === kernel ? instance : { ...instance, kernel: chosen }
}

/**
 * A template kernel with the form of each operation of its programs. Attention computes scores, whose errors grow as exponents, and its main loop
 * has its own exponential: its slots are fast only where their op asks for it.
 */
export function chooseTemplateForms<K extends TemplateKernel>(kernel: K, types: Types): K {
  return kernel.kind === 'matmul' ? { ...kernel, ...matmulForms(kernel, types) } : kernel
}

/** The programs of a matmul, chosen together: its partial results repeat operations of its epilogue. */
function matmulForms(kernel: MatmulKernel, types: Types): Partial<MatmulKernel> {
  const exact = exactResults(kernel)
  const { epilogue, partials, reduced } = kernel
  const [after = epilogue, parts] = chosenIn([epilogue, ...(partials === undefined ? [] : [partials])], types, exact)
  const factor = (each: MatmulFactor): MatmulFactor => {
    if (each.prologue === undefined) return each
    const [prologue] = chosenIn([each.prologue], types, exactResults(each.prologue))
    return { ...each, prologue }
  }
  const [first, ...others] = kernel.products.map((product) => ({ ...product, b: factor(product.b) }))
  return {
    a: factor(kernel.a),
    ...(first === undefined ? {} : { products: [first, ...others] }),
    epilogue: after,
    ...(parts === undefined ? {} : { partials: parts }),
    ...(reduced === undefined ? {} : { reduced: reducedForms(kernel, reduced, types, exact) }),
  }
}

/** The programs that reduce rows. What is between them is needed as precisely as the most precise result. */
function reducedForms(kernel: MatmulKernel, reduced: ReducedRows, types: Types, exact: ReadonlySet<string>): ReducedRows {
  const { partials, rest, shared } = reduced
  const outputs = rest.tensors.filter(({ access }) => access === 'out')
  const need = outputs.map(({ name }) => needOfOutput(kernel.epilogue, name, types, exact)).reduce(both)
  const between = new Map(shared.map(({ name, dtype }) => [name, dtype === 'i32' ? needOfStore('i32') : need] as const))
  const [parts = partials, after = rest] = chosenIn([partials, rest], types, exact, between)
  return { ...reduced, partials: parts, rest: after }
}

/** Outputs whose results are exact on small integers: a fast form would not be. */
const exactResults = (kernel: Kernel | TemplateKernel): ReadonlySet<string> =>
  new Set(Object.entries(accuracyOf(kernel)).flatMap(([name, { integers }]) => (integers ? [name] : [])))

/** @param known needs of outputs that are no results */
function chosenIn(
  kernels: readonly Kernel[],
  types: Types,
  exact: ReadonlySet<string>,
  known: ReadonlyMap<string, Need> = new Map(),
): readonly Kernel[] {
  if (!kernels.some(hasAny)) return kernels
  const needs = new Map<string, Need>()
  const keys = new Map<Expr, string>()
  for (const kernel of kernels) {
    const found = needsOf(kernel, (name) => known.get(name) ?? needOfOutput(kernel, name, types, exact))
    for (const [node, key] of keysOf(kernel)) {
      const need = found.get(node)
      if (need === undefined) continue
      keys.set(node, key)
      needs.set(key, both(needs.get(key) ?? need, need))
    }
  }
  const formOfNode = (node: ExprOf<'call'>): Form | undefined => formOf(node, needs.get(keys.get(node) ?? ''))
  return kernels.map((kernel) => {
    const isSame = [...keysOf(kernel).keys()].every((node) => hasForms(node) && formOfNode(node) === node.form)
    return isSame ? kernel : { ...kernel, body: kernel.body.map((stmt) => withForms(stmt, formOfNode)) }
  })
}

const hasAny = (kernel: Kernel): boolean => {
  let found = false
  visitKernel(kernel, (node) => {
    found ||= hasForms(node)
  })
  return found
}

function needOfOutput({ tensors }: Kernel, name: string, types: Types, exact: ReadonlySet<string>): Need {
  const param = tensors.find((tensor) => tensor.name === name)
  if (param === undefined) throw new Error(`internal: ${name} is stored, and is no tensor`)
  return needOfStore(exact.has(name) ? 'f32' : resolveDType(param.dtype, types))
}

/** Operations with forms, with keys that are equal for equal operations of equal elements, whatever the names of their loops. */
function keysOf(kernel: Kernel): ReadonlyMap<Expr, string> {
  const rows = new Map(kernel.rows.map(({ index, dim }) => [index, `#${dim}`]))
  const keys = new Map<Expr, string>()
  for (const stmt of kernel.body) {
    const named = (name: string): string => ('index' in stmt && stmt.index === name ? '#' : (rows.get(name) ?? name))
    for (const root of stmtExprs(stmt)) {
      const renamed = new Map<Expr, Expr>()
      visitUp(root, (node) => {
        const inner = mapOperands(node, (operand) => renamed.get(operand) ?? operand)
        renamed.set(node, inner.kind === 'index' ? { ...inner, name: named(inner.name) } : inner)
        if (hasForms(node)) keys.set(node, hashOf(renamed.get(node) ?? node))
      })
    }
  }
  return keys
}

const withForms = (stmt: Stmt, formOf: (node: ExprOf<'call'>) => Form | undefined): Stmt =>
  mapStmt(stmt, (root) => {
    const forms = new Map<Expr, Expr>()
    visitUp(root, (node) => {
      const inner = mapOperands(node, (operand) => forms.get(operand) ?? operand)
      forms.set(node, hasForms(node) && inner.kind === 'call' ? inForm(inner, formOf(node)) : inner)
    })
    return forms.get(root) ?? root
  })

/** The form of an operation. A request for it decides, except that what nothing sees may be flushed. */
function formOf({ fn, form }: ExprOf<'call'>, need: Need | undefined): Form | undefined {
  const isTaken = form === undefined ? need !== undefined && errorOf(fn) <= need.relative : isFast(form)
  if (!isTaken) return form
  return need?.flushes === true && fastForm(fn)?.cuda.flushed !== undefined ? 'flushed' : 'fast'
}

/** Range of divisors whose reciprocals have no fewer digits. */
const largestDivisor = 2 ** 100

/** A call in a form. A fast quotient by a literal is a product. */
function inForm(call: ExprOf<'call'>, form: Form | undefined): Expr {
  if (!isFast(form)) return call
  const [a, b] = call.args
  const size = b?.kind === 'const' ? Math.abs(Number(b.value)) : 0
  if (call.fn === 'div' && a !== undefined && b?.kind === 'const' && size >= 1 / largestDivisor && size <= largestDivisor)
    return { ...call, fn: 'mul', form: 'fast', args: [a, f32(1 / Number(b.value))] }
  return { ...call, form }
}
