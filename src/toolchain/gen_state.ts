/**
 * Check that the generated source matches the project's specs. A failing `gen` leaves a note. Without it, a build of older source, or of the
 * shipped kernels instead of the project's own, would pass for a build of the current specs.
 */
import { existsSync, readdirSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { writeWhole } from '../output.js'
import { outputs, packageRoot } from './paths.js'

const noteOf = (root: string): string => join(outputs(root).base, 'gen-failed.txt')

/** Records the error of `gen`, or its success. A read-only project has no note. */
export async function noteGen(root: string, failure: string | undefined): Promise<void> {
  const note = noteOf(root)
  if (failure === undefined) return rm(note, { force: true })
  await writeWhole(note, failure).catch(() => undefined)
}

/** First line of the error of the last `gen`. */
async function lastFailure(root: string): Promise<string | undefined> {
  const text = await readFile(noteOf(root), 'utf8').catch(() => undefined)
  return text?.split('\n').find((line) => line.trim() !== '')
}

const hasSpecs = (root: string): boolean => {
  const specs = join(root, 'specs')
  return existsSync(specs) && readdirSync(specs, { recursive: true, encoding: 'utf8' }).some((name) => name.endsWith('.ts'))
}

/** @throws usage `build.generated` if the project's specs were not generated, or with errors */
export async function expectGenerated(root: string): Promise<void> {
  const failure = await lastFailure(root)
  if (failure !== undefined) {
    throw usageError('build.generated', `the last \`heddle gen\` failed: ${failure}`, {
      hint: 'correct the specs and run `heddle gen` again, or select kernels to build as they are with --filter',
    })
  }
  const manifest = join(root, 'generated', 'manifest.json')
  if (existsSync(manifest) || root === packageRoot() || !hasSpecs(root)) return
  throw usageError('build.generated', `${join(root, 'specs')} holds spec modules, but ${manifest} is missing`, {
    hint: 'run `heddle gen` first',
  })
}
