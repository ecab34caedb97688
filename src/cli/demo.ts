/** `heddle demo`: the whole road on one page: generate, build, load a model, restore the punctuation of sample verses. */
import { join } from 'node:path'
import { Command } from '@commander-js/extra-typings'
import { Listr } from 'listr2'
import { restorePunctuation } from '../models/encoder/punctuation.js'
import { loadTokenizer } from '../models/files/tokenizer.js'
import { buildKernels, buildNative, installation, packageRoot, type Target } from '../toolchain/index.js'
import { wantedTargets } from './build.js'
import type { CliContext } from './context.js'
import { gen } from './gen.js'
import { openPipeline, type Pipeline, useNativeOf } from './pipeline.js'
import { milestones } from './progress.js'

/** Verses of the King James Bible without their punctuation. */
const verses = [
  'in the beginning God created the heaven and the earth',
  'Jesus said unto him Thou shalt love the Lord thy God with all thy heart and with all thy soul and with all thy mind',
  "And the LORD said unto Cain Where is Abel thy brother And he said I know not Am I my brother's keeper",
  'Charity suffereth long and is kind charity envieth not charity vaunteth not itself is not puffed up',
]

interface Stages {
  pipeline?: Pipeline
  restored?: readonly string[]
}

export async function demo(context: CliContext): Promise<void> {
  const { root, signal } = context
  const model = join(packageRoot(), 'test', 'data', 'models', 'kjv-punct-bert')
  const quiet: CliContext = { ...context, out: () => {}, log: () => {} }
  const wanted = await wantedTargets(undefined)
  const paths = () => installation(root)
  const stages: Stages = {}
  const tasks = new Listr<Stages>(
    [
      {
        title: 'generate CUDA from specs/',
        task: async (_, task) => {
          const { kernels, changed } = await gen({}, quiet)
          task.title = `generated ${kernels.length} kernels, ${changed.length} files changed: ${paths().generated}`
        },
      },
      {
        title: 'build the addon and the device plugins',
        task: async (_, task) => {
          const { folder, built } = await buildNative({ root, signal })
          useNativeOf(root)
          task.title = `addon and device plugins ${built ? 'built' : 'current'}: ${folder}`
        },
      },
      ...wanted.map((target: Target) => ({
        title: `build the ${target} kernels`,
        task: async (_: Stages, task: { title: string; output: string }) => {
          const { library, compiled, report } = await buildKernels({
            target,
            root,
            signal,
            onProgress: milestones(process.stdout.isTTY === true, (text) => {
              task.output = text
            }),
          })
          task.title = `${target} kernels, ${compiled} of ${report.objects.length} files compiled: ${library}`
        },
      })),
      {
        title: 'load the model',
        task: async (stage, task) => {
          stage.pipeline = await openPipeline(model, {}, root)
          const { device, encoder } = stage.pipeline
          task.title = `loaded ${model} on ${device.info().name} (${device.kind}), ${encoder.dtype}, plan ${encoder.plan}`
        },
      },
      {
        title: 'restore punctuation',
        task: async (stage, task) => {
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
  new Command('demo').description('generate, build, and restore punctuation in sample verses').action(() => demo(context()))
