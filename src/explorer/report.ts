/** The page of one run that has just ended: what `heddle bench encoder --report` writes. */
import type { BenchEncoderResult } from '../bench/result.js'
import { explorerSchema } from './model.js'
import { pageHtml } from './page.js'
import { readRun } from './runs/read.js'
import { benchView } from './runs/view.js'

/** @param command what was run. @throws environment `explore.page` when the package is incomplete */
export function reportPage(result: BenchEncoderResult, command: string): string {
  // By the road that a file takes, so that a report and `explore --bench` of the same result are the same.
  const any = readRun(JSON.stringify(result), 'the result')
  const title = `heddle bench: ${result.device.name}`
  const bench = benchView([{ any }], [], 1)
  return pageHtml(explorerSchema.parse({ version: 1, title, command, opens: 'bench', kernels: [], bench, timelines: [] }))
}
