/** `heddle repro KERNEL`: one case of a kernel as a folder that builds and runs without heddle, and shows what `check` found. */
import { Command, Option } from '@commander-js/extra-typings'
import { environmentError } from '../errors.js'
import { type ReproResult, writeRepro } from '../export/repro.js'
import { installation } from '../toolchain/index.js'
import { type CheckedOptions, checkSetup } from './check_setup.js'
import { type CliContext, json } from './context.js'
import { deviceOption, dtypes } from './pipeline.js'
import { version } from './version.js'

export interface ReproVerbOptions extends CheckedOptions {
  readonly case?: string | undefined
  readonly out?: string | undefined
}

/** @throws what `writeRepro` throws; environment `portable.repro` */
export async function repro(kernel: string, options: ReproVerbOptions, context: CliContext): Promise<ReproResult> {
  if (installation(context.root).portable)
    throw environmentError('portable.repro', 'the portable bundle has no specs to compile', { hint: 'use the npm package' })
  const { case: test, out } = options
  return writeRepro({ ...(await checkSetup(options, context)), kernel, test, out, version })
}

const describe = ({ out, folder, name, passed, detail, commands }: ReproResult): string =>
  [
    `${passed ? 'ok  ' : 'FAIL'} ${name}: ${detail}`,
    `${out}: the kernel, its inputs and what its body gives. It needs no heddle:`,
    folder === out ? `  cd ${out}` : `  tar xzf ${out} && cd ${folder}`,
    ...commands.simt.map((command) => `  ${command}`),
    'README.md there says what it takes on a GPU',
    '',
  ].join('\n')

export const reproCommand = (context: () => CliContext) =>
  new Command('repro')
    .description('write one case of a kernel as a folder that builds and runs without heddle')
    .argument('<kernel>', 'an op of the project, or a kernel that a plan derives')
    .option('--case <name>', 'as check prints it, or a key such as rms_norm__f32; the first that fails, else the largest')
    .addOption(
      new Option('--dtype <dtype>', 'storage type; by default the first of f32, f16 and bf16 that it has').choices(dtypes),
    )
    .addOption(deviceOption())
    .option('--out <dir>', 'the folder to write, or the file where it ends in .tar.gz; by default repro- and the key')
    .option('--generated', 'take the text that lies in generated/, as it is there, whoever wrote it')
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--json', 'print what was written as JSON')
    .action(async (kernel, options) => {
      const result = await repro(kernel, options, context())
      context().out(options.json ? json(result) : describe(result))
    })
