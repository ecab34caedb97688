/** Entry points of the package load no native module, so that they can be imported on any system. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const home = fileURLToPath(new URL('../../..', import.meta.url))
const entries = ['index', 'runtime', 'testing', 'commands', 'std', 'text', 'checkpoint', 'register', 'bundler', 'lint'].map(
  (name) => `${home}/dist/${name}.js`,
)

/** Names of addons that a process has loaded after some code. */
const loaded = (code: string): unknown =>
  JSON.parse(
    execFileSync(
      process.execPath,
      [
        '--input-type=module',
        '-e',
        `${code}; console.log(JSON.stringify(process.report.getReport().sharedObjects.filter((name) => name.endsWith('.node'))))`,
      ],
      { encoding: 'utf8' },
    ),
  )

it('imports every entry point without an addon', () =>
  expect(loaded(entries.map((path) => `await import(${JSON.stringify(path)})`).join(';'))).toEqual([]))

it('opens the device js without one', () => {
  const runtime = JSON.stringify(`${home}/dist/runtime.js`)
  expect(loaded(`const { openDevice } = await import(${runtime}); await (await openDevice('js')).close()`)).toEqual([])
})
