/** Lowers op signatures to IR: dimensions, storage types, tensors with their layouts, attributes. Each name is declared exactly once. */
import type { CallExpression, Node } from 'ts-morph'
import type { DType } from '../../ir/dtype.js'
import type { Form } from '../../ir/expr.js'
import type { Facts } from '../../ir/facts/facts.js'
import { inherited, isInherited } from '../../ir/get_own.js'
import type { AttrParam, SourceSpan, TensorParam } from '../../ir/kernel.js'
import { type Layout, rowMajor } from '../../ir/layout.js'
import { kernelName } from '../../ir/op_name.js'
import type { Refusals } from '../diagnostics/refusals.js'
import { quote, reject } from '../diagnostics/reject.js'
import {
  type Declarators,
  declares,
  type Field,
  follow,
  staticAttr,
  staticFields,
  staticString,
  staticStrings,
} from '../static/literals.js'
import { readAccuracy } from './accuracy.js'
import { readFacts } from './facts.js'
import { readDType, readTypes, type Types } from './storage_types.js'

export interface Signature {
  readonly name: string
  readonly dims: readonly string[]
  readonly types: Readonly<Record<string, readonly DType[]>>
  readonly tensors: readonly TensorParam[]
  readonly attrs: readonly AttrParam[]
  /** The stated facts. */
  readonly facts: Facts
  /** The form of its operations, if the op asks for one. */
  readonly accuracy: Form | undefined
  readonly body: Node
  /** Names of tensors and attributes that were refused. */
  readonly refused: ReadonlySet<string>
  /** Declaration node of each dimension, type parameter, tensor and attribute. */
  readonly written: ReadonlyMap<string, Node>
  /** Node of the op's name. */
  readonly nameNode: Node
}

/** Project context for reading a signature. */
export interface SignatureContext {
  readonly declarators: Declarators
  /** The lowered layout of a declaration. */
  readonly layoutOf: (declaration: CallExpression) => Layout
  /** True for a declaration of the standard library, whose names are qualified. */
  readonly isStandard: boolean
  readonly spanOf: SpanOf
}

/** Source span of a node. */
export type SpanOf = (node: Node) => SourceSpan

/** Hint for an extent that is not a dimension of the op. */
function unknownExtentHint(extent: string, dims: readonly string[]): string {
  const declared = `the op declares ${dims.join(', ')}`
  if (/^\d+$/.test(extent)) return `extents are names, and calls give their sizes: declare a dimension for it; ${declared}`
  if (/[*+/-]/.test(extent)) return `an extent is one name: declare a dimension of its own for ${extent}; ${declared}`
  return `${declared}, separated by single blanks`
}

function readTensor(
  name: string,
  { value }: Field,
  access: TensorParam['access'],
  dims: readonly string[],
  types: Types,
  { declarators, layoutOf }: SignatureContext,
): TensorParam {
  const declaration = follow(value)
  if (declares(declaration, declarators) !== 'tensor') {
    return reject('signature', value, `${name} is ${quote(value)}, not a tensor`, "write tensor('T', 'm n')")
  }
  const [typeNode, dimsNode, layoutNode] = (declaration as CallExpression).getArguments()
  if (typeNode === undefined || dimsNode === undefined) {
    return reject('signature', declaration, `${name} needs a storage type and dimensions`, "write tensor('T', 'm n')")
  }
  const text = staticString(dimsNode)
  if (text.includes(','))
    reject(
      'dimension',
      dimsNode,
      `the dimensions "${text}" of tensor ${name} are separated by commas`,
      `write '${text.split(/[\s,]+/).join(' ')}'`,
    )
  const extents = text === '' ? [] : text.split(' ')
  for (const extent of extents) {
    if (!dims.includes(extent)) {
      reject('dimension', dimsNode, `tensor ${name} has the unknown dimension "${extent}"`, unknownExtentHint(extent, dims))
    }
  }
  const isDistinct = new Set(extents).size === extents.length
  let layout = rowMajor(isDistinct ? extents : extents.map((extent, axis) => `${extent}${axis}`))
  if (layoutNode !== undefined && quote(layoutNode) !== 'undefined') {
    const found = follow(layoutNode)
    if (declares(found, declarators) !== 'layout') {
      return reject('signature', layoutNode, `${quote(layoutNode)} is not a layout`, 'declare it with layout(...) and export it')
    }
    layout = layoutOf(found as CallExpression)
    if (layout.axes.length !== extents.length) {
      reject(
        'layoutRank',
        layoutNode,
        `layout ${layout.name} has ${layout.axes.length} axes (${layout.axes.join(' ')}), tensor ${name} has ${extents.length} dimensions (${text})`,
        'use a layout of the same rank',
      )
    }
  }
  return { name, access, dtype: readDType(typeNode, types), dims: extents, layout }
}

/** Maps each output to the input that it updates. The two share memory, so their storage must be identical. */
function readUpdates(
  field: Field | undefined,
  tensors: readonly TensorParam[],
  refused: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const updates = new Map<string, string>()
  for (const [output, { key, value }] of field === undefined ? [] : staticFields(field.value)) {
    const input = staticString(value)
    if (refused.has(output) || refused.has(input)) continue
    const find = (name: string, access: TensorParam['access'], node: Node): TensorParam =>
      tensors.find((tensor) => tensor.name === name && tensor.access === access) ??
      reject(
        'update',
        node,
        `${name} is not an ${access === 'in' ? 'input' : 'output'}`,
        "write updates: { y: 'x' } with the names of an output and an input",
      )
    const [after, before] = [find(output, 'out', key), find(input, 'in', value)]
    const form = ({ dtype, dims, layout }: TensorParam): string =>
      `${typeof dtype === 'string' ? dtype : dtype.param} "${dims.join(' ')}" in layout ${layout.name}`
    if (form(after) !== form(before)) {
      reject(
        'update',
        value,
        `output ${output} is ${form(after)}, input ${input} is ${form(before)}`,
        'an output has the memory of the input it updates: declare both alike',
      )
    }
    if ([...updates.values()].includes(input))
      reject('update', value, `${input} is updated by another output already`, 'an input is updated once')
    updates.set(output, input)
  }
  return updates
}

function checkOpName(name: string, nameNode: Node, { isStandard }: SignatureContext): void {
  if (!/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(isStandard ? kernelName(name) : name))
    reject('name', nameNode, `op name "${name}" is not snake_case`, 'write it like layer_norm')
  if (isInherited(name)) reject('name', nameNode, `op name "${name}" is not allowed: ${inherited.reason}`, inherited.hint)
}

/**
 * Reads `op(name, { ... })`.
 * @param refusals collects the refusals of parts, so that the others are read as well
 * @throws Rejection located in the declaration if reading cannot continue
 */
export function readSignature(declaration: CallExpression, context: SignatureContext, refusals: Refusals): Signature {
  const [nameNode, config] = declaration.getArguments()
  if (nameNode === undefined || config === undefined) {
    return reject(
      'signature',
      declaration,
      'op takes a name and a signature',
      "write op('name', { dims, inputs, outputs, body })",
    )
  }
  const name = staticString(nameNode)
  refusals.attempt(() => checkOpName(name, nameNode, context))
  const fields = staticFields(config)
  const required = (field: string): Field =>
    fields.get(field) ?? reject('signature', config, `op ${name} has no ${field}`, 'an op has dims, inputs, outputs and a body')

  const written = new Map<string, Node>()
  const refused = new Set<string>()
  const declare = (text: string, node: Node): boolean => {
    const isName = refusals.attempt(() => checkName(text, node, name, written)) !== undefined
    if (!isName) refused.add(text)
    if (!written.has(text)) written.set(text, node)
    return isName
  }
  const dims = staticStrings(required('dims').value)
  for (const { text, node } of dims) declare(text, node)
  const dimNames = dims.map(({ text }) => text)
  const typesField = fields.get('types')
  const types = refusals.attempt(() => readTypes(typesField, refusals)) ?? {}
  if (typesField !== undefined)
    for (const param of Object.keys(types)) declare(param, staticFields(typesField.value).get(param)?.key ?? nameNode)
  const tensors = (['inputs', 'outputs'] as const).flatMap((side) =>
    [...staticFields(required(side).value)].flatMap(([tensor, field]) => {
      const isName = declare(tensor, field.key)
      const read = refusals.attempt(() => readTensor(tensor, field, side === 'inputs' ? 'in' : 'out', dimNames, types, context))
      if (read === undefined) refused.add(tensor)
      return isName ? (read ?? []) : []
    }),
  )
  const updates = refusals.attempt(() => readUpdates(fields.get('updates'), tensors, refused)) ?? new Map<string, string>()
  const attrsField = fields.get('attrs')
  const attrs = [...(attrsField === undefined ? [] : staticFields(attrsField.value))].flatMap(
    ([attr, { key, value }]): AttrParam[] => {
      declare(attr, key)
      const given = refusals.attempt(() => staticAttr(value))
      if (given === undefined) refused.add(attr)
      return given === undefined ? [] : [{ name: attr, type: given.type, default: given.value }]
    },
  )
  const updated = tensors.map((tensor): TensorParam => {
    const before = updates.get(tensor.name)
    return before === undefined ? tensor : { ...tensor, updates: before }
  })
  const stated = (): Facts => readFacts(fields.get('facts'), { name, dims: dimNames, tensors, attrs })
  // The subject of a fact may have been refused.
  const facts = (refused.size === 0 ? refusals.attempt(stated) : undefined) ?? { inputs: {}, dims: {}, attrs: {}, results: {} }
  const accuracy = refusals.attempt(() => readAccuracy(fields.get('accuracy')))
  const body = required('body').value
  return { name, dims: dimNames, types, tensors: updated, attrs, facts, accuracy, body, refused, written, nameNode }
}

/** Refuses an invalid name, and one that the signature already has. */
function checkName(text: string, node: Node, op: string, written: ReadonlyMap<string, Node>): true {
  if (!/^[A-Za-z][A-Za-z0-9]*$/.test(text))
    reject('name', node, `"${text}" is not a name`, `use letters and digits${suggested(text)}`)
  if (isInherited(text)) reject('name', node, `"${text}" is not a name: ${inherited.reason}`, inherited.hint)
  if (written.has(text))
    reject(
      'duplicate',
      node,
      `${text} is declared twice in the signature of ${op}`,
      'every dimension, type, tensor and attribute has its own name',
    )
  return true
}

/** `x_in` is meant as `xIn`. */
function suggested(text: string): string {
  const camel = text.replace(/_+([A-Za-z0-9])/g, (_, letter: string) => letter.toUpperCase()).replace(/_/g, '')
  return camel !== text && /^[A-Za-z][A-Za-z0-9]*$/.test(camel) ? `: ${camel}` : ''
}
