/**
 * Plants the faults of planted.ts one by one into a copy of the checkout and runs the tests that each names, which pass without it. A fault counts
 * as found if a test ran and an assertion failed, or if the CPU device reported a fault of a running kernel. A file that does not load, a hook that
 * fails and a source that does not compile are breakage and do not count. CONTRIBUTING describes its use. Exits with 1 if a fault is not found,
 * with 2 for a fault that is not in the list.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { execa } from 'execa'
import { z } from 'zod'
import { type PlantedFault, plantedFaults } from './planted.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The fields of vitest's report that are read. */
const reportSchema = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      message: z.string().default(''),
      assertionResults: z.array(
        z.object({ fullName: z.string(), status: z.string(), failureMessages: z.array(z.string()).nullish() }),
      ),
    }),
  ),
})

/** Outcome of a run of tests. */
interface Outcome {
  readonly passed: number
  /** The first test that failed by an assertion or by a reported fault of a kernel. */
  readonly found: string | undefined
  /** Anything else that failed. */
  readonly broken: string | undefined
}

/** Assertions, properties that fast-check found to fail, and faults that the device reports with the thread that made them. */
const isFinding = (message: string): boolean =>
  /^(AssertionError\b|Error: Property failed after)/.test(message) || /, block \(\d+,\d+,\d+\)/.test(message)

const firstLine = (text: string): string => text.split('\n')[0]?.slice(0, 160) ?? ''

/** Copies the files of the checkout that git tracks, or would add. Dependencies are linked. */
async function copyCheckout(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'heddle-planted-'))
  const { stdout } = await execa('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of stdout.split('\0').filter((name) => name !== '')) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(root, file), join(folder, file))
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Runs tests in the copy. */
async function runTests(folder: string, { tests, only }: Pick<PlantedFault, 'tests' | 'only'>): Promise<Outcome> {
  const report = join(folder, 'planted.json')
  rmSync(report, { force: true })
  const pattern = only === undefined ? [] : ['-t', only]
  const given = ['vitest', 'run', ...tests, ...pattern, '--reporter=json', `--outputFile.json=${report}`]
  // The cache of passes between runs does not include faults.
  const { exitCode, stderr } = await execa('npx', given, { cwd: folder, reject: false, env: { HEDDLE_KEPT: 'off' } })
  let files: z.infer<typeof reportSchema>['testResults']
  try {
    files = reportSchema.parse(JSON.parse(readFileSync(report, 'utf8'))).testResults
  } catch {
    return { passed: 0, found: undefined, broken: `no report, exit ${exitCode}: ${firstLine(stderr)}` }
  }
  const all = files.flatMap(({ assertionResults }) => assertionResults)
  const failures = all
    .filter(({ status }) => status === 'failed')
    .map(({ fullName, failureMessages }) => ({ fullName, message: failureMessages?.[0] ?? '' }))
  const found = failures.find(({ message }) => isFinding(message))
  const [other] = failures.filter(({ message }) => !isFinding(message))
  const [unloaded] = files.filter(({ message }) => message !== '')
  const broken = other?.message ?? unloaded?.message ?? (exitCode === 0 || found !== undefined ? undefined : stderr)
  return {
    passed: all.filter(({ status }) => status === 'passed').length,
    found: found && `${found.fullName}: ${firstLine(found.message)}`,
    broken: broken === undefined ? undefined : firstLine(broken),
  }
}

/** Plants one fault, runs its tests, and removes it. */
async function tryFault(folder: string, fault: PlantedFault): Promise<Outcome> {
  const path = join(folder, fault.file)
  const source = readFileSync(path, 'utf8')
  const [before, after, ...more] = source.split(fault.find)
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`${fault.id}: ${fault.file} does not hold the text to replace exactly once`)
  try {
    writeFileSync(path, before + fault.replacement + after)
    return await runTests(folder, fault)
  } finally {
    writeFileSync(path, source)
  }
}

function verdictOn({ passed, found, broken }: Outcome): readonly [verdict: string, detail: string] {
  if (found !== undefined) return ['found', found]
  return broken === undefined ? ['NOT FOUND', `${passed} tests pass`] : ['BROKEN', broken]
}

function chosenFaults(): readonly PlantedFault[] {
  const { only = [] } = parseArgs({ options: { only: { type: 'string', multiple: true } } }).values
  const unknown = only.find((id) => plantedFaults.every((fault) => fault.id !== id))
  if (unknown !== undefined) {
    process.stderr.write(`expected a fault of the list, got ${unknown}: ${plantedFaults.map(({ id }) => id).join(', ')}\n`)
    process.exit(2)
  }
  return only.length === 0 ? plantedFaults : plantedFaults.filter(({ id }) => only.includes(id))
}

const chosen = chosenFaults()
const folder = await copyCheckout()
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const without = new Map<string, Outcome>()
let missed = 0
for (const fault of chosen) {
  const key = JSON.stringify([fault.tests, fault.only])
  const clean = without.get(key) ?? (await runTests(folder, fault))
  without.set(key, clean)
  const isClean = clean.passed > 0 && clean.found === undefined && clean.broken === undefined
  const [verdict, detail] = isClean
    ? verdictOn(await tryFault(folder, fault))
    : ['FAILS WITHOUT', clean.found ?? clean.broken ?? 'no test has run']
  if (verdict !== 'found') missed += 1
  process.stdout.write(`${verdict.padEnd(13)} ${fault.kind.padEnd(10)} ${fault.id.padEnd(22)} ${detail}\n`)
}
process.stdout.write(`${chosen.length - missed} of ${chosen.length} planted faults found\n`)
process.exitCode = missed === 0 ? 0 : 1
