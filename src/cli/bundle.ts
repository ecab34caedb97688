/** `heddle bundle`: packs what was built into one archive that runs on a machine with nothing installed. */
import { Command } from '@commander-js/extra-typings'
import { type BundleResult, makeBundle, mebibytes } from '../toolchain/index.js'
import { type CliContext, json } from './context.js'

export async function bundle(options: { readonly model?: readonly string[] }, context: CliContext): Promise<BundleResult> {
  const { root, signal } = context
  const result = await makeBundle({ root, signal, models: options.model ?? [] })
  const { archive, bytes, targets, glibc } = result
  context.log(`bundle: ${archive}, ${mebibytes(bytes)} MiB, kernels for ${targets.join(' and ')}, glibc ${glibc} or later\n`)
  return result
}

export const bundleCommand = (context: () => CliContext) =>
  new Command('bundle')
    .description('pack a portable archive: Node, the command, the addon and the kernels')
    .option('--model <dirs...>', 'model folders to add')
    .option('--json', 'print the result as JSON')
    .action(async (options) => {
      const result = await bundle(options, context())
      if (options.json) context().out(json(result))
    })
