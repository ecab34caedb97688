/**
 * Packs a job: Node, the package of heddle with the packages that it imports, the addon and the device plugins, a project with its generated
 * source, and libraries of the kernels that the command needs. `heddle pack` calls it.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { chmod, copyFile, cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { z } from 'zod'
import { environmentError } from '../errors.js'
import { isWithin, nameIn } from '../path_names.js'
import { archiveOf, strip } from './bundle.js'
import { writeWork } from './bundle_kernels.js'
import type { PlacedKernel } from './demand.js'
import { hashTree } from './hash.js'
import { type Job, jobFile } from './job.js'
import { buildKernels } from './kernels.js'
import type { BuildProgress } from './objects.js'
import { outputs, packageRoot, type Target } from './paths.js'
import { readBuildReport } from './report.js'

export interface JobOptions {
  readonly root: string
  readonly argv: readonly string[]
  readonly commit: Job['commit']
  /** Folder with the addon and the plugins. */
  readonly native: string
  /** Files of the project to pack, besides its generated source. Those of packages bring their package. */
  readonly files: readonly string[]
  readonly kernels: readonly PlacedKernel[]
  readonly targets: readonly Target[]
  /** Path of the archive. */
  readonly archive: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
}

/** Starts the job. Its cache is its own, so that removing the folder removes everything. */
const launcher = `#!/bin/sh
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 3
[ "$(uname -s) $(uname -m)" = "Linux x86_64" ] || { echo "error: this job runs on Linux x86_64, here is $(uname -s) $(uname -m)" >&2; exit 3; }
said=$("$here/node" --version 2>&1) || { echo "error: the Node of this job does not run here: $said" >&2; exit 3; }
HEDDLE_CACHE="\${HEDDLE_CACHE:-$here/cache}" HEDDLE_NATIVE="$here/native" exec "$here/node" "$here/heddle/dist/job.js" "$here" "$@"
`

/** Parts of the package that run commands and compile kernels. */
const packaged = ['package.json', 'LICENSE', 'dist', 'specs', 'src/std', 'generated', 'templates', 'native']

/** Parts of these that no job uses. */
const unused =
  /(^|\/)(native\/build|native\/node_modules|dist\/(portable.*|explorer.*|typescript-plugin\.cjs)|dist\/types\/(test|src\/cli))(\/|$)/

/** Dependencies that are a part of `dist`. */
const bundled = ['execa', 'zod', 'handlebars']

/** Writes the archive. @throws environment `bundle.tool`, `bundle.strip`; errors of `buildKernels` */
export async function packJob(options: JobOptions): Promise<void> {
  const { root, argv, commit, archive, signal } = options
  const temporary = await mkdtemp(join(tmpdir(), 'heddle-job-'))
  try {
    const stage = join(temporary, 'job')
    const project = realpathSync(root) === realpathSync(packageRoot()) ? 'heddle' : 'project'
    await putPackage(join(stage, 'heddle'))
    await putNative(stage, options)
    if (project === 'project') await putProject(join(stage, project), options)
    for (const target of options.targets)
      await putKernels(target, join(stage, project), join(temporary, `text-${target}`), options)
    const job: Job = { version: 1, argv: [...argv], project, ...(commit && { commit }), files: await hashTree(stage) }
    if (project === 'project') await symlink(join('..', '..', 'heddle'), join(stage, project, 'node_modules', 'heddle'))
    await writeFile(join(stage, jobFile), `${JSON.stringify(job)}\n`)
    await writeFile(join(stage, 'run'), launcher)
    await Promise.all(['run', 'node'].map((name) => chmod(join(stage, name), 0o755)))
    await archiveOf(temporary, 'job', archive, signal)
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

async function putNative(stage: string, { native, signal }: JobOptions): Promise<void> {
  await copyFile(process.execPath, join(stage, 'node'))
  await strip(join(stage, 'node'), signal)
  await mkdir(join(stage, 'native'))
  for (const name of ['heddle.node', 'libheddle_simt.so', 'libheddle_cuda.so'])
    if (existsSync(join(native, name))) await copyFile(join(native, name), join(stage, 'native', name))
}

const manifest = z.object({ dependencies: z.record(z.string(), z.string()).default({}) })

const dependenciesOf = (folder: string): readonly string[] =>
  Object.keys(manifest.parse(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).dependencies)

/** Folder of a package as Node resolves it. @throws environment `bundle.missing` */
function packageSeenFrom(folder: string, name: string): string {
  for (let above = folder; ; above = dirname(above)) {
    const path = join(above, 'node_modules', name)
    if (existsSync(path)) return realpathSync(path)
    if (above === dirname(above))
      throw environmentError('bundle.missing', `${name}, which heddle imports, is not installed`, { hint: 'run npm install' })
  }
}

/** Copies heddle, and the packages that it imports: side by side, a second version of one below the package that imports it. */
async function putPackage(to: string): Promise<void> {
  const root = packageRoot()
  for (const name of packaged) {
    if (!existsSync(join(root, name))) continue
    await cp(join(root, name), join(to, name), { recursive: true, filter: (path) => !unused.test(nameIn(root, path)) })
  }
  const placed = new Map<string, string>()
  const put = async (from: string, name: string, owner: string): Promise<void> => {
    const folder = packageSeenFrom(from, name)
    const isFirst = !placed.has(name)
    if (placed.get(name) === folder) return
    if (isFirst) placed.set(name, folder)
    const place = join(isFirst ? to : owner, 'node_modules', name)
    if (existsSync(place)) return
    await cp(folder, place, {
      recursive: true,
      filter: (path) => !relative(folder, path).split(/[/\\]/).includes('node_modules'),
    })
    for (const each of dependenciesOf(folder)) await put(folder, each, place)
  }
  for (const name of dependenciesOf(root)) if (!bundled.includes(name)) await put(root, name, to)
}

/** Copies what the command reads of a project. */
async function putProject(to: string, { root, files }: JobOptions): Promise<void> {
  const base = realpathSync(root)
  const [own, packages] = [new Set([join(base, 'generated')]), new Set<string>()]
  for (const path of files.filter((each) => existsSync(each) && isWithin(base, each))) {
    const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(nameIn(base, path)) ?? []
    if (name === undefined) own.add(path)
    else packages.add(name)
  }
  packages.delete('heddle')
  await mkdir(join(to, 'node_modules'), { recursive: true })
  for (const path of [...own, ...[...packages].map((name) => join(base, 'node_modules', name))])
    await cp(path, join(to, relative(base, path)), { recursive: true, dereference: true })
}

/** Builds a library where a build of the project puts it. */
async function putKernels(target: Target, project: string, work: string, options: JobOptions): Promise<void> {
  const { kernels, signal, onProgress } = options
  if (kernels.length === 0) return
  await writeWork(work, kernels)
  const outDir = outputs(project).target(target)
  await mkdir(outDir, { recursive: true })
  await buildKernels({ target, root: project, generated: work, outDir, signal, ...(onProgress && { onProgress }) })
  await rm(join(outDir, 'compile_commands.json'), { force: true })
  const path = outputs(project).report(target)
  await writeFile(path, `${JSON.stringify({ ...(await readBuildReport(path)), travels: true })}\n`)
}

/** Files of a project's own folder that configure it, or that a suite may import. */
export async function topFiles(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { withFileTypes: true })
  const wanted = entries.filter(
    (entry) => entry.isFile() && /\.(ts|json)$/.test(entry.name) && entry.name !== 'package-lock.json',
  )
  return wanted.map(({ name }) => resolve(root, basename(name)))
}
