/**
 * Layouts as stored in the manifest: the number of elements in a buffer and the strides, as counts of the extents. Sources in other languages, such
 * as those of an export, allocate memory by them; kernels have their offsets compiled in.
 */
import { z } from 'zod'
import { i32 } from '../../ir/build.js'
import { forEachPoint } from '../../ir/evaluate.js'
import type { Expr } from '../../ir/expr.js'
import { countOf } from '../../ir/facts/counts.js'
import { type Count, evaluateCount } from '../../ir/facts/facts.js'
import { integerFunction } from '../../ir/integer_function.js'
import type { Layout } from '../../ir/layout.js'
import { extentsToTry } from '../../ir/layout_proof.js'
import { simplifyExpr } from '../../ir/simplify.js'
import { rewrite, substitute } from '../../ir/walk.js'
import { dropZeros } from '../../schedule/normalise/rewrite.js'
import { countSchema } from './facts.js'

export const layoutFormSchema = z.strictObject({
  /** Names of the extents in counts, outermost axis first. */
  axes: z.array(z.string()),
  /** Elements in a buffer, padding included. */
  size: countSchema,
  /** Stride in elements along each axis, for a layout in which the strides are constant. */
  strides: z.array(countSchema).optional(),
})

export type LayoutForm = z.infer<typeof layoutFormSchema>

type Tensors = readonly { readonly layout: Layout }[]

/** Layouts of tensors by name, except row-major ones and those whose size is no count. */
export function layoutForms(kernels: readonly { readonly tensors: Tensors }[]): Record<string, LayoutForm> {
  const named = new Map(kernels.flatMap(({ tensors }) => tensors.map(({ layout }) => [layout.name, layout] as const)))
  const names = [...named.keys()].filter((name) => name !== 'row').sort()
  return Object.fromEntries(
    names.flatMap((name) => {
      const layout = named.get(name)
      const form = layout === undefined ? undefined : formOf(layout)
      return form === undefined ? [] : [[name, form] as const]
    }),
  )
}

function formOf(layout: Layout): LayoutForm | undefined {
  const { axes } = layout
  const size = exactCount(layout, layout.size)
  if (size === undefined) return undefined
  const counts = axes.map((axis) => exactCount(layout, offsetAt(layout, axis)))
  const strides = counts.filter((count) => count !== undefined)
  const isStepped = strides.length === axes.length && goesInSteps(layout, strides)
  return { axes: [...axes], size, ...(isStepped ? { strides } : {}) }
}

/** Offset of the second index along one axis, the first along the others. */
const offsetAt = ({ axes, offset }: Layout, axis: string): Expr =>
  substitute(offset, new Map(axes.map((each) => [each, i32(each === axis ? 1 : 0)])))

/** Elements evaluated per layout; proofs of its offsets use more. */
const budget = 20_000

/** Count that equals an expression of extents for all tried extents; undefined if there is none. */
function exactCount({ axes }: Layout, expr: Expr): Count | undefined {
  const count = countOf(simplifyExpr(dropZeros(simplifyExpr(arithmetic(expr)))), new Map())
  if (count === undefined) return undefined
  const evaluate = integerFunction(expr, { index: new Map(), dim: new Map(axes.map((axis, at) => [axis, at])) })
  const isSame = extentsToTry(axes.length, budget).every((extents) => {
    const sizes = Object.fromEntries(axes.map((axis, at) => [axis, extents[at] ?? 0]))
    return evaluateCount(count, sizes) === evaluate(extents)
  })
  return isSame ? count : undefined
}

/** True if the offset of each index is the sum of its strides, for all tried extents. */
function goesInSteps({ axes, offset }: Layout, strides: readonly Count[]): boolean {
  const slots = (from: number) => new Map(axes.map((axis, at) => [axis, from + at]))
  const evaluate = integerFunction(offset, { index: slots(0), dim: slots(axes.length) })
  for (const extents of extentsToTry(axes.length, budget)) {
    const sizes = Object.fromEntries(axes.map((axis, at) => [axis, extents[at] ?? 0]))
    const steps = strides.map((stride) => evaluateCount(stride, sizes) ?? Number.NaN)
    let fits = true
    forEachPoint(extents, (point) => {
      fits &&= evaluate([...point, ...extents]) === point.reduce((sum, index, at) => sum + index * (steps[at] ?? 0), 0)
    })
    if (!fits) return false
  }
  return true
}

/** Replaces shifts and masks by powers of two with the equal arithmetic on numbers that are not negative, as extents and offsets are. */
const arithmetic = (expr: Expr): Expr =>
  rewrite(expr, (node) => {
    if (node.kind !== 'call' || node.type !== 'i32') return node
    const [a, b] = node.args
    if (a === undefined || b?.kind !== 'const') return node
    const by = Number(b.value)
    const call = (fn: 'idiv' | 'mul' | 'mod' | 'sub', ...args: readonly Expr[]): Expr => ({ kind: 'call', type: 'i32', fn, args })
    const isShift = by >= 0 && by < 31
    if (node.fn === 'shiftRight' && isShift) return call('idiv', a, i32(2 ** by))
    if (node.fn === 'shiftLeft' && isShift) return call('mul', a, i32(2 ** by))
    if (node.fn !== 'bitAnd') return node
    if (isPower(by + 1)) return call('mod', a, i32(by + 1))
    return isPower(-by) ? call('sub', a, call('mod', a, i32(-by))) : node
  })

const isPower = (value: number): boolean => value > 0 && value < 2 ** 31 && (value & (value - 1)) === 0
