/**
 * One generated project and one device for all requests: the kernels of several folders of test/projects, in float32, and the graphs that the
 * families run. A kernel is compiled at its first call, without optimisation: each runs a few times on few elements.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generate } from '../../../src/emit/generate.js'
import { writeGenerated } from '../../../src/emit/write.js'
import { readDeclarations, readSpecsOrThrow } from '../../../src/frontend/index.js'
import type { DType } from '../../../src/ir/dtype.js'
import { DeviceCore } from '../../../src/runtime/api/core.js'
import { deviceOf } from '../../../src/runtime/api/device.js'
import type { Device } from '../../../src/runtime/api/index.js'
import { demandedKernels } from '../../../src/runtime/demand.js'
import { openDevice } from '../../../src/runtime/device.js'
import { prepareNative } from '../../../src/runtime/open.js'
import { linkKernels } from '../../../src/search/link.js'
import { planAll } from '../../../src/search/plans.js'
import { buildNative, searchManifests } from '../../../src/toolchain/index.js'

const repository = fileURLToPath(new URL('../../..', import.meta.url))
const folders = ['asked', 'recipes', 'workshop', 'types', 'attention'].map((name) => `test/projects/${name}/specs`)

const inFloat32 = <K extends { readonly types: Readonly<Record<string, readonly DType[]>> }>(kernel: K): K => ({
  ...kernel,
  types: Object.fromEntries(Object.entries(kernel.types).map(([name, types]) => [name, types.filter((each) => each === 'f32')])),
})

/** @param graphNames graphs whose plans are applied; other graphs have no kernels */
export async function openAsked(graphNames: readonly string[]): Promise<{ readonly device: Device; close(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'heddle-asked-'))
  const { kernels, standard, layouts } = readSpecsOrThrow({ root: repository, specs: folders })
  const declared = await Promise.all(folders.map((folder) => readDeclarations(repository, folder)))
  const graphs = Object.fromEntries(
    declared.flatMap((each) => Object.entries(each.graphs)).filter(([, decl]) => graphNames.includes(decl.name)),
  )
  const plans = declared.flatMap((each) => each.plans).filter((plan) => graphNames.includes(plan.graph))
  const planned = planAll(plans, graphs, [...kernels, ...standard], layouts)
  const linked = linkKernels(planned, kernels, standard, graphs)
  const own = join(root, 'generated')
  await writeGenerated(
    own,
    generate(linked.kernels.map(inFloat32), linked.graphs, linked.templates.map(inFloat32), undefined, linked.schedules),
  )
  process.env.HEDDLE_NATIVE ??= (await buildNative()).folder
  await prepareNative('simt', { root })
  const native = openDevice('simt')
  const core = new DeviceCore(native, async (device) => {
    const searched = await searchManifests(root)
    const demanded = demandedKernels(device, searched, { root, optimise: '-O0' })
    return { manifest: searched.manifest, kernels: demanded }
  })
  const device = deviceOf(native, root, [], core)
  return {
    device,
    close: async () => {
      await device.close()
      await rm(root, { recursive: true, force: true })
    },
  }
}
