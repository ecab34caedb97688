/** The corpus for nvcc: its size, and that some commit draws every part. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { projects, repository, sampleOf } from './corpus.js'

it('has more than two hundred ops in three storage types', () => {
  const ops = projects.flatMap((project) =>
    readdirSync(join(repository, project, 'specs'))
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) => readFileSync(join(repository, project, 'specs', file), 'utf8').match(/= (op|graph)\('/g) ?? []),
  )
  expect(ops.length).toBeGreaterThan(200)
  expect(projects).toContain('test/projects/corpus')
  expect(projects).toContain('test/examples/05-attention')
})

it('is drawn in parts, each source once', () => {
  const all = Array.from({ length: 40 }, (_, at) => at)
  const part = sampleOf('some project', all, 4)
  expect(new Set(part).size).toBe(4)
  expect(sampleOf('some project', all, 4)).toEqual(part)
  expect(sampleOf('some project', [1, 2], 4)).toHaveLength(2)
  // The sample depends on the project: not every project draws its first op.
  const firsts = new Set(Array.from({ length: 40 }, (_, at) => sampleOf(`project ${at}`, all, 1)[0]))
  expect(firsts.size).toBeGreaterThan(10)
})
