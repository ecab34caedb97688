/** View of one bench on several machines: a table with a column for each, the rows of all side by side, then the numbers of each. */
import { milliseconds } from '../../bench/table.js'
import type { Run } from '../model.js'
import { targetView } from './others.js'
import type { MachinesRun } from './read.js'

export function machinesView({ machines }: MachinesRun): Omit<Run, 'file'> {
  const views = machines.flatMap(({ on, result }) => (result === undefined ? [] : [{ on, result, view: targetView(result) }]))
  const failed = machines.flatMap(({ on, result }) => (result === undefined ? [on] : []))
  const keyOf = ({ name, shape }: { readonly name: string; readonly shape: string }): string => `${name}\n${shape}`
  const rows = [...new Map(views.flatMap(({ view }) => view.rows.map((row) => [keyOf(row), row] as const))).values()]
  const medians = rows.map((row) => [
    row.name,
    row.shape,
    ...views.map(({ view }) => {
      const found = view.rows.find((each) => keyOf(each) === keyOf(row))
      return found === undefined ? '-' : milliseconds(found.milliseconds.median)
    }),
  ])
  const names = views.map(({ on }) => on)
  return {
    title: `${views[0]?.result.subject ?? 'nothing'} on ${names.join(', ')}`,
    facts: views.map(({ on, result: { device } }) => ({ name: on, value: `${device.name} (${device.kind})` })),
    notes: [...failed.map((on) => `${on} failed, and has no times.`), ...new Set(views.flatMap(({ view }) => view.notes))],
    rows: views.flatMap(({ on, view }) => view.rows.map((row) => ({ ...row, name: `${row.name} on ${on}` }))),
    dots: [],
    tables: [
      { title: 'Median ms by machine', columns: ['plan', 'shape', ...names], rows: medians },
      ...views.flatMap(({ on, view }) => view.tables.map((table) => ({ ...table, title: `${table.title} on ${on}` }))),
    ],
  }
}
