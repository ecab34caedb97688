/** `heddle pack VERB ...`: packs a bench or a check as a job that runs on a machine without ssh, Node, network and root. */
import { realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Command, type CommandUnknownOpts } from '@commander-js/extra-typings'
import { z } from 'zod'
import { provenanceOf } from '../bench/history/provenance.js'
import type { Subject } from '../bench/target/subject.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import type { GraphNode, NodeOf } from '../ir/graph.js'
import { nodesAtAnyRows } from '../ir/graph_rows.js'
import { namedFile } from '../output.js'
import { nativeFolder } from '../runtime/addon.js'
import {
  ensureNative,
  findNvcc,
  packageRoot,
  packJob,
  searchManifests,
  type Target,
  topFiles,
  which,
} from '../toolchain/index.js'
import { usualHistory } from './bench_suite.js'
import { findSubject } from './bench_target.js'
import type { CliContext } from './context.js'
import { verbOf } from './job_result.js'
import { dtypes } from './opening.js'
import { compileProgress } from './progress.js'
import { searchPath } from './search_path.js'
import { version } from './version.js'
import { vouch } from './vouch.js'

/** Options of a packed command that say what it needs. */
const schema = z.looseObject({
  device: z.string().optional(),
  dtype: z.enum(dtypes).optional(),
  plans: z.array(z.string()).optional(),
  config: z.record(z.string(), z.unknown()).optional(),
  specs: z.string().default('specs'),
})

/** Options of the command that reads the result. */
const ofReading = ['on', 'read', 'save', 'baseline', 'json', 'predicted']

interface Packed {
  readonly verb: string
  readonly operands: readonly string[]
  readonly options: z.infer<typeof schema>
}

/** Parses a command as its verb does. @throws usage `pack.verb`; errors of the parser */
async function parsed(argv: readonly string[], context: CliContext): Promise<Packed> {
  const [first, ...rest] = argv
  const verb = verbOf(argv)
  const known: Readonly<Record<string, () => Promise<CommandUnknownOpts>>> = {
    bench: async () => (await import('./bench.js')).benchCommand(() => context),
    check: async () => (await import('./check.js')).checkCommand(() => context),
  }
  const command = first === undefined || !Object.hasOwn(known, first) ? undefined : await known[first]?.()
  const nested = command?.commands.find((each) => each.name() === rest[0])
  if (command === undefined || (nested !== undefined && verb !== 'bench suite'))
    throw usageError('pack.verb', `heddle ${argv.slice(0, 2).join(' ')} cannot be packed`, {
      hint: 'pack a bench of a kernel, graph or program, a bench suite, or a check; others run in heddle bundle',
    })
  const leaf = (nested ?? command).exitOverride().configureOutput({ writeOut: context.out, writeErr: context.log })
  const { operands, unknown } = leaf.parseOptions(nested === undefined ? rest : rest.slice(1))
  if (unknown.length > 0) throw usageError('pack.verb', `heddle ${verb} has no option ${unknown[0]}`)
  const refused = ofReading.find((name) => leaf.getOptionValueSource(name) === 'cli')
  if (refused !== undefined)
    throw usageError('pack.verb', `--${refused} does not travel`, { hint: `give it with --read, where the result is read` })
  return { verb, operands, options: schema.parse(leaf.opts()) }
}

const isOp = (node: GraphNode): node is NodeOf<'op'> => node.kind === 'op'

const opsOf = ({ forms }: Subject): readonly string[] =>
  forms.flatMap((form) => {
    const graphs = 'graph' in form ? [form.graph] : Object.values(form.compiled.graphs)
    return graphs.flatMap((graph) =>
      nodesAtAnyRows(graph)
        .filter(isOp)
        .map(({ op }) => op),
    )
  })

interface Needed {
  readonly ops: ReadonlySet<string>
  readonly types: readonly string[]
}

/** Ops and storage types that a command needs. @throws usage `bench.*`, `plan.unknown`, `suite.*` for names that there are not */
async function neededBy(
  { verb, operands, options }: Packed,
  manifest: Manifest,
  own: ReadonlySet<string>,
  root: string,
): Promise<Needed> {
  const { dtype, plans, specs } = options
  const path = await searchPath(root, specs)
  if (verb === 'check') {
    const isOps = operands.length > 0 && operands.every((name) => own.has(name))
    const graphs = Object.entries(manifest.plans ?? {}).flatMap(([, planned]) => Object.values(planned))
    const ours = graphs.filter(({ name }) => path.ours.graphs.includes(name))
    const used = [...ours, ...path.ours.graphs.flatMap((name) => path.graphs[name]?.graph ?? [])]
    const all = [
      ...own,
      ...used.flatMap((graph) =>
        nodesAtAnyRows(graph)
          .filter(isOp)
          .map(({ op }) => op),
      ),
    ]
    return { ops: new Set(isOps ? operands : all), types: dtype === undefined ? dtypes : [dtype] }
  }
  if (verb === 'bench suite') {
    const { readSuites } = await import('../frontend/searched.js')
    const suites = await readSuites(root, operands[0] ?? 'bench.ts')
    const ops: string[] = []
    for (const suite of suites)
      for (const type of suite.dtypes)
        ops.push(
          ...opsOf(await findSubject(suite.subject, manifest, { plans: suite.plans, dtype: type, config: undefined }, path)),
        )
    return { ops: new Set(ops), types: suites.flatMap((suite) => suite.dtypes) }
  }
  const [name] = operands
  if (name === undefined) throw usageError('pack.verb', 'nothing to time', { hint: 'name a kernel, graph or program' })
  const subject = await findSubject(name, manifest, { plans, dtype: dtype ?? 'f32', config: options.config }, path)
  return { ops: new Set(opsOf(subject)), types: [dtype ?? 'f32'] }
}

/** @throws usage `pack.verb`, `pack.archive`; environment `toolchain.*`; errors of the verb that is packed */
export async function pack(argv: readonly string[], archive: string, context: CliContext): Promise<void> {
  const { root, signal, log } = context
  const isXz = archive.endsWith('.tar.xz')
  if (!isXz && !/\.(tar\.gz|tgz)$/.test(archive))
    throw usageError('pack.archive', `${archive} is not the name of an archive`, { hint: 'end it in .tar.xz or .tar.gz' })
  if (isXz && (await which('xz')) === undefined)
    throw usageError('pack.archive', 'xz was not found on PATH', { hint: 'end the name in .tar.gz, which needs no xz' })
  await namedFile(resolve(root, archive), 'pack.archive')
  const packed = await parsed(argv, context)
  const { specs, device } = packed.options
  await vouch(context, specs)
  const searched = await searchManifests(root)
  const { kernels } = searched.manifest
  const own = new Set(kernels.flatMap(({ key, op }) => (isOwn(searched.folderOf(key), root) ? [op] : [])))
  const { ops, types } = await neededBy(packed, searched.manifest, own, root)
  const hasNvcc = (await findNvcc()) !== undefined
  const targets = (['simt', 'cuda'] as const).filter((target): target is Target =>
    device === undefined ? target === 'simt' || hasNvcc : device.startsWith(target) && (target === 'simt' || hasNvcc),
  )
  await ensureNative({ signal, cuda: device !== 'simt' && hasNvcc, onStart: (text) => log(`${text}\n`) })
  const { filesRead } = await import('../frontend/searched.js')
  const saved = usualHistory
  const { commit } = await provenanceOf({ root, signal, version, saved, info: undefined })
  await packJob({
    ...{ root, argv, commit, targets, signal, native: nativeFolder(), archive: resolve(root, archive) },
    files: [...(filesRead(root, specs) ?? []), ...(await topFiles(root)), resolve(root, specs)],
    kernels: kernels
      .filter((entry) => ops.has(entry.op) && isNeeded(entry, kernels, types))
      .map((entry) => ({ entry, folder: searched.folderOf(entry.key) })),
    onProgress: compileProgress(context),
  })
  log(`job: ${resolve(root, archive)}; unpack it there, and ./job/run writes result.json\n`)
  if (targets.length === 0 || (device !== 'simt' && !hasNvcc))
    log('no nvcc is here: on a GPU, kernels are compiled where the job runs, by its nvcc\n')
}

const isOwn = (folder: string, root: string): boolean =>
  folder === join(root, 'generated') && realpathSync(root) !== realpathSync(packageRoot())

/** True for an instance in one of the types, and for instances of an op that has none in them. */
function isNeeded({ op, types }: Manifest['kernels'][number], all: Manifest['kernels'], wanted: readonly string[]): boolean {
  const has = (of: Readonly<Record<string, string>>): boolean => Object.values(of).some((type) => wanted.includes(type))
  return has(types) || !all.some((entry) => entry.op === op && has(entry.types))
}

export const packCommand = (context: () => CliContext) =>
  new Command('pack')
    .description('pack a bench or a check, to run on a machine without ssh, Node and network, and to read here')
    .argument('<command...>', 'bench NAME, bench suite or check, with their options')
    .allowUnknownOption()
    .requiredOption('-o, --out <file>', 'archive to write: .tar.xz, or .tar.gz for a machine without xz')
    .action((argv, { out }) => pack(argv, out, context()))
