/** A project in a folder of its own, with the ops and plans of test/projects/runtime, generated and built for the CPU device. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generate } from '../../../src/emit/generate.js'
import { writeGenerated } from '../../../src/emit/write.js'
import { readSpecsOrThrow } from '../../../src/frontend/index.js'
import { linkKernels } from '../../../src/fuse/link.js'
import { planAll } from '../../../src/fuse/plans.js'
import { buildKernels } from '../../../src/toolchain/index.js'
import { graphs, plans } from '../../projects/runtime/specs/index.js'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

export interface BuiltProject {
  readonly root: string
  remove(): Promise<void>
}

/** Compiled objects are found in the repository's cache, so that only what changed is compiled. */
export async function buildProject(): Promise<BuiltProject> {
  const root = await mkdtemp(join(tmpdir(), 'heddle-runtime-'))
  const { kernels, standard, layouts } = readSpecsOrThrow({ root: repository, specs: ['test/projects/runtime/specs'] })
  const planned = planAll(plans, graphs, [...kernels, ...standard], layouts)
  const linked = linkKernels(planned, kernels, standard, graphs)
  const generated = join(root, 'generated')
  await writeGenerated(generated, generate(linked.kernels, linked.graphs, linked.templates, undefined, linked.schedules))
  await buildKernels({ target: 'simt', root: repository, generated, outDir: join(root, '.heddle', 'simt') })
  return { root, remove: () => rm(root, { recursive: true, force: true }) }
}
