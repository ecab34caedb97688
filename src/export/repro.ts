/**
 * Writes a reproduction for `heddle repro`: one case of one kernel as a folder that builds and runs without heddle. It needs any C++17 compiler for
 * the CPU device, and nvcc for CUDA, and reports what `heddle check` reports for the case. An archive of the folder can be attached to an issue.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { create } from 'tar'
import { inUsualOrder } from '../bench/target/subject.js'
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import { namedFile, writeWhole } from '../output.js'
import { expectListed, type Made, writeListed } from '../output_listed.js'
import { isWithin, nameIn } from '../path_names.js'
import { findCxx, findNvcc, packageRoot, reachedHeaders } from '../toolchain/index.js'
import { elementOffset } from '../verify/block.js'
import { casesOf, checkedElements, type KernelCase } from '../verify/cases.js'
import { type CheckSetup, type SetupOptions, withSetup } from '../verify/check/setup.js'
import { type CheckResult, type PreparedCase, prepareCase, runCase } from '../verify/conformance.js'
import { caseText, type ReproCommands, type ReproFacts, readmeText, reproCommands } from './repro_texts.js'
import { type FileTensor, safetensorsHeader } from './weights_file.js'

export interface ReproOptions extends Omit<SetupOptions, 'names' | 'plan' | 'filter'> {
  /** An op of the project, or a kernel that a plan derives. */
  readonly kernel: string
  /** A case name as `check` prints it, or an instance key; by default the first case that fails, or the largest if none fails. */
  readonly test?: string | undefined
  /** Path of the folder to write, or of its archive if the name ends in `.tar.gz`; by default `repro-` and the instance key, below the root. */
  readonly out?: string | undefined
  /** Version of heddle, for the README. */
  readonly version: string
}

export interface ReproResult {
  /** Path of the folder or the archive. */
  readonly out: string
  /** The folder: `out`, or the one inside the archive. */
  readonly folder: string
  /** Name of the case. */
  readonly name: string
  /** Result of the device here. */
  readonly passed: boolean
  readonly detail: string
  /** Commands that build and run it in the folder, per target. */
  readonly commands: ReproCommands
}

/** The case to write, and its result. */
interface Chosen {
  readonly test: KernelCase
  readonly result: CheckResult
}

/**
 * @throws usage `repro.case` for an unknown case of the kernel, `repro.write` where the archive cannot be written, `output.folder` and `output.file`
 * where the folder holds files that heddle did not write, `check.selection` for no kernel of the project; errors of the front end and of plans;
 * environment for a missing device, addon or compiler
 */
export async function writeRepro(options: ReproOptions): Promise<ReproResult> {
  const { kernel, ...others } = options
  // Checked before anything is compiled.
  if (options.out !== undefined && !isArchive(options.out)) await expectListed(resolve(options.root, options.out), options)
  return withSetup({ ...others, names: [kernel], compiled: true }, async (setup) => {
    const entries = inUsualOrder(setup.entries.filter(({ op }) => op === kernel))
    const chosen = await choose(setup, entries, options)
    const { test, result } = chosen
    const out = resolve(options.root, options.out ?? `repro-${test.entry.key}`)
    const [cxx, nvcc] = await Promise.all([findCxx(), findNvcc()])
    const facts: ReproFacts = {
      heddle: options.version,
      device: setup.subject.device.info(),
      cxx: cxx?.version ?? 'none',
      nvcc: nvcc?.version ?? 'none',
    }
    const text = await readFile(join(setup.text.searched.folderOf(test.entry.key), test.entry.file), 'utf8')
    const copied = await copiedFiles(text)
    const commands = reproCommands(copied.some(([, to]) => to === hopper))
    const prepared = prepareCase(setup.subject, test)
    const own: Readonly<Record<string, string | Uint8Array>> = {
      'README.md': readmeText(prepared, result, facts, commands),
      'case.hpp': caseText(prepared),
      'kernel.cu': text,
      'inputs.safetensors': fileOf(inputsOf(prepared)),
      'expected.safetensors': fileOf(expectedOf(setup, prepared)),
    }
    const files = new Map<string, Made>(Object.entries(own))
    for (const [from, to] of copied) files.set(to, await readFile(from))
    if (isArchive(out)) await writeArchive(out, files)
    else await writeListed(out, files, options)
    const folder = isArchive(out) ? basename(out, ending) : out
    return { out, folder, name: result.name, passed: result.passed, detail: result.detail, commands }
  })
}

const ending = '.tar.gz'
const isArchive = (out: string): boolean => out.endsWith(ending)

/** Writes an archive of a folder, under the archive's name. @throws usage `repro.write` */
async function writeArchive(out: string, files: ReadonlyMap<string, Made>): Promise<void> {
  const write = await namedFile(out, 'repro.write')
  const made = await mkdtemp(join(tmpdir(), 'heddle-repro-'))
  const name = basename(out, ending)
  try {
    for (const [path, content] of files) if (typeof content !== 'function') await writeWhole(join(made, name, path), content)
    const file = join(made, 'archive')
    // Without user names, since it is attached to reports.
    await create({ file, cwd: made, gzip: true, portable: true }, [name])
    await write(await readFile(file))
  } finally {
    await rm(made, { recursive: true, force: true })
  }
}

/** The requested case, else the first that fails, else the largest of the first instance. */
async function choose(
  { subject }: CheckSetup,
  entries: readonly KernelEntry[],
  { test: wanted, kernel, signal }: ReproOptions,
): Promise<Chosen> {
  const keyed = entries.filter(({ key }) => wanted === key)
  const requested = keyed.length > 0 ? undefined : wanted
  const tried = keyed.length > 0 ? keyed : entries
  if (requested !== undefined) {
    const found = entries
      .flatMap((entry) => Object.values(checkedElements).flatMap((largest) => casesOf(entry, largest)))
      .find(({ name }) => name === requested)
    if (found === undefined) throw noCase(kernel, requested, entries)
    return { test: found, result: await runCase(subject, found) }
  }
  let last: Chosen | undefined
  for (const entry of tried) {
    let largest: Chosen | undefined
    for (const test of casesOf(entry, checkedElements.usual)) {
      signal?.throwIfAborted()
      const result = await runCase(subject, test)
      if (!result.passed) return { test, result }
      if (largest === undefined || sizeOf(test) > sizeOf(largest.test)) largest = { test, result }
    }
    last ??= largest
  }
  if (last === undefined) throw noCase(kernel, 'of these storage types', entries)
  return last
}

const sizeOf = ({ dims }: KernelCase): number => Object.values(dims).reduce((product, extent) => product * extent, 1)

const noCase = (kernel: string, requested: string, entries: readonly KernelEntry[]) => {
  const names = entries.flatMap((entry) => casesOf(entry, checkedElements.usual).slice(0, 1)).map(({ name }) => name)
  return usageError('repro.case', `${kernel} has no case ${requested}`, {
    hint: names.length === 0 ? 'choose a storage type that it has' : `cases are such as ${names.join(', ')}`,
  })
}

/** Header that only sources for Hopper include; nvcc then needs the architecture's exact name. */
const hopper = 'include/hopper.cuh'

/** Files of the package that the folder is built from: every header that the source reaches for either target, and the driver. */
async function copiedFiles(text: string): Promise<readonly (readonly [from: string, to: string])[]> {
  const native = join(packageRoot(), 'native')
  const folders = ['include', 'device', 'simt/include'].map((folder) => join(native, folder))
  const headers = await reachedHeaders(text, folders)
  const driver = ['repro/main.cpp', 'repro/device.hpp', 'repro/numbers.hpp', 'export/example/tensors.hpp'] as const
  const workers = ['simt/plugin/workers.cpp', 'simt/plugin/workers.hpp'] as const
  return [
    ...headers.map(({ path }) => {
      const folder = folders.find((each) => isWithin(each, path)) ?? dirname(path)
      return [path, `include/${nameIn(folder, path)}`] as const
    }),
    ...[...driver, ...workers].map((name) => [join(native, name), name.slice(name.lastIndexOf('/') + 1)] as const),
  ]
}

type Stored = readonly [name: string, tensor: FileTensor, data: Uint8Array]

const fileOf = (tensors: readonly Stored[]): Uint8Array =>
  Buffer.concat([safetensorsHeader(tensors.map(([name, tensor]) => [name, tensor])), ...tensors.map(([, , data]) => data)])

/** Stored inputs. An input in a layout other than row-major is a list of its buffer's elements, padding included. */
function inputsOf({ placed, before }: PreparedCase): readonly Stored[] {
  const inputs = placed.filter(({ buffer }) => buffer.access === 'in')
  return inputs.map(({ buffer, shape, offset, bytes }) => {
    const { name, dtype, layout } = buffer
    const stored = layout === 'row' ? shape : [bytes / dtypeInfo[dtype].bytes]
    return [name, { dtype, shape: stored, bytes }, before.subarray(offset, offset + bytes)]
  })
}

/** Expected outputs, in doubles and logical order; for layouts other than row-major also the position of each element. */
function expectedOf({ subject }: CheckSetup, { placed, wanted }: PreparedCase): readonly Stored[] {
  return placed.flatMap((output): Stored[] => {
    const values = wanted.get(output.buffer.name)?.values.at(-1)
    if (output.buffer.access !== 'out' || values === undefined) return []
    const { name, layout } = output.buffer
    const data = Float64Array.from(values)
    const bytes = data.byteLength
    const expected: Stored = [name, { dtype: 'f64', shape: output.shape, bytes }, new Uint8Array(data.buffer)]
    if (layout === 'row') return [expected]
    const offset = elementOffset(output, subject.layouts)
    const places = BigInt64Array.from({ length: data.length }, (_, at) => BigInt(offset(at)))
    return [expected, [`${name}.places`, { dtype: 'i64', shape: output.shape, bytes }, new Uint8Array(places.buffer)]]
  })
}
