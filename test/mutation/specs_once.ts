/**
 * Reads the specs with the front end once for a whole run: it is not mutated, and a mutant's tests are a new process each time. The initial run of
 * all tests caches the result in a folder beside Stryker's copy of the project. It includes everything else that tests request from the front end:
 * a test file that does not load would count as one that notices nothing.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { vi } from 'vitest'
import type * as Frontend from '../../src/frontend/index.js'

const folder = resolve('..', 'specs')
const shared: { specs?: Map<string, Frontend.Specs> } = globalThis as { specs?: Map<string, Frontend.Specs> }

vi.mock('../../src/frontend/index.js', async (original) => {
  const actual = await original<typeof Frontend>()
  const isComplete = existsSync(join(folder, 'complete'))
  const readSpecsOrThrow = (given: Frontend.ReadOptions): Frontend.Specs => {
    shared.specs ??= new Map()
    const key = createHash('sha256').update(JSON.stringify(given)).digest('hex')
    const file = join(folder, key)
    if (!isComplete && !existsSync(file)) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(file, serialize(actual.readSpecsOrThrow(given)))
    }
    const found = shared.specs.get(key) ?? (deserialize(readFileSync(file)) as Frontend.Specs)
    shared.specs.set(key, found)
    return found
  }
  return { ...actual, readSpecsOrThrow }
})
