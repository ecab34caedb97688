/**
 * `heddle tune --library`: measures the algorithms that the device's matmul library offers for each matmul of a model, a graph or an encoder
 * of given heads, and saves the best in the tuning file.
 */
import { resolve } from 'node:path'
import { distinctMatmuls } from '../bench/library/collect.js'
import { recordEncoder } from '../bench/library/encoder.js'
import { type LibraryResult, measureMatmul } from '../bench/library/measure.js'
import { recordSubject } from '../bench/library/subject.js'
import type { Shape } from '../bench/result.js'
import { completed } from '../bench/target/measure.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { environmentError, usageError } from '../errors.js'
import { findPlan } from '../program/plans.js'
import { readScales } from '../quant/index.js'
import { architectureOf, type Device } from '../runtime/device.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import { openKernels } from '../runtime/open.js'
import { type Recording, recording } from '../runtime/recording.js'
import { libraryVersion } from '../runtime/tuned_matmuls.js'
import { mergeMatmuls, type TunedMatmul } from '../schedule/tuning/library.js'
import { formatTuning } from '../schedule/tuning/tuning.js'
import { findSubject } from './bench_target.js'
import type { CliContext } from './context.js'
import { type DeviceName, type dtypes, openOptions } from './pipeline.js'
import { searchPath } from './search_path.js'
import { runRecorded } from './selection.js'
import { openTuning } from './tuning_file.js'

export interface TuneLibraryOptions {
  /** A model folder. */
  readonly model?: string | undefined
  /** A graph or program. Without `model` and `graph`: an encoder layer of `heads` times `size`. */
  readonly graph?: string | undefined
  readonly plans: readonly string[]
  readonly dtype: (typeof dtypes)[number]
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  /** Shapes of a model or an encoder. */
  readonly shapes: readonly Shape[]
  readonly heads: number
  /** Elements per head. */
  readonly size: number
  /** Sizes that override the typical ones of a graph. */
  readonly dims?: Readonly<Record<string, number>> | undefined
  /** A scales file, for quantised plans of a model. */
  readonly scales?: string | undefined
  /** Largest number of algorithms per matmul: the library's suggestions, then other configurations. */
  readonly most: number
  /** Timed replays of each algorithm. */
  readonly repeats: number
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
  /** The tuning file; default `tuning.json` next to the specs. */
  readonly out?: string | undefined
}

export interface TuneLibraryResult {
  readonly device: NativeDeviceInfo
  readonly results: readonly LibraryResult[]
  readonly file: string
}

/** @throws environment `tune.library` for a device without a matmul library */
export function expectLibrary({ kind, name, matmulVersion }: Pick<NativeDeviceInfo, 'kind' | 'name' | 'matmulVersion'>): void {
  if (kind === 'simt') {
    throw environmentError('tune.library', 'the CPU device has one matmul algorithm: there is no library to tune', {
      hint: 'run it on a machine with a GPU: --device cuda',
    })
  }
  if (matmulVersion > 0) return
  throw environmentError('tune.library', `cuBLASLt is not loaded for ${name}: there is no library to tune`, {
    hint: 'install cuBLASLt 12 or 13, or name its file with HEDDLE_CUBLASLT; heddle doctor shows the one in use',
  })
}

/** @throws usage `tune.matmuls` for options that do not combine */
function expectOneSubject({ model, graph, dims, scales }: TuneLibraryOptions): void {
  const refuse = (what: string, hint: string) => usageError('tune.matmuls', what, { hint })
  if (model !== undefined && graph !== undefined) throw refuse('expected a model or a graph, got both', 'give one of them')
  if (dims !== undefined && graph === undefined)
    throw refuse('dimensions belong to a graph, but none is given', 'add --graph NAME')
  if (scales !== undefined && model === undefined)
    throw refuse('scales belong to a model, but none is given', 'add --model FOLDER')
}

/** Builds the requested programs on a device that only records. */
async function record(
  recorded: Recording,
  manifest: Manifest,
  options: TuneLibraryOptions,
  { root, signal }: CliContext,
): Promise<void> {
  const { model, graph, plans, dtype, shapes } = options
  for (const plan of plans) findPlan(plan, manifest.plans)
  if (graph !== undefined) {
    const path = await searchPath(root, options.specs)
    const subject = await findSubject(graph, manifest, { plans, dtype }, path)
    const dims = completed(subject, options.dims ?? {})
    return recordSubject(recorded, subject, { manifest, layouts: await path.layouts(), dims, dtype })
  }
  if (model === undefined) return recordEncoder(recorded, manifest, options)
  const scales = options.scales === undefined ? undefined : await readScales(resolve(root, options.scales))
  for (const plan of plans) {
    for (const shape of shapes)
      await runRecorded(resolve(root, model), recorded, { plan, dtype, manifest, signal, scales, shape })
  }
}

/** Distinct matmuls of the requested programs, as built for the device. @throws usage `tune.matmuls` if there are none */
export async function matmulsOf(
  device: Pick<Device, 'kind' | 'info'>,
  manifest: Manifest,
  options: TuneLibraryOptions,
  context: CliContext,
) {
  const recorded = recording(device.kind, architectureOf(device.info()).replace('sm_', ''))
  await record(recorded, manifest, options, context)
  const matmuls = distinctMatmuls(recorded.matmuls())
  if (matmuls.length > 0) return matmuls
  throw usageError('tune.matmuls', `no library matmul is used under ${options.plans.join(', ')}`, {
    hint: 'name a plan that leaves matmuls to the library, such as --plans unfused',
  })
}

/**
 * Measures the matmuls and updates the tuning file.
 * @throws usage `tune.matmuls`, `tuning.*`, `plan.*`, `bench.unknown`; environment `tune.library`, `device.*`; errors of loading a model
 */
export async function tuneLibrary(options: TuneLibraryOptions, context: CliContext): Promise<TuneLibraryResult> {
  const { root, signal, log } = context
  expectOneSubject(options)
  const { file, old, write } = await openTuning({ root, specs: options.specs, file: options.out })
  const { device, manifest } = await openKernels(options.device, {
    ...openOptions(context, { on: options.on, who: 'tune' }),
    compiled: true,
  })
  try {
    const info = device.info()
    expectLibrary(info)
    const matmuls = await matmulsOf(device, manifest, options, context)
    log(`${info.name}, cuBLASLt ${libraryVersion(info.matmulVersion)}: ${matmuls.length} matmuls\n`)
    const results: LibraryResult[] = []
    for (const each of matmuls) {
      const result = await measureMatmul({ device, repeats: options.repeats, most: options.most, signal }, each)
      log(`measured ${result.matmul}: ${result.offered} algorithms\n`)
      results.push(result)
    }
    const kept = results.flatMap((result): TunedMatmul[] => (result.kept === undefined ? [] : [result.kept]))
    const measured = results.map(({ matmul }) => ({ device: info.name, library: info.matmulVersion, matmul }))
    await write(formatTuning(old?.entries ?? [], mergeMatmuls(old?.matmuls ?? [], kept, measured)))
    log(
      `tune: ${kept.length} of ${results.length} matmuls have a faster algorithm than the first, ${file}; heddle gen applies them\n`,
    )
    return { device: info, results, file }
  } finally {
    device.close()
  }
}
