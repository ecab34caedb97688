/** Conditionals choose between numbers. Objects are chosen field by field; the refusal spells this out. */
import { type ConditionalExpression, Node } from 'ts-morph'
import { quote, reject } from '../diagnostics/reject.js'
import type { Value } from '../static/values.js'

/** Fields that a hint writes out; a body has few, and more would hide the pattern. */
const shown = 3

/** Refuses a conditional between objects, or an object and a number, at the first object. @throws refusal of kind `dtype` */
export function refuseObjects(values: readonly (Value | undefined)[], node: ConditionalExpression): void {
  const parts = [node.getWhenTrue(), node.getWhenFalse()] as const
  const at = parts.findIndex((_, i) => values[i]?.kind === 'record')
  const [part, object] = [parts[at], values[at]]
  if (part === undefined || object?.kind !== 'record') return
  const fields = [...object.fields.keys()]
  const refuse = (hint: string) => reject('dtype', part, `${quote(part)} is an object where a number is expected`, hint)
  if (values[1 - at]?.kind !== 'record') refuse(`read a field of it: ${fields.join(', ')}`)
  const condition = quote(node.getCondition())
  const [yes, no] = parts.map((each, i) => (Node.isIdentifier(each) ? each.getText() : i === 0 ? 'a' : 'b'))
  const chosen = fields.slice(0, shown).map((field) => `${field}: ${condition} ? ${yes}.${field} : ${no}.${field}`)
  refuse(`choose field by field: ({ ${[...chosen, ...(fields.length > shown ? ['...'] : [])].join(', ')} })`)
}
