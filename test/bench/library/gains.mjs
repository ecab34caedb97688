/**
 * Gains of tuned algorithms of the matmul library: each matmul of a BERT-base layer at six shapes over the library's first algorithm, and the
 * plans that leave matmuls to the library with and without tuning. Run it on a machine with a GPU; a bundle has its own node:
 *
 *     heddle/node test/bench/library/gains.mjs OUT heddle/heddle
 *     node test/bench/library/gains.mjs OUT node dist/cli.js
 *
 * OUT gets tuning.json, the results of every command as JSON, and gains.md, whose tables belong between the marks of
 * src/docs/results.md; `node test/bench/library/gains.mjs OUT --write src/docs/results.md` puts them there.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const shapes = '1x32,1x128,8x128,32x128,32x512,128x128'
const layer = ['--heads', '12', '--size', '64', '--shapes', shapes]
const floats = ['unfused', 'ft-v1', 'ft-v2.1']

/** Storage type of each run, the plans whose matmuls are tuned, and those that are timed. */
const runs = [
  { name: 'f16', dtype: 'f16', tuned: floats, timed: floats },
  { name: 'f32', dtype: 'f32', tuned: floats, timed: floats },
  { name: 'int8', dtype: 'f16', tuned: ['int8-row'], timed: ['int8-row'] },
]

const begin = '<!-- library gains: begin -->'
const end = '<!-- library gains: end -->'

const row = (cells) => `| ${cells.join(' | ')} |\n`
const table = (head, rows) => row(head) + row(head.map((_, i) => (i === 0 ? '---' : '---:'))) + rows.map(row).join('')

const labels = ({ used }) => used.map((label) => label.replace(/^.*\//, '')).join(', ')

const saved = ({ first, best, kept }) => (kept == null ? '0' : (100 * (1 - best.median / first.median)).toFixed(1))

/** A table of the matmuls of one run: those that the library does not take have no times. */
export function matmulTable(results) {
  const rows = results.map((result) => {
    const { offered, refused, first, best } = result
    const times = first == null ? ['', '', ''] : [first.median.toPrecision(3), best.median.toPrecision(3), saved(result)]
    return [result.extents.join(' x '), labels(result), offered, refused.length, ...times]
  })
  return table(['batch x m x n x k', 'of', 'offered', 'refused', 'first us', 'best us', 'saved %'], rows)
}

/** A table of plans by shape: milliseconds with the library's first algorithms and with tuned ones, and their ratio. */
export function planTable(results) {
  const plans = [...new Set(results.map(({ plan }) => plan.replace(/ tuned$/, '')))]
  const at = [...new Set(results.map(({ batch, seq }) => `${batch}x${seq}`))]
  const median = (plan, shape) =>
    results.find((each) => each.plan === plan && `${each.batch}x${each.seq}` === shape)?.milliseconds.median
  const rows = at.map((shape) => [
    shape,
    ...plans.flatMap((plan) => {
      const [first, tuned] = [median(plan, shape), median(`${plan} tuned`, shape)]
      return first === undefined || tuned === undefined
        ? ['', '', '']
        : [first.toPrecision(4), tuned.toPrecision(4), (tuned / first).toFixed(3)]
    }),
  ])
  return table(['batch x length', ...plans.flatMap((plan) => [`\`${plan}\``, 'tuned', 'ratio'])], rows)
}

/** The section, from the results of all runs by their names. */
export function section(found) {
  const [{ device }] = Object.values(found).map(({ tune }) => tune)
  const version = `${Math.floor(device.matmulVersion / 1e4)}.${Math.floor(device.matmulVersion / 100) % 100}`
  const parts = Object.entries(found).map(
    ([name, { tune, bench }]) =>
      `${name}, matmuls of a layer:\n\n${matmulTable(tune.results)}\n${name}, twelve layers, in milliseconds:\n\n${planTable(bench.results)}`,
  )
  return `${device.name}, cuBLASLt ${version}, 12 heads of 64, shapes ${shapes.replaceAll(',', ', ')}.\n\n${parts.join('\n')}`
}

/** A page with the section in the place of what is between its marks. */
export function written(page, text) {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`the page lacks ${begin} and ${end}`)
  return `${page.slice(0, from + begin.length)}\n\n${text}\n${page.slice(to)}`
}

function heddle([program, ...before], words, file) {
  process.stderr.write(`heddle ${words.join(' ')}\n`)
  const { status, stdout } = spawnSync(program, [...before, ...words, '--json'], {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  if (status !== 0) throw new Error(`heddle ${words[0]} ended with ${status}`)
  writeFileSync(file, stdout)
}

function measure(out, command) {
  mkdirSync(out, { recursive: true })
  const tuning = join(out, 'tuning.json')
  for (const { name, dtype, tuned } of runs)
    heddle(
      command,
      ['tune', '--library', ...layer, '--dtype', dtype, '--plans', tuned.join(), '--out', tuning],
      join(out, `tune-${name}.json`),
    )
  for (const { name, dtype, timed } of runs) {
    const words = ['bench', 'encoder', '--config', 'bert-base', '--shapes', shapes, '--dtype', dtype, '--plans', timed.join()]
    heddle(command, [...words, '--algorithms', tuning], join(out, `bench-${name}.json`))
  }
}

function main([out, ...rest]) {
  const read = (file) => JSON.parse(readFileSync(join(out, file), 'utf8'))
  const page = rest[0] === '--write' ? rest[1] : undefined
  if (page === undefined)
    measure(
      out,
      rest.map((word) => (existsSync(word) ? resolve(word) : word)),
    )
  const found = Object.fromEntries(
    runs.map(({ name }) => [name, { tune: read(`tune-${name}.json`), bench: read(`bench-${name}.json`) }]),
  )
  const text = section(found)
  writeFileSync(join(out, 'gains.md'), text)
  if (page !== undefined) writeFileSync(page, written(readFileSync(page, 'utf8'), text))
  process.stdout.write(text)
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) main(process.argv.slice(2))
