/**
 * Lowers facts of an op from its declaration (src/lang/facts.ts) to the IR and checks them against the signature: the subject of a fact and
 * all names in it must be declared. The body implies further facts (lower/ops.ts).
 */
import { Node } from 'ts-morph'
import { type Count, type Domain, type ExtentFact, errorClasses, type Facts, namesOf, packedRoles } from '../../ir/facts/facts.js'
import { parseSize } from '../../ir/facts/size_text.js'
import type { AttrParam, TensorParam } from '../../ir/kernel.js'
import { reject } from '../diagnostics/reject.js'
import { type Field, follow, staticFields, staticNumber, staticNumbers, staticString } from '../static/literals.js'

/** The parts of a signature that facts may name. */
interface Declared {
  readonly name: string
  readonly dims: readonly string[]
  readonly tensors: readonly TensorParam[]
  readonly attrs: readonly AttrParam[]
}

type Fields = ReadonlyMap<string, Field>

const form = 'see `facts` of `op` in the declarations of heddle'

/** Mean square of evenly drawn numbers of a size. */
const squareOf = (size: number): number => (0.64 * size) ** 2
/** Typical size of integers that a body only counts with. */
const usualSize = 100

/** Reads the field `facts`. @throws Rejection located in it */
export function readFacts(field: Field | undefined, declared: Declared): Facts {
  const inputs: Record<string, Domain> = {}
  const dims: Record<string, ExtentFact> = {}
  const attrs: Record<string, Facts['attrs'][string]> = {}
  const results: Record<string, Facts['results'][string]> = {}
  const tensor = (name: string, access: TensorParam['access']) =>
    declared.tensors.find((each) => each.name === name && each.access === access)
  for (const [name, { key, value }] of field === undefined ? [] : staticFields(field.value)) {
    if (tensor(name, 'in') !== undefined) inputs[name] = readDomain(value, declared)
    else if (declared.dims.includes(name)) dims[name] = readExtent(value, declared)
    else if (declared.attrs.some((attr) => attr.name === name)) attrs[name] = readAttr(value, declared)
    else if (tensor(name, 'out') !== undefined) results[name] = readClass(value)
    else
      reject(
        'fact',
        key,
        `there is a fact of ${name}, which ${declared.name} does not declare`,
        'facts are of inputs, dimensions, attributes and outputs',
      )
  }
  return { inputs, dims, attrs, results }
}

function readDomain(value: Node, declared: Declared): Domain {
  const fields = staticFields(value)
  const unknown = [...fields].find(([name]) => !allowed.includes(name))
  if (unknown !== undefined)
    reject('fact', unknown[1].key, `unknown fact ${unknown[0]} of an input`, `write one of ${allowed.join(', ')}`)
  const size = (name: string): Count | undefined => {
    const field = fields.get(name)
    return field === undefined ? undefined : readSize(field.value, declared)
  }
  const role = text(fields, 'packed', packedRoles)
  if (role !== undefined) {
    const [batch, rows, seq] = [size('batch'), size('rows'), size('seq')]
    if (batch === undefined || rows === undefined)
      return reject('fact', value, 'packed rows need `batch` and `rows`', "write { packed: 'starts', batch: 'b', rows: 't' }")
    return { packed: { role, batch, rows, ...(seq === undefined ? {} : { seq }) } }
  }
  const scaled = fields.get('scales')
  if (scaled !== undefined) return readScales(scaled, declared)
  const [index, from, to] = [size('index'), size('from'), size('to')]
  const first = fields.get('first')
  const order = text(fields, 'order', ['ascending', 'distinct'] as const)
  return {
    ...(index === undefined ? {} : { from: [0], to: [typeof index === 'number' ? index - 1 : (['sub', index, 1] as const)] }),
    ...(from === undefined ? {} : { from: [from] }),
    ...(to === undefined ? {} : { to: [to] }),
    ...numbers(fields, 'values'),
    ...numbers(fields, 'also'),
    ...(first === undefined ? {} : { first: staticNumber(first.value) }),
    ...(order === undefined ? {} : { order }),
  }
}

const allowed = ['index', 'from', 'to', 'values', 'first', 'also', 'order', 'packed', 'batch', 'rows', 'seq', 'scales']

function readScales({ value }: Field, { tensors }: Declared): Domain {
  const name = staticString(value)
  if (!tensors.some((each) => each.name === name && each.access === 'in'))
    reject('fact', value, `${name} is not an input`, 'name the input that is multiplied')
  return { scales: name, divide: squareOf(usualSize) }
}

function numbers(fields: Fields, name: 'values' | 'also'): Partial<Record<typeof name, readonly number[]>> {
  const field = fields.get(name)
  if (field === undefined) return {}
  const list = staticNumbers(field.value)
  if (list.length === 0) reject('fact', field.value, `${name} is empty`, 'write [0, 1]')
  return { [name]: list }
}

function text<T extends string>(fields: Fields, name: string, choices: readonly T[]): T | undefined {
  const field = fields.get(name)
  if (field === undefined) return undefined
  const given = staticString(field.value)
  const found = choices.find((choice) => choice === given)
  return found ?? reject('fact', field.value, `${name} is ${given}`, `write one of ${choices.join(', ')}`)
}

function readExtent(value: Node, declared: Declared): ExtentFact {
  if (!isObject(value)) return { equal: readSize(value, declared) }
  const fields = staticFields(value)
  const unknown = [...fields].find(([name]) => !['atLeast', 'atMost', 'multipleOf', 'upTo', 'swept'].includes(name))
  if (unknown !== undefined) reject('fact', unknown[1].key, `unknown fact ${unknown[0]} of a dimension`, form)
  const count = (name: string) => {
    const field = fields.get(name)
    return field === undefined ? undefined : readSize(field.value, declared)
  }
  const [atLeast, atMost, upTo] = [count('atLeast'), count('atMost'), fields.get('upTo')]
  const multipleOf = readDivisor(fields.get('multipleOf'))
  return {
    ...(atLeast === undefined ? {} : { atLeast }),
    ...(atMost === undefined ? {} : { atMost }),
    ...(multipleOf === undefined ? {} : { multipleOf }),
    ...(upTo === undefined ? {} : { upTo: staticNumber(upTo.value) }),
    ...(fields.has('swept') ? { swept: true } : {}),
  }
}

function readDivisor(field: Field | undefined): number | undefined {
  if (field === undefined) return undefined
  const node = follow(field.value)
  const given = Node.isNumericLiteral(node) ? staticNumber(field.value) : Number.NaN
  if (Number.isInteger(given) && given > 0) return given
  return reject('fact', field.value, 'a dimension is a multiple of a whole number from 1', 'write { multipleOf: 4 }')
}

const isObject = (value: Node): boolean => Node.isObjectLiteralExpression(follow(value))

function readAttr(value: Node, { tensors }: Declared): Facts['attrs'][string] {
  const field = staticFields(value).get('fills')
  const output = field === undefined ? '' : staticString(field.value)
  if (!tensors.some(({ name, access, dtype }) => name === output && access === 'out' && dtype === 'i8'))
    reject('fact', field?.value ?? value, `${output === '' ? 'the fact' : output} is not an int8 output`, "write { fills: 'y' }")
  return { fills: output }
}

function readClass(value: Node): Facts['results'][string] {
  const given = staticString(value)
  const found = errorClasses.find((each) => each === given && each !== 'attention')
  return (
    found ??
    reject(
      'fact',
      value,
      `${given} is not an error class`,
      `write one of ${errorClasses.filter((each) => each !== 'attention').join(', ')}`,
    )
  )
}

/** Reads a size: a number, a name, a product of these, or a sum of products. */
function readSize(value: Node, declared: Declared): Count {
  const node = follow(value)
  if (Node.isNumericLiteral(node) || Node.isPrefixUnaryExpression(node)) return staticNumber(value)
  const count = parseSize(staticString(value))
  const known = [...declared.dims, ...declared.attrs.flatMap(({ name, type }) => (type === 'i32' ? [name] : []))]
  const unknown = namesOf(count).find((name) => !known.includes(name))
  if (unknown !== undefined)
    reject('fact', value, `"${unknown}" is neither a dimension nor an integer attribute`, unknownHint(count, unknown, known))
  return count
}

/** Hint for an unknown name. A factor of an undeclared name divides the dimension, which `multipleOf` states. */
function unknownHint(count: Count, name: string, known: readonly string[]): string {
  const there = `there are ${known.join(', ')}`
  if (typeof count === 'string' || !/^[A-Za-z]\w*$/.test(name)) return there
  const [operation, a, b] = typeof count === 'object' ? count : []
  const factor = a === name ? b : a
  return operation === 'mul' && typeof factor === 'number'
    ? `${there}; of a dimension that ${factor} divides, write { multipleOf: ${factor} }`
    : there
}
