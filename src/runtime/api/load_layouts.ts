/**
 * The layouts and the steps between them that a model may need. Those of a graph, a program or a plan are found by what they declare, so
 * that nobody has to list them; what ships stands behind.
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

export interface Held {
  readonly layouts: Layouts
  readonly conversions: readonly Conversion[]
}

/** @throws usage `load.layouts`, `load.conversions` for options that are something else */
export function heldOf(declared: Declared, { plan, layouts, conversions }: Given): Held {
  const steps = [...conversionsOf(declared, conversions), ...shipped.conversions]
  const ofPlan = typeof plan === 'object' ? (plan.layouts ?? {}) : {}
  const ofSteps = steps
    .flatMap(({ op }) => [...Object.values(op.inputs), ...Object.values(op.outputs)])
    .flatMap(({ layout }) => layout ?? [])
  const named = byName([...layoutsOf(declared, layouts), ...ofSteps])
  return { layouts: { ...shipped.layouts, ...named, ...ofPlan, ...declared.layouts }, conversions: steps }
}

/** Of two with one name the first. */
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

/** A list, or a record as a module of specs exports it. */
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
    `the option layouts holds ${typeName(list[wrong])}, expected layouts`,
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
  throw refuse(declared, 'conversions', 'the option conversions is a list of { op, scales }')
}
