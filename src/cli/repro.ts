/** `heddle repro KERNEL`: writes one case of a kernel as a folder that builds and runs without heddle, and reproduces a result of `check`. */
import { Command, Option } from '@commander-js/extra-typings'
import { environmentError } from '../errors.js'
import { type ReproResult, writeRepro } from '../export/repro.js'
import { installation } from '../toolchain/index.js'
import { type CheckedOptions, checkSetup } from './check_setup.js'
import { type CliContext, json } from './context.js'
import { compiledDeviceOption, dtypes, onOption } from './pipeline.js'
import { version } from './version.js'

export interface ReproVerbOptions extends CheckedOptions {
  readonly case?: string | undefined
  readonly out?: string | undefined
}

/** @throws errors of `writeRepro`; environment `portable.repro` */
export async function repro(kernel: string, options: ReproVerbOptions, context: CliContext): Promise<ReproResult> {
  if (installation(context.root).portable)
    throw environmentError('portable.repro', 'the portable bundle has no specs to compile', { hint: 'use the npm package' })
  const { case: test, out } = options
  return writeRepro({ ...(await checkSetup(options, context, 'repro')), kernel, test, out, version })
}

const describe = ({ out, folder, name, passed, detail, commands }: ReproResult): string =>
  [
    `${passed ? 'ok  ' : 'FAIL'} ${name}: ${detail}`,
    `${out}: the kernel, its inputs and the expected results of its body. It does not need heddle:`,
    folder === out ? `  cd ${out}` : `  tar xzf ${out} && cd ${folder}`,
    ...commands.simt.map((command) => `  ${command}`),
    'For a GPU, see its README.md',
    '',
  ].join('\n')

export const reproCommand = (context: () => CliContext) =>
  new Command('repro')
    .description('write one case of a kernel as a folder that builds and runs without heddle')
    .argument('<kernel>', 'an op of the project, or a kernel that a plan derives')
    .option(
      '--case <name>',
      'a case as check prints it, or a key such as rms_norm__f32; default: the first that fails, else the largest',
    )
    .addOption(new Option('--dtype <dtype>', 'storage type; default: the first of f32, f16 and bf16 that it has').choices(dtypes))
    .addOption(compiledDeviceOption())
    .addOption(onOption())
    .option('--out <dir>', 'the folder to write, or a .tar.gz file; default: repro- and the key')
    .option('--generated', 'use the source in generated/ as it is, even if edited by hand')
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--json', 'print the result as JSON')
    .action(async (kernel, options) => {
      const result = await repro(kernel, options, context())
      context().out(options.json ? json(result) : describe(result))
    })
