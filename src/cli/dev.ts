/**
 * `heddle dev`: `watch` and `explore` as one live page on loopback. At every save the page shows the new source, IR and CUDA, then the results of
 * checks, then registers where nvcc is installed, without reloading. With `--on`, checks run on another machine's device, and its times follow.
 */
import { Command, Option } from '@commander-js/extra-typings'
import { inUsualOrder } from '../bench/target/subject.js'
import { costDevices } from '../cost/device.js'
import type { ExplorerData } from '../explorer/model.js'
import { readRun } from '../explorer/runs/read.js'
import { type LivePage, serveLive } from '../explorer/server.js'
import { installation, readManifestOf } from '../toolchain/index.js'
import { runBenchTarget } from './bench_target.js'
import { check } from './check.js'
import { type CliContext, json } from './context.js'
import { type ExploreOptions, explore, portOf } from './explore.js'
import { describeFailure } from './failure.js'
import { gen } from './gen.js'
import { type DeviceName, deviceOption, onOption } from './opening.js'
import { planOptions } from './plan.js'
import { searchPath } from './search_path.js'
import { atEveryChange, checkDevice, opsOf } from './watch.js'

export interface DevOptions extends Omit<ExploreOptions, 'bench' | 'measured' | 'compile' | 'device' | 'specs'> {
  /** Device on which changed kernels are checked; by default `simt`, or `js` without a C++ compiler. */
  readonly device?: DeviceName | undefined
  /** Machine whose device checks and times: a name of ~/.ssh/config, or a command prefix. Without it nothing is timed. */
  readonly on?: string | undefined
  /** Device of predicted times. */
  readonly predicted: ExploreOptions['device']
  readonly port: number
}

const empty: ExplorerData = {
  version: 1,
  title: 'heddle dev',
  command: 'heddle dev',
  opens: 'kernel',
  kernels: [],
  timelines: [],
}

/**
 * Serves the page until the signal fires.
 * @throws usage `watch.specs` without a folder of specs; environment `explore.port`, `explore.page`
 */
export async function dev(name: string | undefined, options: DevOptions, context: CliContext): Promise<void> {
  const { signal, log } = context
  const device = options.device ?? (options.on === undefined ? await checkDevice(context) : undefined)
  const page = await serveLive(empty, options.port, signal)
  log(`serving ${page.url}; stop with Ctrl-C\n`)
  const times: Times = []
  await atEveryChange(context, () => round(name, device, options, page, times, context))
  await page.closed
}

/** Texts of a round, also for the page. */
function heard(context: CliContext): { readonly context: CliContext; readonly text: () => string } {
  let text = ''
  const log = (more: string): void => {
    text += more
    context.log(more)
  }
  return { context: { ...context, log }, text: () => text }
}

/** The last two runs, the older one first: the page compares them. */
type Times = NonNullable<ExploreOptions['measured']>[number][]

const timedRepeats = 10

/** Times the subject of a page on the other machine, and keeps the times beside those before the save. */
async function timeOn(
  on: string,
  { plan, kernels }: ExplorerData,
  { device, dtype, dims }: Pick<DevOptions, 'device' | 'dtype' | 'dims'>,
  times: Times,
  context: CliContext,
): Promise<void> {
  const subject = plan?.graph ?? kernels[0]?.key
  if (subject === undefined) return
  const named = device === 'js' ? undefined : device
  const options = { ...{ on, dtype, repeats: timedRepeats, device: named }, ...(dims && { shape: [dims] }) }
  const any = readRun(json(await runBenchTarget(subject, options, context)), on)
  const [before] = times.slice(-1)
  times.splice(0, 2, ...(before === undefined ? [] : [{ ...before, file: 'before the save' }]), { file: `now, on ${on}`, any })
}

async function round(
  name: string | undefined,
  device: DeviceName | undefined,
  options: DevOptions,
  page: LivePage,
  times: Times,
  context: CliContext,
): Promise<void> {
  const { signal, verbose, log } = context
  const begin = performance.now()
  const took = (): string => `${((performance.now() - begin) / 1000).toFixed(1)} s after the change`
  const checks = heard(context)
  try {
    page.tell('working', 'generating')
    const { changed } = await gen({}, context)
    const ops = await opsOf(context.root, changed)
    const subject = name ?? (await subjectOf(ops, context.root))
    const { on } = options
    const show = async (compile: boolean): Promise<ExplorerData> => {
      const data = await explore(subject, { ...options, device: options.predicted, compile, measured: times }, context)
      page.show({ ...data, command: ['heddle dev', ...(name === undefined ? [] : [name])].join(' ') })
      return data
    }
    await show(false)
    log(`shown, ${took()}\n`)
    page.tell('working', ops.length === 0 ? 'reading registers' : `checking ${ops.join(', ')} on ${on ?? device}`)
    const report = ops.length === 0 ? undefined : await check(ops, { device, on, brief: true }, checks.context)
    const shown = await show(true)
    const counts = report === undefined ? 'no kernel has changed' : `${report.passed} passed, ${report.failed} failed`
    log(`${counts}, ${took()}\n`)
    const isRight = (report?.failed ?? 0) === 0
    if (on !== undefined && isRight) {
      page.tell('working', `${counts}; timing on ${on}`)
      await timeOn(on, shown, { ...options, device }, times, context)
      await show(true)
      log(`timed, ${took()}\n`)
    }
    page.tell(isRight ? 'ready' : 'failed', `${checks.text()}${counts}, ${took()}`)
  } catch (error) {
    if (signal.aborted) return
    const { text } = describeFailure(error, { verbose, cancelled: false })
    log(text)
    page.tell('failed', text)
  }
}

/** Subject of the page without a name: the graph of the project's first plan, else an op that has changed, else its first op. */
async function subjectOf(changed: readonly string[], root: string): Promise<string | undefined> {
  const { ours } = await searchPath(root)
  if (ours.plans.length > 0) return undefined
  const [own = root] = installation(root).generated
  const { kernels } = await readManifestOf(own)
  return changed[0] ?? inUsualOrder(kernels)[0]?.op
}

export const devCommand = (context: () => CliContext) => {
  const { shape, dtype, config, dims } = planOptions()
  return new Command('dev')
    .description('generate and check at every save, and show kernels and plans on a live page')
    .argument(
      '[name]',
      'a graph, a kernel such as layer_norm__f16, or an op; default: the graph of the first plan, or a changed op',
    )
    .option('--plan <name>', 'a plan of the graph; default: unfused beside its first written plan')
    .option('--compare <name>', 'a second plan beside the first')
    .option('--port <port>', 'port on loopback; 0 takes a free one', portOf, 7355)
    .addOption(deviceOption('device for checks; default: simt, or js without a C++ compiler'))
    .addOption(onOption())
    .addOption(
      new Option('--predicted <device>', 'device of predicted times')
        .choices([...costDevices, 'here'] as const)
        .default('h200' as const),
    )
    .addOption(shape)
    .addOption(dtype)
    .addOption(config)
    .addOption(dims)
    .action((name, options) => dev(name, options, context()))
}
