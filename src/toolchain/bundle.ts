/**
 * The portable bundle: one archive with Node, one JavaScript file, the addon, the device plugins and the kernel libraries. It
 * unpacks and runs on a Linux machine with glibc 2.31 or later and no Node, npm or compiler.
 */
import { existsSync } from 'node:fs'
import { chmod, copyFile, cp, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { environmentError, findingError, usageError } from '../errors.js'
import { nameIn } from '../path_names.js'
import { type BundledKernels, stageKernels } from './bundle_kernels.js'
import { which } from './compilers.js'
import { compareVersions, expectOldGlibc, glibcNeed } from './glibc.js'
import { generatedFolder, type Installation, installation } from './installation.js'
import { isBuiltOfTexts } from './kernels.js'
import { outputs, packageRoot, peersFolder, type Target, targets } from './paths.js'
import { firstLines, runTool } from './process.js'
import { readBuildReport } from './report.js'

/**
 * Size limit of an archive without models: the amount that a slow link transfers in a minute. Node takes 21 MiB of it. Of 568 CUDA files, a
 * tenth was compiled and packed: all of them should take about 24 MiB, from some 330 unpacked, since compression finds the similarities of
 * architectures, types and epilogues.
 */
const limitBytes = 56 * 2 ** 20

const launcher = `#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
HEDDLE_NATIVE="$here" exec "$here/node" "$here/heddle.mjs" "$@"
`

export interface BundleOptions {
  readonly root: string
  /** Model folders to add under `models/`. */
  readonly models?: readonly string[]
  /** A folder of exports to add under `exports/`, which `heddle selftest` runs where PyTorch is installed. */
  readonly exports?: string | undefined
  /** Kernels to pack, for a project with kernels of its own; by default those of the last build. */
  readonly kernels?: BundledKernels | undefined
  readonly signal?: AbortSignal | undefined
}

export interface BundleResult {
  readonly archive: string
  readonly bytes: number
  readonly targets: readonly Target[]
  /** Minimum glibc version, from the requirements of its files. */
  readonly glibc: string
}

/**
 * Packs the output of `build`, or the given kernels, into `.heddle/bundle/heddle-linux-x64.tar.xz` (`.tar.gz` without xz).
 * @throws environment `bundle.missing` if a file is not built, `bundle.stale` for a library built from other source, usage `bundle.model`,
 * finding `bundle.size` over 56 MiB, `bundle.glibc` for a file that an old glibc cannot load
 */
export async function makeBundle({ root, models = [], exports, kernels, signal }: BundleOptions): Promise<BundleResult> {
  const built = installation(root)
  const folder = join(outputs(root).base, 'bundle')
  const available = targets.filter((target) => existsSync(built.library(target)))
  if (available.length === 0) throw missing(built.library('simt'))
  for (const target of available) {
    await expectAllArchitectures(built.report(target))
    if (kernels === undefined) await expectCurrent(root, target, built.library(target))
  }
  await mkdir(folder, { recursive: true })
  const temporary = await mkdtemp(join(folder, '.packing-'))
  try {
    const stage = join(temporary, 'heddle')
    await mkdir(stage)
    await fill(stage, built, root, available, kernels, signal)
    const glibc = await checkGlibc(stage, available, signal)
    for (const model of models) await addModel(resolve(root, model), stage)
    if (exports !== undefined) await cp(resolve(root, exports), join(stage, 'exports'), { recursive: true })
    const archive = await pack(folder, temporary, signal)
    const { size } = await stat(archive)
    if (models.length === 0 && exports === undefined && size > limitBytes) {
      throw findingError('bundle.size', `${archive}: expected at most ${mebibytes(limitBytes)} MiB, got ${mebibytes(size)} MiB`)
    }
    return { archive, bytes: size, targets: available, glibc }
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

/** @throws environment `bundle.architecture` for a library that runs on one generation of GPUs only */
async function expectAllArchitectures(report: string): Promise<void> {
  const { architecture } = (await readBuildReport(report)) ?? {}
  if (architecture === undefined) return
  throw environmentError('bundle.architecture', `the kernels were built for sm_${architecture} alone`, {
    hint: 'run heddle build --target cuda --architecture all',
  })
}

/** Checks that a full build, which is packed as is, was built from the current source. @throws environment `bundle.stale` */
async function expectCurrent(root: string, target: Target, library: string): Promise<void> {
  if (await isBuiltOfTexts(root, target)) return
  throw environmentError('bundle.stale', `${library} was not built from the source in ${generatedFolder(root)}`, {
    hint: `run heddle build --target ${target}`,
  })
}

/** Fills the bundle's folder, without models. */
async function fill(
  stage: string,
  built: Installation,
  root: string,
  available: readonly Target[],
  kernels: BundledKernels | undefined,
  signal: AbortSignal | undefined,
): Promise<void> {
  const put = async (from: string, name: string): Promise<void> => {
    if (!existsSync(from)) throw missing(from)
    await copyFile(from, join(stage, name))
  }
  await put(process.execPath, 'node')
  const dist = join(packageRoot(), 'dist')
  await put(join(dist, 'portable.mjs'), 'heddle.mjs')
  await put(join(packageRoot(), 'LICENSE'), 'LICENSE')
  await put(join(dist, 'portable-licences.txt'), 'licences.txt')
  const peers = (await readdir(peersFolder())).filter((name) => name.endsWith('.py')).sort()
  for (const file of [
    'templates/explorer.hbs',
    'dist/agent.mjs',
    'dist/explorer.js',
    'dist/explorer-licences.txt',
    ...peers.map((name) => nameIn(packageRoot(), join(peersFolder(), name))),
  ]) {
    await mkdir(dirname(join(stage, file)), { recursive: true })
    await put(join(packageRoot(), file), file)
  }
  await put(join(built.native, 'heddle.node'), 'heddle.node')
  for (const target of available) await put(join(built.native, `libheddle_${target}.so`), `libheddle_${target}.so`)
  if (kernels === undefined) {
    await mkdir(join(stage, 'generated'))
    await put(join(generatedFolder(root), 'manifest.json'), 'generated/manifest.json')
    for (const target of available) {
      await mkdir(join(stage, target))
      await put(built.library(target), `${target}/libheddle_kernels.so`)
      await put(built.report(target), `${target}/build.json`)
    }
  } else {
    await stageKernels(stage, join(dirname(stage), 'text'), root, available, kernels, signal)
  }
  await writeFile(join(stage, 'heddle'), launcher)
  await Promise.all(['heddle', 'node'].map((name) => chmod(join(stage, name), 0o755)))
  await strip(join(stage, 'node'), signal)
}

/**
 * Minimum glibc version of all files. Node's requirement is that of the Node that packs; heddle's own files are checked against the limit.
 * @throws finding `bundle.glibc`
 */
async function checkGlibc(stage: string, available: readonly Target[], signal: AbortSignal | undefined): Promise<string> {
  const own = ['heddle.node', ...available.flatMap((target) => [`libheddle_${target}.so`, `${target}/libheddle_kernels.so`])]
  let newest = (await glibcNeed(join(stage, 'node'), signal)).version
  for (const name of own) {
    const need = await glibcNeed(join(stage, name), signal)
    expectOldGlibc(name, need)
    if (compareVersions(need.version, newest) > 0) newest = need.version
  }
  return newest
}

export const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)

const missing = (path: string) => environmentError('bundle.missing', `${path} is not built`, { hint: 'run heddle build' })

/** Symbols are two thirds of the Node binary and of no use to a machine that only runs models. */
export async function strip(path: string, signal: AbortSignal | undefined): Promise<void> {
  const tool = await which('strip')
  if (tool === undefined) throw environmentError('bundle.strip', 'strip was not found on PATH', { hint: 'install binutils' })
  await expectSuccess(tool, [path], signal)
}

async function addModel(model: string, stage: string): Promise<void> {
  if (!existsSync(join(model, 'config.json')))
    throw usageError('bundle.model', `${model} is not a model folder: it has no config.json`)
  await cp(model, join(stage, 'models', basename(model)), { recursive: true })
}

async function pack(folder: string, stage: string, signal: AbortSignal | undefined): Promise<string> {
  const xz = await which('xz')
  const archive = join(folder, `heddle-${platform()}-${arch()}.tar.${xz === undefined ? 'gz' : 'xz'}`)
  await archiveOf(stage, 'heddle', archive, signal)
  return archive
}

/**
 * Packs a folder into an archive, compressed as the name of the archive ends: `.xz`, else gzip.
 * @param base parent of the folder; receives the archive while it is written
 * @throws environment `bundle.tool`
 */
export async function archiveOf(base: string, name: string, archive: string, signal: AbortSignal | undefined): Promise<void> {
  const temporary = join(base, basename(archive))
  // Sorted, without owners or times: equal content packs to an equal archive.
  const stable = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', '--mtime=@0']
  const compress = archive.endsWith('.xz') ? '--use-compress-program=xz -6 -T0' : '--gzip'
  await expectSuccess('tar', [...stable, compress, '-cf', temporary, '-C', base, name], signal)
  await rename(temporary, archive).catch(() => copyFile(temporary, archive))
}

async function expectSuccess(file: string, args: readonly string[], signal: AbortSignal | undefined): Promise<void> {
  const { exitCode, stderr } = await runTool(file, args, { signal })
  if (exitCode !== 0) throw environmentError('bundle.tool', `${file} failed with ${exitCode}: ${firstLines(stderr)}`)
}
