/**
 * The tuning file: measured schedule choices by kernel, storage type, row length and architecture. `heddle tune` writes it, `heddle gen` reads it.
 * Its contents are sorted and byte-stable, so that generated source follows from committed files alone.
 */
import { z } from 'zod'
import { type CodeOf, type HeddleError, usageError } from '../../errors.js'
import { type Instance, instanceKey } from '../../ir/instance.js'
import type { Limit, MappedKernel } from '../mapped.js'
import { isTile, tileSchema } from '../tiles.js'
import { keepsOrder } from './candidates.js'
import { choiceName, choiceSchema, elementwiseVariant, problemOf, rowVariant } from './choice.js'
import { sortedMatmuls, type TunedMatmul, tunedMatmulKey, tunedMatmulSchema } from './library.js'

const count = z.number().int().positive()
const microseconds = z.number().positive()

const measuredSchema = z.strictObject({
  rows: count,
  /** Time of the choice without measurements: the default schedule or tile, or the library's matmul. */
  rules: microseconds,
  choice: microseconds,
})

/** A schedule of a row program, or a tile of a template kernel. */
export const tunedChoiceSchema = z.discriminatedUnion('kind', [...choiceSchema.options, ...tileSchema.options])

const variantSchema = z
  .strictObject({
    fromRows: count,
    /** Absent: any number from `fromRows` on. */
    toRows: count.optional(),
    choice: tunedChoiceSchema,
    /** Median microseconds of a launch. */
    measured: z.array(measuredSchema).min(1),
  })
  .refine(({ fromRows, toRows = fromRows }) => toRows >= fromRows, { path: ['toRows'], error: 'expected at least fromRows' })

const entrySchema = z.strictObject({
  kernel: z.string().min(1),
  /** Storage types of the kernel's type parameters, joined by `_`. */
  dtype: z.string(),
  /** Elements of a row; for a matmul its columns, for attention those of a head. */
  length: count,
  /** Products summed per element of a matmul. */
  depth: count.optional(),
  architecture: z.string().regex(/^(simt|sm_[0-9]{2,3})$/, 'expected simt or an architecture such as sm_90'),
  /** Name of the device that was measured. */
  device: z.string().min(1),
  variants: z.array(variantSchema).min(1),
})

const tuningSchema = z.strictObject({
  version: z.literal(1),
  entries: z.array(entrySchema),
  /** Algorithms of matmul libraries. */
  matmuls: z.array(tunedMatmulSchema).min(1).optional(),
})

export type TuningEntry = z.infer<typeof entrySchema>
export type TunedVariant = TuningEntry['variants'][number]

/** A parsed tuning file. */
export interface Tuning {
  /** Path, for messages. */
  readonly file: string
  readonly entries: readonly TuningEntry[]
  /** Algorithms of matmul libraries. */
  readonly matmuls?: readonly TunedMatmul[] | undefined
}

type TuningKey = Pick<TuningEntry, 'kernel' | 'dtype' | 'length' | 'depth' | 'architecture'>

const keyOf = ({ kernel, dtype, length, depth = 0, architecture }: TuningKey): string =>
  [kernel, dtype, ...[length, depth].map((extent) => String(extent).padStart(10, '0')), architecture].join(' ')

/** @throws usage `tuning.json` if the text is not JSON, `tuning.schema` naming the first value that is not as expected */
export function parseTuning(text: string, file: string): Tuning {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('tuning.json', `${file} is not JSON`, { hint: 'run `heddle tune` again, or remove the file', cause })
  }
  const parsed = tuningSchema.safeParse(value)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    const place = (issue?.path ?? []).map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('')
    throw usageError(
      'tuning.schema',
      `${file}: ${place.replace(/^\./, '') || 'the file'}: ${issue?.message ?? 'not a tuning file'}`,
      {
        hint: 'run `heddle tune` again, or remove the file',
      },
    )
  }
  const { entries, matmuls } = parsed.data
  const keys = entries.map(keyOf)
  const twin = keys.findIndex((key, i) => keys.indexOf(key) !== i)
  if (twin >= 0) throw refusal('tuning.twice', { file, entries }, twin, 'the entry is listed twice', 'keep one of the two')
  refuseTwice(matmuls ?? [], file)
  return { file, entries, ...(matmuls === undefined ? {} : { matmuls }) }
}

function refuseTwice(matmuls: readonly TunedMatmul[], file: string): void {
  const keys = matmuls.map(tunedMatmulKey)
  const at = keys.findIndex((key, i) => keys.indexOf(key) !== i)
  if (at < 0) return
  throw usageError('tuning.twice', `${file}: matmuls[${at}] (${keys[at]}): the entry is listed twice`, {
    hint: 'keep one of the two',
  })
}

/** Text of a tuning file: sorted by key, ending with a line end. */
export function formatTuning(entries: readonly TuningEntry[], matmuls: readonly TunedMatmul[] = []): string {
  const sorted = [...entries].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  const ofLibraries = matmuls.length === 0 ? {} : { matmuls: sortedMatmuls(matmuls) }
  // The schema writes the fields of every object in its own order.
  return `${JSON.stringify(tuningSchema.parse({ version: 1, entries: sorted, ...ofLibraries }), null, 2)}\n`
}

/** Entries with those of measured keys replaced. A key that was measured and has no fresh entry uses the rules. */
export function mergeTuning(
  old: readonly TuningEntry[],
  fresh: readonly TuningEntry[],
  measured: readonly TuningKey[],
): TuningEntry[] {
  const again = new Set(measured.map(keyOf))
  return [...old.filter((entry) => !again.has(keyOf(entry))), ...fresh]
}

/** Storage types of an instance, as a tuning file names them. */
export const dtypeName = ({ types }: Pick<Instance, 'types'>): string => Object.values(types).join('_')

/** @throws usage `tuning.kernel` for an entry of a kernel or storage type that is not among the instances, template kernels' included */
export function refuseUnknown(
  tuning: Tuning,
  instances: readonly { readonly kernel: { readonly name: string }; readonly types: Instance['types'] }[],
): void {
  const known = new Set(instances.map(({ kernel, types }) => instanceKey(kernel.name, types)))
  const at = tuning.entries.findIndex(({ kernel, dtype }) => !known.has([kernel, dtype].filter((part) => part !== '').join('__')))
  if (at >= 0)
    throw refusal('tuning.kernel', tuning, at, 'there is no such kernel', 'remove the entry, or run `heddle tune` again')
}

/**
 * Puts the variants of its entries in the tuning file first; a kernel without entries is returned unchanged.
 * @throws usage `tuning.choice` for a choice the kernel cannot have, `tuning.order` for one that the number of rows may not decide about
 */
export function applyTuning(mapped: MappedKernel, tuning: Tuning): MappedKernel {
  const { instance, program, vec } = mapped
  const own = tuning.entries.flatMap((entry, at) =>
    entry.kernel === instance.kernel.name && entry.dtype === dtypeName(instance)
      ? entry.variants.map((v) => ({ at, entry, v }))
      : [],
  )
  const first = own[0]
  if (first === undefined) return mapped
  if (program.kind === 'rows' && program.lengths === undefined) {
    throw refusal('tuning.choice', tuning, first.at, 'only its rows know their length', 'remove the entry')
  }
  for (const { at, entry, v } of own) refuseVariant(mapped, tuning, at, entry, v)
  const about = own.map(({ entry, v }) => ({ ...describe(entry, v), choice: v.choice }))
  if (program.kind === 'elementwise') {
    const tuned = about.flatMap(({ choice, ...rest }) =>
      choice.kind === 'elementwise' ? [elementwiseVariant(choice, rest)] : [],
    )
    return { ...mapped, generic: true, program: { ...program, tuned: [...tuned, ...(program.tuned ?? [])] } }
  }
  if (program.kind === 'columns' || program.kind === 'totals')
    throw new Error(`internal: ${mapped.key} reduces ${program.kind} and has no ${first.v.choice.kind}`)
  const tuned = about.flatMap(({ choice, ...rest }) => (choice.kind === 'rows' ? [rowVariant(choice, rest)] : []))
  const generic = mapped.generic === true || tuned.some((variant) => variant.vec !== vec)
  return { ...mapped, generic, program: { ...program, variants: [...tuned, ...program.variants] } }
}

function refuseVariant(mapped: MappedKernel, tuning: Tuning, at: number, entry: TuningEntry, variant: TunedVariant): void {
  const { choice, fromRows, toRows } = variant
  const problem = isTile(choice) ? 'the kernel has no tiles' : problemOf(choice, mapped, entry.length)
  if (isTile(choice) || problem !== undefined)
    throw refusal('tuning.choice', tuning, at, `${choiceName(choice)}: ${problem ?? ''}`, 'run `heddle tune` again')
  if ((fromRows === 1 && toRows === undefined) || keepsOrder(choice, mapped, entry.length)) return
  const why = `${choiceName(choice)} combines a row in another order than the rules, so the number of rows would change results`
  throw refusal('tuning.order', tuning, at, why, 'use it for every number of rows, or remove the entry')
}

/** `768`, or for a matmul `3072x768`: columns and depth. */
export const sizeName = ({ length, depth }: { readonly length: number; readonly depth?: number | undefined }): string =>
  depth === undefined ? `${length}` : `${length}x${depth}`

function describe(
  entry: TuningEntry,
  { fromRows, toRows, measured }: TunedVariant,
): { name: string; limit: Limit; reason: string } {
  const { architecture, length } = entry
  return {
    name: `tuned_${architecture}_${length}${fromRows > 1 ? `_${fromRows}` : ''}`,
    limit: { length: undefined, rows: toRows, tuned: { architecture, length, fromRows } },
    reason: reasonOf(entry, measured),
  }
}

/** Reason for a measured variant, in words. */
export function reasonOf({ device }: TuningEntry, measured: TunedVariant['measured']): string {
  const times = measured.map(({ rows, rules, choice }) => `${choice} us instead of ${rules} at ${rows} rows`)
  return `measured on ${device}: ${times.join(', ')}`
}

/** An error about one entry of a tuning file. */
export function refusal(
  code: CodeOf<'tuning'>,
  { file, entries }: Pick<Tuning, 'file' | 'entries'>,
  at: number,
  why: string,
  hint: string,
): HeddleError {
  const entry = entries[at]
  const what = entry === undefined ? '' : ` (${entry.kernel} ${entry.dtype}, rows of ${sizeName(entry)}, ${entry.architecture})`
  return usageError(code, `${file}: entries[${at}]${what}: ${why}`, { hint })
}
