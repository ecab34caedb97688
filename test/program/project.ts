/** The project of `test/projects/program` compiled for the CPU device, and its program's meaning: the composition of its bodies. */
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generate, writeGenerated } from '../../src/emit/index.js'
import { type Manifest, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { readDeclarations, readSpecsOrThrow } from '../../src/frontend/index.js'
import { runOp } from '../../src/lang/run.js'
import { type Device, openDevice } from '../../src/runtime/device.js'
import { type KernelSource, loadKernels } from '../../src/runtime/library.js'
import { linkKernels } from '../../src/search/link.js'
import { planAll } from '../../src/search/plans.js'
import { buildKernels, buildNative } from '../../src/toolchain/index.js'
import { join as joinOp, mix } from '../projects/program/specs/ops.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const specs = 'test/projects/program/specs'

export interface OpenedProject {
  readonly folder: string
  readonly device: Device
  readonly library: KernelSource
  readonly manifest: Manifest
}

/** Generates and builds the project. Close the device and remove the folder when done. */
export async function openProject(): Promise<OpenedProject> {
  const { kernels, standard, layouts } = readSpecsOrThrow({ root: process.cwd(), specs: [specs] })
  const { graphs, plans } = await readDeclarations(process.cwd(), specs)
  const linked = linkKernels(planAll(plans, graphs, [...kernels, ...standard], layouts), kernels, standard, graphs)
  const files = generate(linked.kernels, linked.graphs, linked.templates, undefined, linked.schedules)
  const folder = await mkdtemp(join(tmpdir(), 'heddle-program-'))
  await writeGenerated(folder, files)
  process.env.HEDDLE_NATIVE ??= (await buildNative()).folder
  // Most of the time would go into the compiler.
  const built = await buildKernels({ target: 'simt', root, generated: folder, outDir: join(folder, 'out'), optimise: '-O0' })
  const manifest = manifestSchema.parse(JSON.parse(files.get('manifest.json') ?? ''))
  const device = openDevice('simt')
  return { folder, device, library: loadKernels(device, built.library, manifest), manifest }
}

type Numbers = ArrayLike<number>

/** One layer by its bodies, over rows of `n`. */
export function layerOf(x: Numbers, weight: Numbers, bias: Numbers, n: number): Numbers {
  const rows = x.length / n
  const product = Float64Array.from({ length: x.length }, (_, at) => {
    const [m, c] = [Math.floor(at / n), at % n]
    let total = 0
    for (let k = 0; k < n; k++) total += (x[m * n + k] ?? 0) * (weight[c * n + k] ?? 0)
    return total
  })
  const shape = [rows, n]
  const made = runOp(mix, { x: { data: x, shape }, product: { data: product, shape }, bias: { data: bias, shape: [n] } })
  return made.y?.data ?? []
}

export const sumOf = (x: Numbers, y: Numbers, n: number): Numbers => {
  const shape = [x.length / n, n]
  return runOp(joinOp, { x: { data: x, shape }, y: { data: y, shape } }).z?.data ?? []
}
