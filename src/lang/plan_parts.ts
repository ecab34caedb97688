/** Checks of the keys of plans, for authors in untyped JavaScript: an unknown key would be ignored silently. */
import { expectParts } from './arguments.js'
import type { AutoPlanConfig, PlanConfig } from './plan_types.js'

type Callee = (...given: never[]) => unknown

const planParts = ['groups', 'packed', 'stacked', 'schedules', 'dtypes', 'quantised', 'edges', 'library', 'tuned', 'byRows']
const packedParts = ['batch', 'seq', 'tokens', 'lengths']
const quantisedParts = ['values', 'dynamic', 'weightOnly', 'only', 'across', 'weights']
const scheduleParts = ['kind', 'team', 'chunks', 'vec', 'threads']
const teamParts = ['kind', 'lanes', 'rowsPerBlock']

/** Runs before the checks of values, since a misspelt key is missing under its right name. @throws usage `plan.declared` for an unknown key */
export function expectPlanNames(at: string, callee: Callee, config: object): void {
  expectParts('plan.declared', at, callee, planParts, config)
}

/** @throws usage `plan.declared` for an unknown key of a nested object */
export function expectPlanParts(at: string, callee: Callee, config: PlanConfig<string, string, string>): void {
  const expect = (part: string, names: readonly string[], given: unknown): void => {
    if (typeof given === 'object' && given !== null) expectParts('plan.declared', `${at}${part}`, callee, names, given)
  }
  const { packed, quantised, edges = {}, schedules = {} } = config
  expect(': packed', packedParts, packed)
  expect(': quantised', quantisedParts, quantised)
  for (const [node, edge] of Object.entries(edges)) expect(`: edge ${node}`, ['dtype', 'layout'], edge)
  for (const [kernel, schedule] of Object.entries<unknown>(schedules)) {
    expect(`: schedule of ${kernel}`, scheduleParts, schedule)
    if (typeof schedule === 'object' && schedule !== null && 'team' in schedule)
      expect(`: team of ${kernel}`, teamParts, schedule.team)
  }
}

/** Same as `expectPlanParts` for an automatic plan. @throws usage `plan.declared` */
export function expectAutoParts(at: string, callee: Callee, config: AutoPlanConfig<string, string>): void {
  expectParts('plan.declared', at, callee, ['device', 'dims', 'dtype', 'packed', 'stacked'], config)
  if (config.packed !== undefined) expectParts('plan.declared', `${at}: packed`, callee, packedParts, config.packed)
}
