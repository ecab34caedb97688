/**
 * Source of schedule candidates: one file per kernel instance, with one launcher per candidate under its own key, and one for the rules. Sharing
 * the file shares the most expensive parts of compilation: the headers, and variants that several row lengths use.
 */
import type { Instance } from '../ir/instance.js'
import { variantLines } from '../schedule/describe.js'
import { mapKernel } from '../schedule/map.js'
import { type MappedKernel, scheduledLaunch } from '../schedule/mapped.js'
import type { TileChoice } from '../schedule/tiles.js'
import { choiceName, elementwiseVariant, rowVariant, type ScheduleChoice } from '../schedule/tuning/choice.js'
import { cudaPath, emitInstance, emitTemplate, type GeneratedFiles, manifestEntry } from './generate.js'
import type { Written } from './instances.js'
import type { TemplateInstance, TileLaunch } from './kernels/template.js'
import { type KernelEntry, manifestSchema } from './manifest/manifest.js'
import { registryText } from './manifest/registry.js'

export interface CandidateSet {
  readonly instance: Instance
  readonly choices: readonly ScheduleChoice[]
}

/** A template kernel, with the tiles to launch it with. */
export interface TileSet {
  readonly instance: TemplateInstance
  readonly tiles: readonly { readonly choice: TileChoice; readonly length: number }[]
}

/** Key of the kernel that uses the rules. */
export const rulesKey = (key: string): string => `${key}__rules`
/** Key of the kernel that uses one choice for any row length; a tile of attention is for heads of one length. */
export const candidateKey = (key: string, choice: ScheduleChoice | TileChoice, length?: number): string =>
  `${key}__${choiceName(choice)}${choice.kind === 'attention' && length !== undefined ? `_d${length}` : ''}`

/** Input of `buildKernels`: sources, registry, manifest. Pure; the choices are not checked here. */
export function generateCandidates(sets: readonly CandidateSet[], tiles: readonly TileSet[] = []): GeneratedFiles {
  const written = [...sets.flatMap(rowCandidates), ...tiles.flatMap(tileCandidates)]
  const files = new Map<string, string>(written.map(({ file, text }) => [file, text]))
  const entries = written.map((each): KernelEntry => ({ ...manifestEntry(each), file: each.file }))
  entries.sort((a, b) => (a.key < b.key ? -1 : 1))
  files.set('registry.cpp', registryText(entries))
  files.set('manifest.json', `${JSON.stringify(manifestSchema.parse({ version: 1, kernels: entries }), null, 2)}\n`)
  return files
}

type Candidate = Written & { readonly file: string }

function rowCandidates({ instance, choices }: CandidateSet): Candidate[] {
  const rules = { ...scheduledLaunch(mapKernel(instance)), generic: true }
  const launchers = [{ ...rules, key: rulesKey(rules.key) }, ...choices.map((choice) => candidate(rules, choice))]
  const text = emitInstance(rules, launchers)
  return launchers.map((mapped) => ({
    ...instance,
    key: mapped.key,
    variants: variantLines(mapped),
    text,
    file: cudaPath(rules.key),
  }))
}

function tileCandidates({ instance, tiles }: TileSet): Candidate[] {
  const { kernel, types, key } = instance
  const launches: TileLaunch[] = [
    { key: rulesKey(key) },
    ...tiles.map(({ choice, length }) => ({ key: candidateKey(key, choice, length), choice, length })),
  ]
  const text = emitTemplate(instance, { launches })
  return launches.map((launch) => ({ kernel, types, dims: {}, key: launch.key, variants: [], text, file: cudaPath(key) }))
}

/** The kernel with one variant, which accepts every row. */
function candidate(rules: MappedKernel, choice: ScheduleChoice): MappedKernel {
  const { program } = rules
  const about = { name: choiceName(choice), limit: { length: undefined, rows: undefined }, reason: 'a candidate' }
  const key = candidateKey(rules.key, choice)
  if (choice.kind === 'rows' && program.kind === 'rows') {
    return { ...rules, key, program: { ...program, variants: [rowVariant(choice, about)] } }
  }
  if (choice.kind === 'elementwise' && program.kind === 'elementwise') {
    return { ...rules, key, program: { ...program, tuned: [elementwiseVariant(choice, about)] } }
  }
  throw new Error(`internal: ${rules.key} cannot be scheduled as ${choiceName(choice)}`)
}
