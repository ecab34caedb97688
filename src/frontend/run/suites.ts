/**
 * Benchmark suites of a project: the exports of a module such as `bench.ts`, which `heddle bench suite` runs. The module and what it imports by
 * relative paths are transpiled into their own folder below `.heddle`, as spec modules are.
 */
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { usageError } from '../../errors.js'
import type { SuiteDecl } from '../../lang/suite.js'
import { openMemo } from '../../memo.js'
import { isWithin, nameIn } from '../../path_names.js'
import { makeScratch } from '../../scratch.js'
import { tsMorph } from '../project/typescript.js'
import { translated } from './declarations.js'
import { Places } from './places.js'
import { SourceMaps } from './source_maps.js'

/**
 * @param file path of the module, relative to the project
 * @throws usage `suite.file` for a module that cannot be run or exports no suite, `suite.config` with its location
 */
export async function readSuites(root: string, file: string): Promise<readonly SuiteDecl[]> {
  const path = resolve(root, file)
  if (!existsSync(path)) {
    throw usageError('suite.file', `there is no file ${file}`, {
      hint: 'write one: export default defineSuite({ subject, plans, shapes, dtypes })',
    })
  }
  const folder = await makeScratch(root, 'suite')
  const maps = new SourceMaps(root)
  try {
    await transpileAll(root, path, folder, maps)
    const suites = Object.values(await run(root, path, folder, maps)).filter(isSuite)
    if (suites.length === 0) {
      throw usageError('suite.file', `${file} exports no suite`, { hint: 'export default defineSuite({ ... })' })
    }
    const names = suites.map(({ name }) => name)
    const twice = names.find((name, i) => names.indexOf(name) !== i)
    if (twice !== undefined)
      throw usageError('suite.file', `${file} exports two suites called ${twice}`, {
        hint: 'give them names: defineSuite({ name })',
      })
    return suites
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes a module and its relative imports below a folder, at their paths in the project. @throws usage `suite.file` */
async function transpileAll(root: string, entry: string, folder: string, maps: SourceMaps): Promise<void> {
  const { ts } = tsMorph()
  const memo = openMemo(root)
  const waiting = [entry]
  const seen = new Set(waiting)
  for (const path of waiting) {
    if (!isWithin(root, path)) {
      throw usageError('suite.file', `${path} is outside of the project`, { hint: `keep it below ${root}` })
    }
    const out = join(folder, nameIn(root, path).replace(/\.ts$/, '.js'))
    await mkdir(dirname(out), { recursive: true })
    if (!path.endsWith('.ts')) {
      await copyFile(path, out)
      continue
    }
    const source = await readFile(path, 'utf8')
    const { text, map } = translated(path, source, memo)
    if (map !== undefined) maps.add(out, path, map)
    await writeFile(out, text)
    for (const { fileName } of ts.preProcessFile(source, true, true).importedFiles) {
      const found = fileName.startsWith('.') ? sourceOf(resolve(dirname(path), fileName)) : undefined
      if (found === undefined || seen.has(found)) continue
      seen.add(found)
      waiting.push(found)
    }
  }
  // Without it, a project of another module type would turn the modules into CommonJS.
  const manifest = join(root, 'package.json')
  const isModule = existsSync(manifest) && /"type"\s*:\s*"module"/.test(await readFile(manifest, 'utf8'))
  if (!isModule) await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
}

/** The file of an import: `./ops.js` is `./ops.ts` if that exists. Undefined for a missing one, which Node reports. */
const sourceOf = (path: string): string | undefined => [path.replace(/\.js$/, '.ts'), path].find((each) => existsSync(each))

async function run(root: string, path: string, folder: string, maps: SourceMaps): Promise<Readonly<Record<string, unknown>>> {
  const place = nameIn(root, path)
  try {
    const url = pathToFileURL(join(folder, place.replace(/\.ts$/, '.js'))).href
    return (await import(url)) as Readonly<Record<string, unknown>>
  } catch (error) {
    const places = new Places(root, maps)
    const located = places.located(error)
    if (located instanceof Error && located.name === 'HeddleError') throw located
    const thrown = places.thrownAt(error instanceof Error ? error.stack : undefined)
    const at = thrown === undefined ? '' : `${thrown.place.file}:${thrown.place.line}:${thrown.place.column}: `
    const reason = error instanceof Error ? error.message : String(error)
    throw usageError('suite.file', `${at}${place} cannot be imported: ${reason.split('\n')[0]}`, {
      hint: 'it may import heddle and modules of the project by relative paths',
      cause: error,
      ...(thrown === undefined ? {} : { places: [thrown.place] }),
    })
  }
}

const isSuite = (value: unknown): value is SuiteDecl =>
  typeof value === 'object' && value !== null && 'kind' in value && value.kind === 'suite' && 'shapes' in value
