/**
 * Storage types for which a plan has kernels: a plan may be generated for fewer of them than its graph declares. Loading refuses a model in
 * any other type before its weights are uploaded.
 */
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { instanceKey, resolveDType } from '../ir/instance.js'
import { kernelName } from '../ir/op_name.js'
import type { GraphApplication } from './application.js'

type Types = Readonly<Record<string, DType>>

/** A step that has no kernel of its storage types. */
interface Missing {
  readonly where: string
  readonly op: string
  /** Key of the missing kernel. */
  readonly kernel: string
}

/** Candidate storage types of the hint. */
const floats = ['f32', 'f16', 'bf16'] as const

/**
 * Refuses storage types for which a step of the model has no kernel.
 * @param types of the type parameters of the model
 * @throws usage `plan.dtype` naming plan, types, step and kernel, and the types for which every step has kernels
 */
export function expectPlanTypes(
  plan: string,
  applications: readonly GraphApplication[],
  types: Types,
  { kernels }: Pick<Manifest, 'kernels'>,
): void {
  const known = new Set(kernels.map(({ op, types: of }) => unordered(op, of)))
  const missing = missingStep(applications, types, known)
  if (missing === undefined) return
  const { where, op, kernel } = missing
  const all = (dtype: DType): Types => Object.fromEntries(Object.keys(types).map((param) => [param, dtype]))
  const others = floats.filter((dtype) => missingStep(applications, all(dtype), known) === undefined)
  const there = kernels.flatMap((entry) => (entry.op === op ? [entry.key] : []))
  const has = there.length > 0 ? `kernels of ${op}: ${there.join(', ')}` : `no kernel of ${op} was generated: run heddle gen`
  const requested = [...new Set(Object.values(types))].join(', ')
  throw usageError('plan.dtype', `plan ${plan} does not run in ${requested}: there is no kernel ${kernel} for ${where}`, {
    hint: others.length > 0 ? `it runs in ${others.join(' and ')}; or use another plan` : has,
  })
}

/** Key of a kernel and its types, independent of their order. */
const unordered = (op: string, types: Types): string =>
  [
    op,
    ...Object.entries(types)
      .map((pair) => pair.join('='))
      .sort(),
  ].join(' ')

/** First step without a kernel. */
function missingStep(applications: readonly GraphApplication[], program: Types, known: ReadonlySet<string>): Missing | undefined {
  for (const { graph, label, types = {} } of applications) {
    const own = Object.entries(types).map(([param, type]) => [param, resolveDType(type, program)] as const)
    const bound = { ...program, ...Object.fromEntries(own) }
    for (const node of graph.nodes) {
      if (node.kind !== 'op') continue
      const of = Object.fromEntries(Object.entries(node.types).map(([param, type]) => [param, resolveDType(type, bound)]))
      const op = kernelName(node.op)
      if (!known.has(unordered(op, of))) return { where: `${label}/${node.name}`, op, kernel: instanceKey(op, of) }
    }
  }
  return undefined
}
