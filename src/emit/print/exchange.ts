/** Exchanges of accumulators among the threads of a column, or among blocks, as CUDA source. */
import { mark } from '../../ir/trace.js'
import type { Announce, Exchange, Held } from '../../loop/ir.js'
import { operandText, tensorOf } from './expression.js'
import { scalarText, storageText } from './names.js'
import { functorsText, functorText } from './reductions.js'
import { declare, type Printing } from './state.js'
import { fieldText } from './user_monoid.js'

/** Shared memory for what a loop over rows leaves, after that of earlier loops. */
export function announceLine({ name, accumulators, before }: Announce, printing: Printing): string {
  const { context } = printing
  const bytes = before.map((each) => ` + heddle::bytes_of_walk<Team, VEC, ${functorsText(each.accumulators, context)}>`)
  const type = `heddle::ColumnTotals<Team, VEC, ${functorsText(accumulators, context)}>`
  return `const ${type} ${declare(name, 'totals', printing)}(shared${bytes.join('')});${mark(...accumulators.flatMap(({ from }) => from))}`
}

/** Shared memory for rows that threads hold, after that of all exchanges. */
export function heldLine({ name, load, length, before, exchanges }: Held, printing: Printing): string {
  const { context } = printing
  const typeOf = (of: Held['load']): string => `Team, VEC, ${storageText(tensorOf(of.tensor, context), context.names)}`
  const rows = operandText(length, context)
  const bytes = [
    ...exchanges.map(({ accumulators }) => `heddle::bytes_of_walk<Team, VEC, ${functorsText(accumulators, context)}>`),
    ...before.map((each) => `static_cast<uint32_t>(heddle::HeldRows<${typeOf(each.load)}>::bytes(${rows}))`),
  ]
  const held = declare(name, `${load.tensor}_held`, printing)
  return `const heddle::HeldRows<${typeOf(load)}> ${held}(shared + (${bytes.join(' + ')}), holds);${mark(load)}`
}

export function exchangeLines({ across, through, sections, parts }: Exchange, printing: Printing): string[] {
  const { context, given } = printing
  const { names, elements } = context
  const places = mark(...parts.flatMap(({ accumulator }) => accumulator.from))
  const all = parts.map(({ accumulator }) => given.get(accumulator.name))
  if (across === 'grid') {
    const results = parts.flatMap(({ accumulator, into }) => {
      const result = `${functorText(accumulator, context)}::result(${given.get(accumulator.name)}.total)`
      return into.map(({ name, type }, i) => {
        const value = typeof accumulator.monoid === 'string' ? result : fieldText(accumulator.monoid, i, result)
        return `[[maybe_unused]] const ${scalarText[type]} ${names.value(name)} = ${value};${mark(...accumulator.from)}`
      })
    })
    const combine = parts.some(({ accumulator: { shift } }) => shift !== undefined) ? 'combine_shifted' : 'combine_totals'
    return [`if (!heddle::${combine}<ALONE>(team, part, parts, sums, arrived, ${all.join(', ')})) return;${places}`, ...results]
  }
  const arrays = parts.map(({ accumulator: { monoid }, into }) => {
    const [first] = into
    if (typeof monoid === 'string' && first !== undefined) {
      const array = names.value(first.name)
      elements.set(first.name, `${array}[i]`)
      return { array, type: scalarText[first.type] }
    }
    const array = names.fresh('merged')
    for (const [i, { name }] of into.entries())
      if (typeof monoid !== 'string') elements.set(name, fieldText(monoid, i, `${array}[i]`))
    return { array, type: `heddle::Fields<${into.length}>` }
  })
  const totals = given.get(through ?? '')
  const args = [...all, ...arrays.map(({ array }) => array)].join(', ')
  const combined =
    sections === true
      ? `if (!${totals}.combine_sections(team, left, arrived, ${args})) return;`
      : `${totals}.combine(team, ${args});`
  return [...arrays.map(({ array, type }) => `${type} ${array}[VEC];${places}`), `${combined}${places}`]
}
