/** A project in a separate folder, with the ops and plans of one in test/projects, generated. Its kernels are compiled when they are called. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generate } from '../../../src/emit/generate.js'
import { writeGenerated } from '../../../src/emit/write.js'
import { readDeclarations, readSpecsOrThrow } from '../../../src/frontend/index.js'
import { linkKernels } from '../../../src/search/link.js'
import { planAll } from '../../../src/search/plans.js'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

export interface GeneratedProject {
  readonly root: string
  remove(): Promise<void>
}

/** @param name of a folder in test/projects */
export async function generateProject(name = 'runtime'): Promise<GeneratedProject> {
  const root = await mkdtemp(join(tmpdir(), 'heddle-runtime-'))
  const specs = `test/projects/${name}/specs`
  const { kernels, standard, layouts } = readSpecsOrThrow({ root: repository, specs: [specs] })
  const { graphs, plans } = await readDeclarations(repository, specs)
  const planned = planAll(plans, graphs, [...kernels, ...standard], layouts)
  const linked = linkKernels(planned, kernels, standard, graphs)
  await writeGenerated(
    join(root, 'generated'),
    generate(linked.kernels, linked.graphs, linked.templates, undefined, linked.schedules),
  )
  return { root, remove: () => rm(root, { recursive: true, force: true }) }
}
