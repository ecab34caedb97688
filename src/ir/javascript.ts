/**
 * Compiles expressions of a kernel to JavaScript, so that Node's JIT compiles them to machine code, to evaluate kernels over thousands of
 * elements. The semantics are those of src/ir/evaluate_expr.ts, expression by expression, and tests compare the two. Names of a
 * kernel never occur in the source: each has a number here.
 */
import type { Expr } from './expr.js'
import { type Compilation, calledFunction, compileNode, newCompilation, type Precision, sourceOf } from './javascript_expr.js'
import { operands, visitUp } from './walk.js'

export type { Precision } from './javascript_expr.js'

/** A requested expression: as it is, or at a position of the row that `index` runs over. */
export interface Root {
  readonly expr: Expr
  readonly index?: string
}

/** Names that the source refers to by number, in the order of their numbers. */
export interface Names {
  readonly values: readonly string[]
  readonly rows: readonly string[]
  readonly tensors: readonly { readonly name: string; readonly rank: number }[]
  readonly dims: readonly string[]
  readonly attrs: readonly string[]
}

export interface JavaScript {
  /** Body of a function of `scope`: see evaluate.ts. */
  readonly text: string
  readonly names: Names
}

/** Longest source of an operand, since neither V8's parser nor a reader goes arbitrarily deep. */
const longest = 400

const isLeaf = ({ kind }: Expr): boolean => ['const', 'dim', 'attr', 'index', 'local'].includes(kind)

/** Functions that return the roots, in their order, and one that sets each value and row by its number. */
export function javascript(
  roots: readonly Root[],
  defined: { readonly values: readonly string[]; readonly rows: readonly string[] },
  precision: Precision = 'double',
): JavaScript {
  const to = newCompilation(precision)
  compileRoots(to, roots)
  const made = roots.map(({ expr, index }) => {
    const source = sourceOf(to, expr)
    return index === undefined ? `() => ${source}` : `(at) => { v${to.values.of(index)} = at; return ${source} }`
  })
  for (const name of defined.values) to.values.of(name)
  for (const name of defined.rows) to.rows.of(name)
  const names = namesOf(to)
  return { names, text: wholeText(names, to, made) }
}

/** Compiles every node below the roots, operands first. Shared calls and long sources become functions. */
function compileRoots(to: Compilation, roots: readonly Root[]): void {
  const uses = usesOf(roots.map(({ expr }) => expr))
  for (const { expr } of roots) {
    visitUp(expr, (node) => {
      if (to.sources.has(node)) return
      const made = compileNode(to, node)
      const isShared = (uses.get(node) ?? 0) > 1 && node.kind === 'call'
      const isFunction = !isLeaf(node) && (isShared || made.length > longest)
      to.sources.set(node, isFunction ? calledFunction(to, `return ${made}`) : made)
    })
  }
}

const namesOf = ({ values, rows, tensors, dims, attrs, ranks }: Compilation): Names => ({
  values: values.names(),
  rows: rows.names(),
  tensors: tensors.names().map((name) => ({ name, rank: ranks.get(name) ?? 0 })),
  dims: dims.names(),
  attrs: attrs.names(),
})

/** Number of times an expression is an operand of another, or a root. */
function usesOf(roots: readonly Expr[]): ReadonlyMap<Expr, number> {
  const uses = new Map<Expr, number>()
  const seen = new Set<Expr>()
  const use = (expr: Expr): void => void uses.set(expr, (uses.get(expr) ?? 0) + 1)
  for (const root of roots) {
    use(root)
    visitUp(root, (node) => {
      if (seen.has(node)) return
      seen.add(node)
      for (const operand of operands(node)) use(operand)
    })
  }
  return uses
}

function wholeText(
  { values, rows, tensors, dims, attrs }: Names,
  { imports, caches, functions }: Compilation,
  made: readonly string[],
): string {
  const lines = [
    ...[...imports].map(([name, from]) => `const ${name} = ${from}`),
    ...dims.map((_, i) => `const d${i} = scope.dims[${i}]`),
    ...attrs.map((_, i) => `const a${i} = scope.attrs[${i}]`),
    ...tensors.flatMap(({ rank }, t) => [
      `const t${t} = scope.tensors[${t}].data, h${t} = scope.tensors[${t}].isWhole`,
      ...Array.from({ length: rank }, (_, axis) => `const e${t}_${axis} = scope.tensors[${t}].shape[${axis}]`),
    ]),
    ...values.map((_, i) => `let v${i}`),
    ...rows.map((_, i) => `let r${i}`),
    ...caches.map((cache) => `let ${cache}`),
    ...functions,
    `return {`,
    `  roots: [${made.join(',\n    ')}],`,
    `  setValue: [${values.map((_, i) => `(x) => { v${i} = x }`).join(', ')}],`,
    `  setRow: [${rows.map((_, i) => `(x) => { r${i} = x }`).join(', ')}],`,
    `}`,
  ]
  return lines.join('\n')
}
