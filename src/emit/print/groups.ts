/** Values of groups of columns as CUDA source: threads of the block compute one for each group of the tile (native/device/group_values.cuh). */
import type { Groups } from '../../loop/ir.js'
import { expressionText, operandText } from './expression.js'
import { scalarText } from './names.js'
import type { Printing } from './state.js'

export function groupLines({ row, type, group, value, columns, length }: Groups, { context, first, apart }: Printing): string[] {
  const { names, elements } = context
  const name = names.value(row)
  const local = names.fresh('group')
  const inside = {
    ...context,
    names: { ...names, value: (given: string): string => (given === group ? local : names.value(given)) },
  }
  const ofGroup = `[&](int ${local}) { return ${expressionText(value, inside)}; }`
  const places = `team, tile, ${operandText(columns, context)}, ${operandText(length, context)}, ${first}, valid`
  elements.set(row, `${name}[i]`)
  return [
    `${scalarText[type]} ${name}[VEC] = {};`,
    `heddle::take_group_values<${apart ?? 'VEC, 1'}>(${places}, ${name}, ${ofGroup});`,
  ]
}
