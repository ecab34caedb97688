/**
 * The parts of heddle that the fuzzer uses: the command that generates, and a device with all kernels of a project. Kernels are compiled as one, without
 * optimisation for the CPU device, since each runs on few elements. The only file here that runs code of src.
 */
import { main } from '../../src/cli/main.js'
import { DeviceCore } from '../../src/runtime/api/core.js'
import { deviceOf } from '../../src/runtime/api/device.js'
import type { Device } from '../../src/runtime/api/index.js'
import { architectureOf, openDevice } from '../../src/runtime/device.js'
import { loadedKernels } from '../../src/runtime/library.js'
import { prepareNative } from '../../src/runtime/open.js'
import { architectureOn, demandKernels, generatedFolder, readManifestOf, searchManifests } from '../../src/toolchain/index.js'

export type DeviceKind = 'simt' | 'cuda'

/** Runs a command, and returns its output and exit code. */
export async function heddle(
  root: string,
  ...argv: string[]
): Promise<{ readonly code: number; readonly out: string; readonly log: string }> {
  const [out, log]: [string[], string[]] = [[], []]
  const code = await main(argv, { root, out: (text) => void out.push(text), log: (text) => void log.push(text) })
  process.exitCode = undefined
  return { code, out: out.join(''), log: log.join('') }
}

/** Opens a device with every kernel that the project has generated. @throws finding `build.compile`, `build.spill` naming kernels */
export async function openProject(root: string, kind: DeviceKind): Promise<Device> {
  const folder = generatedFolder(root)
  const { kernels } = await readManifestOf(folder)
  await prepareNative(kind, { root })
  const native = openDevice(kind)
  try {
    const architecture = kind === 'cuda' ? architectureOn(architectureOf(native.info()).replace(/\D/g, '')) : undefined
    const placed = kernels.map((entry) => ({ entry, folder }))
    const { library } = await demandKernels(placed, { root, target: kind, architecture, optimise: '-O0' })
    const loaded = loadedKernels(native.loadLibrary(library))
    return deviceOf(
      native,
      root,
      [],
      new DeviceCore(native, async () => ({ manifest: (await searchManifests(root)).manifest, kernels: loaded })),
    )
  } catch (error) {
    native.close()
    throw error
  }
}
