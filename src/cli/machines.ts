/** Verbs on several machines, `--on a,b`: one after the other, so that one that fails is said and the others go on; and the table of their times. */
import { Option } from '@commander-js/extra-typings'
import Table from 'cli-table3'
import { deviceName } from '../bench/target/baseline.js'
import { sizeText } from '../bench/target/text.js'
import { HeddleError, usageError } from '../errors.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import type { CliContext } from './context.js'
import { describeFailure } from './failure.js'

/** Machines of one argument: names separated by commas. A command prefix may have commas of its own, and is repeated instead. */
const machinesOf = (text: string): readonly string[] =>
  /[\s'"/=]/.test(text) ? [text] : text.split(',').filter((name) => name !== '')

/** `--on` of verbs that can use several machines. */
export const machinesOption = () =>
  new Option(
    '--on <host>',
    'use a device of another machine: a name of ~/.ssh/config, or a command prefix such as "docker exec -i box"; a,b or a repeated --on: of several, one after the other',
  ).argParser((text, before: readonly string[] = []) => [...new Set([...before, ...(text === '' ? [''] : machinesOf(text))])])

/** Outcome on one machine. */
export interface OnMachine<T> {
  readonly on: string
  readonly result?: T
  readonly error?: { readonly code: string; readonly message: string }
}

/** Outcomes on all machines, and the exit code of those that failed: that of the first one; 0 if none did. */
export interface OnMachines<T> {
  readonly machines: readonly OnMachine<T>[]
  readonly exitCode: number
}

/**
 * Runs a verb on each machine. A failure of a machine or its link is logged, and the next one follows; wrong usage, which is wrong on each, is thrown.
 * @throws usage errors of the verb
 */
export async function onEach<T>(
  machines: readonly string[],
  { log, signal, verbose }: CliContext,
  run: (on: string) => Promise<T>,
): Promise<OnMachines<T>> {
  const outcomes: OnMachine<T>[] = []
  let exitCode = 0
  for (const on of machines) {
    log(`on ${on}:\n`)
    try {
      outcomes.push({ on, result: await run(on) })
    } catch (error) {
      if (signal.aborted || (error instanceof HeddleError && error.exitCode !== 3)) throw error
      const failure = describeFailure(error, { verbose, cancelled: false })
      log(failure.text)
      if (exitCode === 0) exitCode = failure.exitCode
      const code = error instanceof HeddleError ? error.code : 'internal'
      outcomes.push({ on, error: { code, message: error instanceof Error ? error.message : String(error) } })
    }
  }
  return { machines: outcomes, exitCode }
}

/** @throws usage `remote.several` for an option that belongs to one machine */
export function expectOneMachine(machines: readonly string[], options: Readonly<Record<string, unknown>>): void {
  const option = Object.keys(options).find((name) => options[name] !== undefined)
  if (machines.length < 2 || option === undefined) return
  throw usageError('remote.several', `--${option} belongs to one machine, got ${machines.join(', ')}`, {
    hint: `run it with --on ${machines[0]}, then with the next one`,
  })
}

/** Times of a plan at a shape on one machine. */
export interface MachineTime {
  readonly plan: string
  readonly dims: Readonly<Record<string, number>>
  /** Storage type, where there are several. */
  readonly dtype?: string
  readonly milliseconds: { readonly median: number }
}

/** Medians of all machines: a row per plan, shape and type, a column per machine. Empty if none has times. */
export function machinesTable(machines: readonly OnMachine<readonly MachineTime[]>[]): string {
  const nameOf = ({ plan, dims, dtype }: MachineTime): string => [dtype ?? '', sizeText(dims), plan].join('\n')
  const timed = machines.flatMap(({ result = [] }) => result)
  const rows = [...new Map(timed.map((time) => [nameOf(time), time])).values()]
  if (rows.length === 0) return ''
  const hasTypes = rows.some(({ dtype }) => dtype !== undefined)
  const head = [...(hasTypes ? ['dtype'] : []), 'shape', 'plan', ...machines.map(({ on }) => `${on} us`)]
  const table = new Table({ head, style: { head: [], border: [] } })
  for (const row of rows) {
    const medians = machines.map(({ result = [] }) => {
      const found = result.find((time) => nameOf(time) === nameOf(row))
      return found === undefined ? '-' : (1000 * found.milliseconds.median).toPrecision(4)
    })
    table.push([...(hasTypes ? [row.dtype ?? ''] : []), sizeText(row.dims), row.plan, ...medians])
  }
  return `${table.toString()}\n`
}

/** A line per machine: its device, or the reason why it has no column of times. */
export const machineLines = (
  machines: readonly OnMachine<{ readonly device: string | Pick<NativeDeviceInfo, 'kind' | 'name'> }>[],
): string =>
  machines
    .map(({ on, result, error }) => {
      if (result === undefined) return `${on}: failed, ${error?.code}\n`
      return `${on}: ${typeof result.device === 'string' ? result.device : deviceName(result.device)}\n`
    })
    .join('')
