/** The text of chosen kernels in a folder of its own, and where a device gets them: what they are now, whatever `generated/` holds. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { KernelEntry, Manifest } from '../../emit/manifest.js'
import { manifestSchema } from '../../emit/manifest.js'
import type { PlannedKernel } from '../../fuse/planned_kernel.js'
import type { DType } from '../../ir/dtype.js'
import { allInstances } from '../../ir/instance.js'
import { isTemplate } from '../../ir/template.js'
import { openMemo } from '../../memo.js'
import type { Tuning } from '../../schedule/tuning.js'
import { makeScratch } from '../../scratch.js'
import { type SearchedManifest, searchManifests } from '../../toolchain/index.js'
import type { SpecKernels } from './specs.js'

/** Text that is compiled for a check, and removed after it. */
export interface PreparedText {
  /** Kernels to check. */
  readonly entries: readonly KernelEntry[]
  /** These, with all others of the search path behind them where graphs may run some. */
  readonly searched: SearchedManifest
  remove(): Promise<void>
}

export interface PrepareOptions {
  readonly dtypes: readonly DType[] | undefined
  readonly tuning: Tuning | undefined
  /** True if nothing but these kernels is run: the package's manifest takes longer to read than a small project's text to write. */
  readonly alone: boolean
}

/** Writes the text of kernels in storage types. @throws what generating throws */
export async function prepareText(
  root: string,
  specs: SpecKernels,
  chosen: readonly PlannedKernel[],
  { dtypes, tuning, alone }: PrepareOptions,
): Promise<PreparedText> {
  const [{ generateInstances }, { templateInstances }, { writeGenerated }] = await Promise.all([
    import('../../emit/generate.js'),
    import('../../emit/template.js'),
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

/** The text as it lies in the project, of the kernels with these names: whoever asks for it has edited it, or trusts who did. */
export async function generatedText(root: string, names: ReadonlySet<string>): Promise<PreparedText> {
  const searched = await searchManifests(root, { asItLies: true })
  const own = join(root, 'generated')
  const asItLies = (key: string): boolean => searched.folderOf(key) === own
  const entries = searched.manifest.kernels.filter(({ op, key }) => names.has(op) && asItLies(key))
  return { entries, searched: { ...searched, asItLies }, remove: async () => undefined }
}

function inFront({ kernels, plans }: Manifest, folder: string, behind: SearchedManifest): SearchedManifest {
  const keys = new Set(kernels.map(({ key }) => key))
  const others = behind.manifest.kernels.filter(({ key }) => !keys.has(key))
  return {
    manifest: { ...behind.manifest, kernels: [...kernels, ...others], plans: { ...behind.manifest.plans, ...plans } },
    folderOf: (key) => (keys.has(key) ? folder : behind.folderOf(key)),
    hidden: [],
  }
}
