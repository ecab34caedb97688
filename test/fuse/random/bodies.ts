/** Random bodies: elementwise expressions, norms, softmaxes and look-alikes. */
import { call, dim, f32, i32, index, local, toFloat } from '../../../src/ir/build.js'
import type { Expr } from '../../../src/ir/expr.js'
import type { Stmt } from '../../../src/ir/kernel.js'
import type { MonoidName } from '../../../src/ir/monoids.js'
import type { Random } from './draft.js'

const one = f32(1)

/** An expression of the given values that stays finite and within some hundreds, so that sums in another order agree. */
export function someFloat(random: Random, leaves: readonly Expr[], depth: number): Expr {
  if (depth === 0 || random.chance(0.15))
    return random.chance(0.2) ? f32(random.pick([-1.5, 0.25, 0.5, 2, 3])) : random.pick(leaves)
  const some = () => someFloat(random, leaves, depth - 1)
  const a = some()
  const squash = call('tanh', a)
  switch (random.below(13)) {
    case 0:
      return call('add', a, some())
    case 1:
      return call('sub', a, some())
    case 2:
      return call('mul', squash, some())
    case 3:
      return call('minimum', a, some())
    case 4:
      return call('maximum', a, some())
    case 5:
      return call('mul', f32(5), call('tanh', call('div', a, f32(5))))
    case 6:
      return call('abs', a)
    case 7:
      return call('gelu', a)
    case 8:
      return call('exp', squash)
    case 9:
      return call('div', a, call('add', one, call('square', some())))
    case 10:
      return call('select', call('lt', a, some()), some(), a)
    case 11:
      return call('sqrt', call('add', one, call('square', a)))
    default:
      return call('mul', a, f32(random.pick([0.125, 0.5, -1, 2])))
  }
}

const row = (name: string, over: string, c: string, value: Expr): Stmt => ({
  kind: 'row',
  name,
  type: 'f32',
  length: dim(over),
  index: c,
  value,
})
const reduce = (name: string, monoid: MonoidName, over: string, c: string, value: Expr): Stmt => ({
  kind: 'reduce',
  name,
  type: 'f32',
  monoid,
  length: dim(over),
  index: c,
  value,
})
export const store = (rows: readonly Expr[], over: string, c: string, value: Expr): Stmt => ({
  kind: 'storeRow',
  tensor: 'y',
  rows,
  length: dim(over),
  index: c,
  value,
})
const element = (name: string, c: string): Expr => ({ kind: 'element', type: 'f32', row: name, index: index(c) })

type Along = (c: Expr) => Expr

/** A normalisation of a row: by its mean and variance, or by its root mean square. */
export function norm(random: Random, over: string, rows: readonly Expr[], x: Along, gamma: Along | undefined): readonly Stmt[] {
  const centred = random.chance(0.5)
  const count = toFloat(dim(over))
  const mean: Stmt[] = centred
    ? [
        reduce('sum', 'sum', over, 'c2', element('v', 'c2')),
        { kind: 'let', name: 'mean', type: 'f32', value: call('div', local('sum'), count) },
      ]
    : []
  const off = (c: string): Expr => (centred ? call('sub', element('v', c), local('mean')) : element('v', c))
  const scaled = call('mul', off('c4'), local('inverse'))
  return [
    row('v', over, 'c1', x(index('c1'))),
    ...mean,
    reduce('squares', 'sum', over, 'c3', call('square', off('c3'))),
    {
      kind: 'let',
      name: 'inverse',
      type: 'f32',
      value: call('rsqrt', call('add', call('div', local('squares'), count), f32(1e-3))),
    },
    store(rows, over, 'c4', gamma === undefined ? scaled : call('mul', scaled, gamma(index('c4')))),
  ]
}

export const softmaxes = [
  'plain',
  'reciprocal',
  'inlined',
  'sink',
  'off by one',
  'temperature',
  'no maximum',
  'scaled sum',
] as const
export const noSoftmaxes = ['squared', 'added', 'other shift', 'sum of squares'] as const
export type SoftmaxForm = (typeof softmaxes)[number] | (typeof noSoftmaxes)[number]

/** A softmax of a row, or something near one, in one of the ways people write them. */
export function softmax(
  form: SoftmaxForm,
  over: string,
  rows: readonly Expr[],
  x: Along,
  sink: Expr | undefined,
): readonly Stmt[] {
  const scale = form === 'temperature' ? f32(0.5) : undefined
  const read: Along = (c) => (scale === undefined ? x(c) : call('mul', x(c), scale))
  const joined = form === 'sink' && sink !== undefined
  const largest = reduce('largest', 'max', over, 'c2', element('v', 'c2'))
  const top: Stmt = {
    kind: 'let',
    name: 'top',
    type: 'f32',
    value: joined ? call('maximum', local('largest'), sink) : form === 'other shift' ? f32(0.5) : local('largest'),
  }
  const shifted = (c: string): Expr => {
    const value = element('v', c)
    return call('exp', form === 'no maximum' ? value : call('sub', value, local('top')))
  }
  const inlined = form === 'inlined'
  const exponential = (c: string): Expr => (inlined ? shifted(c) : element('e', c))
  const total: Expr = joined
    ? call('add', local('sum'), call('exp', call('sub', sink, local('top'))))
    : form === 'off by one'
      ? call('add', local('sum'), call('exp', call('neg', local('top'))))
      : form === 'scaled sum'
        ? call('mul', local('sum'), f32(2))
        : local('sum')
  const weight =
    form === 'reciprocal'
      ? call('mul', exponential('c5'), call('div', one, total))
      : form === 'squared'
        ? call('square', call('div', exponential('c5'), total))
        : form === 'added'
          ? call('add', call('div', exponential('c5'), total), f32(0.25))
          : call('div', exponential('c5'), total)
  return [
    row('v', over, 'c1', read(index('c1'))),
    ...(form === 'no maximum' || form === 'other shift' ? [] : [largest]),
    ...(form === 'no maximum' ? [] : [top]),
    ...(inlined ? [] : [row('e', over, 'c3', shifted('c3'))]),
    reduce('sum', 'sum', over, 'c4', form === 'sum of squares' ? call('square', exponential('c4')) : exponential('c4')),
    store(rows, over, 'c5', weight),
  ]
}

/** Inputs of masks: positions, lengths and documents of a query and a key. */
export interface Pair {
  readonly i: Expr
  readonly j: Expr
  readonly keys: Expr
  readonly length: Expr | undefined
  readonly own: Expr | undefined
  readonly other: Expr | undefined
}

/** A condition of a query and a key. */
export function mask(random: Random, pair: Pair, depth: number): Expr {
  const { i, j, keys, length, own, other } = pair
  if (depth > 0 && random.chance(0.6)) {
    const [a, b] = [mask(random, pair, depth - 1), mask(random, pair, depth - 1)]
    if (random.chance(0.15)) return call('not', a)
    return call(random.chance(0.65) ? 'and' : 'or', a, b)
  }
  const back = call('sub', i, j)
  const size = i32(1 + random.below(4))
  const compare = random.pick(['lt', 'le', 'ge', 'gt'] as const)
  switch (random.below(13)) {
    case 0:
    case 1:
      return call('le', j, i)
    case 2:
      return call('lt', back, size)
    case 3:
      return call(random.pick(['lt', 'le'] as const), call('abs', back), size)
    case 4:
      return call('eq', call('mod', back, i32(2)), i32(0))
    case 5:
    case 6:
      return length === undefined ? call('le', j, i) : call('lt', j, length)
    case 7:
      return own === undefined || other === undefined ? call('ge', j, i) : call('eq', own, other)
    case 8:
      return call(compare, j, call('add', i, i32(random.below(5) - 2)))
    case 9:
      return call(compare, call('add', j, i), keys)
    case 10:
      return call(compare, call('mul', j, i32(2)), i)
    case 11:
      return call('le', call('idiv', j, i32(2)), call('idiv', i, i32(2)))
    default:
      return call(compare, call('mul', i32(random.pick([-1, 1, 2])), i), call('sub', j, size))
  }
}
