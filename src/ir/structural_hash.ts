/**
 * Structural hashes of plain data: equal for equal values, and only for those, in every process. V8's serialisation does not suffice: it
 * writes the same number in two ways, depending on how the code that made it was compiled. The hash of each object is computed once, which
 * is valid since graphs, kernels and data derived from them are immutable. A short text is its own hash, since a digest would take longer.
 */
import { createHash } from 'node:crypto'
import type { Expr } from './expr.js'
import { hashOf } from './expr_hash.js'
import { placesOf } from './walk.js'

const keys = new WeakMap<object, string>()

/** 132 bits of a digest: collisions are negligible. */
const keyLength = 22

/** Most characters of a text that is its own hash. Brackets distinguish it from a digest. */
const mostText = 160

/** @throws internal if the value contains functions, symbols or typed arrays */
export function structuralHash(value: unknown): string {
  if (typeof value === 'object' && value !== null) return keyOfObject(value)
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value === 'function' || typeof value === 'symbol')
    throw new Error(`internal: a ${typeof value} has no structural hash`)
  return Object.is(value, -0) ? '-0' : `${typeof value === 'bigint' ? 'n' : ''}${value}`
}

/**
 * Memoises the hashes of values that an earlier run computed and stored with them. Sound for copies of the hashed values, since
 * copies have equal hashes.
 */
export function memoiseHashes(values: readonly object[], made: readonly string[]): void {
  for (const [i, value] of values.entries()) keys.set(value, made[i] ?? structuralHash(value))
}

function keyOfObject(value: object): string {
  const known = keys.get(value)
  if (known !== undefined) return known
  const text = textOf(value)
  const key = text.length <= mostText ? text : createHash('sha256').update(text).digest('base64url').slice(0, keyLength)
  keys.set(value, key)
  return key
}

function textOf(value: object): string {
  // Expressions may be deeper than calls can nest.
  if (isExpr(value)) return `expr(${hashOf(value)} ${placesOf(value).join(' ')})`
  if (Array.isArray(value)) return `[${value.map(structuralHash).join(' ')}]`
  if (value instanceof Map) return `map(${[...value].map(structuralHash).join(' ')})`
  if (value instanceof Set) return `set(${[...value].map(structuralHash).join(' ')})`
  if (ArrayBuffer.isView(value)) throw new Error('internal: a typed array has no structural hash')
  return `{${Object.entries(value)
    .map(([name, each]) => `${JSON.stringify(name)}: ${structuralHash(each)}`)
    .join(' ')}}`
}

/** Fields of expressions of each kind besides their kind and type. Other objects that resemble expressions have other fields. */
const fields: Readonly<Record<Expr['kind'], readonly string[]>> = {
  const: ['value'],
  dim: ['name'],
  attr: ['name'],
  index: ['name'],
  local: ['name'],
  element: ['row', 'index'],
  load: ['tensor', 'indices'],
  call: ['fn', 'args'],
  fold: ['monoid', 'length', 'index', 'value'],
}

function isExpr(value: object): value is Expr {
  if (!('kind' in value && 'type' in value && typeof value.kind === 'string' && Object.hasOwn(fields, value.kind))) return false
  const wanted = fields[value.kind as Expr['kind']]
  const given = Object.keys(value).filter((name) => name !== 'span' && !(value.kind === 'call' && name === 'form')).length
  return given === wanted.length + 2 && wanted.every((name) => Object.hasOwn(value, name))
}
