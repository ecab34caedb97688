/** Decoding times as text for a terminal: a table of plans and batches, and one per profile. */
import Table from 'cli-table3'
import type { DecodingTimes } from './decoding.js'
import { mebibytes, milliseconds, spread } from './table.js'

const style = { head: [], border: [] }

/** One line per measured plan. */
export const describeDecoding = ({ plan, batch, milliseconds: time, step }: DecodingTimes): string =>
  `${plan} at batch ${batch}: ${milliseconds(time.median)} ms (${spread(time)}), ${milliseconds(step.median)} ms per step`

export function decodingTable(results: readonly DecodingTimes[]): string {
  const head = ['plan', 'batch', 'beams', 'steps', 'ms', 'half within', 'us per step', 'kernels', 'matmuls', 'state MiB']
  const table = new Table({ head, style })
  for (const times of results) {
    table.push([
      times.plan,
      times.batch,
      times.width,
      times.steps,
      milliseconds(times.milliseconds.median),
      spread(times.milliseconds),
      (1000 * times.step.median).toFixed(1),
      times.kernels.toFixed(0),
      times.matmuls.toFixed(0),
      mebibytes(times.memory.stateBytes),
    ])
  }
  return [`${table}\n`, ...results.flatMap(profileTable)].join('')
}

/** Time of a step per kernel, each timed separately. */
function profileTable({ plan, batch, profile }: DecodingTimes): string[] {
  if (profile === undefined) return []
  const table = new Table({ head: [`${plan}, batch ${batch}`, 'per step', 'us per step', 'us each'], style })
  for (const { kernel, count, milliseconds: time } of profile) {
    table.push([kernel, count.toFixed(count % 1 === 0 ? 0 : 2), (1000 * time).toFixed(1), ((1000 * time) / count).toFixed(2)])
  }
  return [`${table}\n`]
}
