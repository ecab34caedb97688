/** Removes unused parts, which the language refuses to declare, and visits all expressions of an op. */
import type { DType, Expr, Loop, OpDesc, Result, Stmt } from './describe.js'

/** Calls `see` for an expression and all inside it. */
export function visit(e: Expr, see: (e: Expr) => void): void {
  see(e)
  for (const inner of operands(e)) visit(inner, see)
}

export function operands(e: Expr): readonly Expr[] {
  switch (e.kind) {
    case 'const':
    case 'name':
      return []
    case 'load':
      return e.at
    case 'element':
      return [e.at]
    case 'call':
      return e.args
    case 'reduce':
      return [e.loop.value]
  }
}

const loopsOf = (s: Stmt): readonly Loop[] => {
  if (s.kind === 'fold') return s.fields.flatMap((field) => (field.is === 'row' ? [field.start, field.next] : []))
  return 'loop' in s ? [s.loop] : []
}

/** The expressions of a statement. */
export function exprsOf(s: Stmt): readonly Expr[] {
  switch (s.kind) {
    case 'const':
      return [s.value]
    case 'monoid':
      return Object.values(s.fields)
    case 'fold':
      return [
        ...s.fields.flatMap((field) =>
          field.is === 'number' ? [field.start, field.next] : [field.start.value, field.next.value],
        ),
        ...s.step.flatMap(exprsOf),
      ]
    case 'threshold':
      return [s.target, s.loop.value, s.weight]
    case 'segmentSum':
      return [s.segment, s.offset.value, s.loop.value]
    case 'row':
      return [...(s.inner ?? []).flatMap(exprsOf), s.loop.value]
    default:
      return [s.loop.value]
  }
}

export const elementOf = (result: Result): Expr => (result.kind === 'number' ? result.value : result.loop.value)

/** Names of everything that expressions and lengths mention. */
export function mentioned(exprs: readonly Expr[], statements: readonly Stmt[], results: readonly Result[]): Set<string> {
  const names = new Set<string>()
  const addLength = (length: string | number): void => {
    if (typeof length === 'string') names.add(length)
  }
  const see = (e: Expr): void => {
    if (e.kind === 'name') names.add(e.name.split('.')[0] ?? '')
    if (e.kind === 'load') names.add(e.tensor)
    if (e.kind === 'element') names.add(e.row.split('.')[0] ?? '')
    if (e.kind === 'reduce') addLength(e.loop.length)
  }
  for (const e of [...exprs, ...statements.flatMap(exprsOf), ...results.map(elementOf)]) visit(e, see)
  for (const s of statements.flatMap((each) => [each, ...(each.kind === 'row' ? (each.inner ?? []) : [])])) {
    for (const loop of loopsOf(s)) addLength(loop.length)
    if (s.kind === 'monoid') names.add(s.monoid)
    if (s.kind === 'monoid' || s.kind === 'fold') addLength(s.length)
    if (s.kind === 'topK') addLength(s.k)
    if (s.kind === 'histogram') addLength(s.bins)
  }
  for (const result of results) {
    if (result.kind !== 'number') addLength(result.loop.length)
    if (result.kind === 'histogram') names.add(result.bins)
  }
  return names
}

/** Removes unused statements, inputs, attributes, monoids and dimensions of an op. */
export function pruned(op: OpDesc): OpDesc {
  const results = op.outputs.map(({ result }) => result)
  let body = op.body
  for (;;) {
    const kept = body.filter((s, at) => mentioned([], body.slice(at + 1), results).has(s.name))
    if (kept.length === body.length) break
    body = kept
  }
  const words = mentioned([], body, results)
  const updated = new Set(op.outputs.flatMap(({ updates }) => updates ?? []))
  const inputs = op.inputs.filter(({ name }) => words.has(name) || updated.has(name))
  const tensors = [...inputs, ...op.outputs]
  const derived = op.dims.flatMap((dim) => (dim.size === 'derived' ? [dim.of] : []))
  const used = new Set([...tensors.flatMap(({ dims }) => dims), ...words, ...op.rows.map(({ dim }) => dim)])
  const dims = op.dims.filter(({ name }) => used.has(name) || derived.includes(name))
  const types = new Set<DType>(tensors.map(({ dtype }) => dtype))
  const { param, ...rest } = op
  return {
    ...rest,
    ...(param !== undefined && types.has(param) ? { param } : {}),
    dims,
    inputs,
    attrs: op.attrs.filter(({ name }) => words.has(name)),
    monoids: op.monoids.filter(({ name }) => words.has(name)),
    body,
  }
}
