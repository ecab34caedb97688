/** Layout declarations to IR: the two functions become integer expressions over the axes, and the layout is proved. */
import type { CallExpression, Node } from 'ts-morph'
import { HeddleError } from '../../errors.js'
import { call, dim, i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { isInherited } from '../../ir/get_own.js'
import type { Layout } from '../../ir/layout.js'
import { proveLayout } from '../../ir/layout_proof.js'
import { simplifyExpr } from '../../ir/simplify.js'
import { verifyLayout } from '../../ir/verify.js'
import { Refusals } from '../diagnostics/refusals.js'
import { quote, reject } from '../diagnostics/reject.js'
import { staticFields, staticString, staticStrings } from '../static/literals.js'
import { describe, innerScope, scalar, type Value } from '../static/values.js'
import { asScalar } from '../types/scalars.js'
import { lowering } from './lowering.js'

const record = (names: readonly string[], make: (name: string) => Expr, node: Node): Value => ({
  kind: 'record',
  fields: new Map(names.map((name) => [name, scalar(make(name))])),
  node,
})

/** Applies one of the layout's functions to its indices and extents. */
function apply(node: Node, what: string, args: readonly Value[]): Expr {
  const refusals = new Refusals()
  const context = lowering([], node, refusals, undefined)
  const place = { scope: innerScope(), level: 'element' } as const
  const fn = context.evaluate(node, place)
  if (fn.kind !== 'function')
    return reject('signature', node, `${what} is ${describe(fn)}, not a function`, 'write (i, n) => ...')
  const given = args.slice(0, fn.node.getParameters().length)
  const expr = refusals.finish(() => asScalar(context.call(fn, given, node, place), node))
  if (expr.type === 'i32') return simplifyExpr(expr)
  const body = fn.node.getBody() ?? node
  return reject(
    'index',
    body,
    `${what} ${quote(body)} is ${describe(scalar(expr))}`,
    'offsets are integers: use idiv, % or shifts',
  )
}

/** Lowers `layout(name, axes, { offset, size })`. @throws Rejection located in the declaration. */
export function lowerLayout(declaration: CallExpression): Layout {
  const [nameNode, axesNode, config] = declaration.getArguments()
  if (nameNode === undefined || axesNode === undefined || config === undefined) {
    return reject(
      'signature',
      declaration,
      'layout takes a name, axes and functions',
      "write layout('name', ['r', 'c'], { offset: (i, n) => ... })",
    )
  }
  const name = staticString(nameNode)
  if (!/^[a-z][a-z0-9_]*$/.test(name) || name === 'row' || isInherited(name)) {
    reject('name', nameNode, `layout name "${name}" is not allowed`, 'use snake_case; row is the default layout')
  }
  const axes = staticStrings(axesNode)
  axes.forEach(({ text, node }, at) => {
    if (axes.findIndex((axis) => axis.text === text) !== at)
      reject('duplicate', node, `axis ${text} is named twice`, 'give every axis its own name')
  })
  const names = axes.map(({ text }) => text)
  const fields = staticFields(config)
  const offset = fields.get('offset')
  if (offset === undefined) return reject('signature', config, `layout ${name} has no offset`, 'write offset: (i, n) => ...')
  const size = fields.get('size')
  const indices = record(names, index, offset.value)
  const extents = record(names, dim, offset.value)
  const layout: Layout = {
    name,
    axes: names,
    offset: apply(offset.value, 'offset', [indices, extents]),
    size: size === undefined ? names.map(dim).reduce((a, b) => call('mul', a, b), i32(1)) : apply(size.value, 'size', [extents]),
  }
  const simple = { ...layout, size: simplifyExpr(layout.size) }
  verifyLayout(simple, 'lowering')
  try {
    proveLayout(simple)
  } catch (error) {
    if (error instanceof HeddleError) return reject('layout', nameNode, error.message, error.hint)
    throw error
  }
  return simple
}
