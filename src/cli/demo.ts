/**
 * `heddle demo`: a minimal first run. Builds the addon, compiles the few kernels of one model on demand, and restores the punctuation of
 * sample verses. Uses the shipped generated source.
 */
import { join } from 'node:path'
import { Command } from '@commander-js/extra-typings'
import { Listr } from 'listr2'
import { restorePunctuation } from '../models/encoder/punctuation.js'
import { nativeFolder } from '../runtime/addon.js'
import { jsByDefault, whyJs } from '../runtime/js/default.js'
import { defaultDevice, prepareNative } from '../runtime/open.js'
import { loadTokenizer } from '../text/tokenizer.js'
import { packageRoot } from '../toolchain/index.js'
import type { CliContext } from './context.js'
import { openPipeline, type Pipeline, planText } from './pipeline.js'
import { compileProgress } from './progress.js'

/** Verses of the King James Bible without their punctuation. */
const verses = [
  'in the beginning God created the heaven and the earth',
  'Jesus said unto him Thou shalt love the Lord thy God with all thy heart and with all thy soul and with all thy mind',
  "And the LORD said unto Cain Where is Abel thy brother And he said I know not Am I my brother's keeper",
  'Charity suffereth long and is kind charity envieth not charity vaunteth not itself is not puffed up',
]

interface Stages {
  /** Shows a line below the current task. */
  report?: (text: string) => void
  /** Undefined for the usual one of a machine with a compiler. */
  device?: 'js' | undefined
  pipeline?: Pipeline
  restored?: readonly string[]
}

export async function demo(context: CliContext): Promise<void> {
  const { root, signal } = context
  const model = join(packageRoot(), 'test', 'data', 'models', 'kjv-punct-bert')
  const notices = (report: (text: string) => void) => ({
    signal,
    onNotice: report,
    onProgress: compileProgress({ ...context, log: (text) => report(text.trim()) }),
  })
  const stages: Stages = {}
  const tasks = new Listr<Stages>(
    [
      {
        title: 'find a device',
        task: async (stage, task) => {
          const opening = { root, ...notices((text) => (task.output = text)) }
          stage.device = await jsByDefault({ ...opening, root: packageRoot() })
          await prepareNative(stage.device, opening)
          task.title = stage.device === undefined ? `the ${defaultDevice()} device, addon in ${nativeFolder()}` : whyJs
        },
      },
      {
        title: 'load the model',
        task: async (stage, task) => {
          // Kernels are compiled when the first verse needs them.
          const opening = notices((text) => (stage.report ?? ((line) => (task.output = line)))(text))
          // Uses the shipped kernels in any project.
          stage.pipeline = await openPipeline(model, { device: stage.device }, packageRoot(), opening)
          const { device, encoder, planReason } = stage.pipeline
          task.title = `loaded ${model} on ${device.info().name} (${device.kind}), ${encoder.dtype}, ${planText(encoder.plan, planReason)}`
        },
      },
      {
        title: 'compile the kernels it needs and restore punctuation',
        task: async (stage, task) => {
          stage.report = (text) => (task.output = text)
          const { pipeline } = stage
          if (pipeline === undefined) throw new Error('internal: the model was not loaded')
          const tokenizer = await loadTokenizer(model)
          const started = performance.now()
          const restored: string[] = []
          for (const verse of verses) restored.push(await restorePunctuation(pipeline.encoder, tokenizer, verse, { signal }))
          stage.restored = restored
          task.title = `restored ${verses.length} verses in ${(performance.now() - started).toFixed(0)} ms`
        },
      },
    ],
    { ctx: stages, fallbackRenderer: 'simple', registerSignalListeners: false },
  )
  try {
    await tasks.run()
  } finally {
    stages.pipeline?.close()
  }
  context.out(`\n${verses.map((verse, i) => `  ${verse}\n> ${stages.restored?.[i] ?? ''}\n`).join('\n')}`)
}

export const demoCommand = (context: () => CliContext) =>
  new Command('demo')
    .description('compile the kernels of a small model, and restore punctuation in sample verses')
    .action(() => demo(context()))
