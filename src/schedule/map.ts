/** The scheduler: place updates, normalise, order into passes, simplify, choose the variants. Pure: the same instance and tuning map the same way. */

import type { Expr } from '../ir/expr.js'
import { type Instance, instanceKey } from '../ir/instance.js'
import { intrinsic } from '../ir/intrinsics.js'
import { placeUpdates } from '../ir/update.js'
import type { Schedule } from '../lang/plan.js'
import type { MappedKernel } from './mapped.js'
import type { NormalKernel } from './normal.js'
import { normalise } from './normalise.js'
import { planSteps } from './passes.js'
import { applySchedule } from './planned.js'
import { elementwiseThreads, mayHave, pays, rowVariants, vectorWidth } from './rules.js'
import { simplifySteps } from './simplify.js'
import { applyTuning, type Tuning } from './tuning.js'

/**
 * Maps one instance of a kernel: by the default rules, behind what a plan asks for, behind what a tuning file has measured.
 * @throws usage `plan.schedule` for a schedule that the kernel cannot have; usage `tuning.choice`, `tuning.order` for an entry that the kernel cannot have
 */
export function mapKernel(instance: Instance, tuning?: Tuning, schedule?: Schedule): MappedKernel {
  const ruled = mapByRules(instance)
  const mapped = schedule === undefined ? ruled : applySchedule(ruled, schedule)
  return tuning === undefined ? mapped : applyTuning(mapped, tuning)
}

function mapByRules(instance: Instance): MappedKernel {
  const kernel = normalise({ ...instance, kernel: placeUpdates(instance.kernel) })
  const vec = vectorWidth(instance, kernel)
  const base = {
    instance,
    key: instanceKey(instance.kernel.name, instance.types, instance.dims),
    axes: kernel.axes,
    across: kernel.across,
    vec,
  }
  const steps = (keep: boolean) => simplifySteps(kernel, planSteps(kernel, keep))
  if (kernel.elementwise) return { ...base, program: { kind: 'elementwise', steps: steps(false), threads: elementwiseThreads } }
  const kept = steps(true)
  const lengths = hostLengths(kernel)
  const variants = rowVariants(kept, vec, lengths !== undefined).filter(
    (each) => mayHave(each.team, kept) && pays(each, kept, vec),
  )
  return { ...base, program: { kind: 'rows', kept, reread: steps(false), lengths, variants } }
}

/** The lengths of all loops, or what bounds them, when that follows from dimensions and attributes alone. */
function hostLengths(kernel: NormalKernel): readonly Expr[] | undefined {
  const bounds = kernel.loops.flatMap((loop) => hostBound(loop.length) ?? [])
  return bounds.length === kernel.loops.length ? bounds : undefined
}

/** A length that follows from dimensions and attributes, or one that it cannot exceed: that of a part of a row, which the last part may not fill. */
function hostBound(length: Expr): Expr | undefined {
  if (isHostExpr(length)) return length
  return length.kind === 'call' && length.fn === 'minimum' ? length.args.find(isHostExpr) : undefined
}

const isHostExpr = (e: Expr): boolean => {
  if (e.kind === 'const' || e.kind === 'dim' || e.kind === 'attr') return true
  return e.kind === 'call' && e.type === 'i32' && intrinsic(e.fn).symbol !== undefined && e.args.every(isHostExpr)
}
