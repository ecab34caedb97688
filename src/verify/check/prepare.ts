/** Generates the current source of chosen kernels in a separate folder for a device to load, independent of `generated/`. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KernelEntry, Manifest } from '../../emit/manifest/manifest.js'
import { manifestSchema } from '../../emit/manifest/manifest.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import type { DType } from '../../ir/dtype.js'
import { allInstances } from '../../ir/instance.js'
import { isTemplate } from '../../ir/template.js'
import { openMemo } from '../../memo.js'
import type { Tuning } from '../../schedule/tuning/tuning.js'
import { makeScratch } from '../../scratch.js'
import { type SearchedManifest, searchManifests } from '../../toolchain/index.js'
import type { SpecKernels } from './specs.js'

/** Source that is compiled for a check, and removed after it. */
export interface PreparedText {
  /** Kernels to check. */
  readonly entries: readonly KernelEntry[]
  /** The kernels to check, followed by all others of the search path if graphs may run some. */
  readonly searched: SearchedManifest
  remove(): Promise<void>
}

export interface PrepareOptions {
  readonly dtypes: readonly DType[] | undefined
  readonly tuning: Tuning | undefined
  /** True if only these kernels are run: reading the package's manifest takes longer than writing a small project's source. */
  readonly alone: boolean
}

/** Writes the source of kernels in storage types. @throws errors of generating it */
export async function prepareText(
  root: string,
  specs: Pick<SpecKernels, 'graphs' | 'schedules'>,
  chosen: readonly PlannedKernel[],
  { dtypes, tuning, alone }: PrepareOptions,
): Promise<PreparedText> {
  const [{ generateInstances }, { templateInstances }, { writeGenerated }] = await Promise.all([
    import('../../emit/generate.js'),
    import('../../emit/kernels/template.js'),
    import('../../emit/write.js'),
  ])
  const wanted = <T extends { readonly types: Readonly<Record<string, DType>> }>(instance: T): boolean =>
    dtypes === undefined || Object.values(instance.types).every((type) => dtypes.includes(type))
  const rows = chosen.flatMap((kernel) => (isTemplate(kernel) ? [] : allInstances(kernel))).filter(wanted)
  const templates = chosen.flatMap((kernel) => (isTemplate(kernel) ? templateInstances(kernel) : [])).filter(wanted)
  const files = generateInstances(rows, specs.graphs, templates, tuning, specs.schedules, { kept: openMemo(root) })
  const folder = await makeScratch(root, 'check')
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    await writeGenerated(folder, files)
    const manifest = manifestSchema.parse(JSON.parse(files.get('manifest.json') ?? ''))
    const own: SearchedManifest = { manifest, folderOf: () => folder, hidden: [] }
    const searched = alone ? own : inFront(manifest, folder, await searchManifests(root))
    return { entries: manifest.kernels, searched, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** The existing source in `generated/` of the kernels with these names: the caller has edited it, or trusts its author. */
export async function generatedText(root: string, names: ReadonlySet<string>): Promise<PreparedText> {
  const searched = await searchManifests(root, { asItLies: true })
  const own = join(root, 'generated')
  const asItLies = (key: string): boolean => searched.folderOf(key) === own
  const entries = searched.manifest.kernels.filter(({ op, key }) => names.has(op) && asItLies(key))
  return { entries, searched: { ...searched, asItLies }, remove: async () => undefined }
}

function inFront({ kernels, plans }: Manifest, folder: string, rest: SearchedManifest): SearchedManifest {
  const keys = new Set(kernels.map(({ key }) => key))
  const others = rest.manifest.kernels.filter(({ key }) => !keys.has(key))
  return {
    manifest: { ...rest.manifest, kernels: [...kernels, ...others], plans: { ...rest.manifest.plans, ...plans } },
    folderOf: (key) => (keys.has(key) ? folder : rest.folderOf(key)),
    hidden: [],
  }
}
