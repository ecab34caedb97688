/** Extents and strides of a library matmul as sizes of an export. Axes that are contiguous in every operand form one group. */
import { usageError } from '../errors.js'
import type { NodeOf } from '../ir/graph.js'
import { type Extent, multiplyExtents } from '../ir/shape.js'
import { type Form, formOf, type KnownLayouts, type Scope, stridesOf } from './forms.js'
import { constant, dimsOf, evaluateSize, type Size } from './sizes.js'

/** One axis of an operand. */
interface Axis {
  readonly name: string
  readonly extent: Extent
  readonly stride: Size
}

/**
 * An operand of a matmul: its axes from the outermost in memory to the innermost. Axes of one element are left out, since they have no place in
 * memory.
 */
interface Operand {
  readonly name: string
  readonly subscripts: readonly string[]
  readonly axes: readonly Axis[]
}

/**
 * The four extents of a matmul (batch, m, n and k), and the strides of its three operands along batch and their two other groups of axes.
 * @throws usage `export.matmul` for axes that do not form one axis at every size
 */
export function matmulNumbers(label: string, scope: Scope, node: NodeOf<'matmul'>, known: KnownLayouts): readonly Size[] {
  const forms = { a: formOf(scope, node.a), b: formOf(scope, node.b), out: formOf(scope, node.out) }
  const trials = trialsOf(Object.values(forms))
  const operand = (name: 'a' | 'b' | 'out'): Operand => operandOf(label, name, node.subscripts[name], forms[name], known, trials)
  const [a, b, out] = [operand('a'), operand('b'), operand('out')]
  const has = (each: Operand) => (axis: string) => each.subscripts.includes(axis)
  const not = (each: Operand) => (axis: string) => !each.subscripts.includes(axis)
  const shared = a.subscripts.filter(has(b))
  const group = (axes: readonly string[], operands: readonly Operand[]) => groupOf(label, axes, operands, trials)
  const batch = group(shared.filter(has(out)), [a, b, out])
  const k = group(shared.filter(not(out)), [a, b])
  const m = group(a.subscripts.filter(not(b)), [a, out])
  const n = group(b.subscripts.filter(not(a)), [b, out])
  const along = (each: Operand, groups: readonly Group[]): Size[] =>
    groups.map(({ strides }) => strides.get(each.name) ?? constant(0))
  return [
    ...[batch.extent, m.extent, n.extent, k.extent],
    ...along(a, [batch, m, k]),
    ...along(b, [batch, n, k]),
    ...along(out, [batch, m, n]),
  ]
}

type Sizes = Readonly<Record<string, number>>

/** Sizes for the dimensions of some values, nearly coprime: axes that form one axis at these sizes form one at all. */
function trialsOf(forms: readonly Form[]): readonly Sizes[] {
  const dims = dimsOf(forms.flatMap(({ shape }) => shape))
  const primes = [
    [5, 37, 7, 41, 11, 43, 13, 47],
    [53, 3, 61, 17, 67, 19, 71, 23],
  ]
  return primes.map((list) => Object.fromEntries(dims.map((dim, i) => [dim, (list[i % list.length] ?? 2) + i])))
}

const isOne = ({ factor, dims }: Extent): boolean => factor === 1 && dims.length === 0

/** @throws usage `export.matmul` for a layout whose axes have no constant strides */
function operandOf(
  label: string,
  name: string,
  subscripts: readonly string[],
  form: Form,
  known: KnownLayouts,
  [trial = {}]: readonly Sizes[],
): Operand {
  const strides = stridesOf(form, known)
  if (strides === undefined)
    throw usageError('export.matmul', `${label}: expected a layout with constant strides for ${name}, got ${form.layout}`)
  const axes = subscripts.flatMap((axis, at): Axis[] => {
    const extent = form.shape[at] ?? constant(1)
    return isOne(extent) ? [] : [{ name: axis, extent, stride: strides[at] ?? constant(0) }]
  })
  return { name, subscripts, axes: axes.toSorted((a, b) => evaluateSize(b.stride, trial) - evaluateSize(a.stride, trial)) }
}

interface Group {
  readonly extent: Extent
  readonly strides: ReadonlyMap<string, Size>
}

/**
 * Axes that form one axis: every operand that has them has them in the same order, and each stride equals the extent of the next axis times its
 * stride.
 */
function groupOf(label: string, names: readonly string[], operands: readonly Operand[], trials: readonly Sizes[]): Group {
  const laid = operands.map(({ name, axes }) => ({ name, inside: axes.filter((axis) => names.includes(axis.name)) }))
  const isOneAxis = (axes: readonly Axis[], sizes: Sizes): boolean =>
    axes.every(({ stride }, i) => {
      const next = axes[i + 1]
      return (
        next === undefined || evaluateSize(stride, sizes) === evaluateSize(next.extent, sizes) * evaluateSize(next.stride, sizes)
      )
    })
  const [lead] = laid
  const order = (axes: readonly Axis[] = []): string => axes.map(({ name }) => name).join(' ')
  const apart = laid.find(
    ({ inside }) => order(inside) !== order(lead?.inside) || !trials.every((sizes) => isOneAxis(inside, sizes)),
  )
  if (apart !== undefined)
    throw usageError('export.matmul', `${label}: axes ${names.join(' ')} of ${apart.name} are not contiguous at every size`)
  return {
    extent: multiplyExtents(lead?.inside.map(({ extent }) => extent) ?? []),
    strides: new Map(laid.map(({ name, inside }) => [name, inside.at(-1)?.stride ?? constant(0)])),
  }
}
