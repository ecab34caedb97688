/**
 * Printer of the IR, for `heddle inspect`, tests and error messages. A float constant always has a
 * point or an exponent, so that its type is visible, and an operation in its fast form has a `~`; everything else reads like the body it came from.
 */
import type { Text } from './constructs/construct.js'
import { constructOf } from './constructs/index.js'
import type { Expr, ExprOf } from './expr.js'
import { isFast } from './forms.js'
import { intrinsic } from './intrinsics.js'
import { type Kernel, printType, type Stmt, type TensorParam } from './kernel.js'
import type { Layout } from './layout.js'
import { printAxis } from './row_axis.js'
import { mark } from './trace.js'

/** Precedence of operators, as in TypeScript; a missing row is a call or an atom. */
const strength: Readonly<Record<string, number>> = {
  '||': 2,
  '&&': 3,
  '|': 4,
  '^': 4.5,
  '&': 5,
  '===': 6,
  '!==': 6,
  '<': 7,
  '<=': 7,
  '>': 7,
  '>=': 7,
  '<<': 8,
  '>>': 8,
  '+': 9,
  '-': 9,
  '*': 10,
  '/': 10,
  '%': 10,
  idiv: 10,
}
const conditional = 1
const prefix = 11

function printConst(expr: ExprOf<'const'>): string {
  const text = Object.is(expr.value, -0) ? '-0' : String(expr.value)
  if (expr.type !== 'f32') return text
  return /^-?\d+$/.test(text) ? `${text}.0` : text
}

function printCall(expr: ExprOf<'call'>, outer: number): string {
  const { symbol } = intrinsic(expr.fn)
  const about = isFast(expr.form) ? '~' : ''
  const [a, b, c] = expr.args
  const wrap = (text: string, level: number): string => (level < outer ? `(${text})` : text)
  if (expr.fn === 'select' && a && b && c) {
    return wrap(`${print(a, conditional + 1)} ? ${print(b, conditional)} : ${print(c, conditional)}`, conditional)
  }
  if (symbol !== undefined && a && b) {
    const level = strength[symbol] ?? 0
    return wrap(`${print(a, level)} ${symbol}${about} ${print(b, level + 1)}`, level)
  }
  if (symbol !== undefined && a) return wrap(`${symbol}${print(a, prefix + 1)}`, prefix)
  return `${expr.fn}${about}(${expr.args.map((arg) => print(arg, 0)).join(', ')})`
}

function print(expr: Expr, outer: number): string {
  switch (expr.kind) {
    case 'const': {
      const text = printConst(expr)
      return text.startsWith('-') && outer > prefix ? `(${text})` : text
    }
    case 'dim':
    case 'attr':
    case 'index':
    case 'local':
      return expr.name
    case 'element':
      return `${expr.row}[${print(expr.index, 0)}]`
    case 'load':
      return `${expr.tensor}[${expr.indices.map((i) => print(i, 0)).join(', ')}]`
    case 'call':
      return printCall(expr, outer)
    case 'fold':
      return `${expr.monoid}(${expr.index} < ${print(expr.length, 8)}: ${print(expr.value, 0)})`
  }
}

/** An expression as text without trace marks, usable as a key. */
export const plainExpr = (expr: Expr): string => print(expr, 0)

/** `(v[c] - mean) * rsqrt(variance + eps)`. */
export const printExpr = (expr: Expr): string => print(expr, 0) + mark(expr)

const operand = (expr: Expr): string => print(expr, 8)

const text: Text = { expr: printExpr, operand, loop: ({ index, length }) => `${index} < ${operand(length)}` }

/** One statement on one line. */
export const printStmt = (stmt: Stmt): string => constructOf(stmt).print(stmt, text)

function printTensor(tensor: TensorParam): string {
  const layout = tensor.layout.name === 'row' ? '' : ` in ${tensor.layout.name}`
  const updates = tensor.updates === undefined ? '' : ` updates ${tensor.updates}`
  return `  ${tensor.access === 'in' ? 'in ' : 'out'} ${tensor.name}: ${printType(tensor.dtype)}[${tensor.dims.join(', ')}]${layout}${updates}`
}

/** A kernel, with one line per parameter and per statement. Statements are indented under the row indices they run for. */
export function printKernel(kernel: Kernel): string {
  const types = Object.entries(kernel.types).map(([param, choices]) => `${param}: ${choices.join(' | ')}`)
  const attrs = kernel.attrs.map((attr) => `  attr ${attr.name}: ${attr.type} = ${attr.default}`)
  const rows = kernel.rows.map(printAxis)
  return [
    `kernel ${kernel.name}${types.length > 0 ? `<${types.join(', ')}>` : ''}(${kernel.dims.join(', ')})`,
    ...kernel.tensors.map(printTensor),
    ...attrs,
    rows.length > 0 ? `for ${rows.join(', ')}` : 'once',
    ...kernel.body.map((stmt) => `  ${printStmt(stmt)}`),
    '',
  ].join('\n')
}

/** A layout; indices and extents share names, so extents are written `#b`. */
export function printLayout(layout: Layout): string {
  const hash = (expr: Expr): Expr =>
    expr.kind === 'dim'
      ? { ...expr, name: `#${expr.name}` }
      : expr.kind === 'call'
        ? { ...expr, args: expr.args.map(hash) }
        : expr
  return `layout ${layout.name}(${layout.axes.join(', ')}) = ${printExpr(hash(layout.offset))} of ${printExpr(hash(layout.size))}\n`
}
