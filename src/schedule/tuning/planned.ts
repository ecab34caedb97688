/**
 * The schedule that a plan requests for a kernel. It takes precedence over the rules, and a tuning file takes precedence over it. It accepts any
 * number of rows, so that results do not change with the batch; rows longer than its team can hold use the rules.
 */
import { usageError } from '../../errors.js'
import type { Schedule } from '../../lang/plan.js'
import type { MappedKernel } from '../mapped.js'
import { choiceName, elementwiseVariant, problemOf, rowVariant, type ScheduleChoice } from './choice.js'

const name = 'planned'
const reason = 'the plan asks for it'

/**
 * Adds the schedule to a mapped kernel as its first variant.
 * @throws usage `plan.schedule` for a schedule the kernel cannot have, with the reason
 */
export function applySchedule(mapped: MappedKernel, schedule: Schedule): MappedKernel {
  const { program, vec } = mapped
  const choice: ScheduleChoice = { ...schedule, vec: schedule.vec ?? vec }
  const longest = longestOf(choice)
  const unknown = program.kind === 'rows' && program.lengths === undefined ? 'only its rows know their length' : undefined
  const problem = unknown ?? problemOf(choice, mapped, longest ?? 1)
  if (problem !== undefined) {
    throw usageError('plan.schedule', `schedule ${choiceName(choice)} of kernel ${mapped.key}: ${problem}`, {
      hint: 'remove the schedule to use the rules; `heddle inspect` shows their choice',
      about: { path: ['schedules', mapped.instance.kernel.name] },
    })
  }
  const about = { name, limit: { length: longest, rows: undefined }, reason }
  if (program.kind === 'elementwise' && choice.kind === 'elementwise') {
    return { ...mapped, generic: true, program: { ...program, tuned: [elementwiseVariant(choice, about)] } }
  }
  if (program.kind !== 'rows' || choice.kind !== 'rows') throw new Error(`internal: ${mapped.key} has no ${choice.kind}`)
  const variant = rowVariant(choice, about)
  const variants = longest === undefined ? [variant] : [variant, ...program.variants]
  return { ...mapped, generic: mapped.generic === true || choice.vec !== vec, program: { ...program, variants } }
}

/** Longest row that a team keeps in registers; undefined if it keeps none. */
function longestOf(choice: ScheduleChoice): number | undefined {
  if (choice.kind === 'elementwise' || choice.chunks === 'reread') return undefined
  const { team, chunks, vec } = choice
  return (team.kind === 'thread' ? 1 : team.lanes) * chunks * vec
}
