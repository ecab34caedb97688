/** Third-party code ships with its licences: the portable file has a text for every package that the sources import. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import packaged from '../../package.json' with { type: 'json' }
import { packageRoot } from '../../src/toolchain/index.js'

/** Dependencies that the portable file leaves out: it compiles neither specs nor the addon. */
const left = ['ts-morph', 'cmake-js', 'node-addon-api', 'node-api-headers']

const sources = readdirSync(join(packageRoot(), 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !/^(explorer\/client|editor|docs)\//.test(file))
  .map((file) => readFileSync(join(packageRoot(), 'src', file), 'utf8'))
const imported = Object.keys(packaged.dependencies).filter(
  (name) =>
    !left.includes(name) &&
    sources.some((text) => new RegExp(`^(import (?!type )|\\} )[^;\\n]*from '${name}(/|')`, 'm').test(text)),
)
const lacking = (texts: string): string[] => imported.filter((name) => !texts.split('\n').includes(name))

test('every package in the portable file has its licence text', () => {
  const texts = readFileSync(join(packageRoot(), 'dist', 'portable-licences.txt'), 'utf8')
  expect(imported).toEqual(expect.arrayContaining(['execa', 'handlebars', 'zod']))
  expect(lacking(texts)).toEqual([])
  // The twin: a package that is left out is reported as missing.
  expect(lacking(texts.replace(/^zod$/m, ''))).toEqual(['zod'])
})
