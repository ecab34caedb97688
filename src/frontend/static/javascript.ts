/** JavaScript globals in bodies: constants a body may read, and replacements for functions that devices do not have. */
import type { PropertyAccessExpression } from 'ts-morph'
import { getOwn } from '../../ir/get_own.js'
import { isIntrinsicName } from '../../ir/intrinsics.js'
import { quote, reject } from '../diagnostics/reject.js'

export const globalConstants: Readonly<Record<string, number>> = { Infinity: Number.POSITIVE_INFINITY, NaN: Number.NaN }

export const staticObjects: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  Math: {
    E: Math.E,
    LN2: Math.LN2,
    LN10: Math.LN10,
    LOG2E: Math.LOG2E,
    LOG10E: Math.LOG10E,
    PI: Math.PI,
    SQRT1_2: Math.SQRT1_2,
    SQRT2: Math.SQRT2,
  },
  Number: {
    POSITIVE_INFINITY: Number.POSITIVE_INFINITY,
    NEGATIVE_INFINITY: Number.NEGATIVE_INFINITY,
    NaN: Number.NaN,
    EPSILON: Number.EPSILON,
  },
}

/** `Math` functions whose counterpart has another name. */
const renamed: Readonly<Record<string, string>> = { max: 'maximum', min: 'minimum' }

export const callableHint = 'a body may call the functions of heddle and functions of the same subset'

/** Replacements for functions without a counterpart of the same name. */
const instead: Readonly<Record<string, string>> = {
  'Math.random': "import { uniform } from 'heddle': uniform(seedLow, seedHigh, counter) draws the same numbers wherever it runs",
  'Math.imul': "import { wrappingMul } from 'heddle': wrappingMul(a, b) is the same product of 32 bits",
  'Math.sign': 'write a > 0 ? 1 : a < 0 ? -1 : 0',
  'Math.hypot': 'write sqrt(a * a + b * b), with sqrt of heddle',
  'Math.tan': 'write sin(a) / cos(a), with sin and cos of heddle',
  'Math.fround': 'bodies compute in float32 already',
  'Number.isNaN': 'write a !== a',
  'Number.isFinite': 'write a - a === 0',
  'Number.isInteger': 'write floor(a) === a, with floor of heddle',
  'Number.parseInt': 'a float becomes an integer by toInt(a)',
  'Number.parseFloat': 'an integer becomes a float by toFloat(a)',
  isNaN: 'write a !== a',
  isFinite: 'write a - a === 0',
  parseInt: 'a float becomes an integer by toInt(a)',
  parseFloat: 'an integer becomes a float by toFloat(a)',
  Number: 'an integer becomes a float by toFloat(a), a boolean a number by condition ? 1 : 0',
  Boolean: 'compare it, as in a !== 0',
  String: 'a body computes numbers and booleans',
  BigInt: 'integers of a body have 32 bits: toInt(a)',
  Array: 'make a row: row(n, (c) => ...)',
  Object: 'name every field: { y: ... }',
}

/** Hint for a JavaScript global, such as `Number`. */
export const insteadOf = (name: string): string => getOwn(instead, name) ?? callableHint

/** Refuses `Math.exp` and its like. */
export function refuseGlobalMember(node: PropertyAccessExpression): never {
  const member = getOwn(renamed, node.getName()) ?? node.getName()
  const isNamed = node.getExpression().getText() === 'Math' && isIntrinsicName(member)
  const hint = isNamed ? `import { ${member} } from 'heddle' and call ${member}(...)` : insteadOf(quote(node))
  return reject('callee', node, `${quote(node)} has no counterpart on a device`, hint)
}

const read = 'read elements by calling: x(m, c)'

/** Array methods and their equivalents for rows. */
const methods: Readonly<Record<string, (name: string) => string>> = {
  map: (name) => `make a row: row(n, (c) => ...), which reads ${name} by calling it`,
  reduce: () => 'reduce with sum(n, (c) => ...), max, min, or carry something along with fold',
  length: () => 'a length is a dimension of the op: take it from the second parameter, as in ({ x }, { n }) => ...',
  forEach: () => 'a body has no effects: make a row(n, (c) => ...)',
  push: () => 'a body changes nothing: make a row(n, (c) => ...)',
  fill: () => 'a body changes nothing: make a row(n, (c) => ...)',
  filter: () => 'a row keeps its length: write row(n, (c) => condition ? ... : 0)',
  slice: (name) => `a part of a row is read at other indices: ${name}(first + c)`,
  at: (name) => `call it: ${name}(c)`,
  indexOf: () => 'find a place with argmax(n, (c) => condition ? 1 : 0)',
  includes: () => 'count with sum(n, (c) => condition ? 1 : 0)',
  some: () => 'take max(n, (c) => condition ? 1 : 0)',
  every: () => 'take min(n, (c) => condition ? 1 : 0)',
  sort: () => 'sort with argsort(1024, n, (c) => ...)',
}

/** Hint for a member access on a tensor or a row that the author calls `name`. */
export const insteadOfMember = (name: string, member: string): string => getOwn(methods, member)?.(name) ?? read
