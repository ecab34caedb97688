/**
 * Interleaved accesses of elementwise kernels: loads or stores that are a few elements apart from one step of the loop to the next, and fill that
 * distance together, such as the parts of complex numbers or the channels of pixels. A chunk of all of them is moved at once; each has every second,
 * third, ... element of it. Used by normalisation.
 *
 *     y[m, c] = x[m, 2 * c] * x[m, 2 * c + 1]      one load of 2 * VEC elements
 */
import { call, i32 } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { TensorParam } from '../../ir/kernel.js'
import { polynomialOf, samePolynomial, stepOf } from '../../ir/polynomial.js'
import { type Context, isInBounds } from '../normalise/elements.js'
import type { Interleaved, Statement } from '../normalise/normal.js'
import { contains, hashOf, rewritePaths, substituteIndex } from '../normalise/rewrite.js'
import { offsetOf } from './access.js'

type Place = Pick<ExprOf<'load'>, 'tensor' | 'indices'>

/** Most elements of a group: a thread keeps a chunk of them in registers. */
export const mostMembers = 8

/** A place whose offset rises by `factor` with each step of the loop. */
interface Apart {
  readonly place: Place
  readonly factor: number
  readonly does: 'load' | 'store'
  /** The offset at index 0, without its constant. */
  readonly rest: string
  readonly constant: number
}

/** Equal for equal places of one tensor. */
export const placeKey = ({ tensor, indices }: Place): string => [tensor, ...indices.map(hashOf)].join(' ')

/** Members of whole groups, by the keys of their places: groups of loads have at least their first and last member, groups of stores all. */
export function interleavedPlaces(statements: readonly Statement[], context: Context): ReadonlyMap<string, Interleaved> {
  const places = new Map<string, Apart>()
  const add = (place: Place, index: string, does: Apart['does']): void => {
    const apart = apartOf(place, index, does, context)
    if (apart !== undefined) places.set(placeKey(place), apart)
  }
  for (const s of statements) {
    if (s.kind !== 'writtenStore' && s.kind !== 'row') continue
    for (const load of loadsMade(s.value, context)) add(load, s.index, 'load')
    if (s.kind === 'writtenStore' && s.when === undefined) add(s, s.index, 'store')
  }
  const near = new Map<string, Apart[]>()
  for (const each of places.values()) {
    const key = `${each.does} ${each.factor} ${each.place.tensor} ${each.rest}`
    near.set(key, [...(near.get(key) ?? []), each])
  }
  return new Map([...near.values()].flatMap(groupsOf).flatMap(membersOf))
}

/** True if places are those of a member: a step of the loop is a group, and the place is `member` elements from the first. */
export function isMember(
  tensor: TensorParam,
  indices: readonly Expr[],
  { factor, member, first }: Interleaved,
  index: string,
  fixed: Readonly<Record<string, number>>,
): boolean {
  const [own, start] = [indices, first].map((at) => offsetOf(tensor, at, fixed))
  if (own === undefined || start === undefined || member < 0 || member >= factor) return false
  const step = stepOf(own, index)
  const isStep = step !== undefined && samePolynomial(step, polynomialOf(i32(factor)))
  return isStep && samePolynomial(polynomialOf(own), polynomialOf(call('add', start, i32(member))))
}

/** Loads that every element makes, or may make. */
function loadsMade(value: Expr, context: Context): readonly ExprOf<'load'>[] {
  const found: ExprOf<'load'>[] = []
  rewritePaths(value, (node, always) => {
    if (node.kind === 'load' && (always || isInBounds(node, context))) found.push(node)
    return undefined
  })
  return found
}

function apartOf(place: Place, index: string, does: Apart['does'], { kernel, fixed }: Context): Apart | undefined {
  const tensor = kernel.tensors.find(({ name }) => name === place.tensor)
  const offset = tensor && offsetOf(tensor, place.indices, fixed)
  if (offset === undefined || contains(offset, ({ kind }) => kind === 'element')) return undefined
  const step = stepOf(offset, index)
  const factor = step?.size === 1 ? step.get('') : undefined
  if (factor === undefined || factor < 2 || factor > mostMembers) return undefined
  const start = polynomialOf(substituteIndex(offset, index, i32(0)))
  const rest = [...start].flatMap(([product, by]) => (product === '' ? [] : [`${by} ${product}`]))
  return { place, factor, does, rest: rest.sort().join(' + '), constant: start.get('') ?? 0 }
}

/** Places that lie less than their distance from the first one, by groups. @param near places of one tensor that differ by numbers */
function groupsOf(near: readonly Apart[]): readonly (readonly Apart[])[] {
  const groups: Apart[][] = []
  for (const each of [...near].sort((a, b) => a.constant - b.constant)) {
    const [first] = groups.at(-1) ?? []
    if (first !== undefined && each.constant - first.constant < each.factor) groups.at(-1)?.push(each)
    else groups.push([each])
  }
  return groups
}

/** The members of a group; none if it is not whole. */
function membersOf(group: readonly Apart[]): readonly (readonly [string, Interleaved])[] {
  const [first] = group
  const last = group.at(-1)
  if (first === undefined || last === undefined || last.constant - first.constant !== first.factor - 1) return []
  if (first.does === 'store' && group.length !== first.factor) return []
  return group.map(({ place, factor, constant }) => [
    placeKey(place),
    { factor, member: constant - first.constant, first: first.place.indices },
  ])
}
