/**
 * Sources of authors through nvcc: no warning, no spill, in every storage type. Some sources of two projects, as the commit's files draw them;
 * all of them with `HEDDLE_CORPUS=all`, which a machine with many cores takes minutes for.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cacheFolder } from '../../src/toolchain/index.js'
import { compileFiles } from '../../src/toolchain/objects.js'
import { recipeFor } from '../../src/toolchain/recipe.js'
import { keyFiles } from '../../src/toolchain/sources.js'
import { projects, repository, sampleOf, sourcesOf } from './corpus.js'

const isAll = process.env.HEDDLE_CORPUS === 'all'
const minutes = 60_000
/** Sources of a project that a sample compiles. */
const most = 4
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-corpus-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('nvcc', () => {
  it.each(isAll ? projects : sampleOf('projects', projects, 2))(
    'builds %s without a warning or a spill',
    async (project) => {
      const all = await sourcesOf(project, join(folder, basename(project)))
      expect(all.length).toBeGreaterThan(0)
      const recipe = await recipeFor('cuda', repository, { architecture: '90', codeOnly: true })
      const chosen = await keyFiles(recipe, isAll ? all : sampleOf(project, all, most))
      const built = await compileFiles(recipe, chosen, { cache: cacheFolder(), ...(isAll ? { together: 'headers' } : {}) })
      expect(built.flatMap(({ resources }) => resources).length).toBeGreaterThanOrEqual(chosen.length)
    },
    60 * minutes,
  )
})
