/**
 * What a tuning run measures: which kernels, for which row lengths, with which candidates. Made where the front end is, and read where
 * the device is, which may be another machine: `candidates.json` beside the candidates' kernel library holds it.
 */
import { z } from 'zod'
import { type CandidateSet, candidateKey, rulesKey } from '../emit/candidates.js'
import { type HeddleError, usageError } from '../errors.js'
import type { Expr } from '../ir/expr.js'
import { allInstances } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import type { FloatType } from '../models/convert.js'
import { candidatesFor, keepsOrder } from '../schedule/candidates.js'
import { choiceName, choiceSchema } from '../schedule/choice.js'
import { mapKernel } from '../schedule/map.js'
import type { MappedKernel } from '../schedule/mapped.js'
import { dtypeName } from '../schedule/tuning.js'
import { rules } from '../verify/rules.js'

const candidateSchema = z.strictObject({
  /** Key of the kernel with this choice alone. */
  key: z.string(),
  choice: choiceSchema,
  /** It combines rows as the rules do, so the number of rows may decide about it. */
  keepsOrder: z.boolean(),
})

export const tunePlanSchema = z.strictObject({
  version: z.literal(1),
  target: z.enum(['simt', 'cuda']),
  kernels: z.array(
    z.strictObject({
      kernel: z.string(),
      dtype: z.string(),
      /** Key of the kernel that follows the rules. */
      rules: z.string(),
      /** The dimension that is the row's length. */
      row: z.string(),
      /** The dimensions whose product is the number of rows, outermost first. */
      outer: z.array(z.string()),
      lengths: z.array(z.strictObject({ length: z.number().int().positive(), candidates: z.array(candidateSchema) })),
    }),
  ),
})

export type TunePlan = z.infer<typeof tunePlanSchema>
export type TuneKernel = TunePlan['kernels'][number]
export type TuneCandidate = z.infer<typeof candidateSchema>

export interface TuneRequest {
  readonly target: TunePlan['target']
  /** Names of kernels; without them, every kernel whose rows have the length of one dimension. */
  readonly kernels?: readonly string[] | undefined
  readonly lengths: readonly number[]
  readonly dtype: FloatType
}

const refusal = (name: string, why: string, hint: string): HeddleError =>
  usageError('tune.kernel', `cannot tune ${name}: ${why}`, { hint })

/** @throws usage `tune.kernel` for a kernel that is not there, or whose rows have no length one could ask for */
export function planTuning(kernels: readonly Kernel[], request: TuneRequest): { plan: TunePlan; sets: CandidateSet[] } {
  const named =
    request.kernels ?? kernels.filter((kernel) => typeof examine(kernel, request.dtype) !== 'string').map(({ name }) => name)
  const found = [...new Set(named)].sort().map((name) => {
    const kernel = kernels.find((candidate) => candidate.name === name)
    if (kernel === undefined) throw refusal(name, 'there is no such kernel', `known: ${kernels.map((k) => k.name).join(', ')}`)
    const subject = examine(kernel, request.dtype)
    if (typeof subject === 'string') throw refusal(name, subject, 'leave it out')
    return subject
  })
  const lengths = [...new Set(request.lengths)].sort((a, b) => a - b)
  return {
    plan: { version: 1, target: request.target, kernels: found.map((subject) => describe(subject, lengths)) },
    sets: found.map(({ mapped }) => {
      const choices = lengths.flatMap((length) => candidatesFor(mapped, length))
      const distinct = new Map(choices.map((choice) => [choiceName(choice), choice]))
      return { instance: mapped.instance, choices: [...distinct.values()] }
    }),
  }
}

interface Subject {
  readonly mapped: MappedKernel
  readonly row: string
  readonly outer: readonly string[]
}

/** A kernel that can be tuned, or why it cannot. */
function examine(kernel: Kernel, dtype: FloatType): Subject | string {
  const instance = allInstances(kernel).find(({ types }) => Object.values(types).every((type) => type === dtype))
  if (instance === undefined) return `it has no instance in ${dtype}`
  const mapped = mapKernel(instance)
  const [first, ...rest] = lengthsOf(mapped)
  if (first?.kind !== 'dim') return 'its rows do not have the length of a dimension'
  if (rest.some((length) => length.kind !== 'dim' || length.name !== first.name)) return 'its rows have several lengths'
  const outer = mapped.axes.map(({ dim }) => dim)
  const extents = Object.hasOwn(rules, kernel.name) ? rules[kernel.name]?.extents : undefined
  const derived = Object.keys(extents ?? {}).find((name) => name === first.name || outer.includes(name))
  return derived === undefined ? { mapped, row: first.name, outer } : `its extent ${derived} follows from others`
}

function lengthsOf({ program }: MappedKernel): readonly Expr[] {
  if (program.kind === 'rows') return program.lengths ?? []
  return program.steps.flatMap((step) => (step.kind === 'pass' ? [step.pass.loop.length] : []))
}

const describe = ({ mapped, row, outer }: Subject, lengths: readonly number[]): TuneKernel => ({
  kernel: mapped.instance.kernel.name,
  dtype: dtypeName(mapped.instance),
  rules: rulesKey(mapped.key),
  row,
  outer: [...outer],
  lengths: lengths.map((length) => ({
    length,
    candidates: candidatesFor(mapped, length).map((choice) => ({
      key: candidateKey(mapped.key, choice),
      choice,
      keepsOrder: keepsOrder(choice, mapped, length),
    })),
  })),
})
