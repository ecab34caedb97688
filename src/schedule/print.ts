/** Prints the steps of a schedule for people: statements that run once per row, and each loop over elements with its statements. */
import type { Expr } from '../ir/expr.js'
import { printExpr } from '../ir/print.js'
import type { Loop } from './normalise/normal.js'
import type { Step } from './normalise/passes.js'

const isExpr = (value: unknown): value is Expr =>
  typeof value === 'object' && value !== null && 'kind' in value && 'type' in value && !('loop' in value)

/** A statement as its kind and name, followed by its other fields with their names. */
function statementText(stmt: object): string {
  const fields = new Map<string, string>()
  for (const [field, value] of Object.entries(stmt)) {
    if (isExpr(value)) fields.set(field, printExpr(value))
    else if (Array.isArray(value) && value.length > 0 && value.every(isExpr))
      fields.set(field, `[${value.map(printExpr).join(', ')}]`)
    else if (typeof value === 'string' || typeof value === 'number' || value === true) fields.set(field, String(value))
  }
  const take = (field: string): string => {
    const found = fields.get(field) ?? ''
    fields.delete(field)
    return found
  }
  const [kind, name] = [take('kind'), take('name') || take('tensor')]
  take('type')
  take('dtype')
  const value = take('value') || take('load')
  const rest = [...fields].map(([field, text]) => (text === 'true' ? field : `${field} ${text}`))
  return [`${kind} ${name}`, value === '' ? '' : ` = ${value}`, rest.length === 0 ? '' : ` (${rest.join(', ')})`].join('')
}

const loopText = ({ index, length }: Loop): string => `for ${index} < ${printExpr(length)}`

export const printSteps = (steps: readonly Step[]): string =>
  steps
    .flatMap((step) => {
      if (step.kind !== 'pass') return [statementText(step)]
      const { loop, rows, statements } = step.pass
      return [loopText(loop), ...[...rows, ...statements].map((stmt) => `  ${statementText(stmt)}`)]
    })
    .join('\n')
