/** User sources: generated from the projects of test/projects and test/examples, to be compiled by nvcc. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { generate } from '../../src/emit/generate.js'
import { writeGenerated } from '../../src/emit/write.js'
import { readSources } from '../../src/toolchain/kernels.js'
import type { SourceFile } from '../../src/toolchain/sources.js'
import { readKernels } from '../../src/verify/check/specs.js'

export const repository = fileURLToPath(new URL('../..', import.meta.url))

/** Projects by their folder. */
export const projects: readonly string[] = ['test/projects', 'test/examples'].flatMap((parent) =>
  readdirSync(join(repository, parent))
    .map((name) => `${parent}/${name}`)
    .filter((folder) => existsSync(join(repository, folder, 'specs/index.ts')) || hasSpecs(folder))
    .sort(),
)

function hasSpecs(folder: string): boolean {
  const specs = join(repository, folder, 'specs')
  return existsSync(specs) && readdirSync(specs).some((file) => file.endsWith('.ts'))
}

/** Generates a project's sources into a folder, in every storage type. */
export async function sourcesOf(project: string, out: string): Promise<readonly SourceFile[]> {
  const { kernels, graphs, templates, schedules } = await readKernels(repository, `${project}/specs`)
  await writeGenerated(out, generate(kernels, graphs, templates, undefined, schedules))
  const { files } = await readSources(out)
  return files.filter(({ op }) => op !== undefined)
}

/** A number that this commit's files draw, and others draw differently; below `count`. */
function drawn(what: string, count: number): number {
  const tree = execFileSync('git', ['rev-parse', 'HEAD^{tree}'], { cwd: repository, encoding: 'utf8' }).trim()
  const digest = createHash('sha256').update(`${tree} ${what}`).digest('hex')
  return Number.parseInt(digest.slice(0, 8), 16) % count
}

/** A sample of a list, drawn by the commit. Entries are evenly spaced, since adjacent ones are storage types of one op. */
export function sampleOf<T>(what: string, all: readonly T[], most: number): readonly T[] {
  const step = Math.max(1, Math.floor(all.length / most))
  const first = drawn(what, all.length)
  return Array.from({ length: Math.min(most, all.length) }, (_, at) => all[(first + at * step) % all.length]).filter(
    (each): each is T => each !== undefined,
  )
}
