/** Selection of kernels for a build with `--for` or `--filter`, and that build. */
import { resolve } from 'node:path'
import type { FloatType } from '../checkpoint/convert.js'
import { usageError } from '../errors.js'
import { loadEncoder } from '../models/encoder/encoder_pipeline.js'
import { loadLlama } from '../models/llama/llama_pipeline.js'
import { loadSeq2seq } from '../models/seq2seq/seq2seq_pipeline.js'
import type { Scales } from '../quant/index.js'
import { type Recording, recording } from '../runtime/recording.js'
import {
  type DemandOptions,
  demandKernels,
  type KernelSize,
  type SearchedManifest,
  searchManifests,
  sizesOf,
  type Target,
} from '../toolchain/index.js'
import { continuesText } from './continues_text.js'
import { generatesText } from './generate.js'
import { pattern } from './options.js'
import { expectFolder } from './pipeline.js'

export interface Selection {
  /** A model folder, for the kernels that it needs under a plan. */
  readonly for?: string | undefined
  readonly plan?: string | undefined
  readonly dtype?: FloatType | undefined
  /** A regular expression over instance keys. */
  readonly filter?: string | undefined
}

export interface SelectedBuild {
  readonly target: Target
  /** Instance keys, sorted. */
  readonly keys: readonly string[]
  /** A library of these kernels, in the cache. */
  readonly library: string
  readonly compiled: number
  /** Sizes of the compiled kernels; empty unless they are compiled alone. */
  readonly sizes: readonly KernelSize[]
  readonly objects: readonly { readonly source: string; readonly key: string }[]
  /** Resources from ptxas, one entry per kernel and architecture; empty on simt. */
  readonly kernels: readonly {
    readonly kernel: string
    readonly arch: string
    readonly registers: number
    readonly source: string
  }[]
}

/**
 * Compiles the selected kernels. With both a model and a filter: the model's kernels whose keys match.
 * @throws usage `build.filter`, `build.selection` if nothing is selected; errors of the model's loader and `demandKernels`
 */
export async function buildSelection(selection: Selection, options: DemandOptions): Promise<SelectedBuild> {
  const searched = await searchManifests(options.root)
  const wanted = pattern(selection.filter, 'build.filter')
  const candidates =
    selection.for === undefined ? allKeys(searched) : await keysOfModel(selection.for, selection, searched, options)
  const keys = candidates.filter((key) => wanted?.test(key) ?? true)
  if (keys.length === 0) {
    throw usageError('build.selection', 'no kernel is selected', {
      hint: `kernels have names such as ${allKeys(searched)[0] ?? 'softmax__f32'}`,
    })
  }
  const entries = new Map(searched.manifest.kernels.map((entry) => [entry.key, entry]))
  const placed = keys.flatMap((key) => {
    const entry = entries.get(key)
    return entry === undefined ? [] : [{ entry, folder: searched.folderOf(key) }]
  })
  const { library, compiled, objects } = await demandKernels(placed, options)
  return {
    target: options.target,
    keys,
    library,
    compiled,
    sizes: options.alone === true ? await sizesOf(objects) : [],
    objects: objects.map(({ source, key }) => ({ source, key })),
    kernels: objects.flatMap(({ source, resources }) => resources.map((kernel) => ({ ...kernel, source }))),
  }
}

const allKeys = ({ manifest }: SearchedManifest): string[] => manifest.kernels.map(({ key }) => key)

/** Tokens of a sample case: within the vocabulary and positions of any model, without padding. */
const sampleOf = (padToken?: number) => ({ inputIds: [0, 1, 2].filter((id) => id !== padToken) })

/** Keys of kernels that a model requests in a short run. Kernels for other sizes or kinds of generation are compiled on demand. */
export async function keysOfModel(
  model: string,
  selection: Pick<Selection, 'plan' | 'dtype'>,
  { manifest }: Pick<SearchedManifest, 'manifest'>,
  { root, target, architecture, signal }: Pick<DemandOptions, 'root' | 'target' | 'architecture' | 'signal'>,
): Promise<readonly string[]> {
  const recorded = recording(target, architecture)
  await runRecorded(resolve(root, model), recorded, { ...selection, manifest, signal })
  return recorded.keys()
}

/** Run of a model on a device that only records. */
export interface RecordedRun extends Pick<Selection, 'plan' | 'dtype'>, Pick<SearchedManifest, 'manifest'> {
  readonly signal?: AbortSignal | undefined
  /** Scales of a quantised encoder. */
  readonly scales?: Scales | undefined
  /** Number of sequences and tokens per sequence; default: a short case. */
  readonly shape?: { readonly batch: number; readonly seq: number } | undefined
}

/** Runs a model folder on a device that only records. @throws usage `run.model`, and errors of the model's loader */
export async function runRecorded(folder: string, { device, library }: Recording, run: RecordedRun): Promise<void> {
  expectFolder(folder)
  const { plan, dtype, manifest, signal, scales, shape } = run
  const how = {
    device,
    library,
    manifest,
    signal,
    ...(plan === undefined ? {} : { plan }),
    ...(dtype === undefined ? {} : { dtype }),
  }
  const cases = (usual: readonly number[]) =>
    shape === undefined
      ? [{ inputIds: usual }]
      : Array.from({ length: shape.batch }, () => ({ inputIds: Array.from({ length: shape.seq }, () => usual.at(-1) ?? 0) }))
  if (await continuesText(folder)) {
    const llama = await loadLlama(folder, how)
    await llama.generate(cases([0, 0]), { maxNewTokens: 1 })
    llama.release()
  } else if (await generatesText(folder)) {
    const generator = await loadSeq2seq(folder, how)
    await generator.generate(cases(sampleOf().inputIds), { maxNewTokens: 1 })
    generator.release()
  } else {
    const encoder = await loadEncoder(folder, { ...how, ...(scales === undefined ? {} : { scales }) })
    await encoder.run(cases(sampleOf(encoder.config.padToken).inputIds))
    encoder.release()
  }
}
