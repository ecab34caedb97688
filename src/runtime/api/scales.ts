/**
 * Magnitudes that become 127 in values stored as int8: given once, by the names of applications and of their values. A plan takes those it
 * needs, so that the same scales serve every plan.
 */
import { getOwn } from '../../ir/get_own.js'
import type { AmaxLookup } from '../program_wiring.js'
import type { Declared } from './declared.js'
import { recordOf, refuse } from './load_checks.js'
import { listed } from './names.js'
import { typeName } from './tensor.js'

/** Scales of a program: by application, then by node or input of its graph. Scales of a graph: by node or input. */
export type Scales = Readonly<Record<string, number>> | Readonly<Record<string, Readonly<Record<string, number>>>>

/** Returns the lookup of scales. @throws usage `load.scales` if the option is not a record; the lookup throws it for an invalid or missing scale */
export function scalesOf(declared: Declared, plan: string, given: unknown): AmaxLookup {
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
      throw refuse(declared, 'scales', `expected the largest magnitude of ${where} as its scale, got ${found}`)
    }
    const write = kind === 'graph' ? `{ ${site}: amax }` : `{ '${at}': { ${site}: amax } }`
    const there = Object.keys(of(at))
    throw refuse(
      declared,
      'scales',
      `plan ${plan} stores ${where} as int8 and needs its scale`,
      `scales: ${write}, with its largest magnitude; ${listed('scales given', there)}`,
    )
  }
}
