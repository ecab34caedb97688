/** `heddle init`: creates a runnable project with an op, a graph or a model to start from. */
import { existsSync } from 'node:fs'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { Argument, Command, Option } from '@commander-js/extra-typings'
import Handlebars from 'handlebars'
import { z } from 'zod'
import { environmentError, usageError } from '../errors.js'
import { removeEmpty, removeFiles, writeWhole } from '../output.js'
import { nameIn } from '../path_names.js'
import { packageRoot, runTool } from '../toolchain/index.js'
import type { CliContext } from './context.js'

export const projectTemplates = ['op', 'graph', 'model'] as const
export type ProjectTemplate = (typeof projectTemplates)[number]

const holds: Readonly<Record<ProjectTemplate, string>> = {
  op: 'an op: a signature and a body',
  graph: 'two ops, a graph of them, and a plan that fuses it',
  model: 'an op, a layer, a program that repeats it, and a plan',
}

export interface InitOptions {
  readonly template?: ProjectTemplate | undefined
  /** True to run `npm install` in the new folder; default: true. */
  readonly install?: boolean | undefined
}

export interface InitResult {
  readonly folder: string
  /** Relative to the folder. */
  readonly files: readonly string[]
}

const manifest = z.object({ version: z.string(), devDependencies: z.record(z.string(), z.string()) })
const lock = z.object({ packages: z.record(z.string(), z.looseObject({ resolved: z.string().optional() })) })

/**
 * Writes a project into a folder that is empty or does not exist, and installs its dependencies.
 * @throws usage `init.folder` for a folder with files in it, `init.name` for a name that npm refuses; environment `cache.full` and
 * `cache.write` if nothing can be written, `init.install` if `npm install` fails: the project's files are then removed
 */
export async function init(
  folder: string,
  { template = 'op', install = true }: InitOptions,
  context: Pick<CliContext, 'root' | 'signal' | 'log'>,
): Promise<InitResult> {
  const target = resolve(context.root, folder)
  const name = basename(target)
  if (!/^[a-z0-9][a-z0-9._-]{0,213}$/.test(name)) {
    throw usageError('init.name', `${JSON.stringify(name)} is not a valid package name`, {
      hint: 'use lower-case letters, digits and hyphens, as in my-kernels',
    })
  }
  const there = await stat(target).catch(() => undefined)
  if (there !== undefined && (!there.isDirectory() || (await readdir(target)).length > 0)) {
    const problem = there.isDirectory() ? 'is not empty' : 'is not a folder'
    throw usageError('init.folder', `${target} ${problem}`, { hint: 'name a new folder' })
  }
  const files: string[] = []
  try {
    await fill(target, template, { name, holds: holds[template], ...(await versions()) }, files)
    if (install) await installInto(target, context)
    context.log(`init: ${target}, ${files.length} files. Next: cd ${relative(context.root, target) || '.'} && npm test\n`)
    return { folder: target, files }
  } catch (error) {
    // Removes only files written here. Errors of the removal are ignored in favour of the original one.
    await removeFiles(target, [...files, 'package-lock.json']).catch(() => undefined)
    await rm(join(target, 'node_modules'), { recursive: true, force: true }).catch(() => undefined)
    if (there === undefined) await removeEmpty(target)
    throw error
  }
}

/** Writes the files of a template. @param written receives their names, sorted at the end */
async function fill(
  target: string,
  template: ProjectTemplate,
  values: Readonly<Record<string, string>>,
  written: string[],
): Promise<void> {
  for (const part of ['common', template]) {
    const source = join(packageRoot(), 'templates', 'init', part)
    for (const entry of await readdir(source, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      // npm packs no file called .gitignore.
      const name = nameIn(source, path)
        .replace(/\.hbs$/, '')
        .replace(/^gitignore$/, '.gitignore')
      const out = join(target, name)
      const text = Handlebars.compile(await readFile(path, 'utf8'), { noEscape: true, strict: true })(values)
      written.push(name)
      await writeWhole(out, text)
    }
  }
  written.sort()
}

/** Dependencies of the new project: this heddle, from its own source, and the tools that heddle is tested with. */
async function versions(): Promise<Readonly<Record<'heddle' | 'typescript' | 'nodeTypes', string>>> {
  const { version, devDependencies } = manifest.parse(JSON.parse(await readFile(join(packageRoot(), 'package.json'), 'utf8')))
  const { typescript = 'latest', '@types/node': nodeTypes = 'latest' } = devDependencies
  return { heddle: await sourceOf(packageRoot(), version), typescript, nodeTypes }
}

/** Dependency specifier of an installed heddle: its version, or the archive or folder that it was installed from. */
async function sourceOf(root: string, version: string): Promise<string> {
  const modules = dirname(root)
  if (basename(modules) !== 'node_modules') return `file:${root}`
  const path = join(modules, '.package-lock.json')
  const parsed = existsSync(path) ? lock.safeParse(JSON.parse(await readFile(path, 'utf8'))) : undefined
  const resolved = parsed?.data?.packages['node_modules/heddle']?.resolved
  return resolved?.startsWith('file:') ? `file:${resolve(dirname(modules), resolved.slice('file:'.length))}` : `^${version}`
}

async function installInto(target: string, { signal, log }: Pick<CliContext, 'signal' | 'log'>): Promise<void> {
  log('init: npm install\n')
  const args = ['install', '--no-audit', '--no-fund', '--prefer-offline']
  const { exitCode, stderr } = await runTool('npm', args, { cwd: target, signal })
  if (exitCode === 0) return
  throw environmentError('init.install', `npm install failed: ${stderr.trim().split('\n').slice(0, 5).join('\n')}`, {
    hint: 'skip it with heddle init --no-install',
  })
}

export const initCommand = (context: () => CliContext) =>
  new Command('init')
    .description('start a project: kernels of your own, a check, and a call')
    .addArgument(new Argument('<folder>', 'a new folder, which also names the package'))
    .addOption(new Option('--template <what>', 'template of the project').choices(projectTemplates).default('op' as const))
    .option('--no-install', 'do not run npm install')
    .action(async (folder, { template, install }) => {
      await init(folder, { template, install }, context())
    })
