/**
 * A scratch project with the specs of many ops and graphs: one `gen`, one library and one device for all of them. A refused module is taken out, with its
 * code, and the rest is generated again.
 */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { HeddleError } from '../../src/errors.js'
import type { Device } from '../../src/runtime/api/index.js'
import { type DeviceKind, heddle, openProject } from './house.js'

/** A module that is refused by a code, or with which the compiler fails. */
export interface Refusal {
  readonly name: string
  readonly code: string
  readonly message: string
}

/** Texts of modules by name, without extension. */
export type Modules = ReadonlyMap<string, string>

/** The modules of a project. */
export interface Parts {
  /** Each may be refused for itself. */
  readonly modules: Modules
  /** The module that one imports; without it the importer is removed too. */
  readonly needs?: (name: string) => string | undefined
  /** Modules that all may import. */
  readonly shared?: Modules
  /** The text of `index.ts`, by the remaining modules. */
  readonly index?: (kept: readonly string[]) => string
}

const home = fileURLToPath(new URL('../..', import.meta.url))

/** Codes of refusals of a spec: any other code is a failure of the compiler. */
export const isRefusal = (code: string): boolean => /^(HED\d+|TS\d+|(plan|graph|schedule)\.\w+|build\.spill)$/.test(code)

export class Project {
  readonly root = mkdtempSync(join(tmpdir(), 'heddle-fuzz-'))
  /** Modules that were taken out. */
  readonly refused: Refusal[] = []
  readonly #parts: Parts
  #kept: readonly string[]

  constructor(parts: Parts) {
    this.#parts = parts
    this.#kept = [...parts.modules.keys()]
    mkdirSync(join(this.root, 'specs'))
    linkPackage(this.root)
    writeFileSync(join(this.root, 'package.json'), '{ "name": "fuzzed", "type": "module", "dependencies": { "heddle": "*" } }\n')
    for (const [name, text] of [...(parts.shared ?? []), ...parts.modules]) writeFileSync(this.#file(name), text)
  }

  #file(name: string): string {
    return join(this.root, 'specs', `${name}.ts`)
  }

  get kept(): readonly string[] {
    return this.#kept
  }

  /** Removes modules, and records the reason. @throws if there are none, since retrying would not help */
  #refuse(found: readonly Refusal[], said: string): void {
    if (found.length === 0) throw new Error(`what fails is of no module: ${said}`)
    const gone = new Set(found.map(({ name }) => name))
    for (const name of this.#kept) if (gone.has(this.#parts.needs?.(name) ?? '')) gone.add(name)
    for (const name of gone) rmSync(this.#file(name))
    this.#kept = this.#kept.filter((name) => !gone.has(name))
    this.refused.push(...found)
  }

  /** Generates the modules that are not refused. */
  async #generate(): Promise<void> {
    while (this.#kept.length > 0) {
      if (this.#parts.index !== undefined) writeFileSync(this.#file('index'), this.#parts.index(this.#kept))
      const { code, out, log } = await heddle(this.root, 'gen', '--json')
      if (code === 0) return
      this.#refuse(refusals(failureOf(out, log), this.#kept), `${out}${log}`)
    }
  }

  /** A device with the kernels of all remaining modules; undefined if there are none. */
  async open(kind: DeviceKind): Promise<Device | undefined> {
    for (;;) {
      await this.#generate()
      if (this.#kept.length === 0) return undefined
      try {
        return await openProject(this.root, kind)
      } catch (error) {
        if (!(error instanceof HeddleError)) throw error
        this.#refuse(refusals({ code: error.code, message: error.message }, this.#kept), error.message)
      }
    }
  }

  /** Imports a module. */
  async load(name: string): Promise<Readonly<Record<string, unknown>>> {
    return import(/* @vite-ignore */ pathToFileURL(this.#file(name)).href)
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

/** The package of this checkout, with the types of its last build. */
function linkPackage(root: string): void {
  mkdirSync(join(root, 'node_modules'))
  symlinkSync(home, join(root, 'node_modules/heddle'))
}

interface Said {
  readonly code: string
  readonly message: string
}

/** Every module that a failure names, with the code it is refused with: of diagnostics each its own, else the failure's. */
function refusals({ code, message }: Said, names: readonly string[]): Refusal[] {
  const found = new Map<string, Refusal>()
  for (const [line, name = '', own = ''] of message.matchAll(/^specs\/(\w+)\.ts:\d+:\d+ ([\w.]+):.*$/gm))
    if (names.includes(name) && !found.has(name)) found.set(name, { name, code: own, message: line })
  if (found.size > 0) return [...found.values()]
  const words = new Set(message.match(/[a-z]+_\d+(?:_\d+)?(?=__|\b|_[a-z])/g))
  return names.filter((name) => words.has(name)).map((name) => ({ name, code, message }))
}

function failureOf(out: string, log: string): Said {
  try {
    const { code, message, place } = JSON.parse(out.slice(out.indexOf('{'))).error
    // A failure of one module has a place in addition to the message, and names other modules that it concerns.
    const isOne = code !== 'frontend.rejected' && typeof place?.file === 'string'
    return {
      code: String(code),
      message: isOne ? `${place.file}:${place.line}:${place.column} ${code}: ${message}` : String(message),
    }
  } catch {
    return { code: 'crash', message: `${out}${log}` }
  }
}
