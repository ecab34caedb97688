/**
 * `npm run fuzz -- --cases N --seed S`: random ops, and graphs under random plans, against their float64 meaning. Failures are made smaller and written
 * to a folder, with the seed that draws it again. Ends with 1 where something failed, or where too much was not judged.
 */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fuzz } from './run.js'

const { values } = parseArgs({
  options: {
    cases: { type: 'string', default: '60' },
    plans: { type: 'string' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string', default: '0' },
    device: { type: 'string', default: 'simt' },
    batch: { type: 'string', default: '48' },
    out: { type: 'string' },
    'no-shrink': { type: 'boolean', default: false },
  },
})

/** @throws for a value that is not an integer */
function whole(option: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text)
  process.stderr.write(`expected --${option} to be a whole number, got ${text}\n`)
  process.exit(2)
}

if (values.device !== 'simt' && values.device !== 'cuda') {
  process.stderr.write(`expected --device to be simt or cuda, got ${values.device}\n`)
  process.exit(2)
}
const ops = whole('cases', values.cases)
const started = Date.now()
const out = values.out ?? mkdtempSync(join(tmpdir(), 'heddle-fuzz-failures-'))
const tally = await fuzz({
  device: values.device,
  seed: whole('seed', values.seed),
  ops,
  // The same proportion of plans to ops as in CI.
  plans: values.plans === undefined ? Math.ceil(ops / 6) : whole('plans', values.plans),
  from: whole('from', values.from),
  batch: Math.max(1, whole('batch', values.batch)),
  out,
  shrinks: !values['no-shrink'],
  log: (line) => void process.stdout.write(`${String(Math.round((Date.now() - started) / 1000)).padStart(5)} s  ${line}\n`),
})
const { elements, unjudged } = tally.verdict
const isLoose = unjudged > tally.allowedUnjudged
if (isLoose) process.stdout.write(`too much is not judged: ${unjudged} of ${elements} elements\n`)
process.exitCode = tally.failed > 0 || isLoose ? 1 : 0
