/**
 * The text of schedule candidates: one file a kernel instance, with a launcher for each candidate under a key of its own and one for
 * the rules. Sharing the file shares what a compiler spends most on: the headers, and variants that several row lengths ask for.
 */
import type { Instance } from '../ir/instance.js'
import { choiceName, elementwiseVariant, rowVariant, type ScheduleChoice } from '../schedule/choice.js'
import { variantLines } from '../schedule/describe.js'
import { mapKernel } from '../schedule/map.js'
import type { MappedKernel } from '../schedule/mapped.js'
import { cudaPath, emitInstance, type GeneratedFiles, manifestEntry, registryText } from './generate.js'
import { type KernelEntry, manifestSchema } from './manifest.js'

export interface CandidateSet {
  readonly instance: Instance
  readonly choices: readonly ScheduleChoice[]
}

/** Key of the kernel that follows the rules. */
export const rulesKey = (key: string): string => `${key}__rules`
/** Key of the kernel that follows one choice, whatever the row length. */
export const candidateKey = (key: string, choice: ScheduleChoice): string => `${key}__${choiceName(choice)}`

/** Everything `buildKernels` takes: texts, registry, manifest. Pure; the choices are not checked here. */
export function generateCandidates(sets: readonly CandidateSet[]): GeneratedFiles {
  const files = new Map<string, string>()
  const entries: KernelEntry[] = []
  for (const { instance, choices } of sets) {
    const rules = { ...mapKernel(instance), generic: true }
    const launchers = [{ ...rules, key: rulesKey(rules.key) }, ...choices.map((choice) => candidate(rules, choice))]
    const text = emitInstance(rules, launchers)
    const file = cudaPath(rules.key)
    files.set(file, text)
    for (const mapped of launchers) {
      entries.push({ ...manifestEntry({ ...instance, key: mapped.key, variants: variantLines(mapped), text }), file })
    }
  }
  entries.sort((a, b) => (a.key < b.key ? -1 : 1))
  files.set('registry.cpp', registryText(entries))
  files.set('manifest.json', `${JSON.stringify(manifestSchema.parse({ version: 1, kernels: entries }), null, 2)}\n`)
  return files
}

/** The kernel with one variant, which takes every row. */
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
