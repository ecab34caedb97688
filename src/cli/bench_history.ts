/** `heddle bench history`: changes of saved suites over commits, as text, annotations of a workflow, or a page; exit code 1 for a regression. */
import { resolve } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { type HistoryEntry, readHistory } from '../bench/history/entry.js'
import { type Change, changesOf, newRegressions, seriesOf } from '../bench/history/regressions.js'
import { annotations, changeText, historyMarkdown, historyText } from '../bench/history/text.js'
import { findingError, usageError } from '../errors.js'
import { explorerSchema } from '../explorer/model.js'
import { pageHtml } from '../explorer/page.js'
import { historyViews } from '../explorer/runs/history.js'
import { namedFile } from '../output.js'
import { ratioOf, usualRatio } from './bench_options.js'
import { usualHistory } from './bench_suite.js'
import { type CliContext, json } from './context.js'

export interface BenchHistoryOptions {
  /** Largest ratio of medians that is no change. */
  readonly ratio: number
}

export interface BenchHistoryResult {
  readonly runs: number
  readonly suites: number
  readonly changes: readonly Change[]
}

const formats = ['table', 'markdown', 'github', 'json'] as const

/** @throws usage `suite.history` for a file that has no runs */
async function entriesOf(file: string, { root }: CliContext): Promise<readonly HistoryEntry[]> {
  const entries = await readHistory(resolve(root, file))
  if (entries.length > 0) return entries
  throw usageError('suite.history', `${file} has no runs`, { hint: 'save some: heddle bench suite --save' })
}

/** Changes of a history. */
export function historyOf(entries: readonly HistoryEntry[], { ratio }: BenchHistoryOptions): BenchHistoryResult {
  const suites = new Set(entries.map(({ suite }) => suite)).size
  return { runs: entries.length, suites, changes: changesOf(seriesOf(entries), ratio) }
}

function printed({ changes, ...counts }: BenchHistoryResult, format: (typeof formats)[number]): string {
  switch (format) {
    case 'json':
      return json({ ...counts, changes })
    case 'github':
      return annotations(changes)
    case 'markdown':
      return historyMarkdown(counts, changes)
    case 'table':
      return historyText(counts, changes)
  }
}

const page = (entries: readonly HistoryEntry[], { changes }: BenchHistoryResult, command: string): string =>
  pageHtml(
    explorerSchema.parse({
      version: 1,
      title: 'heddle bench history',
      command,
      opens: 'history',
      kernels: [],
      timelines: [],
      history: historyViews(entries, changes),
    }),
  )

export const historyCommand = (context: () => CliContext) =>
  new Command('history')
    .description('show changes of saved suites over commits')
    .argument('[file]', 'a history, as `heddle bench suite --save` writes it', usualHistory)
    .option('--ratio <x>', 'smallest ratio of medians that counts as a change', ratioOf, usualRatio)
    .option('--out <page>', 'write a page with charts')
    .option('--fail-on-regression', 'exit 1 if something is slower since the newest run, or since another run at its commit')
    .addOption(
      new Option('--format <format>', 'of the changes; github: annotations of a workflow')
        .choices(formats)
        .default('table' as const),
    )
    .option('--json', 'the same as --format json')
    .action(async (file, { ratio, out, failOnRegression, format, json: asJson }) => {
      const { root, log, out: print } = context()
      const write = out === undefined ? undefined : await namedFile(resolve(root, out), 'explore.out')
      const entries = await entriesOf(file, context())
      const result = historyOf(entries, { ratio })
      print(printed(result, asJson === true ? 'json' : format))
      if (out !== undefined) {
        await write?.(page(entries, result, `heddle bench history ${file} --ratio ${ratio}`))
        log(`page: ${resolve(root, out)}\n`)
      }
      const slower = newRegressions(result.changes)
      if (failOnRegression !== true || slower.length === 0) return
      throw findingError('suite.slower', slower.map(changeText).join('\n'), {
        hint: `heddle bench history ${file} --out history.html shows it`,
      })
    })
