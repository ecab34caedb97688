/**
 * The magnitudes that become 127 where a plan stores values as int8: given once, by the names of applications and of what is stored. A
 * plan takes those it needs, so that the same serve every plan.
 */
import { getOwn } from '../../ir/get_own.js'
import type { Amax } from '../program_wiring.js'
import type { Declared } from './declared.js'
import { recordOf, refuse } from './load_checks.js'
import { listed } from './names.js'
import { typeName } from './tensor.js'

/** Of a program: application, then node or input of its graph. Of a graph: node or input. */
export type Scales = Readonly<Record<string, number>> | Readonly<Record<string, Readonly<Record<string, number>>>>

/** @throws usage `load.scales` for a scale that is none; what it returns throws the same for one that is missing */
export function scalesOf(declared: Declared, plan: string, given: unknown): Amax {
  const { name, kind } = declared
  const all = recordOf(declared, 'scales', given)
  const known = kind === 'graph' ? { [name]: all } : all
  const of = (at: string): Readonly<Record<string, unknown>> => recordOf(declared, 'scales', getOwn(known, at))
  return (at, site) => {
    const amax = getOwn(of(at), site)
    if (typeof amax === 'number' && Number.isFinite(amax) && amax >= 0) return amax
    const where = kind === 'graph' ? site : `${site} of ${at}`
    if (amax !== undefined) {
      const found = typeof amax === 'number' ? amax : typeName(amax)
      throw refuse(declared, 'scales', `the scale of ${where} is the largest magnitude it has, got ${found}`)
    }
    const write = kind === 'graph' ? `{ ${site}: amax }` : `{ '${at}': { ${site}: amax } }`
    const there = Object.keys(of(at))
    throw refuse(
      declared,
      'scales',
      `plan ${plan} stores ${where} as int8 and needs its scale`,
      `scales: ${write}, with the largest magnitude that it has; ${listed('scales given', there)}`,
    )
  }
}
