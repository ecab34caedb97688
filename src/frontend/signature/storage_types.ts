/** Storage types of op signatures: the choices of type parameters, and the types that tensors name. An unknown type is refused at its location. */
import type { Node } from 'ts-morph'
import { type DType, dtypeInfo, dtypes, isDType } from '../../ir/dtype.js'
import { getOwn } from '../../ir/get_own.js'
import type { DTypeRef } from '../../ir/kernel.js'
import type { Refusals } from '../diagnostics/refusals.js'
import { reject } from '../diagnostics/reject.js'
import { type Field, staticFields, staticString, staticStrings } from '../static/literals.js'

/** The storage types of each type parameter. */
export type Types = Record<string, readonly DType[]>

/** Reads the type parameters. A partly refused one keeps its valid choices, so that no further errors follow. */
export function readTypes(field: Field | undefined, refusals: Refusals): Types {
  const types: Types = {}
  for (const [param, given] of field === undefined ? [] : staticFields(field.value)) {
    const choices: DType[] = []
    types[param] = choices
    refusals.attempt(() => readChoices(param, given, choices, refusals))
    if (choices.length === 0) choices.push('f32')
  }
  return types
}

function readChoices(param: string, { value, key }: Field, choices: DType[], refusals: Refusals): void {
  const before = refusals.count
  for (const { text, node } of staticStrings(value)) {
    if (isDType(text) && text !== 'bool') choices.push(text)
    else refusals.attempt(() => refuseChoice(param, text, node))
  }
  if (refusals.count > before) return
  const scalars = new Set(choices.map((choice) => dtypeInfo[choice].scalar))
  if (scalars.size !== 1)
    reject(
      'storageType',
      key,
      `type parameter ${param} holds ${choices.length === 0 ? 'nothing' : 'floats and integers'}: ${choices.join(', ')}`,
      'a body has one scalar type: declare a parameter for each',
    )
}

function refuseChoice(param: string, text: string, node: Node): never {
  if (text === 'bool')
    reject(
      'storageType',
      node,
      `type parameter ${param} holds bool, which a body reads as conditions`,
      "declare the tensor by itself: tensor('bool', 'n')",
    )
  return reject('storageType', node, `unknown storage type ${text}`, `storage types are ${dtypes.join(', ')}`)
}

/** Storage types by their names in other tools. */
const aliases: Readonly<Record<string, DType>> = {
  float32: 'f32',
  float: 'f32',
  number: 'f32',
  float16: 'f16',
  half: 'f16',
  bfloat16: 'bf16',
  int32: 'i32',
  int: 'i32',
  int8: 'i8',
  uint8: 'u8',
  boolean: 'bool',
  mask: 'bool',
}

/** Reads a storage type or a type parameter. */
export function readDType(node: Node, types: Types): DTypeRef {
  const text = staticString(node)
  if (Object.hasOwn(types, text)) return { param: text }
  if (isDType(text)) return text
  const params = Object.keys(types)
  const declared = params.length > 0 ? `; the op declares ${params.join(', ')}` : ''
  const meant = getOwn(aliases, text)
  return reject(
    'storageType',
    node,
    `${text} is neither a storage type nor a declared type parameter`,
    `${meant === undefined ? '' : `write ${meant}; `}storage types are ${dtypes.join(', ')}${declared}`,
  )
}
