/**
 * Packages to publish: the platform package of this machine, and heddle with it as an optional dependency. Neither has an install script.
 * `heddle bundle --npm DIR` writes both.
 */
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { extract } from 'tar'
import { environmentError } from '../errors.js'
import { expectEmpty } from '../output.js'
import { writeWork } from './bundle_kernels.js'
import type { PlacedKernel } from './demand.js'
import { expectOldGlibc, glibcNeed } from './glibc.js'
import { buildKernels } from './kernels.js'
import { buildNative } from './native.js'
import { packageRoot } from './paths.js'
import { platformManifest, platformName, versionIn } from './platform_package.js'
import { firstLines, runTool } from './process.js'

export interface Packages {
  /** Folder of the platform package. */
  readonly platform: string
  /** Folder of heddle; undefined if it was not asked for. */
  readonly heddle?: string | undefined
}

export interface PackOptions {
  /** Receives a folder per package; has to be new or empty. */
  readonly out: string
  /** Shipped kernels to compile for the CPU device. */
  readonly kernels: readonly PlacedKernel[]
  /** Writes the package of heddle, too. */
  readonly whole: boolean
  readonly signal?: AbortSignal | undefined
}

/** @throws usage `output.folder`; environment `bundle.tool`; finding `bundle.glibc`; errors of `buildNative` and `buildKernels` */
export async function writePackages({ out, kernels, whole, signal }: PackOptions): Promise<Packages> {
  await expectEmpty(out)
  const platform = join(out, basename(platformName()))
  await mkdir(platform, { recursive: true })
  const { folder } = await buildNative({ signal, cuda: false })
  const files = ['heddle.node', 'libheddle_simt.so']
  for (const name of files) await copyFile(join(folder, name), join(platform, name))
  if (kernels.length > 0) {
    files.push(join('simt', 'libheddle_kernels.so'))
    await writeKernels(join(platform, 'simt'), kernels, signal)
  }
  for (const name of files) expectOldGlibc(name, await glibcNeed(join(platform, name), signal))
  await copyFile(join(packageRoot(), 'LICENSE'), join(platform, 'LICENSE'))
  await writeFile(join(platform, 'package.json'), await platformManifest())
  return whole ? { platform, heddle: await writeHeddle(join(out, 'heddle'), signal) } : { platform }
}

async function writeKernels(outDir: string, kernels: readonly PlacedKernel[], signal: AbortSignal | undefined): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), 'heddle-platform-'))
  try {
    await writeWork(work, kernels)
    await mkdir(outDir, { recursive: true })
    await buildKernels({ target: 'simt', root: packageRoot(), generated: work, outDir, signal })
    await rm(join(outDir, 'compile_commands.json'), { force: true })
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Unpacks what `npm pack` makes of heddle, and adds the optional dependency, which the repository lacks until it is published. */
async function writeHeddle(folder: string, signal: AbortSignal | undefined): Promise<string> {
  await mkdir(folder, { recursive: true })
  const args = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder]
  const { exitCode, stderr } = await runTool('npm', args, { cwd: packageRoot(), signal })
  if (exitCode !== 0) throw environmentError('bundle.tool', `npm pack failed with ${exitCode}: ${firstLines(stderr)}`)
  const [archive = ''] = await readdir(folder)
  await extract({ file: join(folder, archive), cwd: folder, strip: 1 })
  await rm(join(folder, archive))
  const path = join(folder, 'package.json')
  const made = JSON.parse(await readFile(path, 'utf8'))
  const optionalDependencies = { [platformName()]: versionIn(packageRoot()) }
  await writeFile(path, `${JSON.stringify({ ...made, optionalDependencies }, null, 2)}\n`)
  return folder
}
