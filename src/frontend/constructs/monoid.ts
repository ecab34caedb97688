/**
 * User monoids in a body: `linear.scan(n, (t) => ({ ... }))` becomes one statement, whose fields are rows or scalars. The declaration is read at its
 * definition; the monoid laws are checked at each use, on elements that the body produces.
 */
import { Node } from 'ts-morph'
import { coerce, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { brokenLaw, type MonoidField, type UserMonoid } from '../../ir/user_monoid.js'
import { freeNames } from '../../ir/walk.js'
import { quote, reject } from '../diagnostics/reject.js'
import { checkFloat, follow, staticFields, staticNumber } from '../static/literals.js'
import { readBrand } from '../static/resolve.js'
import { describe, innerScope, type Lowering, type Place, scalar, type Value, type ValueOf } from '../static/values.js'
import { argumentAt, asIndex, asScalar } from '../types/scalars.js'
import { expectRowLevel } from './rows.js'

const example = 'write const linear = monoid({ identity: { a: 1, b: 0 }, combine: (x, y) => ({ ... }) }) at module level'

/** The object literal of a monoid's declaration. */
function configOf(definition: Node): Node {
  const call = follow(definition)
  const config = Node.isCallExpression(call) ? call.getArguments()[0] : undefined
  return config ?? reject('callee', definition, `${quote(definition)} is not a monoid known at compile time`, example)
}

function fieldOf(name: string, value: Node): MonoidField {
  const written = follow(value)
  const isInteger = Node.isCallExpression(written) && readBrand(written.getExpression())?.kind === 'int'
  const number = isInteger ? (written.getArguments()[0] ?? value) : value
  const identity = staticNumber(number)
  if (!isInteger) checkFloat(identity, value)
  if (isInteger && !(Number.isInteger(identity) && Math.abs(identity) < 2 ** 31))
    reject('range', value, `${quote(value)} is not a 32-bit integer`, 'write int(0)')
  return { name, type: isInteger ? 'i32' : 'f32', identity }
}

/** The value of each field; refuses missing and extra fields. */
function fieldsOf(value: Value, fields: readonly MonoidField[], node: Node, what: string): readonly Expr[] {
  const wanted = fields.map(({ name }) => name).join(', ')
  if (value.kind !== 'record') return reject('dtype', node, `${what} is ${describe(value)}`, `write ({ ${wanted} })`)
  const extra = [...value.fields.keys()].find((name) => !fields.some((field) => field.name === name))
  if (extra !== undefined)
    return reject('unknownIdentifier', node, `${what} has a field ${extra}, the monoid has none`, `its fields are ${wanted}`)
  return fields.map(({ name, type }) => {
    const given = value.fields.get(name)
    if (given === undefined) return reject('dtype', node, `${what} has no field ${name}`, `its fields are ${wanted}`)
    const expr = asScalar(given, node)
    const kind = type === 'i32' ? 'an integer' : 'a float'
    const hint = type === 'i32' ? 'use toInt, or declare the identity without int' : 'declare the identity as int(...)'
    return coerce(expr, type) ?? reject('dtype', node, `field ${name} is ${kind}, ${what} has ${describe(scalar(expr))}`, hint)
  })
}

/** Reads a declaration. */
function declared(definition: Node, lowering: Lowering): UserMonoid {
  const config = staticFields(configOf(definition))
  const [identity, combine] = [config.get('identity'), config.get('combine')]
  if (identity === undefined || combine === undefined)
    return reject('signature', definition, `${quote(definition)} has no identity or no combine`, example)
  const fields = [...staticFields(identity.value)].map(([name, { value }]) => fieldOf(name, value))
  if (fields.length === 0) reject('signature', identity.value, 'a monoid has at least one field', example)
  const function_ = follow(combine.value)
  if (!Node.isArrowFunction(function_))
    return reject('signature', combine.value, `${quote(combine.value)} is not an arrow function`, example)
  const names = function_.getParameters().map((parameter) => parameter.getName())
  const side = (wanted: string) => {
    const locals = fields.map(({ name }) => lowering.unique(`${wanted.replace(/\W/g, '')}_${name}`))
    const record: Value = {
      kind: 'record',
      fields: new Map(fields.map(({ name, type }, i) => [name, scalar(local(locals[i] ?? '', type))])),
      node: function_,
    }
    return { locals, record }
  }
  const [left, right] = [side(names[0] ?? 'left'), side(names[1] ?? 'right')]
  const place: Place = { scope: innerScope(), level: 'element' }
  const made = lowering.call(
    { kind: 'function', node: function_, scope: innerScope() },
    [left.record, right.record],
    function_,
    place,
  )
  const combined = fieldsOf(made, fields, function_, 'what combine returns')
  const own = new Set([...left.locals, ...right.locals])
  const foreign = combined.flatMap((expr) => [...freeNames(expr)]).find((name) => !own.has(name))
  if (foreign !== undefined)
    reject('runtimeValue', function_, `combine reads ${foreign}`, 'it combines the fields of its two parts and constants')
  return { fields, left: left.locals, right: right.locals, combine: combined }
}

/** Lowers `definition.reduce(...)` or `definition.scan(...)`. `wanted` is the author's name for the result, if any. */
export function userMonoid(
  { definition, does }: ValueOf<'monoid'>,
  args: readonly Value[],
  node: Node,
  place: Place,
  lowering: Lowering,
  wanted = '',
): Value {
  const [length, of] = args
  if (length === undefined || of?.kind !== 'function' || args.length !== 2)
    return reject(
      'arity',
      node,
      `${does} takes a length and a function of an index`,
      `write ${quote(definition)}.${does}(n, (c) => ({ ... }))`,
    )
  expectRowLevel(does === 'scan' ? 'a scan' : 'a reduction by a monoid of its own', node, place)
  const monoid = declared(definition, lowering)
  const extent = asIndex(length, argumentAt(node, 0), `length of ${does}:`)
  const at = argumentAt(node, 1)
  const index = lowering.unique(of.node.getParameters()[0]?.getName() ?? 'i')
  if (extent.kind === 'dim') lowering.spans.set(index, extent.name)
  lowering.loops.set(index, extent)
  const given: Value[] = of.node.getParameters().length === 0 ? [] : [scalar({ kind: 'index', type: 'i32', name: index })]
  const element = lowering.call(of, given, at, { ...place, level: 'element' })
  const values = fieldsOf(element, monoid.fields, at, 'an element')
  const broken = brokenLaw(monoid, values, index, does === 'scan')
  if (broken !== undefined) {
    const hint =
      does === 'scan'
        ? 'a scan combines parts of a row in any grouping: (a b) c and a (b c) must be the same'
        : 'the compiler chooses the order and grouping of a reduction, so combine must be associative and commutative; where the order matters, use a scan'
    reject('monoid', node, `${quote(definition)} is not a monoid over these elements: ${broken}`, hint)
  }
  const name = /^\w+$/.test(wanted) ? wanted : does
  const names = monoid.fields.map((field) => lowering.unique(`${name}_${field.name}`))
  lowering.emit({ kind: does === 'scan' ? 'mergeScan' : 'merge', names, monoid, length: extent, index, values })
  const fields = monoid.fields.map(({ name: field, type }, i): [string, Value] => {
    const made = names[i] ?? ''
    if (does === 'reduce') return [field, scalar(local(made, type))]
    lowering.inOrder.set(made, { made: 'scan', row: made })
    return [field, { kind: 'row', name: made, type, length: extent }]
  })
  return { kind: 'record', fields: new Map(fields), node }
}
