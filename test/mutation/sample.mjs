/**
 * A sample of Stryker's mutants (https://stryker-mutator.io), as plugins of it: all of them would take days, and two hundred show how well
 * tests cover the passes. A mutant is drawn by a hash of a seed and its change, so that a run can be repeated. `MUTANTS=file` tries
 * the mutants named in the lines of a file instead; the report has the names.
 */
import { createHash } from 'node:crypto'
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { isAbsolute, join, relative } from 'node:path'
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin'

/** Another seed draws other mutants. */
const seed = Number(process.env.SEED ?? 12)

/** The share of mutants that is tried: about 200 of 17,000. */
const share = 1 / 84

const { MUTANTS: list } = process.env
const named = list === undefined ? undefined : new Set(readFileSync(list, 'utf8').split('\n'))

/** A mutant's place (lines and columns from 0), kind and text. */
function nameOf({ fileName, mutatorName, replacement, location: { start, end } }) {
  const file = (isAbsolute(fileName) ? relative(process.cwd(), fileName) : fileName).replaceAll('\\', '/')
  const place = `${start.line}:${start.column}-${end.line}:${end.column}`
  return `${file.slice(file.indexOf('src/'))}:${place} ${mutatorName} ${JSON.stringify(replacement ?? '')}`
}

const draw = (name) => createHash('sha256').update(`${seed} ${name}`).digest().readUInt32BE(0) / 2 ** 32

/** Lets drawn mutants through. Stryker counts the others as ones that do not compile: neither found nor missed. */
class Sample {
  async init() {}
  async group(mutants) {
    return [mutants.map(({ id }) => id)]
  }
  async check(mutants) {
    const isTried = (name) => (named === undefined ? draw(name) < share : named.has(name))
    const verdict = (mutant) => (isTried(nameOf(mutant)) ? { status: 'passed' } : { status: 'compileError', reason: 'not drawn' })
    return Object.fromEntries(mutants.map((mutant) => [mutant.id, verdict(mutant)]))
  }
}

/** Where the run of all tests leaves what it reads of the specs: see specs_once.ts. */
const specs = join('.heddle', 'stryker', 'specs')

/** What became of mutants so far, a line each. */
const soFar = join('.heddle', 'mutants.txt')

/** Says what became of the drawn mutants; the report of a run counts places from 1. */
class Report {
  constructor() {
    rmSync(specs, { recursive: true, force: true })
  }
  onDryRunCompleted() {
    mkdirSync(specs, { recursive: true })
    writeFileSync(join(specs, 'complete'), '')
    rmSync(soFar, { force: true })
  }
  /** What a run that is stopped has found is kept. */
  onMutantTested({ fileName, mutatorName, replacement, location, status, statusReason }) {
    if (statusReason === 'not drawn') return
    appendFileSync(soFar, `${status} ${nameOf({ fileName, mutatorName, replacement, location })}\n`)
  }
  onMutationTestReportReady({ files }) {
    const from0 = ({ line, column }) => ({ line: line - 1, column: column - 1 })
    const drawn = Object.entries(files).flatMap(([fileName, { mutants }]) =>
      mutants
        .filter(({ statusReason }) => statusReason !== 'not drawn')
        .map(({ location: { start, end }, status, killedBy, mutatorName, replacement }) => ({
          name: nameOf({ fileName, mutatorName, replacement, location: { start: from0(start), end: from0(end) } }),
          status,
          killedBy,
        })),
    )
    const counts = new Map()
    for (const { status } of drawn) counts.set(status, (counts.get(status) ?? 0) + 1)
    for (const { status, name } of drawn)
      if (status !== 'Killed' && status !== 'Timeout') process.stdout.write(`${status} ${name}\n`)
    process.stdout.write(`${[...counts].map(([status, count]) => `${count} ${status}`).join(', ')}\n`)
    mkdirSync('.heddle', { recursive: true })
    writeFileSync(join('.heddle', 'mutants.json'), JSON.stringify(drawn, null, 1))
  }
}

export const strykerPlugins = [
  declareClassPlugin(PluginKind.Checker, 'sample', Sample),
  declareClassPlugin(PluginKind.Reporter, 'sample', Report),
]
