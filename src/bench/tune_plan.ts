/**
 * Plan of a tuning run: its kernels, row lengths and candidates. Made on the machine with the front end and read on the machine with the device,
 * which may be another one. Stored in `candidates.json` next to the candidates' kernel library.
 */
import { z } from 'zod'
import type { FloatType } from '../checkpoint/convert.js'
import { type CandidateSet, candidateKey, rulesKey, type TileSet } from '../emit/candidates.js'
import { templateInstances } from '../emit/kernels/template.js'
import { type HeddleError, usageError } from '../errors.js'
import type { Expr } from '../ir/expr.js'
import { dependentDims, noFacts } from '../ir/facts/facts.js'
import type { Graph } from '../ir/graph.js'
import { allInstances } from '../ir/instance.js'
import type { Kernel } from '../ir/kernel.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { knownHint } from '../nearest.js'
import { mapKernel } from '../schedule/map.js'
import { type MappedKernel, scheduledLaunch } from '../schedule/mapped.js'
import { ownTiles, type TileSize, tileCandidates } from '../schedule/tiles.js'
import { candidatesFor, keepsOrder } from '../schedule/tuning/candidates.js'
import { choiceName } from '../schedule/tuning/choice.js'
import { operandType } from '../schedule/tuning/tuned_tiles.js'
import { dtypeName, sizeName, tunedChoiceSchema } from '../schedule/tuning/tuning.js'

const count = z.number().int().positive()

const candidateSchema = z.strictObject({
  /** Key of the kernel with only this choice. */
  key: z.string(),
  choice: tunedChoiceSchema,
  /** True if it combines values in the same order as the rules, so its use may depend on the number of rows. Always true for tiles. */
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
      /** Kind of candidates: schedules of rows, or tiles of a matmul or of attention. */
      kind: z.enum(['rows', 'matmul', 'attention']),
      /** Dimension of the row length: for a matmul its columns, for attention the head size. */
      row: z.string(),
      /** True if candidates are compared with the library's matmul, which is the default without tuning. */
      library: z.boolean().optional(),
      /** Summed dimension of a matmul. */
      depth: z.string().optional(),
      /** Dimensions whose product is the number of rows, outermost first; for attention, sequences and heads, which are not counted as rows. */
      outer: z.array(z.string()),
      lengths: z.array(z.strictObject({ length: count, depth: count.optional(), candidates: z.array(candidateSchema) })),
    }),
  ),
})

export type TunePlan = z.infer<typeof tunePlanSchema>
export type TuneKernel = TunePlan['kernels'][number]
export type TuneCandidate = z.infer<typeof candidateSchema>

/** Kernels of plans that are replaced by the library's matmul without tuning. */
export const besideLibrary = (graphs: Readonly<Record<string, Readonly<Record<string, Graph>>>>): ReadonlySet<string> =>
  new Set(
    Object.values(graphs)
      .flatMap((own) => Object.values(own))
      .flatMap(({ nodes }) => nodes.flatMap((node) => (node.kind === 'matmul' ? (node.generated ?? []) : []))),
  )

export interface TuneRequest {
  readonly target: TunePlan['target']
  /** Names of kernels; default: every kernel that one of the lengths fits. */
  readonly kernels?: readonly string[] | undefined
  readonly lengths: readonly TileSize[]
  readonly dtype: FloatType
}

const refusal = (name: string, why: string, hint: string): HeddleError =>
  usageError('tune.kernel', `cannot tune ${name}: ${why}`, { hint })

/** Plan of a run, with the candidates to generate. */
export interface PlannedTuning {
  readonly plan: TunePlan
  readonly sets: readonly CandidateSet[]
  readonly tiles: readonly TileSet[]
}

/**
 * Plans the kernels of a request, with the lengths that fit them.
 * @param products names of templates that are replaced by the library's matmul without tuning
 * @throws usage `tune.kernel` for a named kernel that does not exist, whose row length cannot be given, or that no length fits
 */
export function planTuning(
  kernels: readonly Kernel[],
  templates: readonly TemplateKernel[],
  request: TuneRequest,
  products: ReadonlySet<string> = new Set(),
): PlannedTuning {
  const all = [...kernels, ...templates]
  const lengths = [...new Map(request.lengths.map((size) => [sizeName(size), size])).values()].sort(
    (a, b) => a.length - b.length || (a.depth ?? 0) - (b.depth ?? 0),
  )
  const examined = (kernel: Kernel | TemplateKernel): Found | string => {
    const subject = isTemplate(kernel) ? examineTemplate(kernel, request.dtype) : examine(kernel, request.dtype)
    if (typeof subject === 'string') return subject
    const fitting = lengths.filter((size) => subject.candidates(size).length > 0)
    if (fitting.length === 0) return `no length fits it, expected ${subject.takes}`
    const beside = products.has(kernel.name) ? { library: true } : {}
    const planned = fitting.map((size) => ({ ...size, candidates: subject.candidates(size) }))
    return { kernel: { ...subject.kernel, ...beside, lengths: planned }, ...subject.generated(fitting) }
  }
  const named = request.kernels ?? all.filter((kernel) => typeof examined(kernel) !== 'string').map(({ name }) => name)
  const found = [...new Set(named)].sort().map((name) => {
    const kernel = all.find((candidate) => candidate.name === name)
    if (kernel === undefined)
      throw refusal(
        name,
        'there is no such kernel',
        knownHint(
          name,
          all.map((k) => k.name),
        ),
      )
    const subject = examined(kernel)
    if (typeof subject === 'string') throw refusal(name, subject, 'leave it out, or name other lengths')
    return subject
  })
  return {
    plan: { version: 1, target: request.target, kernels: found.map(({ kernel }) => kernel) },
    sets: found.flatMap(({ set }) => set ?? []),
    tiles: found.flatMap(({ tiles }) => tiles ?? []),
  }
}

/** A kernel of the plan, with its candidates to generate. */
interface Found {
  readonly kernel: TuneKernel
  readonly set?: CandidateSet
  readonly tiles?: TileSet
}

type Candidates = TuneKernel['lengths'][number]['candidates']

/** A kernel that can be tuned. */
interface Subject {
  readonly kernel: Omit<TuneKernel, 'lengths'>
  /** Description of supported lengths. */
  readonly takes: string
  readonly candidates: (size: TileSize) => Candidates
  /** Candidates to generate for some lengths. */
  readonly generated: (lengths: readonly TileSize[]) => { readonly set?: CandidateSet; readonly tiles?: TileSet }
}

/** A row program as a subject, or the reason why it cannot be tuned. */
function examine(kernel: Kernel, dtype: FloatType): Subject | string {
  const instance = allInstances(kernel).find(({ types }) => Object.values(types).every((type) => type === dtype))
  if (instance === undefined) return `it has no instance in ${dtype}`
  const ruled = mapKernel(instance)
  const mapped = scheduledLaunch(ruled)
  const longest = mapped === ruled ? undefined : ruled.split?.inRows?.kept
  if (mapped.grouped !== undefined) return 'it is a grouped matmul, whose tiles follow from its sizes'
  const [first, ...rest] = lengthsOf(mapped)
  if (first?.kind !== 'dim') return 'its rows do not have the length of a dimension'
  if (rest.some((length) => length.kind !== 'dim' || length.name !== first.name)) return 'its rows have several lengths'
  const outer = mapped.axes.map(({ dim }) => dim)
  const derived = dependentDims(kernel.facts ?? noFacts).find((name) => name === first.name || outer.includes(name))
  if (derived !== undefined) return `its extent ${derived} follows from others`
  const choices = ({ length, depth }: TileSize) =>
    depth === undefined && (longest === undefined || length <= longest) ? candidatesFor(mapped, length) : []
  return {
    kernel: {
      kernel: kernel.name,
      dtype: dtypeName(instance),
      rules: rulesKey(mapped.key),
      kind: 'rows',
      row: first.name,
      outer,
    },
    takes: 'lengths of rows, such as 768',
    candidates: (size) =>
      choices(size).map((choice) => ({
        key: candidateKey(mapped.key, choice),
        choice,
        keepsOrder: keepsOrder(choice, mapped, size.length),
      })),
    generated: (lengths) => {
      const distinct = new Map(lengths.flatMap(choices).map((choice) => [choiceName(choice), choice]))
      return { set: { instance: mapped.instance, choices: [...distinct.values()] } }
    },
  }
}

function lengthsOf({ program }: MappedKernel): readonly Expr[] {
  if (program.kind === 'rows') return program.lengths ?? []
  if (program.kind === 'columns' || program.kind === 'totals') return []
  return program.steps.flatMap((step) => (step.kind === 'pass' ? [step.pass.loop.length] : []))
}

/** A template kernel as a subject, or the reason why it cannot be tuned. */
function examineTemplate(kernel: TemplateKernel, dtype: FloatType): Subject | string {
  const instance = templateInstances(kernel).find(({ types }) => Object.values(types).every((type) => type === dtype))
  if (instance === undefined) return `it has no instance in ${dtype}`
  const frame = frameOf(kernel)
  if (typeof frame === 'string') return frame
  const choices = (size: TileSize) => tileCandidates(kernel, operandType(kernel, instance.types), size)
  return {
    kernel: { kernel: kernel.name, dtype: dtypeName(instance), rules: rulesKey(instance.key), ...frame },
    takes: kernel.kind === 'matmul' ? 'columns x depth, such as 3072x768' : 'a head size: 32, 64 or 128, of 16 bits',
    candidates: (size) =>
      choices(size).map((choice) => ({ key: candidateKey(instance.key, choice, size.length), choice, keepsOrder: true })),
    generated: (lengths) => {
      const all = lengths.flatMap((size) => choices(size).map((choice) => ({ choice, length: size.length })))
      const distinct = new Map(all.map((tile) => [candidateKey(instance.key, tile.choice, tile.length), tile]))
      return { tiles: { instance, tiles: [...distinct.values()] } }
    },
  }
}

/** Dimensions of a template kernel by role, or the reason why it has no tile choices. */
function frameOf(kernel: TemplateKernel): Pick<TuneKernel, 'kind' | 'row' | 'depth' | 'outer'> | string {
  if (kernel.kind === 'matmul') {
    return ownTiles(kernel) ?? { kind: 'matmul', row: kernel.n, depth: kernel.k, outer: [kernel.m] }
  }
  if (kernel.kind !== 'attention') return 'attention of a decoding step has no tiles'
  const { headDim, batch, heads } = kernel
  if (headDim.kind !== 'dim' || batch.kind !== 'dim' || heads.kind !== 'dim') return 'its extents are not dimensions'
  return { kind: 'attention', row: headDim.name, outer: [batch.name, heads.name] }
}
