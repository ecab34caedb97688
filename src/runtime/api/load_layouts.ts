/**
 * Layouts of a model and the conversions between them. Those of a graph, a program or a plan are found through their declarations, so that a
 * caller need not list them; the shipped ones follow.
 */
import type { Conversion } from '../../lang/conversion.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { Layouts } from '../layouts.js'
import type { Declared } from './declared.js'
import { refuse } from './load_checks.js'
import * as shipped from './shipped.js'
import { typeName } from './tensor.js'

interface Given {
  readonly plan?: string | PlanDecl | undefined
  readonly layouts?: unknown
  readonly conversions?: unknown
}

export interface LayoutSet {
  readonly layouts: Layouts
  readonly conversions: readonly Conversion[]
}

/** @throws usage `load.layouts`, `load.conversions` for options of another type */
export function layoutSetOf(declared: Declared, { plan, layouts, conversions }: Given): LayoutSet {
  const steps = [...conversionsOf(declared, conversions), ...shipped.conversions]
  const ofPlan = typeof plan === 'object' ? (plan.layouts ?? {}) : {}
  const ofSteps = steps
    .flatMap(({ op }) => [...Object.values(op.inputs), ...Object.values(op.outputs)])
    .flatMap(({ layout }) => layout ?? [])
  const named = byName([...layoutsOf(declared, layouts), ...ofSteps])
  return { layouts: { ...shipped.layouts, ...named, ...ofPlan, ...declared.layouts }, conversions: steps }
}

/** Layouts by name; the first of a name wins. */
const byName = (layouts: readonly LayoutDecl[]): Layouts =>
  Object.fromEntries(layouts.toReversed().map((layout) => [layout.name, layout]))

const isLayout = (value: unknown): value is LayoutDecl =>
  typeof value === 'object' &&
  value !== null &&
  'name' in value &&
  typeof value.name === 'string' &&
  'axes' in value &&
  Array.isArray(value.axes) &&
  'offset' in value &&
  typeof value.offset === 'function' &&
  'size' in value &&
  typeof value.size === 'function'

/** Layouts of the option: a list, or a record as a module of specs exports it. */
function layoutsOf(declared: Declared, given: unknown): readonly LayoutDecl[] {
  if (given === undefined) return []
  const list: readonly unknown[] = Array.isArray(given)
    ? given
    : typeof given === 'object' && given !== null
      ? Object.values(given)
      : [given]
  const wrong = list.findIndex((each) => !isLayout(each))
  if (wrong < 0) return list.filter(isLayout)
  throw refuse(
    declared,
    'layouts',
    `option layouts: expected layouts, got ${typeName(list[wrong])}`,
    'layouts: [myLayout], as layout(...) returns them',
  )
}

function conversionsOf(declared: Declared, given: unknown): readonly Conversion[] {
  if (given === undefined) return []
  const isConversion = (each: unknown): each is Conversion =>
    typeof each === 'object' &&
    each !== null &&
    'op' in each &&
    typeof each.op === 'object' &&
    each.op !== null &&
    'inputs' in each.op &&
    'outputs' in each.op
  if (Array.isArray(given) && given.every(isConversion)) return given
  throw refuse(declared, 'conversions', `option conversions: expected a list of { op, scales }, got ${typeName(given)}`)
}
