/**
 * The benchmark's report: one HTML file with charts and all numbers, for people who were not there. It needs no network and no
 * script, so that it can be mailed, archived and opened in years. Written by `heddle bench encoder --report FILE`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import { environmentError } from '../../errors.js'
import { packageRoot } from '../../toolchain/paths.js'
import { type BenchEncoderResult, type EncoderTimes, type PeerTimes, shapeName } from '../result.js'
import { mebibytes, milliseconds, notes, peerRatio, percent, spread, teraflops } from '../table.js'
import { rooflineChart } from './roofline.js'
import { kernelName, stackedChart } from './stacked.js'
import { timesChart } from './times.js'

const unknown = '–'

const planCells = (times: EncoderTimes, result: BenchEncoderResult): Record<string, string | number> => ({
  plan: times.plan,
  shape: shapeName(times),
  meanLength: times.meanLength.toFixed(1),
  median: milliseconds(times.milliseconds.median),
  spread: spread(times.milliseconds),
  best: milliseconds(times.milliseconds.best),
  samples: times.milliseconds.samples,
  floor: times.floor === undefined ? unknown : milliseconds(times.floor.milliseconds),
  fraction: times.fraction === undefined ? unknown : percent(times.fraction),
  teraflops: teraflops(times),
  kernels: times.kernels,
  matmuls: times.matmuls,
  weights: mebibytes(times.memory.weightBytes),
  arena: mebibytes(times.memory.arenaBytes),
  peak: mebibytes(times.memory.peakBytes),
  twoLargest: mebibytes(times.memory.twoLargestBytes),
  ratio: times.memory.ratio.toFixed(2),
  replay: times.captured ? 'device graph' : 'step by step',
  peerRatio: peerRatio(times, result) ?? unknown,
})

const peerCells = (times: PeerTimes): Record<string, string | number> => {
  const { way, error, milliseconds: time } = times
  return time === undefined
    ? { way, shape: shapeName(times), error: error ?? unknown }
    : { way, shape: shapeName(times), median: milliseconds(time.median), spread: spread(time), best: milliseconds(time.best) }
}

const profileOf = (times: EncoderTimes): readonly object[] => {
  const { plan, profile } = times
  if (profile === undefined) return []
  const total = profile.reduce((sum, step) => sum + step.milliseconds, 0)
  const steps = profile.map(({ kernel, count, milliseconds: time }) => ({
    kernel: kernelName(kernel),
    count,
    milliseconds: milliseconds(time),
    share: percent(time / total),
  }))
  return [{ name: `${plan} ${shapeName(times)}`, steps, total: milliseconds(total) }]
}

/** The report as HTML. `command` is what was run. @throws environment `bench.template` when the package is incomplete */
export function reportHtml(result: BenchEncoderResult, command: string): string {
  const { device, config, dtype, lengths, results, peers, ceilings } = result
  const stacked = stackedChart(result)
  return template()({
    command,
    device: device.name,
    facts: [
      { name: 'model', value: `${config}, random weights` },
      { name: 'storage type', value: dtype },
      { name: 'lengths', value: lengths },
      { name: 'device', value: `${device.name} (${device.kind})` },
      ...Object.entries(peers?.about ?? {}).map(([name, value]) => ({ name: `peer ${name}`, value })),
    ],
    notes: notes(result),
    times: timesChart(result),
    stacked,
    roofline: rooflineChart(result),
    hasRoof: ceilings !== undefined,
    plans: results.map((times) => planCells(times, result)),
    peers:
      peers === undefined || peers.times.length === 0
        ? undefined
        : { framework: peers.framework, rows: peers.times.map(peerCells) },
    profiles: results.flatMap(profileOf),
  })
}

/** The template escapes every value; only charts, which escape their own text, are put in as they are. */
function template(): Handlebars.TemplateDelegate {
  const path = join(packageRoot(), 'templates', 'report.hbs')
  if (!existsSync(path)) {
    throw environmentError('bench.template', `the report's template ${path} is missing`, { hint: 'reinstall heddle' })
  }
  return Handlebars.create().compile(readFileSync(path, 'utf8'))
}
