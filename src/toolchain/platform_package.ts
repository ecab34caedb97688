/**
 * The platform package, such as `@heddle/linux-x64-gnu`: an optional dependency with the addon, the CPU device and kernels of shipped ops, built
 * for one kind of machine. It is resolved from heddle's own folder, never from a project, and used if its version is heddle's.
 */
import { existsSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { fileDigest } from './hash.js'
import { nativePlace, packageRoot, type Target } from './paths.js'
import { readBuildReport } from './report.js'

/** Name of the package for a machine: system, processor and C library. */
export const platformName = (system: string = process.platform, processor: string = process.arch): string =>
  `@heddle/${system}-${processor}${system === 'linux' ? '-gnu' : ''}`

/** True if this machine has a CUDA device: the driver's device file, or on WSL2 that of its host. */
export const hasCudaDevice = (): boolean => ['/dev/nvidiactl', '/dev/dxg'].some((path) => existsSync(path))

const versioned = z.object({ version: z.string() })

export const versionIn = (folder: string): string =>
  versioned.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).version

/** Folder of the platform package for this machine and this version of heddle; undefined if it is not installed. */
export function platformFolder(): string | undefined {
  const root = packageRoot()
  try {
    const found = dirname(createRequire(join(root, 'package.json')).resolve(`${platformName()}/package.json`))
    return versionIn(found) === versionIn(root) ? found : undefined
  } catch {
    return undefined
  }
}

/**
 * Folder of the addon and the device plugins: that of the platform package on a machine without a CUDA device, whose plugin has to be built, else
 * that of the build in the user's cache.
 * @throws environment `cache.foreign`
 */
export const nativeHome = (): string => (hasCudaDevice() ? undefined : platformFolder()) ?? nativePlace().release

interface Placed {
  readonly entry: { readonly key: string; readonly digest: string }
  readonly folder: string
}

/** Library of the platform package with these kernels; undefined unless it has all of them, made from the same source. */
export async function platformLibrary(target: Target, kernels: readonly Placed[]): Promise<string | undefined> {
  const folder = platformFolder()
  if (folder === undefined || kernels.some((kernel) => kernel.folder !== join(packageRoot(), 'generated'))) return undefined
  const report = await readBuildReport(join(folder, target, 'build.json')).catch(() => undefined)
  const digests = new Map(report?.digests?.map(({ key, digest }) => [key, digest]))
  if (!kernels.every(({ entry }) => digests.get(entry.key) === entry.digest)) return undefined
  const library = join(folder, target, 'libheddle_kernels.so')
  return (await fileDigest(library)) === report?.library.digest ? library : undefined
}

/**
 * `package.json` of a platform package. npm grants provenance only to a package that names the repository of the workflow, so that heddle's own
 * `repository` is copied.
 */
export async function platformManifest(root: string = packageRoot()): Promise<string> {
  const { license, version, publishConfig, repository } = z
    .object({
      license: z.string(),
      version: z.string(),
      publishConfig: z.unknown().optional(),
      repository: z.unknown().optional(),
    })
    .parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')))
  const made = {
    name: platformName(),
    version,
    description: 'The addon, the CPU device and compiled kernels of heddle for one kind of machine. Install heddle instead.',
    license,
    os: [process.platform],
    cpu: [process.arch],
    ...(process.platform === 'linux' ? { libc: ['glibc'] } : {}),
    publishConfig,
    repository,
  }
  return `${JSON.stringify(made, null, 2)}\n`
}
