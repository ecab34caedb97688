/** `heddle bundle`: packs built files into one archive that runs on a machine with nothing installed. */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import type { FloatType } from '../checkpoint/convert.js'
import {
  type BundleResult,
  bundledKernels,
  installation,
  makeBundle,
  mebibytes,
  type Packages,
  packageRoot,
  searchManifests,
  targets,
  writePackages,
} from '../toolchain/index.js'
import { expectExports } from '../verify/exports.js'
import { type CliContext, json } from './context.js'
import { dtypes } from './pipeline.js'
import { keysOfModel } from './selection.js'

export interface BundleOptions {
  readonly model?: readonly string[] | undefined
  /** Exports for PyTorch to add, written by test/peers/make_exports.ts. */
  readonly exports?: string | undefined
  /** Plan whose kernels for the models are packed, in a project with its own kernels. */
  readonly plan?: string | undefined
  readonly dtype?: FloatType | undefined
}

export async function bundle(options: BundleOptions, context: CliContext): Promise<BundleResult> {
  const { root, signal } = context
  const kernels = await kernelsOf(options, context)
  if (options.exports !== undefined) await expectExports(resolve(root, options.exports))
  const result = await makeBundle({ root, signal, models: options.model ?? [], exports: options.exports, kernels })
  const { archive, bytes, targets: packed, glibc } = result
  context.log(`bundle: ${archive}, ${mebibytes(bytes)} MiB, kernels for ${packed.join(' and ')}, glibc ${glibc} or later\n`)
  return result
}

/** Shipped kernels that a project with its own kernels uses in its graphs, its plans and the packed models. */
async function kernelsOf({ model = [], plan, dtype }: BundleOptions, { root, signal }: CliContext) {
  const { generated, library } = installation(root)
  const [own] = generated
  if (own === undefined || own === join(packageRoot(), 'generated') || !existsSync(join(own, 'manifest.json'))) return undefined
  const { readDeclarations } = await import('../frontend/index.js')
  const { graphs, applied } = await readDeclarations(root)
  const nodes = [...Object.values(graphs), ...applied].flatMap(({ graph }) => graph.nodes)
  const searched = await searchManifests(root)
  const keys = new Set<string>()
  for (const target of targets.filter((each) => existsSync(library(each)))) {
    for (const folder of model)
      for (const key of await keysOfModel(folder, { plan, dtype }, searched, { root, target, signal })) keys.add(key)
  }
  return bundledKernels(root, { ops: nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : [])), keys })
}

/**
 * Writes the packages to publish: heddle, and the platform package of this machine with the shipped kernels that models need.
 * @throws errors of `writePackages` and of the models' loaders
 */
export async function bundlePackages(
  out: string,
  { model = [], plan, dtype }: Pick<BundleOptions, 'model' | 'plan' | 'dtype'>,
  { root, signal, log }: CliContext,
): Promise<Packages> {
  const searched = await searchManifests(packageRoot())
  const keys = new Set<string>()
  for (const folder of model) {
    const of = { root: packageRoot(), target: 'simt', signal } as const
    for (const key of await keysOfModel(resolve(root, folder), { plan, dtype }, searched, of)) keys.add(key)
  }
  const kernels = searched.manifest.kernels
    .filter(({ key }) => keys.has(key))
    .map((entry) => ({ entry, folder: searched.folderOf(entry.key) }))
  const packages = await writePackages({ out: resolve(root, out), kernels, whole: true, signal })
  log(`bundle: ${Object.values(packages).join(', ')}, ${kernels.length} kernels\n`)
  return packages
}

export const bundleCommand = (context: () => CliContext) =>
  new Command('bundle')
    .description('pack a portable archive: Node, the command, the addon and the kernels')
    .option('--model <dirs...>', 'model folders to add')
    .option('--exports <dir>', 'exports to add, which selftest runs where PyTorch is installed')
    .option('--plan <name>', 'in a project with its own kernels: the fusion plan of its models')
    .addOption(new Option('--dtype <dtype>', 'in such a project: storage type of its models').choices(dtypes))
    .option(
      '--npm <dir>',
      'write packages for npm instead: heddle, and its addon, CPU device and kernels for this kind of machine',
    )
    .option('--json', 'print the result as JSON')
    .action(async (options) => {
      const { npm } = options
      const result = npm === undefined ? await bundle(options, context()) : await bundlePackages(npm, options, context())
      if (options.json) context().out(json(result))
    })
